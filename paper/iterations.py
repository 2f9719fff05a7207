"""The paper's ADMM over all codes of one partly seen image, in memory that allows hundreds of filters.

The package's own `SampledADMM` holds several arrays of all codes; here the iteration is rewritten so that one is enough.
"""

from __future__ import annotations

import numpy as np
import scipy.fft
import scipy.signal
import scipy.sparse.linalg
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray


def inpaint_by_admm(
    filters: NDArray, image: NDArray, seen: NDArray, penalty: float, iterations: int
) -> tuple[NDArray, NDArray]:
    """Run the paper's iteration (ρ = 10λ, α = 1.8), and see what its two variables make of the image.

    With v = z + u the iteration needs a single array of codes: z = soft(v), u = clip(v), and
    v ← v − α clip(v) + α/ρ Aᵀ(b − s) where (ρ + AAᵀ) s = A(Aᵀb + ρ(z − u)). Codes sit wherever a filter touches the image,
    so AAᵀ is a convolution with the filters' summed autocorrelation, and solved by conjugate gradients on the image.

    Parameters
    ----------
    filters : (n_filters, size, size) array
    image : (H, W) array
    seen : (H, W) bool array
    penalty : float
    iterations : int

    Returns
    -------
    dense, sparse : (H, W) arrays
        From the variable of the quadratic step, and from the one that went through the threshold. They agree only at the
        optimum.
    """
    rho, alpha = 10 * penalty, 1.8
    operator = _Everywhere(filters, image.shape)
    weights = seen.astype(np.float64)
    threshold = np.float32(penalty / rho)

    def product(s: NDArray) -> NDArray:
        s = s.reshape(image.shape)
        return (rho * s + weights * operator.gram(weights * s)).ravel()

    system = scipy.sparse.linalg.LinearOperator((image.size, image.size), product, dtype=np.float64)
    target = weights * image
    seen_twice = weights * operator.gram(target)
    v = np.zeros((len(filters), operator.positions), np.float32)
    s = target.ravel()
    for _ in range(iterations):
        clipped = np.clip(v, -threshold, threshold)
        difference = operator.forward(v - 2 * clipped)  # D(z − u)
        s, _ = scipy.sparse.linalg.cg(system, (seen_twice + rho * weights * difference).ravel(), x0=s, rtol=1e-6)
        left = weights * (image - s.reshape(image.shape))
        dense = difference + operator.gram(left) / rho
        clipped *= np.float32(alpha)
        v -= clipped
        v += operator.adjoint((alpha / rho) * left)
    return dense, operator.forward(v - np.clip(v, -threshold, threshold))


class _Everywhere:
    """D and Dᵀ for codes wherever a filter touches the image, and DDᵀ."""

    def __init__(self, filters: NDArray, shape: tuple[int, ...]) -> None:
        self._size, self._margin, self._shape = filters.shape[1], filters.shape[1] - 1, shape
        self._flat = np.ascontiguousarray(filters.reshape(len(filters), -1), np.float32)
        self._grid = tuple(side + self._margin for side in shape)
        self.positions = self._grid[0] * self._grid[1]
        kernel = sum(scipy.signal.correlate2d(one, one) for one in filters.astype(np.float64))
        self._fast = tuple(scipy.fft.next_fast_len(side + 2 * self._margin, real=True) for side in shape)
        self._spectrum = scipy.fft.rfft2(kernel, self._fast)

    def adjoint(self, residual: NDArray) -> NDArray:
        padded = np.pad(residual.astype(np.float32), self._margin)
        windows = sliding_window_view(padded, (self._size, self._size))
        return self._flat @ windows.reshape(-1, self._size**2).T

    def forward(self, codes: NDArray) -> NDArray:
        columns = (self._flat.T @ codes).reshape(self._size, self._size, *self._grid)
        padded = np.zeros(tuple(side + 2 * self._margin for side in self._shape))
        for i in range(self._size):
            for j in range(self._size):
                padded[i : i + self._grid[0], j : j + self._grid[1]] += columns[i, j]
        return padded[self._margin : -self._margin, self._margin : -self._margin]

    def gram(self, image: NDArray) -> NDArray:
        full = scipy.fft.irfft2(scipy.fft.rfft2(image, self._fast) * self._spectrum, self._fast)
        return full[tuple(slice(self._margin, self._margin + side) for side in self._shape)]
