"""Kernels for scans of filters that are one pattern over channels times one shape each.

The correlation of such a filter with a residual is that of its shape with the residual's channels mixed by its pattern:
channels + samples products a position instead of channels · samples.
"""

import numpy as np

from pointillist.kernels.compiling import allocating_kernel, kernel, relaxed
from pointillist.kernels.vectors import ROWS_AT_ONCE, correlate_rows

SPARE_VECTORS = ROWS_AT_ONCE
"""Vectors that a mixed signal needs behind its end: the last block of positions may reach beyond it."""


@relaxed
def factor(filters, limit, patterns, shapes, lost):
    """Write filters as products of patterns over channels and shapes, and tell whether they are that.

    `filters` (n_filters, channels, samples); the others are float64: `patterns` (n_filters, channels), of unit norm,
    `shapes` (n_filters, samples), `lost` (n_filters,) the norms of what filters are besides. The first filter that
    loses more than `limit` of its norm, or that is zero, ends it.
    """
    n_filters, n_channels, n_samples = filters.shape
    for k in range(n_filters):
        whole, largest, top = 0.0, 0.0, 0
        for c in range(n_channels):
            row, energy = filters[k, c], 0.0
            for t in range(n_samples):
                energy += np.float64(row[t]) * np.float64(row[t])
            whole += energy
            if energy > largest:
                largest, top = energy, c
        if whole == 0:
            return False
        # Any row that is not zero is the shape, up to rounding, which is least beside the largest.
        strongest, size = filters[k, top], 0.0
        for c in range(n_channels):
            row, along = filters[k, c], 0.0
            for t in range(n_samples):
                along += np.float64(row[t]) * np.float64(strongest[t])
            patterns[k, c] = along
            size += along * along
        shape = shapes[k]
        shape[:] = 0
        for c in range(n_channels):
            patterns[k, c] /= np.sqrt(size)
            row, share = filters[k, c], patterns[k, c]
            for t in range(n_samples):
                shape[t] += share * row[t]
        rest = 0.0
        for c in range(n_channels):
            row, share = filters[k, c], patterns[k, c]
            for t in range(n_samples):
                left = row[t] - share * shape[t]
                rest += left * left
        lost[k] = np.sqrt(rest)
        if not lost[k] <= limit * np.sqrt(whole):
            return False
    return True


@kernel
def mix(patterns, signal, offset, out):
    """out[k, offset + t] = Σ_c patterns[k, c] · signal[c, t]; samples of `out` around those of the signal become zero."""
    n_filters, n_channels = patterns.shape
    length = signal.shape[1]
    for k in range(n_filters):
        out[k] = 0
        mixed = out[k, offset : offset + length]
        for c in range(n_channels):
            factor, channel = patterns[k, c], signal[c]
            for t in range(length):
                mixed[t] += factor * channel[t]


@allocating_kernel
def scan_mixed(layout, shapes, mixed, first_row, last_row, per_penalty, nonnegative, best, best_filter, kept):
    """Find for every position of some grid rows the filter with the largest |correlation| / λ, and that ratio.

    `layout` is that of the shapes, (n_filters, taps), as filters of one channel; `mixed` (n_filters, samples) has the
    residual mixed for each of them, or (1, samples) for all of them. `per_penalty`, `best` and `best_filter` are those of
    `descent.scan`. `kept` (n_filters, n_positions) takes the correlations themselves, unless it has no rows.
    """
    width = 1 << len(layout.block_lanes)
    n_filters, n_taps = shapes.shape
    flat, taps = mixed.reshape(-1), shapes.reshape(-1)
    samples, length = mixed.shape[1], layout.row_length
    shared = per_penalty.shape[1] == 1
    sums = np.empty(ROWS_AT_ONCE * width, mixed.dtype)
    for row in range(first_row, last_row):
        for at in range(0, length, len(sums)):
            count = min(len(sums), length - at)
            place = row * length + at
            ratios, winners = best[place : place + count], best_filter[place : place + count]
            for k in range(n_filters):
                sums[:] = 0
                base = k % len(mixed) * samples + layout.row_bases[row] + at
                correlate_rows(layout.block_lanes, flat, base, width, taps, k * n_taps, layout.taps, sums, 0)
                if len(kept):
                    for n in range(count):
                        kept[k, place + n] = sums[n]
                if shared:
                    factor = per_penalty[k, 0]
                    for n in range(count):
                        sums[n] *= factor
                else:
                    for n in range(count):
                        sums[n] *= per_penalty[k, place + n]
                if not nonnegative:
                    for n in range(count):
                        sums[n] = abs(sums[n])
                number = best_filter.dtype.type(k)
                for n in range(count):
                    better = sums[n] > ratios[n]
                    ratios[n] = sums[n] if better else ratios[n]
                    winners[n] = number if better else winners[n]
