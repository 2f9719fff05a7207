"""The protocol of the statistics that filters are updated from, and what those of the host share.

B = Zᵀx and C = ZᵀZ, summed over signals, are all that the dictionary update needs from the codes. `toeplitz` and `dense`
hold these sums on the host, `device` holds them on a GPU. They are never averages: what is added is weighted by the caller.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.problem import Geometry, broadcast_penalty, inner, synthesise


@dataclass(frozen=True, eq=False)
class CodedBatch:
    """Signals of any shapes with their codes, as statistics take them in.

    Parameters
    ----------
    signals : sequence of (channels, *space) arrays
    weights : None or sequence of arrays like the signals
        w ≥ 0; None is ones everywhere.
    codes : SparseCodes
    residuals : sequence of (channels, *space) arrays
        w (x − Dz) for the filters D that the codes were solved for.
    boundary : {"same", "valid", "full", "circular"}
    """

    signals: Sequence[NDArray]
    weights: Sequence[NDArray] | None
    codes: SparseCodes
    residuals: Sequence[NDArray]
    boundary: str = "same"

    def __len__(self) -> int:
        return len(self.signals)

    def take(self, members: Sequence[int]) -> "CodedBatch":
        """Some of the signals."""
        weights = None if self.weights is None else [self.weights[i] for i in members]
        residuals = [self.residuals[i] for i in members]
        return CodedBatch([self.signals[i] for i in members], weights, self.codes[members], residuals, self.boundary)

    def geometry(self, filters: NDArray, i: int = 0) -> Geometry:
        """The geometry of signal i with filters (n_filters, channels, *size)."""
        return Geometry(self.signals[i].shape[1:], filters.shape[2:], filters.shape[1], self.boundary)


class Statistics(Protocol):
    """Sums over signals from which the filters are updated.

    Attributes
    ----------
    total : float
        How much all signals that were added count together.
    device : str
        Where the sums live: "cpu", or the name of a CUDA device.
    """

    total: float
    device: str

    def add(self, batch: CodedBatch, filters: NDArray, counts: NDArray, n_jobs: int = 1) -> None:
        """Add signals that were coded with `filters`; ``counts[i]`` is how much signal i counts.

        The sums do not depend on `n_jobs`, the number of threads.
        """

    def objectives(self, batch: CodedBatch, filters: NDArray, penalty: float | NDArray) -> NDArray:
        """½ Σ w (x − Dz)² + Σ λ|z| of each signal for its codes and any filters, in float64."""

    def sweep(
        self,
        filters: NDArray,
        constraints: FilterConstraints,
        chosen: NDArray | None = None,
        *,
        relaxation: float = 1.0,
        n_jobs: int = 1,
    ) -> NDArray:
        """One pass of projected block coordinate descent over all filters or the chosen ones, in their precision.

        ``chosen`` has the numbers of filters, ascending; the others stay as they are. Gradient steps are `relaxation` times
        as long as the bound of the curvature says; below two they descend. The filters do not depend on `n_jobs`, the
        number of threads.
        """

    def energies(self) -> NDArray:
        """Σ z² for each filter."""

    def retire(self, filters: NDArray, which: NDArray) -> None:
        """Let other filters take the place of some: what these explained so far stays explained by them, for good."""

    def permute(self, order: NDArray) -> None:
        """Follow filters that were reordered as ``filters[order]``."""

    def arrays(self) -> dict[str, NDArray]:
        """The sums as arrays of the host, for storage and for other statistics of the same kind."""

    def load(self, arrays: dict[str, NDArray]) -> None:
        """Replace the sums by those that `arrays` gave."""


def host_objectives(batch: CodedBatch, filters: NDArray, penalty: float | NDArray) -> NDArray:
    """Compute `Statistics.objectives` for signals and codes on the host."""
    exact = filters.astype(np.float64)
    shapes = [signal.shape[1:] for signal in batch.signals]
    fits = synthesise(batch.codes, exact, shapes, filters.shape[1], batch.boundary)
    prices = {
        shape: broadcast_penalty(penalty, len(filters), batch.geometry(filters, shapes.index(shape)))
        for shape in set(shapes)
    }
    objectives = np.empty(len(batch))
    for i, (signal, fit) in enumerate(zip(batch.signals, fits, strict=True)):
        squares = (signal - fit) ** 2
        loss = 0.5 * float(np.sum(squares if batch.weights is None else batch.weights[i] * squares))
        price = prices[shapes[i]]
        owner, position = np.divmod(batch.codes.indices[i], prod(batch.codes.grids[i]))
        paid = price[owner, position if price.shape[1] > 1 else 0]
        objectives[i] = loss + inner(paid, np.abs(batch.codes.values[i]))
    return objectives
