"""The planes of a blurred picture: luminance is coded, colour differences follow it, and Wiener's filter does the rest.

Colours have their edges where luminance has. So only luminance is coded. A colour difference is its smooth part plus the
detail of luminance times a slope that varies slowly over the picture, fitted to both as they were seen. What codes and
slopes leave unexplained goes through a Wiener filter, which knows nothing of edges.
"""

import numpy as np
import scipy.fft
import scipy.ndimage
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.restore.blur import Blur
from pointillist.restore.engine import (
    Damaged,
    Recovered,
    Settings,
    convolution,
    detail_of,
    refit,
    separate,
    synthesise,
)
from pointillist.restore.smooth import Smooth
from pointillist.restore.splitting import Blurred, code_in_turns
from pointillist.solvers.encoding import warn_unless_converged

_REACH = 6.0  # deviation, in pixels, of the neighbourhoods that a slope is fitted on
_MISSED = 0.12  # share of the detail's power that codes miss
_LEAST_NOISE = 0.05  # the least that noise has beside it
_COLOUR_FALL, _COLOUR_SHARE = -2.4, 6.0  # of the colour that slopes leave: its spectrum, and how much more there is
_LOWEST = 0.05
_FILLS = 3


def sharpen(
    damaged: Damaged, filters: NDArray, penalty: float, level: float, settings: Settings, *, polish: bool = True
) -> Recovered:
    """Undo the blur of signals: luminance and perhaps two colour differences, or one signal of all channels.

    Only the first signal is coded. `level` is the deviation of the noise; without `polish` what the codes of luminance leave
    is left.
    """
    first = Damaged(damaged.signals[:1], damaged.weights[:1], damaged.blur)
    wiener = Wiener(damaged.blur, damaged.signals[0].shape[1:])
    smooth = separate(first, settings)
    detail = detail_of(first.signals[0], first.weights[0], smooth[0])
    weights = first.weights[0].astype(np.float32)
    size = tuple(filters.shape[2:])
    blurred = Blurred(detail, weights, damaged.blur, size, settings.boundary, settings.n_jobs)
    result = code_in_turns(blurred, filters, penalty, settings)
    warn_unless_converged(result)
    codes = refit(first, smooth, filters, result.codes, settings) if settings.debias else result.codes
    sharp, seen = _detail(codes, filters, first, settings)
    left = _left(first.signals[0], first.weights[0], smooth[0].seen + seen)
    signals = [smooth[0].sharp + sharp]
    if polish:
        signals[0] += _rest(wiener, left, first.weights[0], sharp, max(level, penalty))
    for signal, weights in zip(damaged.signals[1:], damaged.weights[1:], strict=True):
        part = wiener.smooth(signal, weights, settings.mu)
        slope = _slope(signal - part.seen, seen, weights, level)
        left = _left(signal, weights, part.seen + slope * seen)
        rest = wiener.undo(left, weights, wiener.colour_noise(left, weights, level))
        signals.append(part.sharp + slope * sharp + rest)
        smooth.append(part)
    return Recovered(signals, [part.sharp for part in smooth], smooth[0].unsettled, codes, result)


def _rest(wiener: "Wiener", left: NDArray, weights: NDArray, detail: NDArray, level: float) -> NDArray:
    """Detail that the codes missed: Wiener's filter of what they leave, taken where they found detail too."""
    power = scipy.ndimage.gaussian_filter(detail**2, (0, _REACH, _REACH))
    missed = _MISSED * float(np.mean(power))
    noise = max(_LEAST_NOISE, level**2 / max(missed, 1e-12))
    return wiener.undo(left, weights, noise) * power / (power + level**2 / _MISSED)


def _detail(codes: SparseCodes, filters: NDArray, damaged: Damaged, settings: Settings) -> tuple[NDArray, NDArray]:
    """The detail that codes make, as it is and as it was seen through the blur; both (channels, height, width)."""
    shape = damaged.signals[0].shape
    seen = convolution(damaged.blur.filters(filters), shape, settings).synthesise(codes.indices[0], codes.values[0])
    sharp = synthesise(codes, filters, [shape], damaged.blur, settings.boundary)[0]
    return sharp, seen.astype(np.float64)


