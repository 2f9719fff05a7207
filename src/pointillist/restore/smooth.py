"""The smooth part of a picture, from the samples that were seen and through the same blur: filters describe detail only.

    minimise over s   ½ Σ w (y − h∗s)² + μ ‖∇²s‖²

A penalty on curvature instead of slope makes the smooth part continue gradients into holes: with the same filters that was
worth 0.4 dB at half of the pixels missing. Solved by conjugate gradients, preconditioned by the cosine transform, in
float32, whose rounding lies far below the tolerance. The first iterate has its holes filled from coarser pictures. The
iterations end when the residual is small and, for a few steps, no sample that was not seen has moved: holes hardly weigh
in the residual.
"""

from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from pointillist.kernels.bending import bend
from pointillist.restore.blur import NO_BLUR, Blur
from pointillist.restore.picture import OPPONENT, Box


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.restoration``."""

    curvature: float = 2.0
    """μ: structures longer than about 2π (2μ)^¼ ≈ 9 pixels are smooth. The shipped filters are learned on what it leaves."""
    colour: float = 20.0
    """Times as stiff as luminance are colour differences where channels see different pixels: they hold less detail."""
    tolerance: float = 1e-3
    """Relative residual at the end."""
    still: float = 1e-3
    """Movement of unseen samples, in units of full scale, that counts as none: a quarter of a level of 255."""


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class Smooth:
    """The smooth part as it is, and as it was seen through the blur; both (channels, height, width).

    `unsettled` is by how much the last step of its solver still moved a sample that was not seen, at most.
    """

    sharp: NDArray
    seen: NDArray
    unsettled: float


def smooth_part(
    signal: NDArray,
    weights: NDArray,
    blur: Blur = NO_BLUR,
    mu: float = TUNING.curvature,
    *,
    colour: bool = False,
    tuning: Tuning = TUNING,
) -> Smooth:
    """Separate the smooth part of one signal.

    Parameters
    ----------
    signal, weights : (channels, height, width) arrays
        Samples and their weights; samples of weight zero are not read.
    blur : Blur, optional
        Through which the signal was seen.
    mu : float
        Weight of the squared second differences.
    colour : bool
        Ties three channels: colour differences are held smoother than luminance, which helps where channels are seen at
        different pixels.
    """
    stiffness = 2 * mu * np.array([1.0, tuning.colour, tuning.colour] if colour else [1.0] * len(signal), np.float32)
    mix = OPPONENT.astype(np.float32) if colour else np.eye(len(signal), dtype=np.float32)
    shape = blur.extended(signal.shape[1:])
    # Eigenvalues of minus the Laplacian in the cosine transform; their squares are nearly those of `bend`.
    rows, columns = (2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in shape)
    roughness = stiffness[:, None, None] * (rows[:, None] + columns) ** 2
    inverse = (1 / (np.mean(weights) * blur.power(shape) + roughness + 1e-12)).astype(np.float32)
    weights = weights.astype(np.float32)

    def mixed(x: NDArray, matrix: NDArray) -> NDArray:
        return np.tensordot(matrix, x, 1) if colour else x

    def normal(s: NDArray) -> NDArray:
        channels = np.ascontiguousarray(mixed(s, mix))
        bent = np.empty_like(channels)
        bend(channels, stiffness, bent)
        return blur.adjoint(weights * blur.apply(s)) + mixed(bent, mix.T)

    def precondition(r: NDArray) -> NDArray:
        spectrum = scipy.fft.dctn(mixed(r, mix), axes=(1, 2), norm="ortho")
        return mixed(scipy.fft.idctn(spectrum * inverse, axes=(1, 2), norm="ortho"), mix.T)

    known = np.where(weights > 0, signal, 0.0).astype(np.float32)
    ends = [(k - 1 - c, c) for k, c in zip(blur.kernel.shape, blur.centre, strict=True)]
    x = np.pad(without_holes(known, weights > 0), [(0, 0), *ends], mode="edge")
    unseen = None
    if np.any(weights == 0):
        unseen = (blur.adjoint((weights > 0).astype(np.float32)) < 1e-3).astype(np.float32)
    target = blur.adjoint(weights * known)
    residual = target - normal(x)
    direction = precondition(residual)
    size = float(np.vdot(residual, direction))
    goal = tuning.tolerance**2 * float(np.vdot(target, precondition(target)))
    moved, still = 0.0, 0
    for _ in range(500):
        if size <= goal and (unseen is None or still >= 3):  # steps in a row without movement
            break
        image = normal(direction)
        curvature = float(np.vdot(direction, image))
        if not curvature > 0:  # nothing is left to do
            break
        length = size / curvature
        x += length * direction
        if unseen is not None:
            moved = abs(length) * float(np.max(np.abs(direction * unseen)))
            still = still + 1 if moved <= tuning.still else 0
        residual -= length * image
        step = precondition(residual)
        size, previous = float(np.vdot(residual, step)), size
        direction = step + size / previous * direction
    sharp, seen = (one.astype(np.float64) for one in (blur.crop(x, signal.shape[1:]), blur.apply(x)))
    return Smooth(sharp, seen, moved)


def halved(planes: NDArray, known: NDArray) -> tuple[NDArray, NDArray]:
    """Planes at half the size, rounded up, and their known pixels: means of the known ones among each four.

    planes: (channels, height, width), read where known; known: (1 or channels, height, width) bool.
    """
    ends = [(0, 0), *((0, n % 2) for n in planes.shape[1:])]
    weights, values = np.pad(known, ends).astype(planes.dtype), np.pad(np.where(known, planes, 0), ends)
    total, count = (x[:, ::2, ::2] + x[:, 1::2, ::2] + x[:, ::2, 1::2] + x[:, 1::2, 1::2] for x in (values, weights))
    return total / np.maximum(count, 1), count > 0


def doubled(planes: NDArray, box: Box) -> NDArray:
    """Coarse planes (channels, height, width) at twice their size, cut to a box that is given in fine pixels.

    Bilinear between the middles of pixels: each becomes two, a quarter of the way towards its neighbours.
    """
    first = [max(ends.start // 2 - 2, 0) for ends in box]
    rows, columns = (slice(start, -(-ends.stop // 2) + 2) for ends, start in zip(box, first, strict=True))
    fine = planes[:, rows, columns]
    for axis in (1, 2):
        x = np.swapaxes(fine, axis, 0)
        wide = np.concatenate([x[:1], x, x[-1:]])
        pairs = np.stack([0.75 * x + 0.25 * wide[:-2], 0.75 * x + 0.25 * wide[2:]], axis=1)
        fine = np.swapaxes(pairs.reshape(-1, *x.shape[1:]), 0, axis)
    rows, columns = (slice(ends.start - 2 * n, ends.stop - 2 * n) for ends, n in zip(box, first, strict=True))
    return fine[:, rows, columns]


def without_holes(planes: NDArray, known: NDArray) -> NDArray:
    """Planes (channels, height, width) with unknown pixels taken from the finest coarser picture that knows them.

    `known` is (1 or channels, height, width). A plane of which nothing is known becomes zero.
    """
    if np.all(known):
        return planes
    if planes.shape[1:] == (1, 1):
        return np.where(known, planes, 0).astype(planes.dtype)
    full = without_holes(*halved(planes, known))
    return np.where(known, planes, doubled(full, (slice(0, planes.shape[1]), slice(0, planes.shape[2]))))
