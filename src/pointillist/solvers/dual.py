"""A dual point that is shrunk where the residual violates, and nowhere else.

Any θ with |D_jᵀθ| ≤ λ_j for all codes bounds the optimum from below. The residual divided by its largest ratio |D_jᵀr| / λ_j
is such a point, but a single bad position shrinks all of it. Feasibility is local: each sample is divided by the largest
ratio of the positions whose filters reach it. What the next scan still finds above one is shrunk globally, so that the
bound holds whatever was done before.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from pointillist.model.geometry import Geometry


def shrunk(geometry: Geometry, residual: NDArray, ratios: NDArray) -> NDArray:
    """Divide every sample of a residual (channels, *space) by the largest ratio around it, where that exceeds one.

    `ratios` has an upper bound of |Dᵀr| / λ for each grid position, flat.
    """
    found = ratios.reshape(geometry.grid)
    if geometry.boundary == "circular":
        around = _largest(found, geometry.filter, mode="wrap")
        around = np.roll(around, [-o for o in geometry.offset], range(found.ndim))
    else:
        around = np.zeros(geometry.padded, found.dtype)
        around[tuple(slice(n) for n in geometry.grid)] = found
        around = _largest(around, geometry.filter, mode="constant")
        around = around[tuple(slice(o, o + n) for o, n in zip(geometry.offset, geometry.signal, strict=True))]
    return residual / np.maximum(around, 1)


def _largest(values: NDArray, sides: tuple[int, ...], *, mode: str) -> NDArray:
    """The largest value in a box that ends at each place."""
    for axis, side in enumerate(sides):
        values = maximum_filter1d(values, side, axis, mode=mode, origin=(side - 1) // 2)
    return values
