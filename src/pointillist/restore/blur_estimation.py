"""The blur of a picture, estimated from its power spectrum, and a check that a given blur is the picture's own.

    power(f) ≈ |ĥ(f)|² · exp(a polynomial in log |f| and the direction of f) + noise

A sharp photograph's spectrum falls like a power of the frequency, a little differently in every direction; whatever a blur
adds to that (a fall too steep, zeros on parallel lines) shows in the likelihood. The picture itself is integrated out, which
is why the answer is not "no blur", as it is when picture and blur are fitted together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.ndimage
from numpy.typing import ArrayLike, NDArray

from pointillist.reprs import ShortRepr
from pointillist.restore.blur import Blur, gaussian_kernel, motion_kernel
from pointillist.restore.picture import ChannelAxis, crops, open_canvas, plane_sigma
from pointillist.validation import check_arguments

KINDS = ("motion", "gaussian")

SIDES = (128, 96, 64)
"""Sides of the windows that spectra are averaged over, in pixels; the largest that fits is taken."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.restoration`` on sharp and blurred photographs."""

    longest: float = 32.0
    """Length of a motion that can be found, in pixels; a quarter of the window in smaller pictures."""
    liveliest: float = 0.3
    """Share of the windows that counts: backgrounds out of focus have blurs of their own."""
    fall: float = -2.4
    """Exponent of the power of sharp photographs, over the frequency."""
    certain: float = 0.02
    """Gain in mean log-likelihood that leaves little doubt of a blur."""
    directed: tuple[float, float] = (0.012, 0.2)
    """Gain of another blur that refuses one with a direction: in likelihood, and as a share of all that a blur explains."""
    undirected: tuple[float, float] = (0.05, 0.7)
    """The same without a direction: photographs differ in how steeply their spectra fall, as Gaussian blurs do."""
    ringing: tuple[tuple[float, float], ...] = ((3.0, 0.0), (2.2, 0.03), (0.0, 0.06))
    """Range of a deblurred crop over its own, and share of samples outside, of which one pair must not be exceeded."""


TUNING = Tuning()


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
    level = None if sigma is None else picture.noise(sigma) / np.sqrt(len(picture.planes))
    spectrum = Spectrum(chosen, level)
    sharp = spectrum.fit(1.0)
    return _motion(spectrum, sharp) if kind == "motion" else _gaussian(spectrum, sharp)


def _gaussian(spectrum: Spectrum, sharp: Fit) -> BlurEstimate:
    fit, best = sharp, (sharp.loss, 0.0, sharp)

    def tried(width: float, start: Fit, steps: int) -> Fit:
        nonlocal best
        fit = spectrum.fit(spectrum.bell(width), start, steps)
        best = min(best, (fit.loss, width, fit), key=lambda one: one[0])
        return fit

    widths = np.geomspace(0.25, 6.0, 24)
    for width in widths.tolist():
        fit = tried(width, fit, 12)
    ratio = float(widths[1] / widths[0])
    while ratio > 1.01 and best[1] > 0:
        ratio = ratio**0.5
        _, width, start = best
        tried(width * ratio, start, 8)
        tried(width / ratio, start, 8)
    loss, sigma, _ = best
    gain = max(sharp.loss - loss, 0.0)
    if gain < 1e-4:
        return BlurEstimate("gaussian", None, None, 0.0, np.ones((1, 1)), 0.0, gain)
    wide = sigma >= 0.6  # pixels: photographs are that soft by themselves
    kernel = gaussian_kernel(sigma) if wide else np.ones((1, 1))
    return BlurEstimate("gaussian", None, None, sigma, kernel, _confidence(gain) if wide else 0.0, gain)


def _confidence(gain: float) -> float:
    return float(1 - np.exp(-gain / TUNING.certain))


@dataclass(frozen=True, eq=False)
class Line:
    """A candidate for the motion that blurred a picture, and its likelihood."""

    length: float
    angle: float
    fit: Fit

    def far_from(self, other: Line) -> bool:
        turn = abs((self.angle - other.angle + 90) % 180 - 90)
        return abs(self.length - other.length) > 1.5 or turn > 60 / self.length


