"""Statistics that live on a CUDA device, for learners with ``device="cuda"``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.cuda.device import open_device
from pointillist.backends.cuda.sums import DeviceSums
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.statistics import ToeplitzStatistics
from pointillist.model.problem import Problem


class DeviceStatistics(ToeplitzStatistics):
    """`ToeplitzStatistics` whose sums stay on a device; the host has a copy only while it needs one."""

    def __init__(self, n_filters: int, channels: int, size: tuple[int, ...], device: str) -> None:
        if len(size) > 2:
            raise ValueError('device="cuda" learns from signals of one or two dimensions; use device="cpu" for more')
        super().__init__(n_filters, channels, size)
        rows, columns = (1, *self.size)[-2:]
        self._sums = DeviceSums(open_device(device), n_filters, channels, (rows, columns))

    def add(
        self,
        problem: Problem,
        i: int,
        signal: NDArray,
        indices: NDArray,
        values: NDArray,
        residual: NDArray,
        weight: float,
    ) -> None:
        weights = problem.weights_of(i)
        own = None if weights is None else [weights]
        self.add_all(problem, ([indices], [values]), [residual], np.array([weight]), own)

    def add_all(
        self,
        problem: Problem,
        codes: tuple[Sequence[NDArray], Sequence[NDArray]],
        residuals: Sequence[NDArray],
        counts: NDArray,
        weights: Sequence[NDArray] | None,
    ) -> None:
        """Add signals of one shape at once; `counts` is how much each of them counts."""
        largest = np.array([_largest(None if weights is None else weights[i]) for i in range(len(residuals))])
        geometry = problem.geometry
        self._energy += self._sums.add(
            (1, *geometry.grid)[-2:],
            problem.filters.reshape(self.n_filters, -1),
            *codes,
            _planes(residuals),
            (0, *geometry.offset)[-2:],
            counts * largest,
            1 / largest,
        )
        self.total += float(np.sum(counts))

    def losses(
        self,
        problem: Problem,
        codes: tuple[Sequence[NDArray], Sequence[NDArray]],
        signals: Sequence[NDArray],
        weights: Sequence[NDArray] | None,
    ) -> NDArray:
        """½ Σ w (x − Dz)² of signals (channels, *space) of the problem's shape, for its filters."""
        geometry = problem.geometry
        losses: NDArray = self._sums.losses(
            (1, *geometry.grid)[-2:],
            problem.filters.reshape(self.n_filters, -1),
            *codes,
            _planes(signals),
            (0, *geometry.offset)[-2:],
            None if weights is None else _planes(weights),
        )
        return losses

    def sweep(self, filters: NDArray, constraints: FilterConstraints) -> NDArray:
        support = np.ones((self.n_filters, prod(self.size)), bool)
        if constraints.support is not None:
            support = constraints.support.reshape(support.shape)
        flat = filters.reshape(self.n_filters, -1)
        moved = self._sums.sweep(flat, support, constraints.zero_mean, constraints.nonnegative)
        return moved.reshape(filters.shape).astype(filters.dtype)

    def lipschitz(self) -> NDArray:
        bounds: NDArray = self._sums.lipschitz().get()
        return bounds

    def energies(self) -> NDArray:
        energies: NDArray = self._sums.energies()
        return energies

    def product(self, filters: NDArray, k: int) -> NDArray:
        self._pull()
        return super().product(filters, k)

    def objective(self, filters: NDArray) -> float:
        self._pull()
        return self._energy + sum(
            0.5 * float(np.vdot(filters[k], super(DeviceStatistics, self).product(filters, k)))
            - float(np.vdot(filters[k], self._linear[k]))
            for k in range(self.n_filters)
        )

    def linear(self) -> NDArray:
        self._pull()
        return super().linear()

    def permute(self, order: NDArray) -> None:
        self._pull()
        super().permute(order)
        self._push()

    def arrays(self) -> dict[str, NDArray]:
        self._pull()
        return super().arrays()

    def restore(self, arrays: dict[str, NDArray]) -> None:
        super().restore(arrays)
        self._push()

    def _pull(self) -> None:
        self._linear[...] = self._sums.linear.get().reshape(self._linear.shape)
        self.pairs[...] = self._sums.pairs.get().reshape(self.pairs.shape)

    def _push(self) -> None:
        self._sums.linear.set(np.ascontiguousarray(self._linear).reshape(self._sums.linear.shape))
        self._sums.pairs.set(np.ascontiguousarray(self.pairs).reshape(self._sums.pairs.shape))


def _planes(arrays: Sequence[NDArray]) -> NDArray:
    """Arrays (channels, *space) of one or two dimensions as (n, channels, rows, columns)."""
    stacked = np.stack(arrays)
    return stacked if stacked.ndim == 4 else stacked[:, :, None, :]


def _largest(weights: NDArray | None) -> float:
    return 1.0 if weights is None else max(float(np.max(weights)), 1.0)
