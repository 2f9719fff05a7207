"""Kernels for coordinate descent on the correlations of a residual with all filters, for signals of one dimension.

A code that moves changes the correlations around it by the inner products of its filter with all others, which a table has.
Where filters are long and codes are few that takes far less than computing the residual and scanning it: violators are
found, descended on and looked for again without a look at the signal.
"""

from typing import NamedTuple

import numpy as np

from pointillist.backends.compiling import allocating_kernel, helper, kernel, relaxed
from pointillist.backends.products import sweep

_STEP = 64
"""Positions that are looked at together, before each of them is."""
_LEAST = 0.2
"""Moves of less than this share of the largest that may be left are not worth their time."""


class Overlaps(NamedTuple):
    """What inner products of codes are made of. Filters that the border cuts have others than whole ones.

    A filter at position p meets the samples p … p + taps − 1 of a padded signal, of which those from `begin` to `end` are
    the signal itself.
    """

    table: np.ndarray  # [k, l, δ + taps − 1]: the inner product of filter k with filter l shifted by δ
    shapes: np.ndarray  # (n_filters, taps)
    patterns: np.ndarray  # (n_filters, n_filters), inner products of the patterns over channels
    begin: int
    end: int


@relaxed
def leave(signal, fit, offset, exact, residual, energies, products):
    """What a fit leaves of a signal, (channels, n), in float64 and, laid into a padded signal, in the signal's precision.

    `fit` and `residual` are (channels, padded n), where the signal begins at sample `offset`; `energies` (padded n,) and
    `products` (n,) become, for every sample, Σ r² and Σ r x over channels. All but the signal and the fit are zero before.
    """
    n_channels, length = signal.shape
    around = energies[offset : offset + length]
    for c in range(n_channels):
        given, taken, left = signal[c], fit[c, offset : offset + length], exact[c]
        rounded = residual[c, offset : offset + length]
        for t in range(length):
            rest = given[t] - taken[t]
            left[t] = rest
            rounded[t] = rest
            around[t] += rest * rest
            products[t] += rest * given[t]


@kernel
def largest_window(energies, width):
    """The largest sum of so many neighbours."""
    running, largest = 0.0, 0.0
    for t in range(len(energies)):
        running += energies[t]
        if t >= width:
            running -= energies[t - width]
        largest = max(largest, running)
    return largest