def _motion(spectrum: Spectrum, sharp: Fit) -> BlurEstimate:
    longest = min(TUNING.longest, spectrum.side / 4)

    def tried(length: float, angle: float, start: Fit, steps: int = 6) -> Line:
        return Line(length, angle, spectrum.fit(spectrum.response(motion_kernel(length, angle)), start, steps))

    def climbed(line: Line) -> Line:
        """The best line near another: coordinate search, by steps halved until they are a tenth of a pixel."""
        line = tried(line.length, line.angle, line.fit, 10)
        longer, turned = max(1.0, 0.06 * line.length), min(8.0, 40 / line.length)
        while longer > 0.1:
            for more, turn in ((longer, 0.0), (-longer, 0.0), (0.0, turned), (0.0, -turned)):
                if 1.5 <= line.length + more <= longest + 1:
                    other = tried(line.length + more, line.angle + turn, line.fit)
                    if other.fit.loss < line.fit.loss - 1e-7:
                        line = other
                        break
            else:
                longer, turned = longer / 2, turned / 2
        return line

    lines: list[Line] = []
    length = 3.0
    while length <= longest:
        fit = sharp
        for angle in np.linspace(0, 180, int(np.ceil(180 / min(20.0, 75 / length))), endpoint=False).tolist():
            lines.append(tried(length, angle, fit, 4))
            if fit is sharp or lines[-1].fit.loss < fit.loss:
                fit = lines[-1].fit
        length = 1.07 * length + 0.25
    seeds: list[Line] = []
    for line in sorted(lines, key=lambda line: line.fit.loss):
        if len(seeds) < 5 and all(line.far_from(seed) for seed in seeds):
            seeds.append(line)
    found = [climbed(seed) for seed in seeds]
    best = min(found, key=lambda line: line.fit.loss)
    # Every second zero of a motion twice as long lies where one of this motion does.
    for ratio in (2.0, 0.5, 1.5, 2 / 3):
        if 3 <= ratio * best.length <= longest:
            found.append(climbed(tried(ratio * best.length, best.angle, best.fit)))
    best = min(found, key=lambda line: line.fit.loss)
    gain = max(sharp.loss - best.fit.loss, 0.0)
    # Regular patterns have zeros of their own, and longer motions would explain them ever better.
    if gain < 1e-4 or not 2.5 <= best.length < longest:
        return BlurEstimate("motion", 1.0, 0.0, None, np.ones((1, 1)), 0.0, gain)
    kernel = motion_kernel(best.length, best.angle)
    return BlurEstimate("motion", best.length, best.angle % 180, None, kernel, _confidence(gain), gain)


def misfit(plane: NDArray, blur: Blur, trial: Callable[[NDArray], NDArray]) -> str | None:
    """A reason why a blur cannot be that of a plane (height, width) in [0, 1], NaN where missing; None where it may be.

    Two questions. The spectrum: do narrower, wider or turned versions of this blur, a Gaussian, or none at all explain the
    power spectrum much better? And a trial, which deblurs a plane quickly: do a few crops leave the range that they were
    seen in?
    """
    if blur.kernel.size == 1:
        return None
    return _better_blur(plane, blur.kernel) or _ringing(plane, blur, trial)


