"""Blurs: as operators, as kernels of common kinds, and as they are found in a picture.

A seen sample is y_i = Σ_j h_j x_(i − j + c) with the centre c at sample (size − 1) // 2 of h, as in
``scipy.signal.convolve(x, h, mode="same")`` away from the border. Filters become h∗d_k, on an area that reaches past it.

A blur is estimated from the power spectrum of a picture, and a given one is checked by it:

    power(f) ≈ |ĥ(f)|² · exp(a polynomial in log |f| and the direction of f) + noise

A sharp photograph's spectrum falls like a power of the frequency, a little differently in every direction; whatever a blur
adds to that (a fall too steep, zeros on parallel lines) shows in the likelihood. The picture itself is integrated out, which
is why the answer is not "no blur", as it is when picture and blur are fitted together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import ceil, cos, radians, sin
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import scipy.fft
import scipy.ndimage
import scipy.optimize
import scipy.signal
from numpy.typing import ArrayLike, NDArray

from pointillist.reprs import ShortRepr, shown
from pointillist.restore.picture import ChannelAxis, open_canvas, plane_sigma
from pointillist.validation import check_arguments, is_number


@dataclass(frozen=True, eq=False)
class Blur:
    """Convolution with a kernel (height, width) that sums to one, onto the samples whose neighbourhood is known."""

    kernel: NDArray

    @property
    def centre(self) -> tuple[int, int]:
        height, width = self.kernel.shape
        return (height - 1) // 2, (width - 1) // 2

    def extended(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of all that a seen area of `shape` depends on."""
        return tuple(n + k - 1 for n, k in zip(shape, self.kernel.shape, strict=True))

    def apply(self, x: NDArray) -> NDArray:
        """Seen samples of an extended signal (channels, height, width); the signal itself where there is no blur."""
        return _convolved(x, self.kernel, "valid")

    def adjoint(self, y: NDArray) -> NDArray:
        """The transpose of `apply`."""
        return _convolved(y, self.kernel[::-1, ::-1], "full")

    def filters(self, filters: NDArray) -> NDArray:
        """h∗d_k for filters (n_filters, channels, height, width)."""
        return _convolved(filters, self.kernel, "full")

    def crop(self, x: NDArray, shape: tuple[int, ...]) -> NDArray:
        """The samples of an extended signal that lie on the seen area's own grid."""
        top, left = (k - 1 - c for k, c in zip(self.kernel.shape, self.centre, strict=True))
        return x[:, top : top + shape[0], left : left + shape[1]]

    def power(self, shape: tuple[int, ...]) -> NDArray:
        """|ĥ|² on the frequencies of the cosine transform of `shape`."""
        if self.kernel.size == 1:
            return np.ones(shape)
        return np.abs(scipy.fft.fft2(self.kernel, [2 * n for n in shape])[: shape[0], : shape[1]]) ** 2


def _convolved(x: NDArray, kernel: NDArray, mode: str) -> NDArray:
    """x (…, height, width) convolved with a kernel."""
    if kernel.size == 1:
        return x
    kernel = kernel.reshape((1,) * (x.ndim - 2) + kernel.shape).astype(x.dtype)
    return scipy.signal.fftconvolve(x, kernel, mode=mode, axes=(-2, -1))


NO_BLUR = Blur(np.ones((1, 1)))

_LARGEST = 1000.0  # pixels

KINDS = ("motion", "gaussian")

SIDES = (128, 96, 64)
"""Sides of the windows that spectra are averaged over, in pixels; the largest that fits is taken."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.blurs`` on sharp and blurred photographs."""

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
    """As `directed` for the others: photographs differ in how steeply their spectra fall, as Gaussian blurs do."""


TUNING = Tuning()


def gaussian_kernel(sigma: float) -> NDArray[np.float64]:
    """A Gaussian blur, cut off at three deviations.

    Parameters
    ----------
    sigma : float
        Deviation in pixels.

    Returns
    -------
    (size, size) array of odd size that sums to one

    Examples
    --------
    >>> from pointillist.restore import gaussian_kernel
    >>> gaussian_kernel(1.6).shape
    (11, 11)
    """
    if not (is_number(sigma) and 0 < sigma <= _LARGEST):
        raise ValueError(f"sigma must be positive and at most {_LARGEST:g} pixels, got {shown(sigma)}")
    radius = max(1, ceil(3 * float(sigma)))
    line = np.exp(-0.5 * (np.arange(-radius, radius + 1) / float(sigma)) ** 2)
    kernel = np.outer(line, line)
    return kernel / kernel.sum()


