"""Kernels for coordinate descent on the correlations of a residual with all filters, for signals of one dimension.

A code that moves changes the correlations around it by the inner products of its filter with all others, which a table has.
Where filters are long and codes are few that takes far less than computing the residual and scanning it: violators are
found, descended on and looked for again without a look at the signal.
"""

from typing import NamedTuple

import numpy as np

from pointillist.kernels.compiling import allocating_kernel, helper, relaxed, spliced
from pointillist.kernels.products import sweep

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
def leave(signal, filters, codes, values, n_positions, offset, exact, rounded, energies):
    """What codes leave of a signal (channels, n), in float64 and rounded to the signal's precision.

    `filters` are (n_filters, channels, taps); the filter of a code at position p begins at sample p − `offset`, and what
    lies outside of the signal is cut. `energies` (n,) becomes Σ r² over channels. Returns ½ Σ r², Σ r x, and the largest
    sum of energies that a filter can meet.
    """
    n_channels, length = signal.shape
    n_taps = filters.shape[2]
    for c in range(n_channels):
        given, left = signal[c], exact[c]
        for t in range(length):
            left[t] = given[t]
    for i in range(len(codes)):
        k = codes[i] // n_positions
        first = codes[i] - k * n_positions - offset
        begin, end = max(first, 0), min(first + n_taps, length)
        for c in range(n_channels):
            left, taps, value = exact[c, begin:end], filters[k, c, begin - first : end - first], np.float64(values[i])
            for t in range(len(left)):
                left[t] -= value * taps[t]
    for t in range(length):
        energies[t] = 0
    energy = 0.0
    for c in range(n_channels):
        given, left, less = signal[c], exact[c], rounded[c]
        for t in range(length):
            rest = left[t]
            less[t] = rest
            energies[t] += rest * rest
            energy += rest * given[t]
    loss = 0.0
    for t in range(length):
        loss += energies[t]
    return 0.5 * loss, energy, _largest_window(energies, n_taps)


@helper()
def _largest_window(energies, width):
    """The largest sum of so many neighbours."""
    running, largest = 0.0, 0.0
    for t in range(min(width, len(energies))):
        running += energies[t]
    largest = running
    for t in range(width, len(energies)):
        running += energies[t] - energies[t - width]
        largest = max(largest, running)
    return largest


@allocating_kernel
def follow_down(
    correlations, overlaps, codes, values, penalties, nonnegative, cells, aim, extra, max_sweeps, most, crowd
):
    """Take violators in and descend on all codes, again and again, on correlations that are kept up to date.

    `cells` has the side of the cells of each round, `aim` the violation that may be left, the smallest move that is
    followed up beside the penalty, and the share of the largest violation that moves are followed up to. Returns codes,
    their values, the largest |correlation| / λ that is left, and the largest Σ |z|, of codes before plus those after, that
    one correlation depends on; and whether it was given up because codes overlap with more than `crowd` others on average.
    `correlations` (n_filters, positions) change in place.
    """
    n_filters, length = correlations.shape
    violation, smallest, share = aim
    n_taps, crowded, price = overlaps.shapes.shape[1], False, penalties[0]
    for penalty in penalties:
        price = min(price, penalty)
    weight = _heaviest(codes, values, length, 2 * n_taps - 1)
    for cell in cells:
        fresh, ratio = violators(correlations, penalties, nonnegative, cell, 1 + smallest)
        settled = ratio - 1 <= max(violation, 2 * smallest)
        if not settled:
            codes, values = _with_fresh(codes, values, fresh, length, n_filters)
        owners, positions = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
        for i in range(len(codes)):
            owners[i] = codes[i] // length
            positions[i] = codes[i] - owners[i] * length
        crowded = not settled and _are_crowded(positions, n_taps, crowd)
        if crowded:
            break
        # Codes that are too large violate nothing, and the gap knows them: the last descent is as close as the aim.
        target = max(share * min(max(ratio - 1, violation), 1.0), smallest) * price
        descend_chunks(
            correlations, overlaps, owners, positions, values, penalties, nonnegative, target, extra, max_sweeps, most
        )
        codes, values = _without_zeros(codes, values)
        if settled:
            break
    codes, values = _without_zeros(codes, values)
    weight += _heaviest(codes, values, length, 2 * n_taps - 1)
    return codes, values, _largest_ratio(correlations, penalties, nonnegative), weight, crowded


