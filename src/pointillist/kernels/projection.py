"""Signals of many channels in the span of a few patterns: a pass that reads them once."""

import numpy as np

from pointillist.kernels.compiling import relaxed

_BLOCK = 128  # samples that stay in the nearest cache with all their sums


@relaxed
def project(basis, signal, inside, energy):
    """inside = Qᵀ x, and for every sample the energy of x (channels, n) that is not in the span of Q = `basis`.

    Q is (channels, rank), `inside` (rank, n). Sums are taken in float64: the energy is the difference of two that may be
    nearly equal. Channels are taken by fours, so that sums are loaded and stored less often.
    """
    n_channels, length = signal.shape
    rank = basis.shape[1]
    factors = np.zeros((n_channels + 3, rank))
    factors[:n_channels] = basis
    sums, four = np.empty((rank, _BLOCK)), np.empty((4, _BLOCK))
    a, b, c, d = four[0], four[1], four[2], four[3]
    for first in range(0, length, _BLOCK):
        count = min(_BLOCK, length - first)
        left = energy[first : first + count]
        left[:] = 0
        sums[:] = 0
        for channel in range(0, n_channels, 4):
            four[:] = 0
            for i in range(min(4, n_channels - channel)):
                given, row = signal[channel + i, first : first + count], four[i]
                for t in range(len(given)):
                    row[t] = given[t]
            for t in range(len(left)):
                left[t] += (a[t] * a[t] + b[t] * b[t]) + (c[t] * c[t] + d[t] * d[t])
            for r in range(rank):
                total, p, q = sums[r], factors[channel, r], factors[channel + 1, r]
                u, v = factors[channel + 2, r], factors[channel + 3, r]
                for t in range(_BLOCK):
                    total[t] += (p * a[t] + q * b[t]) + (u * c[t] + v * d[t])
        for r in range(rank):
            total, part = sums[r], inside[r, first : first + count]
            for t in range(len(part)):
                part[t] = total[t]
                left[t] -= total[t] * total[t]
        for t in range(len(left)):
            left[t] = max(left[t], 0.0)
