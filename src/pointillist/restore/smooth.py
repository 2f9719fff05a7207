"""The smooth part of a picture, from the samples that were seen and through the same blur: filters describe detail only.

    minimise over s   ½ Σ w (y − h∗s)² + μ ‖∇²s‖²

A penalty on curvature instead of slope makes the smooth part continue gradients into holes: with the same filters that was
worth 0.4 dB at half of the pixels missing. Solved by conjugate gradients, preconditioned by the cosine transform, in
float32, whose rounding lies far below the tolerance. The first iterate has its holes filled from coarser pictures. The
iterations end when the residual is small and, for a few steps, no sample that was not seen has moved: holes hardly weigh
in the residual.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from pointillist.kernels.bending import bend
from pointillist.restore.blur import Blur
from pointillist.restore.levels import without_holes
from pointillist.restore.pictures import OPPONENT

CURVATURE = 2.0
"""μ: structures longer than about 2π (2μ)^¼ ≈ 9 pixels are smooth. The shipped filters are learned on what it leaves."""

_COLOUR = 20.0
_TOLERANCE = 1e-3
_STILL = 1e-3
_STILL_STEPS = 3
_MAX_STEPS = 500


@dataclass(frozen=True, eq=False)
class Smooth:
    """The smooth part as it is, and as it was seen through the blur; both (channels, height, width).

    `unsettled` is by how much the last step of its solver still moved a sample that was not seen, at most.
    """

    sharp: NDArray
    seen: NDArray
    unsettled: float


def smooth_part(
    signal: NDArray, weights: NDArray, blur: Blur | None = None, mu: float = CURVATURE, *, colour: bool = False
) -> Smooth:
    """Separate the smooth part of one signal.

    Parameters
    ----------
    signal, weights : (channels, height, width) arrays
        What was seen and with which weight; samples of weight zero are not read.
    blur : Blur, optional
        Through which the signal was seen.
    mu : float
        Weight of the squared second differences.
    colour : bool
        Whether the three channels are tied: colour differences are held smoother than luminance, which helps where
        channels are seen at different pixels.
    """
    blur = blur or Blur(np.ones((1, 1)))
    stiffness = mu * np.array([1.0, _COLOUR, _COLOUR] if colour else [1.0] * len(signal), np.float32)
    mix = OPPONENT.astype(np.float32) if colour else None
    shape = blur.extended(signal.shape[1:])
    roughness = 2 * stiffness[:, None, None] * _laplacian_symbol(shape) ** 2
    inverse = (1 / (np.mean(weights) * blur.power(shape) + roughness + 1e-12)).astype(np.float32)
    weights = weights.astype(np.float32)

    def matrix(s: NDArray) -> NDArray:
        mixed = _mixed(s, mix)
        bent = np.empty_like(mixed)
        bend(mixed, 2 * stiffness, bent)
        return blur.adjoint(weights * blur.apply(s)) + _mixed(bent, mix, back=True)

    def precondition(r: NDArray) -> NDArray:
        spectrum = scipy.fft.dctn(_mixed(r, mix), axes=(1, 2), norm="ortho")
        return _mixed(scipy.fft.idctn(spectrum * inverse, axes=(1, 2), norm="ortho"), mix, back=True)

    known = np.where(weights > 0, signal, 0.0).astype(np.float32)
    start = _start(known, weights > 0, blur)
    unseen = None
    if np.any(weights == 0):
        unseen = (blur.adjoint((weights > 0).astype(np.float32)) < _BARELY).astype(np.float32)
    s, unsettled = _conjugate_gradients(matrix, precondition, blur.adjoint(weights * known), start, unseen)
    sharp, seen = (one.astype(np.float64) for one in (blur.crop(s, signal.shape[1:]), blur.apply(s)))
    return Smooth(sharp, seen, unsettled)


_BARELY = 1e-3  # samples whose seen ones depend on them with less than this weight, in all, count as not seen


def _start(known: NDArray, seen: NDArray, blur: Blur) -> NDArray:
    """A first smooth part on all that seen samples depend on: holes from coarser pictures, borders repeated."""
    full = without_holes(known, seen) / np.float32(blur.gain)
    centre = [k - 1 - c for k, c in zip(blur.kernel.shape, blur.centre, strict=True)]
    ends = [(first, k - 1 - first) for first, k in zip(centre, blur.kernel.shape, strict=True)]
    return np.pad(full, [(0, 0), *ends], mode="edge")


def _mixed(x: NDArray, mix: NDArray | None, *, back: bool = False) -> NDArray:
    return x if mix is None else np.tensordot(mix.T if back else mix, x, 1)


def _conjugate_gradients(
    matrix: Callable[[NDArray], NDArray],
    precondition: Callable[[NDArray], NDArray],
    target: NDArray,
    start: NDArray,
    unseen: NDArray | None,
) -> tuple[NDArray, float]:
    """The solution, and by how much the last step moved an unseen sample at most."""
    x = np.array(start)
    residual = target - matrix(x)
    step = direction = precondition(residual)
    size = float(np.vdot(residual, step))
    goal = _TOLERANCE**2 * float(np.vdot(target, precondition(target)))
    moved, still = 0.0, 0
    for _ in range(_MAX_STEPS):
        if size <= goal and (unseen is None or still >= _STILL_STEPS):
            break
        image = matrix(direction)
        curvature = float(np.vdot(direction, image))
        if not curvature > 0:  # nothing is left to do
            break
        length = size / curvature
        x += length * direction
        if unseen is not None:
            moved = abs(length) * float(np.max(np.abs(direction * unseen)))
            still = still + 1 if moved <= _STILL else 0
        residual -= length * image
        step = precondition(residual)
        size, previous = float(np.vdot(residual, step)), size
        direction = step + size / previous * direction
    return x, moved


def _laplacian_symbol(shape: tuple[int, ...]) -> NDArray:
    """Eigenvalues of minus the Laplacian in the cosine transform; their squares are nearly those of `bend`."""
    rows, columns = (2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in shape)
    return rows[:, None] + columns
