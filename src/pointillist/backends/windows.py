"""Sums over sliding windows, one axis at a time, with float64 running sums and no large temporaries."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def window_sums(lines, width, out):
    """out[o, i, n] = Σ lines[o, i : i + width, n]; both are (outer, length, inner), `out` shorter by width − 1."""
    outer, length, inner = lines.shape
    running = np.empty(inner, np.float64)
    for o in range(outer):
        running[:] = 0
        for i in range(length):
            for n in range(inner):
                running[n] += lines[o, i, n]
            if i >= width:
                for n in range(inner):
                    running[n] -= lines[o, i - width, n]
            if i >= width - 1:
                for n in range(inner):
                    out[o, i - width + 1, n] = running[n]