def _better_blur(plane: NDArray, kernel: NDArray) -> str | None:
    """A blur that explains the spectrum of a plane much better than a kernel does."""
    if min(plane.shape) < SIDES[-1]:
        return None
    chosen = windows(plane)
    if not len(chosen) or max(kernel.shape) > chosen.shape[1] // 2:
        return None
    spectrum = Spectrum(chosen)
    sharp, own = spectrum.fit(1.0), spectrum.response(kernel)
    given = min((spectrum.fit(own, start) for start in (sharp, None)), key=lambda fit: fit.loss)
    start = given if given.loss < sharp.loss + 0.1 else sharp
    others = [(sharp.loss, "no blur at all")]
    rows, columns = np.indices(kernel.shape)
    away = np.stack([rows - np.sum(rows * kernel), columns - np.sum(columns * kernel)])
    spread, axes = np.linalg.eigh(np.einsum("iab,jab,ab->ij", away, away, kernel))
    directed = spread[1] > 1.5 * spread[0] + 0.2
    # The straight motion that is as long and lies as the kernel does, enlarged and turned.
    length, angle = np.sqrt(max(12 * spread[1] - 1, 1.0)), float(np.degrees(np.arctan2(-axes[0, 1], axes[1, 1])))
    for scale in (0.5, 0.7, 1.0, 1.4, 2.0) if directed else ():
        for turn in (0.0, 45.0, 90.0, 135.0):
            if (scale, turn) != (1, 0):
                line = motion_kernel(float(np.clip(scale * length, 1.0, spectrum.side / 3)), angle + turn)
                loss = spectrum.fit(spectrum.response(line), start, 12).loss
                others.append((loss, f"a motion {scale:g} times as long, turned by {turn:g}°,"))
    fit = sharp
    for width in np.geomspace(0.4, 5.0, 14).tolist():
        fit = spectrum.fit(spectrum.bell(width), fit, 8)
        others.append((fit.loss, f"a Gaussian of σ = {width:.1f}"))
    best, name = min(others)
    least, share = TUNING.directed if directed else TUNING.undirected
    if given.loss - best > max(least, share * (sharp.loss - best)):
        return f"{name} explains the picture's spectrum better"
    return None