@allocating_kernel
def violators(correlations, penalties, nonnegative, cell, floor):
    """The best code of every cell of positions whose |correlation| / λ exceeds `floor`, and the largest of all ratios.

    `correlations` are (n_filters, positions), `penalties` (n_filters,); codes are flat indices, ascending by position.
    The largest ratio is `floor` where none exceeds it.
    """
    n_filters, length = correlations.shape
    step = cell * -(-_STEP // cell)
    chosen, count, largest = np.empty(-(-length // cell), np.int64), 0, floor
    for begin in range(0, length, step):
        end = min(begin + step, length)
        above = 0
        for k in range(n_filters):
            row, limit = correlations[k, begin:end], floor * penalties[k]
            if nonnegative:
                for t in range(len(row)):
                    above += row[t] > limit
            else:
                for t in range(len(row)):
                    above += abs(row[t]) > limit
        if above == 0:  # so it is nearly everywhere
            continue
        for first in range(begin, end, cell):
            best, code = floor, -1
            for k in range(n_filters):
                for t in range(first, min(first + cell, end)):
                    ratio = correlations[k, t] / penalties[k]
                    ratio = ratio if nonnegative else abs(ratio)
                    if ratio > best:
                        best, code = ratio, k * length + t
            largest = max(largest, best)
            if code >= 0:
                chosen[count] = code
                count += 1
    return chosen[:count], largest


@allocating_kernel
def descend_chunks(
    correlations, overlaps, owners, positions, values, penalties, nonnegative, target, extra, max_sweeps, most
):
    """Descend on codes, of filters `owners` and sorted by position, and bring the correlations of all positions up to date.

    `correlations` (n_filters, positions) and `values` are float64 and change in place; `penalties` belong to filters. Part
    after part of the codes is swept over until no move exceeds `target`, as `descend_on_products` does it; a
    part has at most so many inner products as `most` says.
    """
    n_taps = overlaps.shapes.shape[1]
    begin, least = 0, _LEAST * target
    while begin < len(owners):
        end, first, last, offsets = _part(positions, begin, n_taps, most)
        count = end - begin
        own, place, found = owners[begin:end], positions[begin:end], values[begin:end]
        products = np.empty(offsets[count])
        _fill(own, place, first, last, offsets, overlaps, products)
        slopes, curvature, penalty, before = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
        for i in range(count):
            before[i], slopes[i], penalty[i] = found[i], correlations[own[i], place[i]], penalties[own[i]]
            curvature[i] = products[offsets[i] + i - first[i]]
        for _ in range(max_sweeps):
            moved = sweep(
                first, last, offsets, products, curvature, penalty, 0.0, nonnegative, found, slopes, False, least
            )
            if moved < target:
                break
            for _ in range(extra):
                again = sweep(
                    first, last, offsets, products, curvature, penalty, 0.0, nonnegative, found, slopes, True, least
                )
                if again < 0.5 * target:
                    break
        for i in range(count):
            if found[i] != before[i]:
                _move(correlations, overlaps, own[i], place[i], found[i] - before[i])
        begin = end


@helper()
def _part(positions, begin, n_taps, most):
    """The end of a part of the codes from `begin` on, and where each of its codes has the products with its neighbours.

    Within the part, code i overlaps with the codes first[i] … last[i] − 1; their products begin at offsets[i].
    """
    longest = len(positions) - begin
    first, last = np.empty(longest, np.int64), np.empty(longest, np.int64)
    low, high, count, total = 0, 0, 0, 0
    while count < longest:
        here = positions[begin + count]
        while positions[begin + low] <= here - n_taps:
            low += 1
        high = max(high, count + 1)
        while high < longest and positions[begin + high] < here + n_taps:
            high += 1
        total += high - low
        if count > 0 and total > most:
            break
        first[count], last[count] = low, high
        count += 1
    offsets = np.empty(count + 1, np.int64)
    offsets[0] = 0
    for i in range(count):
        last[i] = min(last[i], count)
        offsets[i + 1] = offsets[i] + last[i] - first[i]
    return begin + count, first[:count], last[:count], offsets


@helper()
def _is_cut(overlaps, position):
    """Whether the border cuts a filter at a position."""
    return position < overlaps.begin or position + overlaps.shapes.shape[1] > overlaps.end


@helper()
def _inner(overlaps, k, p, m, q):
    """The inner product of filter k at position p with filter m at position q, of what lies in the signal."""
    n_taps = overlaps.shapes.shape[1]
    first, last = max(p, q, overlaps.begin), min(p + n_taps, q + n_taps, overlaps.end)
    total = 0.0
    for t in range(first, last):
        total += overlaps.shapes[k, t - p] * overlaps.shapes[m, t - q]
    return total * overlaps.patterns[k, m]


@helper()
def _fill(owners, positions, first, last, offsets, overlaps, out):
    """Inner products of overlapping codes: those of their filters, unless the border cuts both."""
    centre = overlaps.shapes.shape[1] - 1
    for i in range(len(owners)):
        row, shift, place = overlaps.table[owners[i]], centre - positions[i], offsets[i] - first[i]
        cut = _is_cut(overlaps, positions[i])
        for j in range(first[i], last[i]):
            if cut and _is_cut(overlaps, positions[j]):
                out[place + j] = _inner(overlaps, owners[i], positions[i], owners[j], positions[j])
            else:
                out[place + j] = row[owners[j], shift + positions[j]]


@helper()
def _move(correlations, overlaps, owner, position, change):
    """Take the share of a code that moved out of all correlations around it."""
    n_filters, length = correlations.shape
    n_taps = overlaps.shapes.shape[1]
    begin, end = max(position - n_taps + 1, 0), min(position + n_taps, length)
    shift = n_taps - 1 - position
    for k in range(n_filters):
        around, inner = correlations[k, begin:end], overlaps.table[owner, k, begin + shift : end + shift]
        for n in range(len(around)):  # over slices the loop becomes vectors
            around[n] -= change * inner[n]
    if not _is_cut(overlaps, position):
        return
    for k in range(n_filters):
        for t in range(begin, end):
            if _is_cut(overlaps, t):
                wrong = overlaps.table[owner, k, t + shift]
                correlations[k, t] += change * (wrong - _inner(overlaps, owner, position, k, t))
