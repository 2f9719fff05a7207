"""Codes of blurred detail, found in turns: a linear step undoes the blur, and what it says is coded with plain filters.

    minimise over x and z   ½ Σ w (y − h∗x)² + ½ ρ ‖x − Dz‖² + λ Σ|z|

Blurred filters are large and alike, so that descent on their codes takes long. Here only plain filters are coded, each
time from the codes before. A turn is the best x for given codes, by a few conjugate gradients in Fourier space, and then
the codes of x with penalty λ / ρ. The first turns have a small ρ, which lets x go where the samples pull it, and a small λ.
The schedule is part of the answer: few turns of it come nearer to sharp photographs than the minimiser for one ρ.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.restore.blur import Blur
from pointillist.restore.engine import Settings, quick_coder
from pointillist.restore.tiling import share_of
from pointillist.solvers.base import Result
from pointillist.solvers.device import on_device
from pointillist.solvers.encoding import encode_signals

_TURNS = 9
_COUPLING = (5e-4, 0.04)  # ρ of the first and the last turn
_FIRST_PENALTY = 0.18  # of the last turn's
_FIRST_STEPS, _STEPS = 8, 2


@dataclass(frozen=True, eq=False)
class Blurred:
    """Detail seen through a blur, on an area that holds every plain filter of the codes' grid.

    Attributes
    ----------
    detail, weights : (channels, height, width) arrays
        What was seen, and how much each sample counts.
    blur : Blur
    size : (height, width)
        Of the plain filters.
    boundary : {"same", "full"}
        Of the codes, as if blurred filters were coded: indices mean the same.
    workers : int
        Threads of the Fourier transforms.
    """

    detail: NDArray
    weights: NDArray
    blur: Blur
    size: tuple[int, ...]
    boundary: str
    workers: int = 1

    @cached_property
    def area(self) -> tuple[int, ...]:
        """Height and width of the area of x."""
        return tuple(g + f - 1 for g, f in zip(self._seen.grid, self.size, strict=True))

    @cached_property
    def _seen(self) -> Geometry:
        channels, *space = self.detail.shape
        return Geometry(tuple(space), self.blur.extended(self.size), channels, self.boundary)

    @cached_property
    def _box(self) -> tuple[slice, ...]:
        """Where the seen samples lie on the area."""
        first = [offset - c for offset, c in zip(self._seen.offset, self.blur.centre, strict=True)]
        return (slice(None), *(slice(a, a + n) for a, n in zip(first, self.detail.shape[1:], strict=True)))

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """Shape of the Fourier transforms: no seen sample meets the other side of the area."""
        ends = zip(self.area, self.blur.kernel.shape, self._box[1:], strict=True)
        lengths = [max(n + max(k - 1 - b.start, 0), b.stop + k - 1) for n, k, b in ends]
        return tuple(scipy.fft.next_fast_len(n, real=True) for n in lengths)

    @cached_property
    def _response(self) -> NDArray:
        kernel = np.zeros(self._shape, np.float32)
        kernel[: self.blur.kernel.shape[0], : self.blur.kernel.shape[1]] = self.blur.kernel
        return scipy.fft.rfft2(np.roll(kernel, [-c for c in self.blur.centre], (0, 1)))

    @cached_property
    def _power(self) -> NDArray:
        return np.abs(self._response) ** 2

    def nearest(self, x: NDArray, target: NDArray, rho: float, steps: int) -> NDArray:
        """The x (channels, *area) of least ½ Σ w (y − h∗x)² + ½ ρ ‖x − target‖², by conjugate gradients from some x."""
        inverse = 1 / (self._power + np.float32(rho))
        residual = self._adjoint(self.weights * (self.detail - self._apply(x))) + rho * (target - x)
        direction, size = np.zeros_like(x), np.inf
        for _ in range(steps):
            step = self._filtered(residual, inverse)
            size, previous = float(np.vdot(residual, step)), size
            direction = step + np.float32(size / previous) * direction
            image = self._adjoint(self.weights * self._apply(direction)) + rho * direction
            curvature = float(np.vdot(direction, image))
            if not curvature > 0:  # nothing is left to do
                break
            length = np.float32(size / curvature)
            x = x + length * direction
            residual -= length * image
        return x

    def _filtered(self, x: NDArray, symbol: NDArray) -> NDArray:
        spectrum = scipy.fft.rfft2(x, self._shape, workers=self.workers) * symbol
        return scipy.fft.irfft2(spectrum, self._shape, workers=self.workers)[:, : self.area[0], : self.area[1]]

    def _apply(self, x: NDArray) -> NDArray:
        """The samples that would be seen of x."""
        return self._filtered(x, self._response)[self._box]

    def _adjoint(self, y: NDArray) -> NDArray:
        """The transpose of `_apply`."""
        wide = np.zeros((len(y), *self.area), np.float32)
        wide[self._box] = y
        return self._filtered(wide, np.conj(self._response))


def code_in_turns(blurred: Blurred, filters: NDArray, penalty: float, settings: Settings) -> Result:
    """Codes of the detail behind a blur, with indices as those of blurred filters; λ of the last turn is `penalty`.

    The objective and the gap are those of the last turn's coding.
    """
    area = Geometry(blurred.area, tuple(filters.shape[2:]), len(blurred.detail), "valid")
    synthesis = ConvolutionOperator(filters, area)
    solver = on_device(quick_coder(settings.tol, cells=(2,), inner=0.9, max_sweeps=2), settings.device)
    fit = x = np.zeros((area.channels, *area.signal), np.float32)
    result = None
    penalties = penalty * np.geomspace(_FIRST_PENALTY, 1.0, _TURNS)
    for i, (rho, price) in enumerate(zip(np.geomspace(*_COUPLING, _TURNS).tolist(), penalties.tolist(), strict=True)):
        x = blurred.nearest(x, fit, rho, _STEPS if i else _FIRST_STEPS)
        result = encode_signals(
            [x],
            filters,
            price / rho,
            weights=None,
            boundary="valid",
            solver=solver,
            n_jobs=settings.n_jobs,
            start=None if result is None else result.codes,
            progress=share_of(settings.progress, i / _TURNS, (i + 1) / _TURNS),
        )
        fit = synthesis.synthesise(result.codes.indices[0], result.codes.values[0])
    assert result is not None, "there is at least one turn"
    return result
