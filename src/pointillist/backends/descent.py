"""The search for the codes worth descending on, and where they lie."""

import numpy as np
from numba import njit

from pointillist.backends.convolution import base_of
from pointillist.backends.vectors import (
    FILTERS_A_BLOCK,
    POSITIONS_AT_ONCE,
    best_of_block,
    best_of_block_local,
    correlate_block,
    correlate_positions,
    dot_runs_at,
)

_BLOCK_LANES = (0,) * FILTERS_A_BLOCK


@njit(cache=True, nogil=True)
def locate(layout, codes, bases, starts):
    """Where each code's box begins in the padded signal, and its filter in the runs."""
    n_positions = len(layout.row_bases) * layout.row_length
    step = len(layout.run_offsets) * len(layout.run_lanes)
    for i in range(len(codes)):
        k = codes[i] // n_positions
        bases[i] = base_of(layout, codes[i] - k * n_positions)
        starts[i] = k * step


@njit(cache=True, nogil=True)
def pick(best, best_filter, grid, cell, floor):
    """The best code of every cell (of `cell` positions a side) whose ratio is above `floor`, as flat codes."""
    n_positions = len(best)
    last = len(grid) - 1
    n_cells = 1
    for axis in range(len(grid)):
        n_cells *= -(-grid[axis] // cell)
    winners = np.full(n_cells, -1, np.int64)
    for position in range(n_positions):
        if not best[position] > floor:
            continue
        place, stride, rest = 0, 1, position
        for axis in range(last, -1, -1):
            place += (rest % grid[axis]) // cell * stride
            stride *= -(-grid[axis] // cell)
            rest //= grid[axis]
        if winners[place] < 0 or best[position] > best[winners[place]]:
            winners[place] = position
    chosen = winners[winners >= 0]
    codes = np.empty(len(chosen), np.int64)
    for i in range(len(chosen)):
        codes[i] = np.int64(best_filter[chosen[i]]) * n_positions + chosen[i]
    return codes


@njit(cache=True, nogil=True)
def merge(codes, values, fresh, n_positions, n_filters):
    """Codes in the order of their positions with `fresh` ones put in between, of value zero; known ones are dropped."""
    keys = np.sort(fresh % n_positions * n_filters + fresh // n_positions)
    merged = np.empty(len(codes) + len(keys), np.int64)
    carried = np.zeros(len(merged), values.dtype)
    i, j, n = 0, 0, 0
    while i < len(codes) or j < len(keys):
        old = codes[i] % n_positions * n_filters + codes[i] // n_positions if i < len(codes) else np.int64(2**62)
        new = keys[j] if j < len(keys) else np.int64(2**62)
        if old <= new:
            merged[n], carried[n] = codes[i], values[i]
            i += 1
            j += old == new
        else:
            merged[n] = new % n_filters * n_positions + new // n_filters
            j += 1
        n += 1
    return merged[:n], carried[:n]


@njit(cache=True, nogil=True)
def scan(layout, residual, first_row, last_row, per_penalty, nonnegative, best, best_filter):
    """Find for every position of some grid rows the filter with the largest |correlation| / λ, and that ratio.

    `per_penalty` is 1/λ, (n_filters padded to blocks, 1 or n_positions), zero for the padding; `best` and `best_filter`
    (n_positions,) start from zero.
    """
    width = len(layout.block_lanes)
    length = layout.row_length
    if length < width:
        _scan_lane_by_lane(layout, residual, first_row, last_row, per_penalty, nonnegative, best, best_filter)
        return
    shared = per_penalty.shape[1] == 1
    factors = per_penalty.reshape(-1)
    n_taps = len(layout.taps)
    for row in range(first_row, last_row):
        for j in range(0, length, width):
            at = min(j, length - width)
            base = layout.row_bases[row] + at
            place = row * length + at
            for block in range(len(layout.blocks) // (n_taps * FILTERS_A_BLOCK)):
                start = block * n_taps * FILTERS_A_BLOCK
                first = block * FILTERS_A_BLOCK
                if shared:
                    best_of_block(
                        layout.block_lanes, residual, base, layout.blocks, start, layout.taps,
                        factors, first, nonnegative, best, best_filter, place,
                    )  # fmt: skip
                else:
                    best_of_block_local(
                        layout.block_lanes, residual, base, layout.blocks, start, layout.taps,
                        factors, first, nonnegative, best, best_filter, place, per_penalty.shape[1],
                    )  # fmt: skip


@njit(cache=True, nogil=True)
def _scan_lane_by_lane(layout, residual, first_row, last_row, per_penalty, nonnegative, best, best_filter):
    """Do what `scan` does, for grids narrower than a vector."""
    width = len(layout.block_lanes)
    length = layout.row_length
    n_taps = len(layout.taps)
    shared = per_penalty.shape[1] == 1
    found = np.empty(FILTERS_A_BLOCK * width, residual.dtype)
    for row in range(first_row, last_row):
        for at in range(0, length, width):
            count = min(width, length - at)
            position = row * length + at
            base = layout.row_bases[row] + at
            for block in range(len(layout.blocks) // (n_taps * FILTERS_A_BLOCK)):
                start = block * n_taps * FILTERS_A_BLOCK
                correlate_block(layout.block_lanes, residual, base, layout.blocks, start, layout.taps, found, 0, width)
                for k in range(FILTERS_A_BLOCK):
                    filter_ = block * FILTERS_A_BLOCK + k
                    for lane in range(count):
                        factor = per_penalty[filter_, 0 if shared else position + lane]
                        ratio = found[k * width + lane] * factor
                        if not nonnegative:
                            ratio = abs(ratio)
                        if ratio > best[position + lane]:
                            best[position + lane] = ratio
                            best_filter[position + lane] = filter_


@njit(cache=True, nogil=True)
def scan_positions(layout, residual, positions, per_penalty, nonnegative, best, best_filter):
    """Scan scattered positions: what was found there before is forgotten, other positions stay as they are."""
    n_taps = len(layout.taps)
    n_blocks = len(layout.blocks) // (n_taps * FILTERS_A_BLOCK)
    shared = per_penalty.shape[1] == 1
    found = np.empty(POSITIONS_AT_ONCE * FILTERS_A_BLOCK, residual.dtype)
    bases = np.empty(POSITIONS_AT_ONCE, np.int64)
    for first in range(0, len(positions), POSITIONS_AT_ONCE):
        count = min(POSITIONS_AT_ONCE, len(positions) - first)
        for n in range(POSITIONS_AT_ONCE):
            bases[n] = base_of(layout, positions[first + min(n, count - 1)])
        for n in range(count):
            best[positions[first + n]] = 0
        for block in range(n_blocks):
            start = block * n_taps * FILTERS_A_BLOCK
            correlate_positions(_BLOCK_LANES, residual, bases, 0, layout.blocks, start, layout.taps, found)
            for n in range(count):
                number = block * FILTERS_A_BLOCK
                _keep_best(found, n, positions[first + n], number, per_penalty, shared, nonnegative, best, best_filter)


@njit(cache=True, nogil=True)
def scan_blocks(
    layout, residual, first_row, last_row, firsts, lasts, chosen, per_penalty, nonnegative, best, best_filter
):  # fmt: skip
    """Scan, in some grid rows, the positions that are chosen for each block of filters, and merge what is found.

    Block b has the positions ``chosen[firsts[b] : lasts[b]]``, ascending. Where as many neighbours are chosen as a vector
    has lanes, the lanes run over them; elsewhere they run over the filters, at a few scattered positions at a time.
    """
    width, length, n_taps = len(layout.block_lanes), layout.row_length, len(layout.taps)
    shared, factors = per_penalty.shape[1] == 1, per_penalty.reshape(-1)
    found = np.empty(POSITIONS_AT_ONCE * FILTERS_A_BLOCK, residual.dtype)
    bases = np.empty(POSITIONS_AT_ONCE, np.int64)
    for block in range(len(firsts)):
        start, number = block * n_taps * FILTERS_A_BLOCK, block * FILTERS_A_BLOCK
        own = chosen[firsts[block] : lasts[block]]
        i, end = np.searchsorted(own, first_row * length), np.searchsorted(own, last_row * length)
        row, first_of_row = first_row, first_row * length  # followed along the ascending positions, without divisions
        while i < end:
            position = own[i]
            while position >= first_of_row + length:
                row += 1
                first_of_row += length
            base = layout.row_bases[row] + position - first_of_row
            neighbours = i + width <= end and own[i + width - 1] == position + width - 1
            if neighbours and position + width <= first_of_row + length:
                if shared:
                    best_of_block(
                        layout.block_lanes, residual, base, layout.blocks, start, layout.taps,
                        factors, number, nonnegative, best, best_filter, position,
                    )  # fmt: skip
                else:
                    best_of_block_local(
                        layout.block_lanes, residual, base, layout.blocks, start, layout.taps,
                        factors, number, nonnegative, best, best_filter, position, per_penalty.shape[1],
                    )  # fmt: skip
                i += width
                continue
            count = min(POSITIONS_AT_ONCE, end - i)
            for n in range(POSITIONS_AT_ONCE):
                position = own[i + min(n, count - 1)]
                while position >= first_of_row + length:
                    row += 1
                    first_of_row += length
                bases[n] = layout.row_bases[row] + position - first_of_row
            correlate_positions(_BLOCK_LANES, residual, bases, 0, layout.blocks, start, layout.taps, found)
            for n in range(count):
                _keep_best(found, n, own[i + n], number, per_penalty, shared, nonnegative, best, best_filter)
            i += count


@njit(cache=True, nogil=True, inline="always")
def _keep_best(found, n, position, number, per_penalty, shared, nonnegative, best, best_filter):
    """Keep the largest ratio of the n-th position's block of correlations, and its filter's number."""
    top, winner = found.dtype.type(0), 0
    for k in range(FILTERS_A_BLOCK):
        ratio = found[n * FILTERS_A_BLOCK + k] * per_penalty[number + k, 0 if shared else position]
        if not nonnegative:
            ratio = abs(ratio)
        # Without a branch: which filter wins cannot be predicted.
        winner = k if ratio > top else winner
        top = max(ratio, top)
    if top > best[position]:
        best[position] = top
        best_filter[position] = number + winner


@njit(cache=True, nogil=True)
def scan_sample(layout, residual, codes, per_penalty, nonnegative, best, best_filter):
    """Scan the sampled codes only (ascending) by dot products, some positions of a filter at a time."""
    length = layout.row_length
    n_positions = len(layout.row_bases) * length
    step = len(layout.run_offsets) * len(layout.run_lanes)
    shared = per_penalty.shape[1] == 1
    bases = np.zeros(POSITIONS_AT_ONCE, np.int64)
    positions = np.empty(POSITIONS_AT_ONCE, np.int64)
    slopes = np.empty(POSITIONS_AT_ONCE, residual.dtype)
    i = 0
    for k in range(layout.n_filters):
        row, first_of_row = 0, 0  # followed along the ascending codes: divisions would cost as much as a dot
        end_of_filter = (k + 1) * n_positions
        while i < len(codes) and codes[i] < end_of_filter:
            count = 0
            while count < POSITIONS_AT_ONCE and i < len(codes) and codes[i] < end_of_filter:
                position = codes[i] - k * n_positions
                while position >= first_of_row + length:
                    row += 1
                    first_of_row += length
                bases[count] = layout.row_bases[row] + position - first_of_row
                positions[count] = position
                count += 1
                i += 1
            dot_runs_at(layout.run_lanes, residual, bases, layout.runs, k * step, layout.run_offsets, slopes)
            for n in range(count):
                ratio = slopes[n] * per_penalty[k, 0 if shared else positions[n]]
                if not nonnegative:
                    ratio = abs(ratio)
                if ratio > best[positions[n]]:
                    best[positions[n]] = ratio
                    best_filter[positions[n]] = k


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
