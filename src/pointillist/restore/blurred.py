"""Codes of blurred filters, found through the plain ones: ⟨h∗d, r⟩ = ⟨d, hᵀ∗r⟩ holds at every position.

A scan of all positions is most of the work of coding a blurred picture, and blurred filters have several times the samples
of plain ones. So the residual is correlated with the blur once, by Fourier transforms, and then scanned with the plain
filters. Descent and certificate stay those of the blurred problem.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from pointillist.model.geometry import Geometry
from pointillist.model.problem import Problem
from pointillist.solvers import CoordinateDescent
from pointillist.solvers.base import Mapper
from pointillist.solvers.scanning import DescentState


@dataclass(frozen=True, eq=False)
class BlurredState(DescentState):
    """A problem of blurred filters, with what scans of the plain ones need.

    Attributes
    ----------
    plain : (n_filters, channels, height, width) array
        Filters before the blur.
    kernel : (height, width) array
    """

    plain: NDArray
    kernel: NDArray

    @cached_property
    def unblurred(self) -> DescentState:
        """Plain filters on the area that the codes of the blurred problem place them on."""
        size, grid = self.plain.shape[2:], self.problem.geometry.grid
        space = tuple(g + f - 1 for g, f in zip(grid, size, strict=True))
        area = Geometry(space, size, self.plain.shape[1], "valid")
        penalty, nonnegative = self.problem.penalty, self.problem.nonnegative
        return DescentState(Problem(filters=self.plain, geometry=area, penalty=penalty, nonnegative=nonnegative))

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """Shape of the Fourier transforms, in which nothing wraps around where it is read."""
        return tuple(scipy.fft.next_fast_len(n, real=True) for n in self.problem.geometry.padded)

    @cached_property
    def _response(self) -> NDArray:
        return np.conj(scipy.fft.rfft2(self.kernel, self._shape))

    def _pulled_back(self, residual: NDArray) -> NDArray:
        """hᵀ∗r, laid out as the plain filters' signals are. In float64, whose rounding does not show in the certificate."""
        geometry, area = self.problem.geometry, self.unblurred.problem.geometry
        box = residual[: geometry.channels * int(np.prod(geometry.padded))].reshape(geometry.channels, *geometry.padded)
        spectrum = scipy.fft.rfft2(box.astype(np.float64), self._shape) * self._response
        pulled = scipy.fft.irfft2(spectrum, self._shape)[:, : area.signal[0], : area.signal[1]]
        return area.spread(np.ascontiguousarray(pulled, residual.dtype))

    def scan(self, residual: NDArray, best: NDArray, winner: NDArray, mapper: Mapper) -> None:
        self.unblurred.scan(self._pulled_back(residual), best, winner, mapper)

    def scan_positions(
        self, residual: NDArray, positions: NDArray, best: NDArray, winner: NDArray, mapper: Mapper
    ) -> None:
        self.unblurred.scan_positions(self._pulled_back(residual), positions, best, winner, mapper)


@dataclass(frozen=True, kw_only=True)
class BlurredDescent(CoordinateDescent):
    """Coordinate descent on blurred filters, scanned through the plain ones."""

    plain: NDArray
    kernel: NDArray

    def rescaled(self, weights: int, filters: NDArray) -> Self:
        """These settings for weights and filters divided by 2 to the powers `weights` and `filters`.

        The plain filters are divided as the blurred ones are.
        """
        plain = np.ldexp(self.plain, -filters.reshape(-1, *[1] * (self.plain.ndim - 1)))
        return replace(super().rescaled(weights, filters), plain=plain)

    def prepare(self, problem: Problem) -> BlurredState:
        plain = self.plain.astype(problem.filters.dtype, copy=False)
        return BlurredState(problem, plain, self.kernel)


def blurred_coder(plain: NDArray, kernel: NDArray, settings: CoordinateDescent) -> CoordinateDescent:
    """The quickest coder of h∗d_k: through the plain filters where the blur is more than a point."""
    if kernel.size == 1:
        return settings
    values = {one.name: getattr(settings, one.name) for one in fields(CoordinateDescent)}
    return BlurredDescent(**values, plain=plain, kernel=kernel)
