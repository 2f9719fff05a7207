"""The blur of a picture, estimated from it alone: length and angle of a straight motion, or the width of a Gaussian."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.reprs import ShortRepr
from pointillist.restore.kernels import gaussian_kernel, motion_kernel
from pointillist.restore.noise import given_level, plane_sigma
from pointillist.restore.pictures import ChannelAxis, open_canvas
from pointillist.restore.spectra import SIDES, Fit, Spectrum, windows
from pointillist.validation import check_arguments

KINDS = ("motion", "gaussian")

_SHORTEST, _LONGEST = 3.0, 32.0
_SEEDS = 5
_HARMONICS = (2.0, 0.5, 1.5, 2 / 3)
_WIDTHS = np.geomspace(0.25, 6.0, 24)
_CERTAIN = 0.02  # gain in mean log-likelihood that leaves little doubt
_LEAST_GAIN = 1e-4  # below it the spectrum says nothing of a blur, as that of a picture without contrast
_LEAST_LENGTH, _LEAST_SIGMA = 2.5, 0.6  # photographs are that soft by themselves


@dataclass(frozen=True, eq=False, repr=False)
class BlurEstimate(ShortRepr):
    """A blur found in a picture.

    Attributes
    ----------
    kind : {"motion", "gaussian"}
        The family of blurs that was asked for.
    length : float or None
        Length of the motion in pixels; None for a Gaussian.
    angle : float or None
        Direction of the motion in degrees anticlockwise from the horizontal, from 0 to 180; None for a Gaussian.
    sigma : float or None
        Deviation of the Gaussian in pixels; None for a motion.
    kernel : (size, size) array
        The blur, to be passed to `deblur` as `psf`; a single one where no blur was found.
    confidence : float in [0, 1]
        How sure it is that there is a blur of this kind at all; zero where the picture is as sharp as photographs are.
    gain : float
        Mean log-likelihood, over the frequencies of the power spectrum, above that of a sharp picture.

    Examples
    --------
    >>> import pointillist as pt
    >>> from scipy.ndimage import convolve
    >>> seen = convolve(pt.photographs("test")["coffee"], pt.motion_kernel(9, 30))
    >>> found = pt.estimate_blur(seen, "motion", data_range=1.0)
    >>> found.kind, abs(found.length - 9) < 1, abs(found.angle - 30) < 3
    ('motion', True, True)
    """

    kind: str
    length: float | None
    angle: float | None
    sigma: float | None
    kernel: NDArray
    confidence: float
    gain: float


def estimate_blur(
    image: ArrayLike,
    kind: str = "motion",
    *,
    sigma: float | None = None,
    channel_axis: ChannelAxis = "auto",
    data_range: float | None = None,
) -> BlurEstimate:
    """Find the blur of a photograph in its power spectrum.

    Every blur of the family is asked how well it explains the spectrum, averaged over windows of 128 × 128 pixels, of a
    picture whose own spectrum falls like a power of the frequency.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array
        As in `deblur`, at least 64 × 64; 300 × 300 or more for an answer to be relied on. Windows with NaN are left out.
    kind : {"motion", "gaussian"}
        A straight motion of up to 32 pixels (a quarter of the window in smaller pictures), or a Gaussian.
    sigma : float, optional
        Deviation of the noise in the image's own units; estimated by default.
    channel_axis : int, None or "auto"
        Axis of the channels, None for grey; "auto" is None for two axes and -1 for (height, width, 3 or so).
    data_range : float, optional
        Full scale; by default that of the image's type, as in `inpaint`.

    Returns
    -------
    BlurEstimate

    Examples
    --------
    >>> import numpy as np
    >>> import pointillist as pt
    >>> from scipy.ndimage import convolve
    >>> seen = convolve(pt.photographs("test")["coffee"], pt.gaussian_kernel(2.0))
    >>> seen += 0.01 * np.random.default_rng(0).standard_normal(seen.shape)
    >>> found = pt.estimate_blur(seen, "gaussian", data_range=1.0)
    >>> round(found.sigma), found.confidence > 0.9
    (2, True)
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    check_arguments(sigma=sigma)
    picture = open_canvas(image, channel_axis=channel_axis, data_range=data_range).picture()
    if min(picture.shape) < SIDES[-1]:
        raise ValueError(f"image must have at least {SIDES[-1]} × {SIDES[-1]} pixels to show its blur")
    chosen = windows(picture.mean())
    if not len(chosen):
        raise ValueError("image has missing samples everywhere: no window is left to find the blur in")
    level = (
        plane_sigma(np.concatenate(chosen))
        if sigma is None
        else given_level(sigma, picture) / np.sqrt(len(picture.planes))
    )
    spectrum = Spectrum(chosen, level)
    return _motion(spectrum) if kind == "motion" else _gaussian(spectrum)