@spliced
def _with_fresh(codes, values, fresh, length, n_filters):
    """Codes, sorted by position and then by filter, with fresh ones of value zero put in between; known ones stay."""
    merged, carried = np.empty(len(codes) + len(fresh), np.int64), np.empty(len(codes) + len(fresh))
    i, n = 0, 0
    for j in range(len(fresh)):
        new = _place(fresh[j], length, n_filters)
        known = False
        while i < len(codes) and not known:
            old = _place(codes[i], length, n_filters)
            if old > new:
                break
            merged[n], carried[n] = codes[i], values[i]
            known = old == new
            i += 1
            n += 1
        if not known:
            merged[n], carried[n] = fresh[j], 0.0
            n += 1
    for rest in range(i, len(codes)):
        merged[n], carried[n] = codes[rest], values[rest]
        n += 1
    return merged[:n], carried[:n]


@helper()
def _place(code, length, n_filters):
    """The place of a code among all, ordered by position and then by filter."""
    owner = code // length
    return (code - owner * length) * n_filters + owner


@helper()
def _without_zeros(codes, values):
    kept, carried, n = np.empty(len(codes), np.int64), np.empty(len(codes)), 0
    for i in range(len(codes)):
        if values[i] != 0:
            kept[n], carried[n] = codes[i], values[i]
            n += 1
    return kept[:n], carried[:n]


@spliced
def _are_crowded(positions, n_taps, crowd):
    """Whether codes at sorted positions overlap with more than `crowd` others on average."""
    first, pairs = 0, 0
    for i in range(len(positions)):
        while positions[first] <= positions[i] - n_taps:
            first += 1
        pairs += i - first
    return 2 * pairs > crowd * len(positions)


@helper()
def _heaviest(codes, values, length, width):
    """The largest Σ |z| of codes, sorted by position, in a window of so many positions."""
    first, running, largest = 0, 0.0, 0.0
    for i in range(len(codes)):
        running += abs(values[i])
        while codes[first] % length <= codes[i] % length - width:
            running -= abs(values[first])
            first += 1
        largest = max(largest, running)
    return largest


@spliced
def _largest_ratio(correlations, penalties, nonnegative):
    """The largest |correlation| / λ, or correlation / λ for non-negative codes; zero where all of those are negative."""
    largest, lanes = 0.0, np.empty(_STEP)
    for k in range(len(correlations)):
        row, penalty = correlations[k], penalties[k]
        for t in range(_STEP):
            lanes[t] = 0.0
        for first in range(0, len(row), _STEP):
            part = row[first : first + _STEP]
            for t in range(len(part)):  # lane by lane the loop becomes vectors
                size = part[t] if nonnegative else abs(part[t])
                lanes[t] = size if size > lanes[t] else lanes[t]
        for t in range(_STEP):
            largest = max(largest, lanes[t] / penalty)
    return largest


@spliced
def violators(correlations, penalties, nonnegative, cell, floor):
    """The best code of every cell of positions whose |correlation| / λ exceeds `floor`, and the largest of all ratios.

    `correlations` are (n_filters, positions), `penalties` (n_filters,); codes are flat indices, ascending by position.
    The largest ratio is `floor` where none exceeds it.
    """
    n_filters, length = correlations.shape
    step = cell * -(-_STEP // cell)
    chosen, count, largest = np.empty(-(-length // cell), np.int64), 0, floor
    best, code = np.empty(step // cell), np.empty(step // cell, np.int64)
    for begin in range(0, length, step):
        found = False
        for k in range(n_filters):
            row, limit, above = correlations[k, begin : begin + step], floor * penalties[k], 0
            if nonnegative:
                for t in range(len(row)):
                    above += row[t] > limit
            else:
                for t in range(len(row)):
                    above += abs(row[t]) > limit
            if above == 0:  # so it is nearly everywhere
                continue
            if not found:
                found = True
                for place in range(len(best)):
                    best[place], code[place] = floor, -1
            for t in range(len(row)):
                size = row[t] if nonnegative else abs(row[t])
                if size > limit:
                    ratio, place = size / penalties[k], t // cell
                    if ratio > best[place]:
                        best[place], code[place] = ratio, k * length + begin + t
        if not found:
            continue
        for place in range(len(best)):
            largest = max(largest, best[place])
            if code[place] >= 0:
                chosen[count] = code[place]
                count += 1
    return chosen[:count], largest


@spliced
def descend_chunks(
    correlations, overlaps, owners, positions, values, penalties, nonnegative, target, extra, max_sweeps, most
):
    """Descend on codes, of filters `owners` and sorted by position, and bring the correlations of all positions up to date.

    `correlations` (n_filters, positions) and `values` are float64 and change in place; `penalties` belong to filters. Part
    after part of the codes is swept over until no move exceeds `target`, as `descend_on_products` does it; a
    part has at most so many inner products as `most` says.
    """
    n_taps = overlaps.shapes.shape[1]
    begin, least = np.int64(0), _LEAST * target  # an int would be compiled for as what it is first, and then as any
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
