"""A check that a blur fits a picture before it is undone: a wrong one makes ringing out of a picture, slowly.

Two questions. The spectrum: do narrower, wider or turned versions of this blur, a Gaussian, or none at all explain the
power spectrum much better? And a trial: do a few crops, deblurred, leave the range that they were seen in?
"""

from collections.abc import Callable

import numpy as np
import scipy.fft
import scipy.ndimage
from numpy.typing import NDArray

from pointillist.restore.blur import Blur
from pointillist.restore.estimating import bell_response
from pointillist.restore.kernels import motion_kernel
from pointillist.restore.noise import plane_sigma
from pointillist.restore.spectra import SIDES, Spectrum, windows
from pointillist.restore.tiling import spans

Trial = Callable[[NDArray], NDArray]
"""Deblurs a plane (height, width), quickly."""

_SCALES = (0.5, 0.7, 1.0, 1.4, 2.0)
_TURNS = (0.0, 45.0, 90.0, 135.0)
_WIDTHS = np.geomspace(0.4, 5.0, 14)
_ROUND = 0.05  # spread of |ĥ|² with direction below which a blur has none
# What a better explanation must gain: in likelihood, and as a share of all that a blur explains.
_DIRECTED = (0.012, 0.2)
_UNDIRECTED = (0.05, 0.7)  # photographs differ in how steeply their spectra fall, as Gaussian blurs do
_RINGS = ((3.0, 0.0), (2.2, 0.03), (0.0, 0.06))
"""A deblurred crop rings where its range, over the crop's, and the share of samples outside exceed one of these pairs."""
_BEYOND = 0.02  # of full scale: what is outside the crop's range by more than that is outside
_CROP, _CROPS = 128, 2
_MARGIN = 8


def misfit(plane: NDArray, blur: Blur, trial: Trial) -> str | None:
    """Say why this blur cannot be that of a plane (height, width) in [0, 1], NaN where missing; None where it may be."""
    if blur.kernel.size == 1:
        return None
    return _by_spectrum(plane, blur.kernel) or _by_trial(plane, blur, trial)


def _by_spectrum(plane: NDArray, kernel: NDArray) -> str | None:
    if min(plane.shape) < SIDES[-1]:
        return None
    chosen = windows(plane)
    if not len(chosen) or max(kernel.shape) > chosen.shape[1] // 2:
        return None
    spectrum = Spectrum(chosen, plane_sigma(np.concatenate(chosen)))
    sharp = spectrum.fit(spectrum.flat)
    own = _version(spectrum, kernel)
    given = min((spectrum.fit(own, start) for start in (sharp, None)), key=lambda fit: fit.loss)
    best, name = sharp.loss, "no blur at all"
    start = given if given.loss < sharp.loss + 0.1 else sharp
    directed = bool(np.std(_version(spectrum, kernel, turn=90) - own) > _ROUND * np.std(own))
    for scale in _SCALES:
        for turn in _TURNS if directed else _TURNS[:1]:
            if (scale, turn) == (1, 0):
                continue
            versions = [_version(spectrum, kernel, scale, turn)]
            if directed:
                versions.append(_line(spectrum, kernel, scale, turn))
            loss = min(spectrum.fit(version, start, 12).loss for version in versions)
            if loss < best:
                best, name = loss, _described(scale, turn)
    fit = sharp
    for width in _WIDTHS:
        fit = spectrum.fit(spectrum.leaked(bell_response(spectrum.side, float(width))), fit, 8)
        if fit.loss < best:
            best, name = fit.loss, f"a Gaussian of σ = {width:.1f}"
    least, share = _DIRECTED if directed else _UNDIRECTED
    if given.loss - best > max(least, share * (sharp.loss - best)):
        return f"{name} explains the picture's spectrum better"
    return None


def _described(scale: float, turn: float) -> str:
    size = "" if scale == 1 else f" {scale:g} times as long"
    turned = "" if turn == 0 else f" turned by {turn:g}°"
    return f"the same blur{size}{' and' if size and turned else ''}{turned}"


def _version(spectrum: Spectrum, kernel: NDArray, scale: float = 1.0, turn: float = 0.0) -> NDArray:
    """|ĥ|² of a kernel enlarged and turned: its own spectrum, read at other frequencies."""
    fine = 4 * spectrum.side
    power = np.abs(scipy.fft.fftshift(scipy.fft.fft2(kernel, (fine, fine)))) ** 2
    down, right = np.meshgrid(*[scipy.fft.fftfreq(spectrum.side)] * 2, indexing="ij")
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    down, right = scale * (c * down + s * right), scale * (c * right - s * down)
    read = scipy.ndimage.map_coordinates(
        power, [fine * down + fine // 2, fine * right + fine // 2], order=1, mode="nearest"
    )
    beyond = np.maximum(np.abs(down), np.abs(right)) > 0.5
    return spectrum.leaked(np.where(beyond, np.minimum(read, 1e-2), read))


def _line(spectrum: Spectrum, kernel: NDArray, scale: float, turn: float) -> NDArray:
    """|ĥ|² of the straight motion that is as long and lies as a kernel does, enlarged and turned."""
    rows, columns = np.indices(kernel.shape)
    rows, columns = rows - np.sum(rows * kernel), columns - np.sum(columns * kernel)
    spread, axes = np.linalg.eigh(
        [
            [np.sum(kernel * rows**2), np.sum(kernel * rows * columns)],
            [np.sum(kernel * rows * columns), np.sum(kernel * columns**2)],
        ]
    )
    angle = np.degrees(np.arctan2(-axes[0, 1], axes[1, 1]))
    length = np.clip(scale * np.sqrt(max(12 * spread[1] - 1, 1.0)), 1.0, spectrum.side / 3)
    return spectrum.response(motion_kernel(float(length), float(angle) + turn))


def _by_trial(plane: NDArray, blur: Blur, trial: Trial) -> str | None:
    """Deblur the liveliest crops, and see whether they ring."""
    margin = max(_MARGIN, max(blur.kernel.shape) // 2)
    for crop in _crops(plane, max(_CROP, 2 * max(blur.kernel.shape) + 4 * margin)):
        low, high = float(np.min(crop)), float(np.max(crop))
        inner = trial(crop)[margin:-margin, margin:-margin]
        if inner.size == 0 or high == low:
            continue
        outside = float(np.mean((inner < low - _BEYOND) | (inner > high + _BEYOND)))
        wider = float(np.ptp(inner)) / (high - low)
        if any(wider > most and outside > share for most, share in _RINGS):
            return f"undone on a crop, it rings: {100 * outside:.0f} % of the samples leave the crop's range"
    return None


def _crops(plane: NDArray, side: int) -> list[NDArray]:
    """Whole crops without missing samples, those of the largest slopes first."""
    crops = [plane[rows, columns] for rows in spans(plane.shape[0], side) for columns in spans(plane.shape[1], side)]
    crops = [crop for crop in crops if np.all(np.isfinite(crop))]
    crops.sort(key=lambda crop: -float(np.mean(np.abs(np.diff(crop, axis=0))) + np.mean(np.abs(np.diff(crop, axis=1)))))
    return crops[:_CROPS]
