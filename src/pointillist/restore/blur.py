"""A known blur h and how it meets filters: h∗d_k in place of d_k, on an area that reaches past the border.

A seen sample is y_i = Σ_j h_j x_(i − j + c) with the centre c at sample (size − 1) // 2 of h, as in
``scipy.signal.convolve(x, h, mode="same")`` away from the border. Kernels of common blurs stand here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, cos, radians, sin

import numpy as np
import scipy.fft
import scipy.signal
from numpy.typing import NDArray

from pointillist.reprs import shown
from pointillist.validation import check_arguments, is_number


@dataclass(frozen=True, eq=False)
class Blur:
    """Convolution with a kernel (height, width), onto the samples whose neighbourhood is known."""

    kernel: NDArray

    @property
    def centre(self) -> tuple[int, int]:
        height, width = self.kernel.shape
        return (height - 1) // 2, (width - 1) // 2

    @property
    def gain(self) -> float:
        return float(np.sum(self.kernel))

    def extended(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of all that a seen area of `shape` depends on."""
        return tuple(n + k - 1 for n, k in zip(shape, self.kernel.shape, strict=True))

    def apply(self, x: NDArray) -> NDArray:
        """Seen samples of an extended signal (channels, height, width); the signal itself where there is no blur."""
        return self._convolved(x, self.kernel, "valid")

    def adjoint(self, y: NDArray) -> NDArray:
        """The transpose of `apply`."""
        return self._convolved(y, self.kernel[::-1, ::-1], "full")

    def filters(self, filters: NDArray) -> NDArray:
        """h∗d_k for filters (n_filters, channels, height, width)."""
        return self._convolved(filters, self.kernel, "full")

    def _convolved(self, x: NDArray, kernel: NDArray, mode: str) -> NDArray:
        """x (…, height, width) convolved with a kernel."""
        if kernel.size == 1:
            return x if self.gain == 1 else x * x.dtype.type(self.gain)
        kernel = kernel.reshape((1,) * (x.ndim - 2) + kernel.shape).astype(x.dtype)
        return scipy.signal.fftconvolve(x, kernel, mode=mode, axes=(-2, -1))

    def crop(self, x: NDArray, shape: tuple[int, ...]) -> NDArray:
        """The samples of an extended signal that lie on the seen area's own grid."""
        top, left = (k - 1 - c for k, c in zip(self.kernel.shape, self.centre, strict=True))
        return x[:, top : top + shape[0], left : left + shape[1]]

    def power(self, shape: tuple[int, ...]) -> NDArray:
        """|ĥ|² on the frequencies of the cosine transform of `shape`."""
        if self.kernel.size == 1:
            return np.full(shape, self.gain**2)
        return np.abs(scipy.fft.fft2(self.kernel, [2 * n for n in shape])[: shape[0], : shape[1]]) ** 2


NO_BLUR = Blur(np.ones((1, 1)))

_LARGEST = 1000.0


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
    np.add.at(kernel, (top, left), (1 - down) * (1 - right))
    np.add.at(kernel, (top, left + 1), (1 - down) * right)
    np.add.at(kernel, (top + 1, left), down * (1 - right))
    np.add.at(kernel, (top + 1, left + 1), down * right)
    return kernel[:-1, :-1] / kernel[:-1, :-1].sum()