def motion_kernel(length: float, angle: float) -> NDArray[np.float64]:
    """The blur of a straight motion at constant speed.

    Parameters
    ----------
    length : float
        Length of the line that a point leaves, in pixels, at least 1.
    angle : float
        Its direction in degrees, anticlockwise from the horizontal.

    Returns
    -------
    (size, size) array of odd size that sums to one
        The line, each of its points shared out between the four pixels around it.

    Examples
    --------
    >>> from pointillist.restore import motion_kernel
    >>> motion_kernel(3, 0)[2].round(2).tolist()
    [0.04, 0.29, 0.33, 0.29, 0.04]
    """
    check_arguments(angle=angle)
    if not (is_number(length) and 1 <= length <= _LARGEST):
        raise ValueError(f"length must lie in [1, {_LARGEST:g}] pixels, got {shown(length)}")
    radius = ceil(length / 2)
    kernel = np.zeros((2 * radius + 2, 2 * radius + 2))  # one row and column more, for pixels on the edge
    along = (np.arange(ceil(32 * length)) + 0.5) / 32
    along = along[along < length] - length / 2
    rows, columns = radius - along * sin(radians(angle)), radius + along * cos(radians(angle))
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, right = rows - top, columns - left
    for i, j in product((0, 1), repeat=2):
        np.add.at(kernel, (top + i, left + j), np.abs(1 - i - down) * np.abs(1 - j - right))
    return kernel[:-1, :-1] / kernel[:-1, :-1].sum()


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
    return _motion(spectrum) if kind == "motion" else _gaussian(spectrum)


def _gaussian(spectrum: Spectrum) -> BlurEstimate:
    sharp = fit = spectrum.fit(1.0)
    widths, fits = np.geomspace(0.25, 6.0, 24), []
    for width in widths.tolist():
        fit = spectrum.fit(spectrum.bell(width), fit, 12)
        fits.append(fit)
    best = int(np.argmin([fit.loss for fit in fits]))
    found = scipy.optimize.minimize_scalar(
        lambda width: spectrum.fit(spectrum.bell(width), fits[best], 8).loss,
        bounds=(widths[max(best - 1, 0)], widths[min(best + 1, len(widths) - 1)]),
        method="bounded",
        options={"xatol": 0.005 * widths[best]},
    )
    gain = max(sharp.loss - float(found.fun), 0.0)
    sigma = float(found.x) if gain > 1e-4 else 0.0
    if sigma < 0.6:  # pixels: photographs are that soft by themselves
        return BlurEstimate("gaussian", None, None, sigma, np.ones((1, 1)), 0.0, gain)
    return BlurEstimate("gaussian", None, None, sigma, gaussian_kernel(sigma), _confidence(gain), gain)


_LOSS = attrgetter("loss")


def _confidence(gain: float) -> float:
    return float(1 - np.exp(-gain / TUNING.certain))


