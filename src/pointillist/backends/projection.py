"""Kernels that bring signals of many channels into the span of a few patterns and back, reading them once each.

A block of samples is small enough for all that is done with it to stay in the nearest caches, and some channels are taken
at a time, so that sums are loaded and stored less often.
"""

import numpy as np

from pointillist.backends.compiling import relaxed

_BLOCK = 512
_AT_ONCE = 4


@relaxed
def project(basis, signal, inside, energy):
    """inside = Qᵀ x, and for every sample the energy of x that is not in the span of Q.

    `basis` Q is (channels, rank), float64, with orthonormal columns; `signal` (channels, n), `inside` (rank, n), `energy`
    (n,) in float64. Sums are taken in float64: the energy is the difference of two that may be nearly equal.
    """
    n_channels, rank = basis.shape
    length = signal.shape[1]
    factors = np.zeros((rank, -(-n_channels // _AT_ONCE) * _AT_ONCE))
    for channel in range(n_channels):
        for r in range(rank):
            factors[r, channel] = basis[channel, r]
    sums, total, samples = np.empty((rank, _BLOCK)), np.empty(_BLOCK), np.zeros((_AT_ONCE, _BLOCK))
    a, b, c, d = samples[0], samples[1], samples[2], samples[3]
    for first in range(0, length, _BLOCK):
        count = min(_BLOCK, length - first)
        for t in range(_BLOCK):
            total[t] = 0
            for r in range(rank):
                sums[r, t] = 0
        for channel in range(0, n_channels, _AT_ONCE):
            for n in range(_AT_ONCE):
                row = samples[n]
                if channel + n < n_channels:
                    given = signal[channel + n, first : first + count]
                    for t in range(count):
                        row[t] = given[t]
                else:
                    for t in range(_BLOCK):
                        row[t] = 0
            for t in range(_BLOCK):
                total[t] += (a[t] * a[t] + b[t] * b[t]) + (c[t] * c[t] + d[t] * d[t])
            for r in range(rank):
                sum_, four = sums[r], factors[r, channel : channel + _AT_ONCE]
                p, q, u, v = four[0], four[1], four[2], four[3]
                for t in range(_BLOCK):
                    sum_[t] += (p * a[t] + q * b[t]) + (u * c[t] + v * d[t])
        for r in range(rank):
            sum_, part = sums[r], inside[r, first : first + count]
            for t in range(count):
                part[t] = sum_[t]
                total[t] -= sum_[t] * sum_[t]
        for t in range(count):
            energy[first + t] = max(total[t], 0.0)


@relaxed
def add_energies(signal, out):
    """out[t] += Σ x² over the channels of a signal (channels, n), in float64."""
    for channel in range(len(signal)):
        given = signal[channel]
        for t in range(len(given)):
            sample = np.float64(given[t])
            out[t] += sample * sample


@relaxed
def take_product(basis, inside, signal, out):
    """out = x − Q y for a signal x (channels, n), y = `inside` (rank, n) and Q (channels, rank), all of one precision."""
    n_channels, rank = basis.shape
    length = signal.shape[1]
    for first in range(0, length, 2 * _BLOCK):
        last = min(first + 2 * _BLOCK, length)
        for channel in range(n_channels):
            given, left = signal[channel, first:last], out[channel, first:last]
            done = 0
            if rank >= _AT_ONCE:
                p, q, u, v = basis[channel, 0], basis[channel, 1], basis[channel, 2], basis[channel, 3]
                a, b, c, d = inside[0, first:last], inside[1, first:last], inside[2, first:last], inside[3, first:last]
                for t in range(len(left)):
                    left[t] = given[t] - ((p * a[t] + q * b[t]) + (u * c[t] + v * d[t]))
                done = _AT_ONCE
            else:
                for t in range(len(left)):
                    left[t] = given[t]
            for r in range(done, rank):
                factor, part = basis[channel, r], inside[r, first:last]
                for t in range(len(left)):
                    left[t] -= factor * part[t]