def _left(signal: NDArray, weights: NDArray, fit: NDArray) -> NDArray:
    return np.where(weights > 0, signal - fit, 0.0)


def _slope(colour: NDArray, luminance: NDArray, weights: NDArray, level: float) -> NDArray:
    """Colour over luminance in the neighbourhood of every sample, by least squares, drawn to zero where both are noise."""

    def nearby(x: NDArray) -> NDArray:
        return scipy.ndimage.gaussian_filter(np.where(weights > 0, x, 0.0), (0, _REACH, _REACH), mode="constant")

    return nearby(colour * luminance) / (nearby(luminance**2) + level**2 + 1e-12)


class Wiener:
    """Wiener's filter for one blur and size of planes; what was not seen is filled in as it goes."""

    def __init__(self, blur: Blur, shape: tuple[int, ...]) -> None:
        self._shape = tuple(scipy.fft.next_fast_len(n + 8, real=True) for n in blur.extended(shape))
        spans = (slice((s - n) // 2, (s - n) // 2 + n) for s, n in zip(self._shape, shape, strict=True))
        self._box = (slice(None), *spans)
        kernel = np.zeros(self._shape)
        kernel[: blur.kernel.shape[0], : blur.kernel.shape[1]] = blur.kernel
        kernel = np.roll(kernel, [-c for c in blur.centre], (0, 1))
        self._response = scipy.fft.rfft2(kernel).astype(np.complex64)
        self._power = np.abs(self._response) ** 2
        down, right = scipy.fft.fftfreq(self._shape[0])[:, None], scipy.fft.rfftfreq(self._shape[1])[None]
        self._fall = (np.maximum(np.hypot(down, right), _LOWEST) / 0.1).astype(np.float32) ** _COLOUR_FALL
        self._bending = ((4 - 2 * np.cos(2 * np.pi * down) - 2 * np.cos(2 * np.pi * right)) ** 2).astype(np.float32)

    def colour_noise(self, left: NDArray, weights: NDArray, level: float) -> NDArray:
        """Power of the noise over that of the colour that `left` still holds, for every frequency."""
        above = max(float(np.sum(weights * left**2) / max(np.sum(weights), 1)) - level**2, 0.01 * level**2 + 1e-9)
        amplitude = _COLOUR_SHARE * above / float(np.mean(self._power * self._fall))
        return level**2 / (amplitude * self._fall) + 1e-6

    def smooth(self, signal: NDArray, weights: NDArray, mu: float) -> Smooth:
        """The smooth part of a signal as `smooth_part` has it, from a border that mirrors the picture."""
        mean = float(np.sum(weights * signal) / max(np.sum(weights), 1))
        spectrum = self._undone(signal - mean, weights, 2 * mu * self._bending + 1e-6, mirror=True)
        sharp, seen = (scipy.fft.irfft2(one, self._shape)[self._box] for one in (spectrum, spectrum * self._response))
        return Smooth(mean + sharp.astype(np.float64), mean + seen.astype(np.float64), 0.0)

    def undo(self, left: NDArray, weights: NDArray, noise: float | NDArray) -> NDArray:
        """The sharp picture of what was seen of `left` (channels, height, width)."""
        return scipy.fft.irfft2(self._undone(left, weights, noise), self._shape)[self._box].astype(np.float64)

    def _undone(self, signal: NDArray, weights: NDArray, noise: float | NDArray, *, mirror: bool = False) -> NDArray:
        """The spectrum of the filtered signal; every iteration fills in what was not seen from the one before."""
        inverse = (np.conj(self._response) / (self._power + noise)).astype(np.complex64)
        margins = [(0, 0), *((b.start, n - b.stop) for b, n in zip(self._box[1:], self._shape, strict=True))]
        known = np.where(weights > 0, signal, 0.0).astype(np.float32)
        seen = np.pad(known, margins, "symmetric" if mirror else "constant")
        spectrum = scipy.fft.rfft2(seen) * inverse
        for _ in range(_FILLS - 1):
            seen = scipy.fft.irfft2(spectrum * self._response, self._shape)
            seen[self._box] = np.where(weights > 0, signal, seen[self._box])
            spectrum = scipy.fft.rfft2(seen) * inverse
        return spectrum