def _gaussian(spectrum: Spectrum) -> BlurEstimate:
    sharp = spectrum.fit(spectrum.flat)
    fit, best = sharp, (sharp, 0.0)
    for width in _WIDTHS:
        fit = spectrum.fit(_bell(spectrum, width), fit, 12)
        best = min(best, (fit, float(width)), key=lambda one: one[0].loss)
    ratio = _WIDTHS[1] / _WIDTHS[0]
    while ratio > 1.01 and best[1] > 0:
        ratio = np.sqrt(ratio)
        for tried in (best[1] * ratio, best[1] / ratio):
            fit = spectrum.fit(_bell(spectrum, tried), best[0], 8)
            best = min(best, (fit, float(tried)), key=lambda one: one[0].loss)
    gain, chosen = sharp.loss - best[0].loss, best[1]
    if gain < _LEAST_GAIN:
        return BlurEstimate("gaussian", None, None, 0.0, np.ones((1, 1)), 0.0, max(gain, 0.0))
    kernel = gaussian_kernel(chosen) if chosen >= _LEAST_SIGMA else np.ones((1, 1))
    return BlurEstimate("gaussian", None, None, chosen, kernel, _confidence(gain, chosen >= _LEAST_SIGMA), gain)


def _bell(spectrum: Spectrum, width: float) -> NDArray:
    return spectrum.leaked(bell_response(spectrum.side, width))


def bell_response(side: int, width: float) -> NDArray:
    """|ĥ|² of a Gaussian on the frequencies (side, side)."""
    line = np.exp(-((2 * np.pi * width * np.fft.fftfreq(side)) ** 2))
    return np.outer(line, line)


@dataclass(frozen=True, eq=False)
class _Line:
    """A candidate for the motion that blurred a picture, and how well it fits."""

    length: float
    angle: float
    fit: Fit


def _motion(spectrum: Spectrum) -> BlurEstimate:
    sharp = spectrum.fit(spectrum.flat)
    found = [_climb(spectrum, seed) for seed in _seeds(spectrum, sharp)]
    best = min(found, key=lambda line: line.fit.loss)
    # Every second zero of a motion twice as long lies where one of this motion does.
    for ratio in _HARMONICS:
        if _SHORTEST <= ratio * best.length <= _longest(spectrum):
            found.append(_climb(spectrum, _tried(spectrum, ratio * best.length, best.angle, best.fit)))
    best = min(found, key=lambda line: line.fit.loss)
    gain = sharp.loss - best.fit.loss
    # Regular patterns have zeros of their own, and longer motions would explain them ever better.
    if gain < _LEAST_GAIN or not _LEAST_LENGTH <= best.length < _longest(spectrum):
        return BlurEstimate("motion", 1.0, 0.0, None, np.ones((1, 1)), 0.0, max(gain, 0.0))
    kernel = motion_kernel(best.length, best.angle)
    return BlurEstimate("motion", best.length, best.angle % 180, None, kernel, _confidence(gain, True), gain)


def _longest(spectrum: Spectrum) -> float:
    return min(_LONGEST, spectrum.side / 4)


def _seeds(spectrum: Spectrum, sharp: Fit) -> list[_Line]:
    """The best candidates of a coarse grid, no two of them neighbours."""
    lines: list[_Line] = []
    length = _SHORTEST
    while length <= _longest(spectrum):
        fit, lowest = sharp, np.inf
        for angle in np.linspace(0, 180, int(np.ceil(180 / min(20.0, 75 / length))), endpoint=False):
            line = _tried(spectrum, length, float(angle), fit, 4)
            lines.append(line)
            if line.fit.loss < lowest:
                fit, lowest = line.fit, line.fit.loss
        length = 1.07 * length + 0.25
    lines.sort(key=lambda line: line.fit.loss)
    seeds: list[_Line] = []
    for line in lines:
        if all(abs(line.length - s.length) > 1.5 or _turn(line.angle, s.angle) > 60 / line.length for s in seeds):
            seeds.append(line)
        if len(seeds) == _SEEDS:
            break
    return seeds


def _turn(one: float, other: float) -> float:
    """The angle between two lines, in degrees."""
    return abs((one - other + 90) % 180 - 90)


def _tried(spectrum: Spectrum, length: float, angle: float, start: Fit, steps: int = 6) -> _Line:
    return _Line(length, angle, spectrum.fit(spectrum.response(motion_kernel(length, angle)), start, steps))


def _climb(spectrum: Spectrum, line: _Line) -> _Line:
    """Coordinate search in length and angle, by steps halved until they are a tenth of a pixel."""
    line = _tried(spectrum, line.length, line.angle, line.fit, 10)
    longer, turned = max(1.0, 0.06 * line.length), min(8.0, 40 / line.length)
    while longer > 0.1:
        moves = ((longer, 0.0), (-longer, 0.0), (0.0, turned), (0.0, -turned))
        for more, turn in moves:
            if not 1.5 <= line.length + more <= _longest(spectrum) + 1:
                continue
            other = _tried(spectrum, line.length + more, line.angle + turn, line.fit)
            if other.fit.loss < line.fit.loss - 1e-7:
                line = other
                break
        else:
            longer, turned = longer / 2, turned / 2
    return line


def _confidence(gain: float, wide: bool) -> float:
    return float(1 - np.exp(-gain / _CERTAIN)) if wide and gain > 0 else 0.0
