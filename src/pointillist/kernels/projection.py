"""Kernels that bring signals of many channels into the span of a few patterns and back, reading them once each.

A block of samples is small enough for all that is done with it to stay in the nearest caches, and some channels are taken
at a time, so that sums are loaded and stored less often.
"""

import numpy as np

from pointillist.kernels.compiling import relaxed

_BLOCK, _LONG_BLOCK = 128, 1024
_AT_ONCE = 4
_PATTERNS = 5
"""Patterns that are taken from a channel at a time."""


@relaxed
def project(basis, signal, inside, energy):
    """inside = Qᵀ x, and for every sample the energy of x that is not in the span of Q.

    `basis` Q is (channels, rank), float64, with orthonormal columns; `signal` (channels, n), `inside` (rank, n), `energy`
    (n,) in float64. Sums are taken in float64: the energy is the difference of two that may be nearly equal.
    """
    n_channels, rank = basis.shape
    length = signal.shape[1]
    whole = n_channels // _AT_ONCE * _AT_ONCE
    sums, total = np.empty((rank, _BLOCK)), np.empty(_BLOCK)
    for first in range(0, length, _BLOCK):
        last = min(first + _BLOCK, length)
        for t in range(_BLOCK):
            total[t] = 0
            for r in range(rank):
                sums[r, t] = 0
        for channel in range(0, whole, _AT_ONCE):
            a, b = signal[channel, first:last], signal[channel + 1, first:last]
            c, d = signal[channel + 2, first:last], signal[channel + 3, first:last]
            for t in range(len(a)):
                e, f, g, h = np.float64(a[t]), np.float64(b[t]), np.float64(c[t]), np.float64(d[t])
                total[t] += (e * e + f * f) + (g * g + h * h)
            for r in range(rank):
                sum_, p, q = sums[r], basis[channel, r], basis[channel + 1, r]
                u, v = basis[channel + 2, r], basis[channel + 3, r]
                for t in range(len(a)):
                    sum_[t] += (p * a[t] + q * b[t]) + (u * c[t] + v * d[t])
        for channel in range(whole, n_channels):
            a = signal[channel, first:last]
            for t in range(len(a)):
                e = np.float64(a[t])
                total[t] += e * e
            for r in range(rank):
                sum_, p = sums[r], basis[channel, r]
                for t in range(len(a)):
                    sum_[t] += p * a[t]
        for r in range(rank):
            sum_, part = sums[r], inside[r, first:last]
            for t in range(len(part)):
                part[t] = sum_[t]
                total[t] -= sum_[t] * sum_[t]
        for t in range(last - first):
            energy[first + t] = max(total[t], 0.0)


@relaxed
def take_product(basis, inside, signal, out):
    """out = x − Q y for a signal x (channels, n), y = `inside` (rank, n) and Q (channels, rank), all of one precision."""
    n_channels, rank = basis.shape
    length, last_row = signal.shape[1], rank - 1
    factors = np.zeros((n_channels, -(-rank // _PATTERNS) * _PATTERNS), basis.dtype)
    for channel in range(n_channels):
        for r in range(rank):
            factors[channel, r] = basis[channel, r]
    for first in range(0, length, _LONG_BLOCK):
        last = min(first + _LONG_BLOCK, length)
        for r in range(0, rank, _PATTERNS):  # rows behind the last have factors of zero
            a, b = inside[r, first:last], inside[min(r + 1, last_row), first:last]
            c, d = inside[min(r + 2, last_row), first:last], inside[min(r + 3, last_row), first:last]
            e = inside[min(r + 4, last_row), first:last]
            for channel in range(n_channels):
                left = out[channel, first:last]
                given = signal[channel, first:last] if r == 0 else left
                five = factors[channel, r : r + _PATTERNS]
                p, q, s, u, v = five[0], five[1], five[2], five[3], five[4]
                for t in range(len(left)):
                    left[t] = given[t] - (((p * a[t] + q * b[t]) + (s * c[t] + u * d[t])) + v * e[t])
