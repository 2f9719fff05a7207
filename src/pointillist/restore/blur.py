"""A known blur h and how it meets filters: h∗d_k in place of d_k, on an area that reaches past the border.

A seen sample is y_i = Σ_j h_j x_(i − j + c) with the centre c at sample (size − 1) // 2 of h, as in
``scipy.signal.convolve(x, h, mode="same")`` away from the border. The kernels of super-resolution live here too.
"""

from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.signal
from numpy.typing import ArrayLike, NDArray

from pointillist.validation import as_numbers


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
        if self.kernel.size == 1:
            return x if self.gain == 1 else x * x.dtype.type(self.gain)
        return scipy.signal.fftconvolve(x, self.kernel[None].astype(x.dtype), mode="valid", axes=(1, 2))

    def adjoint(self, y: NDArray) -> NDArray:
        """The transpose of `apply`."""
        if self.kernel.size == 1:
            return y if self.gain == 1 else y * y.dtype.type(self.gain)
        return scipy.signal.fftconvolve(y, self.kernel[None, ::-1, ::-1].astype(y.dtype), mode="full", axes=(1, 2))

    def crop(self, x: NDArray, shape: tuple[int, ...]) -> NDArray:
        """The samples of an extended signal that lie on the seen area's own grid."""
        first = [k - 1 - c for k, c in zip(self.kernel.shape, self.centre, strict=True)]
        return x[:, first[0] : first[0] + shape[0], first[1] : first[1] + shape[1]]

    def power(self, shape: tuple[int, ...]) -> NDArray:
        """|ĥ|² on the frequencies of the cosine transform of `shape`."""
        if self.kernel.size == 1:
            return np.full(shape, self.gain**2)
        doubled = scipy.fft.fft2(self.kernel, [2 * n for n in shape])
        return np.abs(doubled[: shape[0], : shape[1]]) ** 2

    def filters(self, filters: NDArray) -> NDArray:
        """h∗d_k for filters (n_filters, channels, height, width)."""
        if self.kernel.size == 1:
            return filters * filters.dtype.type(self.kernel[0, 0])
        return scipy.signal.fftconvolve(filters, self.kernel[None, None], axes=(2, 3)).astype(filters.dtype)


def as_kernel(psf: ArrayLike, shape: tuple[int, ...]) -> NDArray:
    """A point spread function scaled to sum to one, checked against the picture it blurred."""
    kernel = as_numbers(psf, "psf")
    if kernel.ndim != 2 or kernel.size == 0:
        raise ValueError(f"psf must be a real array (height, width), got {kernel.dtype} of shape {kernel.shape}")
    kernel = kernel.astype(np.float64)
    if not np.all(np.isfinite(kernel)) or not np.sum(kernel) > 0:
        raise ValueError(f"psf must be finite with a positive sum, its sum is {np.sum(kernel):g}")
    if any(k > n for k, n in zip(kernel.shape, shape, strict=True)):
        raise ValueError(f"psf of shape {kernel.shape} is larger than the image {tuple(shape)}")
    return kernel / np.sum(kernel)


def decimation_kernel(kernel: str | ArrayLike, factor: int) -> NDArray:
    """The blur before decimation by `factor`, on the fine grid, summing to one.

    ``"box"`` is the mean of the factor × factor fine pixels under a coarse one; ``"bicubic"`` the antialiased cubic
    of image editors, 4 · factor wide. An array is used as it is; its centre is that of the coarse pixel where its
    size has the parity of the factor.
    """
    if isinstance(kernel, str):
        if kernel not in ("box", "bicubic"):
            raise ValueError(f'kernel must be "box", "bicubic" or an array, got {kernel!r}')
        if kernel == "box":
            return np.full((factor, factor), 1 / factor**2)
        length = 4 * factor - factor % 2
        taps = _cubic((np.arange(length) - (length - 1) / 2) / factor)
        return np.outer(taps, taps) / np.sum(taps) ** 2
    array = as_numbers(kernel, "kernel", np.float64)
    if array.ndim != 2 or not np.all(np.isfinite(array)) or not np.sum(array) > 0:
        raise ValueError("kernel must be a finite array (height, width) with a positive sum")
    if any((size - factor) % 2 for size in array.shape):
        raise ValueError(f"kernel of shape {array.shape} must be as even or odd as factor={factor}, or it would shift")
    return array / np.sum(array)


def _cubic(t: NDArray) -> NDArray:
    """Keys' cubic with a = −½."""
    t = np.abs(t)
    near = 1.5 * t**3 - 2.5 * t**2 + 1
    far = -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def first_sample(kernel: NDArray, factor: int) -> tuple[int, ...]:
    """Row and column of the fine grid at which the first coarse sample is seen, so that no half pixel is lost.

    The kernel's middle, (size − 1) / 2 past its start, must meet the middle of the coarse pixel, (factor − 1) / 2; a sample
    is written where the kernel's centre sample lies. For kernels of the factor's parity both are whole: no half-pixel shift.
    """
    return tuple((factor + size) // 2 - 1 - (size - 1) // 2 for size in kernel.shape)
