"""The likelihood of a blur, given the power spectrum of a picture: blurs are estimated and checked by it.

    power(f) ≈ |ĥ(f)|² · exp(a polynomial in log |f| and the direction of f) + noise

A sharp photograph's spectrum falls like a power of the frequency, a little differently in every direction; whatever a blur
adds to that (a fall too steep, zeros on parallel lines) shows in the likelihood. The picture itself is integrated out, which
is why the answer is not "no blur", as it is when picture and blur are fitted together.
"""

from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.ndimage
from numpy.typing import NDArray

SIDES = (128, 96, 64)
"""Sides of the windows, the largest that fits is taken."""

_MOST_WINDOWS = 120
_LOWEST, _HIGHEST = 0.02, 0.48  # frequencies used, in cycles per pixel
_FINE, _LIVELY, _FEWEST = 0.1, 0.3, 4  # windows are chosen by their power above this frequency
_FLOOR = 1e-3  # of |ĥ|²: no kernel is known better than that, and windows leak
_LEAK = np.array([1 / 6, 2 / 3, 1 / 6])  # Hann's window, on power
_SLOPE, _SLOPE_WEIGHT = -2.4, 0.05  # what photographs fall by, and how far it is trusted
_DIRECTION_WEIGHT, _NOISE_WEIGHT = 5e-4, 0.05
_LEAST_NOISE = 0.3 / 255  # rounding to bytes
_TRIES = 8


def windows(plane: NDArray) -> NDArray:
    """Overlapping square windows (count, side, side) of a plane, at most 120 of them, evenly spread, without NaN."""
    side = next(n for n in SIDES if n <= min(plane.shape))
    starts = [(top, left) for top in _starts(plane.shape[0], side) for left in _starts(plane.shape[1], side)]
    step = -(-len(starts) // _MOST_WINDOWS)
    found = np.stack([plane[top : top + side, left : left + side] for top, left in starts[::step]])
    return found[np.all(np.isfinite(found), axis=(1, 2))]


def _starts(length: int, side: int) -> range:
    return range(0, length - side + 1, side // 2)


@dataclass(frozen=True, eq=False)
class Fit:
    """The negative mean log-likelihood of a spectrum for one blur, and the parameters that it was reached with."""

    loss: float
    parameters: NDArray


class Spectrum:
    """Mean power of windows (count, side, side) of a picture in [0, 1], to be explained by blurs.

    Only the liveliest third of the windows counts: backgrounds out of focus have blurs of their own. Among these, strong
    edges would drown the others: a window whose power is g above a noise of σ² counts with g / (g + σ²)².
    """

    def __init__(self, windows: NDArray, sigma: float) -> None:
        self.side = side = windows.shape[1]
        noise = max(sigma, _LEAST_NOISE) ** 2
        across = np.hanning(side + 1)[:-1]
        taper = np.outer(across, across)
        taper /= np.sqrt(np.sum(taper**2))
        means = np.tensordot(windows, taper, 2) / np.sum(taper)
        power = np.abs(scipy.fft.rfft2((windows - means[:, None, None]) * taper)) ** 2
        down, right = scipy.fft.fftfreq(side)[:, None], scipy.fft.rfftfreq(side)[None]
        radius = np.hypot(down, right)
        # The axes hold what windows leave of brightness and of borders.
        self._used = (radius > _LOWEST) & (radius < _HIGHEST) & (np.abs(down) > 1.5 / side) & (right > 1.5 / side)
        fine = np.mean(power[:, (radius > _FINE) & (radius < _HIGHEST)], axis=1)
        liveliest = np.argsort(-fine, kind="stable")[: max(_FEWEST, int(np.ceil(_LIVELY * len(fine))))]
        power = power[np.sort(liveliest)][:, self._used]
        above = np.maximum(np.mean(power, axis=1) - noise, 1e-4 * noise)
        weights = above / (above + noise) ** 2
        self._power = weights @ power / np.sum(weights)
        self._noise = noise
        self._terms = _terms(down, right, radius)[self._used]
        count = self._terms.shape[1]
        self._prior = np.array([0.0, _SLOPE_WEIGHT, *[_DIRECTION_WEIGHT] * (count - 2), _NOISE_WEIGHT])
        self._expected = np.array([0.0, _SLOPE, *[0.0] * (count - 1)])
        self._start = self._expected.copy()
        # A picture without any contrast has no power at all.
        self._start[0] = np.log(max(float(np.mean(self._power)), 1e-4 * noise))

    @property
    def flat(self) -> NDArray:
        """|ĥ|² of no blur at all."""
        return np.ones((self.side, self.side // 2 + 1))

    def response(self, kernel: NDArray) -> NDArray:
        """|ĥ|² of a kernel on the frequencies of the windows, as the windows show it."""
        return self.leaked(np.abs(scipy.fft.fft2(kernel, (self.side, self.side))) ** 2)

    def leaked(self, power: NDArray) -> NDArray:
        """Half of a spectrum (side, side), blurred by the spectrum of the window."""
        for axis in (0, 1):
            power = scipy.ndimage.convolve1d(power, _LEAK, axis=axis, mode="wrap")
        return power[:, : self.side // 2 + 1]

    def fit(self, response: NDArray, start: Fit | None = None, steps: int = 30) -> Fit:
        """The likelihood of a blur of this |ĥ|², maximised over everything else by damped Newton steps."""
        seen = np.maximum(response[self._used], _FLOOR)
        theta = self._start if start is None else start.parameters
        loss, total, signal = self._loss(theta, seen)
        damping = 1e-3
        for _ in range(steps):
            share = signal / total
            slopes = np.concatenate([self._terms * share[:, None], (1 - share)[:, None]], axis=1)
            ratio = self._power / total
            gradient = slopes.T @ (1 - ratio) / len(ratio) + self._prior * (theta - self._expected)
            # Where the power is far above what is expected the curvature grows with it.
            curvature = (slopes * np.maximum(1, ratio)[:, None]).T @ slopes / len(ratio) + np.diag(self._prior)
            for _ in range(_TRIES):
                damped = curvature + damping * np.diag(np.diag(curvature) + 1e-9)
                tried = theta - np.linalg.solve(damped, gradient)
                found = self._loss(tried, seen)
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

    def _loss(self, theta: NDArray, seen: NDArray) -> tuple[float, NDArray, NDArray]:
        """Mean of log S + P / S, with the S of signal and noise, and the signal's."""
        signal = seen * np.exp(np.clip(self._terms @ theta[:-1], -40, 40))
        total = signal + self._noise * np.exp(np.clip(theta[-1], -3, 6))
        loss = np.mean(np.log(total) + self._power / total) + 0.5 * np.sum(self._prior * (theta - self._expected) ** 2)
        return float(loss), total, signal


def _terms(down: NDArray, right: NDArray, radius: NDArray) -> NDArray:
    """One, log |f| and harmonics of the direction of f, as (side, side // 2 + 1, 8)."""
    direction = np.arctan2(down, right)
    fall = np.log(np.maximum(radius, 1e-3) / 0.1)
    two, four = 2 * direction, 4 * direction
    harmonics = [np.cos(two), np.sin(two), np.cos(four), np.sin(four), fall * np.cos(two), fall * np.sin(two)]
    return np.stack([np.ones_like(radius), fall, *harmonics], axis=-1)
