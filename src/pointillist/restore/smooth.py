"""The smooth part of a picture, from the samples that were seen and through the same blur: filters describe detail only.

    minimise over s   ½ Σ w (y − h∗s)² + μ ‖∇²s‖²

A penalty on curvature instead of slope makes the smooth part continue gradients into holes: with the same filters that was
worth 0.4 dB at half of the pixels missing. Solved by conjugate gradients, preconditioned by the cosine transform, in
float32, whose rounding lies far below the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from pointillist.restore.blur import Blur
from pointillist.restore.pictures import OPPONENT

CURVATURE = 2.0
"""μ: structures longer than about 2π (2μ)^¼ ≈ 9 pixels are smooth. The shipped filters are learned on what it leaves."""

_COLOUR = 20.0
_TOLERANCE = 1e-3
_MAX_STEPS = 500


@dataclass(frozen=True, eq=False)
class Smooth:
    """The smooth part as it is, and as it was seen through the blur; both (channels, height, width)."""

    sharp: NDArray
    seen: NDArray


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

    def curvature(s: NDArray) -> NDArray:
        return _mixed(2 * stiffness[:, None, None] * _bending(_mixed(s, mix)), mix, back=True)

    def matrix(s: NDArray) -> NDArray:
        return blur.adjoint(weights * blur.apply(s)) + curvature(s)

    def precondition(r: NDArray) -> NDArray:
        spectrum = scipy.fft.dctn(_mixed(r, mix), axes=(1, 2), norm="ortho")
        return _mixed(scipy.fft.idctn(spectrum * inverse, axes=(1, 2), norm="ortho"), mix, back=True)

    known = np.where(weights > 0, signal, 0.0).astype(np.float32)
    mean = np.sum(weights * known, axis=(1, 2)) / np.maximum(np.sum(weights, axis=(1, 2)), 1e-12) / blur.gain
    start = np.broadcast_to(mean[:, None, None], (len(signal), *shape))
    s = _conjugate_gradients(matrix, precondition, blur.adjoint(weights * known), start)
    seen = blur.apply(s)
    return Smooth(blur.crop(s, signal.shape[1:]).astype(np.float64), seen.astype(np.float64))


def _mixed(x: NDArray, mix: NDArray | None, *, back: bool = False) -> NDArray:
    return x if mix is None else np.tensordot(mix.T if back else mix, x, 1)


def _conjugate_gradients(
    matrix: Callable[[NDArray], NDArray], precondition: Callable[[NDArray], NDArray], target: NDArray, start: NDArray
) -> NDArray:
    x = np.array(start)
    residual = target - matrix(x)
    step = direction = precondition(residual)
    size = float(np.vdot(residual, step))
    goal = _TOLERANCE**2 * max(size, 0.0)
    for _ in range(_MAX_STEPS):
        if size <= goal:
            break
        image = matrix(direction)
        length = size / float(np.vdot(direction, image))
        x += length * direction
        residual -= length * image
        step = precondition(residual)
        size, previous = float(np.vdot(residual, step)), size
        direction = step + size / previous * direction
    return x


def _bending(s: NDArray) -> NDArray:
    """Gradient of half the sum of all squared second differences over the last two axes.

    Only differences inside the picture count, so that a ramp stays a ramp up to the border.
    """
    out = np.zeros_like(s)
    down, right = np.diff(s, 2, axis=1), np.diff(s, 2, axis=2)
    out[:, :-2] += down
    out[:, 1:-1] -= 2 * down
    out[:, 2:] += down
    out[:, :, :-2] += right
    out[:, :, 1:-1] -= 2 * right
    out[:, :, 2:] += right
    cross = 2 * np.diff(np.diff(s, axis=1), axis=2)
    out[:, :-1, :-1] += cross
    out[:, 1:, 1:] += cross
    out[:, :-1, 1:] -= cross
    out[:, 1:, :-1] -= cross
    return out


def _laplacian_symbol(shape: tuple[int, ...]) -> NDArray:
    """Eigenvalues of minus the Laplacian in the cosine transform; their squares are nearly those of `_bending`."""
    rows, columns = (2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in shape)
    return rows[:, None] + columns