def _motion(spectrum: Spectrum) -> BlurEstimate:
    sharp, longest = spectrum.fit(1.0), min(TUNING.longest, spectrum.side / 4)

    def tried(length: float, angle: float, start: Fit, steps: int = 6) -> Line:
        fit = spectrum.fit(spectrum.response(motion_kernel(length, angle)), start, steps)
        return Line(fit.loss, length, angle, fit)

    def climbed(line: Line) -> Line:
        """The best line near another, to a tenth of a pixel."""
        line = tried(*line[1:], 10)
        longer, turned = max(1.0, 0.06 * line.length), min(8.0, 40 / line.length)  # pixels and degrees

        def at(place: NDArray) -> Line:
            length = float(np.clip(line.length + longer * place[0], 1.5, longest + 1))
            return tried(length, line.angle + turned * float(place[1]), line.fit)

        options = {"initial_simplex": [[0, 0], [1, 0], [0, 1]], "xatol": 0.1 / longer, "fatol": np.inf}
        found = scipy.optimize.minimize(lambda place: at(place).loss, [0, 0], method="Nelder-Mead", options=options)
        return min(line, at(found.x), key=_LOSS)

    lines: list[Line] = []
    length = 3.0
    while length <= longest:
        best = Line(np.inf, 0.0, 0.0, sharp)
        for angle in np.linspace(0, 180, ceil(180 / min(20.0, 75 / length)), endpoint=False).tolist():
            lines.append(tried(length, angle, best.fit, 4))
            best = min(best, lines[-1], key=_LOSS)
        length = 1.07 * length + 0.25
    seeds: list[Line] = []
    for line in sorted(lines, key=_LOSS):
        if len(seeds) < 5 and all(line.far_from(seed) for seed in seeds):
            seeds.append(line)
    loss, length, angle, _ = min(map(climbed, seeds), key=_LOSS)
    gain = max(sharp.loss - loss, 0.0)
    # Regular patterns have zeros of their own, and longer motions would explain them ever better.
    if gain < 1e-4 or not 2.5 <= length < longest:
        return BlurEstimate("motion", 1.0, 0.0, None, np.ones((1, 1)), 0.0, gain)
    return BlurEstimate("motion", length, angle % 180, None, motion_kernel(length, angle), _confidence(gain), gain)


class Line(NamedTuple):
    """A candidate for the motion that blurred a picture, with its negative mean log-likelihood."""

    loss: float
    length: float
    angle: float
    fit: Fit

    def far_from(self, other: Line) -> bool:
        turn = abs((self.angle - other.angle + 90) % 180 - 90)
        return abs(self.length - other.length) > 1.5 or turn > 60 / self.length


def better_blur(plane: NDArray, kernel: NDArray) -> str | None:
    """A blur that explains the spectrum of a plane much better than a kernel does, in words; None where none does.

    Asked are narrower, wider and turned motions like the kernel, Gaussians, and no blur at all.

    Parameters
    ----------
    plane : (height, width) array in [0, 1]
        NaN where missing. One that is too small for the kernel tells nothing.
    kernel : (height, width) array
        Of sum one.
    """
    chosen = windows(plane)
    if not len(chosen) or max(kernel.shape) > chosen.shape[1] // 2:
        return None
    spectrum = Spectrum(chosen)
    sharp, own = spectrum.fit(1.0), spectrum.response(kernel)
    given = min((spectrum.fit(own, start) for start in (sharp, None)), key=_LOSS)
    start = given if given.loss < sharp.loss + 0.1 else sharp
    others = [(sharp.loss, "no blur at all")]
    rows, columns = np.indices(kernel.shape)
    away = np.stack([rows - np.sum(rows * kernel), columns - np.sum(columns * kernel)])
    spread, axes = np.linalg.eigh(np.einsum("iab,jab,ab->ij", away, away, kernel))
    # The straight motion that is as long and lies as the kernel does, enlarged and turned.
    length, angle = np.sqrt(max(12 * spread[1] - 1, 1.0)), float(np.degrees(np.arctan2(-axes[0, 1], axes[1, 1])))
    for scale, turn in product((0.5, 0.7, 1.0, 1.4, 2.0), (0.0, 45.0, 90.0, 135.0)):
        if (scale, turn) != (1, 0):
            line = motion_kernel(float(np.clip(scale * length, 1.0, spectrum.side / 3)), angle + turn)
            loss = spectrum.fit(spectrum.response(line), start, 12).loss
            others.append((loss, f"a motion {scale:g} times as long, turned by {turn:g}°,"))
    fit = sharp
    for width in np.geomspace(0.4, 5.0, 14).tolist():
        fit = spectrum.fit(spectrum.bell(width), fit, 8)
        others.append((fit.loss, f"a Gaussian of σ = {width:.1f}"))
    best, name = min(others)
    least, share = TUNING.directed if spread[1] > 1.5 * spread[0] + 0.2 else TUNING.undirected
    if given.loss - best > max(least, share * (sharp.loss - best)):
        return f"{name} explains the picture's spectrum better"
    return None


def windows(plane: NDArray) -> NDArray:
    """Overlapping square windows (count, side, side) of a plane, at most 120 of them, evenly spread, without NaN.

    There are none of planes that are smaller than the smallest.
    """
    side = next((n for n in SIDES if n <= min(plane.shape)), 0)
    if not side:
        return np.empty((0, 0, 0))
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
