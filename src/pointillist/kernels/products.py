"""Kernels for coordinate descent on the inner products of neighbouring codes, for signals of one dimension.

Codes are sorted by position, so that those that overlap with one code follow each other: code i has inner products with
codes first[i] … last[i] − 1, which begin at `offsets[i]` of a flat array.
"""

import numpy as np

from pointillist.kernels.compiling import helper, kernel


@kernel
def fill_products(owners, positions, clean, first, last, offsets, table, filters, weights, out):
    """Inner products of overlapping codes: those of their filters where one of them meets weights of one only.

    `table[k, l, δ + taps − 1]` is the inner product of filter k with filter l shifted by δ, `filters` (n_filters, channels,
    taps), `weights` (channels, samples) and padded, `out` flat.
    """
    n_channels, n_taps = filters.shape[1:]
    for i in range(len(owners)):
        k, place = owners[i], offsets[i]
        for j in range(first[i], last[i]):
            shift = positions[j] - positions[i]
            if clean[i] or clean[j]:
                out[place] = table[k, owners[j], shift + n_taps - 1]
            else:
                total = 0.0
                for c in range(n_channels):
                    for t in range(max(shift, 0), min(n_taps, n_taps + shift)):
                        seen = weights[c, positions[i] + t]
                        total += seen * filters[k, c, t] * filters[owners[j], c, t - shift]
                out[place] = total
            place += 1


@kernel
def descend_on_products(
    first, last, offsets, products, curvatures, penalties, ridge, nonnegative, values, slopes, target, extra, max_sweeps
):
    """Sweep over all codes until no move exceeds `target`, with up to `extra` sweeps over those that are not zero between.

    `slopes` are the correlations of the residual with each code, kept up to date; a move is √curvature · |change|.
    """
    for _ in range(max_sweeps):
        moved = sweep(
            first, last, offsets, products, curvatures, penalties, ridge, nonnegative, values, slopes, False, 0.0
        )
        if moved < target:
            break
        for _ in range(extra):
            again = sweep(
                first, last, offsets, products, curvatures, penalties, ridge, nonnegative, values, slopes, True, 0.0
            )
            if again < 0.5 * target:
                break


@helper()
def sweep(first, last, offsets, products, curvatures, penalties, ridge, nonnegative, values, slopes, alive, least):
    """One pass over all codes, or over those that are not zero; returns the largest move.

    Moves of less than `least` are left for later, but for those to zero.
    """
    largest = 0.0
    for i in range(len(values)):
        old = values[i]
        if alive and old == 0:
            continue
        curvature, penalty = curvatures[i], penalties[i]
        goal = old * curvature + slopes[i]
        if goal > penalty:
            new = (goal - penalty) / (curvature + ridge)
        elif goal < -penalty and not nonnegative:
            new = (goal + penalty) / (curvature + ridge)
        else:
            new = 0.0
        if new == old:
            continue
        change = new - old
        moved = change * change * curvature
        if moved < least * least and new != 0:
            continue
        values[i] = new
        touched, inner = slopes[first[i] : last[i]], products[offsets[i] : offsets[i + 1]]
        for n in range(len(inner)):  # over slices the loop becomes vectors
            touched[n] -= inner[n] * change
        largest = max(largest, moved)
    return np.sqrt(largest)