def _ringing(plane: NDArray, blur: Blur, trial: Callable[[NDArray], NDArray]) -> str | None:
    """A complaint where the two liveliest crops ring once they are deblurred."""
    margin = max(8, max(blur.kernel.shape) // 2)
    boxes = crops(plane.shape, max(128, 2 * max(blur.kernel.shape) + 4 * margin))
    whole = [crop for crop in (plane[box] for box in boxes) if np.all(np.isfinite(crop))]
    whole.sort(key=lambda crop: -sum(float(np.mean(np.abs(np.diff(crop, axis=axis)))) for axis in (0, 1)))
    for crop in whole[:2]:
        low, high = float(np.min(crop)), float(np.max(crop))
        inner = trial(crop)[margin:-margin, margin:-margin]
        if inner.size == 0 or high == low:
            continue
        outside = float(np.mean((inner < low - 0.02) | (inner > high + 0.02)))
        wider = float(np.ptp(inner)) / (high - low)
        if any(wider > most and outside > share for most, share in TUNING.ringing):
            return f"undone on a crop, it rings: {100 * outside:.0f} % of the samples leave the crop's range"
    return None


def windows(plane: NDArray) -> NDArray:
    """Overlapping square windows (count, side, side) of a plane, at most 120 of them, evenly spread, without NaN."""
    side = next(n for n in SIDES if n <= min(plane.shape))
    tops, lefts = (range(0, length - side + 1, side // 2) for length in plane.shape)
    starts = [(top, left) for top in tops for left in lefts]
    step = -(-len(starts) // 120)
    found = np.stack([plane[top : top + side, left : left + side] for top, left in starts[::step]])
    return found[np.all(np.isfinite(found), axis=(1, 2))]


@dataclass(frozen=True, eq=False)
class Fit:
    """The negative mean log-likelihood of a spectrum for one blur, and the parameters that it was reached with."""

    loss: float
    parameters: NDArray


class Spectrum:
    """Mean power of windows (count, side, side) of a picture in [0, 1], to be explained by blurs.

    Only the liveliest windows count. Among these, strong edges would drown the others: a window whose power is g above a
    noise of σ² counts with g / (g + σ²)². The noise is estimated where it is not given.
    """

    def __init__(self, windows: NDArray, sigma: float | None = None) -> None:
        self.side = side = windows.shape[1]
        # Pictures are rounded to bytes sooner or later.
        noise = max(plane_sigma(np.concatenate(windows)) if sigma is None else sigma, 0.3 / 255) ** 2
        taper = np.outer(*[np.hanning(side + 1)[:-1]] * 2)
        taper /= np.sqrt(np.sum(taper**2))
        means = np.tensordot(windows, taper, 2) / np.sum(taper)
        power = np.abs(scipy.fft.rfft2((windows - means[:, None, None]) * taper)) ** 2
        down, right = scipy.fft.fftfreq(side)[:, None], scipy.fft.rfftfreq(side)[None]
        radius = np.hypot(down, right)
        # The axes hold what windows leave of brightness and of borders.
        self._used = (radius > 0.02) & (radius < 0.48) & (np.abs(down) > 1.5 / side) & (right > 1.5 / side)
        fine = np.mean(power[:, (radius > 0.1) & (radius < 0.48)], axis=1)
        count = max(4, int(np.ceil(TUNING.liveliest * len(fine))))
        power = power[np.sort(np.argsort(-fine, kind="stable")[:count])][:, self._used]
        above = np.maximum(np.mean(power, axis=1) - noise, 1e-4 * noise)
        weights = above / (above + noise) ** 2
        self._power = weights @ power / np.sum(weights)
        self._noise = noise
        direction, fall = np.arctan2(down, right), np.log(np.maximum(radius, 1e-3) / 0.1)
        two, four = 2 * direction, 4 * direction
        harmonics = [np.cos(two), np.sin(two), np.cos(four), np.sin(four), fall * np.cos(two), fall * np.sin(two)]
        self._terms = np.stack([np.ones_like(radius), fall, *harmonics], axis=-1)[self._used]
        # Level, fall, the six harmonics and the noise: trust in what is expected of each.
        self._prior = np.array([0.0, 0.05, *[5e-4] * 6, 0.05])
        self._expected = np.array([0.0, TUNING.fall, *[0.0] * 7])
        self._start = self._expected.copy()
        # A picture without any contrast has no power at all.
        self._start[0] = np.log(max(float(np.mean(self._power)), 1e-4 * noise))

    def response(self, kernel: NDArray) -> NDArray:
        """|ĥ|² of a kernel on the frequencies of the windows, as the windows show it."""
        return self._leaked(np.abs(scipy.fft.fft2(kernel, (self.side, self.side))) ** 2)

    def bell(self, width: float) -> NDArray:
        """|ĥ|² of a Gaussian of that deviation."""
        line = np.exp(-((2 * np.pi * width * np.fft.fftfreq(self.side)) ** 2))
        return self._leaked(np.outer(line, line))

    def _leaked(self, power: NDArray) -> NDArray:
        """Half of a spectrum (side, side), blurred by the spectrum of the window."""
        for axis in (0, 1):
            power = scipy.ndimage.convolve1d(power, [1 / 6, 2 / 3, 1 / 6], axis=axis, mode="wrap")
        return power[:, : self.side // 2 + 1]

    def fit(self, response: NDArray | float, start: Fit | None = None, steps: int = 30) -> Fit:
        """The likelihood of a blur of this |ĥ|², maximised over everything else by damped Newton steps."""
        seen = np.maximum(np.broadcast_to(response, self._used.shape)[self._used], 1e-3)  # |ĥ|² at least

        def likelihood(theta: NDArray) -> tuple[float, NDArray, NDArray]:
            """Mean of log S + P / S, with the S of signal and noise, and the signal's."""
            signal = seen * np.exp(np.clip(self._terms @ theta[:-1], -40, 40))
            total = signal + self._noise * np.exp(np.clip(theta[-1], -3, 6))
            away = 0.5 * np.sum(self._prior * (theta - self._expected) ** 2)
            return float(np.mean(np.log(total) + self._power / total) + away), total, signal

        theta = self._start if start is None else start.parameters
        loss, total, signal = likelihood(theta)
        damping = 1e-3
        for _ in range(steps):
            share = signal / total
            slopes = np.concatenate([self._terms * share[:, None], (1 - share)[:, None]], axis=1)
            ratio = self._power / total
            gradient = slopes.T @ (1 - ratio) / len(ratio) + self._prior * (theta - self._expected)
            # Where the power is far above what is expected the curvature grows with it.
            curvature = (slopes * np.maximum(1, ratio)[:, None]).T @ slopes / len(ratio) + np.diag(self._prior)
            for _ in range(8):
                damped = curvature + damping * np.diag(np.diag(curvature) + 1e-9)
                tried = theta - np.linalg.solve(damped, gradient)
                found = likelihood(tried)
                if found[0] < loss:
                    break
                damping = max(10 * damping, 1e-3)
            else:
                break
            settled = loss - found[0] < 1e-6
            theta, (loss, total, signal) = tried, found
            damping /= 10
            if settled:
                break
        return Fit(loss, theta)
