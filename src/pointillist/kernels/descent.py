"""The search for the codes worth descending on, and where they lie."""

import numpy as np

from pointillist.kernels.blocks import FILTERS_A_BLOCK
from pointillist.kernels.compiling import allocating_kernel, kernel, spliced
from pointillist.kernels.convolution import base_of
from pointillist.kernels.vectors import (
    POSITIONS_AT_ONCE,
    best_at_positions,
    best_of_block,
    best_of_block_local,
    correlate_block,
    dot_runs_at,
    width_of,
)


@kernel
def locate(layout, codes, bases, starts):
    """Where each code's box begins in the padded signal, and its filter in the runs."""
    n_positions = len(layout.row_bases) * layout.row_length
    step = len(layout.run_offsets) << len(layout.run_lanes)
    for i in range(len(codes)):
        k = codes[i] // n_positions
        bases[i] = base_of(layout, codes[i] - k * n_positions)
        starts[i] = k * step


def pick(best, best_filter, grid, cell, floor):
    """The best code of every cell (of `cell` positions a side) whose ratio is above `floor`, as flat codes."""
    winners = np.full(np.prod(-(-grid // cell)), -1)
    tops = np.full(len(winners), floor, best.dtype)
    return winners[: _pick(best, best_filter, grid, cell, floor, tops, winners)]


@kernel
def _pick(best, best_filter, grid, cell, floor, tops, winners):
    # Which positions violate cannot be foreseen, so that branches would cost more than what they spare.
    n_positions, length = len(best), grid[-1]
    if cell == 1:
        for position in range(n_positions):
            winners[position] = position if best[position] > floor else -1
    for row in range(n_positions // length if cell > 1 else 0):
        violators = 0
        for position in range(row * length, (row + 1) * length):
            violators += best[np.uintp(position)] > floor
        if violators > 0:
            _pick_of_row(best, row, grid, cell, tops, winners)
    count = 0
    for place in range(len(winners)):
        position = winners[place]
        winners[np.uintp(count)] = np.int64(best_filter[np.uintp(max(position, 0))]) * n_positions + position
        count += position >= 0
    return count


@spliced
def _pick_of_row(best, row, grid, cell, tops, winners):
    """Let the positions of a row compete with the best ratio of each cell so far, and where it was."""
    last, length = len(grid) - 1, grid[-1]
    n_cells = -(-length // cell)
    first_place, stride, rest = 0, n_cells, row
    for axis in range(last - 1, -1, -1):
        first_place += (rest % grid[axis]) // cell * stride
        stride *= -(-grid[axis] // cell)
        rest //= grid[axis]
    for n in range(n_cells):
        place = np.uintp(first_place + n)
        top, winner = tops[place], winners[place]
        for position in range(row * length + n * cell, row * length + min(n * cell + cell, length)):
            ratio = best[np.uintp(position)]
            wins = ratio > top
            top, winner = ratio if wins else top, position if wins else winner
        tops[place], winners[place] = top, winner


def merge(codes, values, fresh, n_positions, n_filters):
    """Codes in the order of their positions with `fresh` ones put in between, of value zero; known ones are dropped."""
    filters, positions = np.divmod(fresh, n_positions)
    keys = positions * n_filters + filters
    if np.any(keys[1:] < keys[:-1]):  # those of single positions come in their order
        keys.sort()
    merged = np.empty(len(codes) + len(keys), np.int64)
    carried = np.zeros(len(merged), values.dtype)
    count = _merge(codes, values, keys, n_positions, n_filters, merged, carried)
    return merged[:count], carried[:count]


@kernel
def _merge(codes, values, keys, n_positions, n_filters, merged, carried):
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
    return n


def scan(layout, residual, first_row, last_row, per_penalty, nonnegative, best, best_filter):
    """Find for every position of some grid rows the filter with the largest |correlation| / λ, and that ratio.

    `per_penalty` is 1/λ, (n_filters padded to blocks, 1 or n_positions), zero for the padding; `best` and `best_filter`
    (n_positions,) start from zero.
    """
    # Each way is compiled when it is first taken: most processes take one of them.
    if layout.row_length < width_of(layout.block_lanes):
        kind = _scan_lane_by_lane
    else:
        kind = _scan_rows if per_penalty.shape[1] == 1 else _scan_rows_local
    kind(layout, residual, first_row, last_row, per_penalty, nonnegative, best, best_filter)


@kernel
def _scan_rows(layout, residual, first_row, last_row, per_penalty, nonnegative, best, best_filter):
    """Do what `scan` does where a filter has one penalty at all positions."""
    width = 1 << len(layout.block_lanes)
    length = layout.row_length
    n_taps = len(layout.taps)
    for row in range(first_row, last_row):
        for j in range(0, length, width):
            at = min(j, length - width)
            for block in range(len(layout.blocks) // (n_taps * FILTERS_A_BLOCK)):
                best_of_block(
                    layout.block_lanes, residual, layout.row_bases[row] + at, layout.blocks,
                    block * n_taps * FILTERS_A_BLOCK, layout.taps, per_penalty, block * FILTERS_A_BLOCK, nonnegative,
                    best, best_filter, row * length + at,
                )  # fmt: skip


@kernel
def _scan_rows_local(layout, residual, first_row, last_row, per_penalty, nonnegative, best, best_filter):
    """Do what `scan` does where positions have penalties of their own."""
    width = 1 << len(layout.block_lanes)
    length = layout.row_length
    n_taps = len(layout.taps)
    for row in range(first_row, last_row):
        for j in range(0, length, width):
            at = min(j, length - width)
            for block in range(len(layout.blocks) // (n_taps * FILTERS_A_BLOCK)):
                best_of_block_local(
                    layout.block_lanes, residual, layout.row_bases[row] + at, layout.blocks,
                    block * n_taps * FILTERS_A_BLOCK, layout.taps, per_penalty, block * FILTERS_A_BLOCK, nonnegative,
                    best, best_filter, row * length + at, per_penalty.shape[1],
                )  # fmt: skip


@allocating_kernel
def _scan_lane_by_lane(layout, residual, first_row, last_row, per_penalty, nonnegative, best, best_filter):
    """Do what `scan` does, for grids narrower than a vector."""
    width = 1 << len(layout.block_lanes)
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


def scan_positions(layout, pairs, residual, positions, per_penalty, nonnegative, best, best_filter):
    """Scan scattered positions: what was found there before is forgotten, other positions stay as they are.

    `pairs` are those of the layout's filters.
    """
    _scan_positions(
        layout, pairs, residual, positions, per_penalty, nonnegative, best, best_filter, *_room(layout, per_penalty.dtype)
    )  # fmt: skip


def _room(layout, dtype):
    """Arrays for 1/λ, the bases and the numbers of the positions that are scanned at once."""
    count = width_of(layout.block_lanes) // 2
    return np.empty((count, FILTERS_A_BLOCK), dtype), np.empty(count, np.int64), np.empty(count, np.int64)


@kernel
def _scan_positions(
    layout, pairs, residual, positions, per_penalty, nonnegative, best, best_filter, own, bases, places
):
    a_block = len(pairs.offsets) * 2 * FILTERS_A_BLOCK
    n_blocks = len(pairs.samples) // a_block
    shared = per_penalty.shape[1] == 1
    for first in range(0, len(positions), len(places)):
        for n in range(len(places)):
            places[n] = positions[min(first + n, len(positions) - 1)]
            bases[n] = base_of(layout, places[n])
            best[places[n]] = 0
        for block in range(n_blocks):
            number = block * FILTERS_A_BLOCK
            if not shared:
                _gather(per_penalty, number, places, own)
            best_at_positions(
                layout.block_lanes, residual, bases, pairs.samples, block * a_block, pairs.offsets,
                per_penalty if shared else own, number if shared else 0, 0 if shared else FILTERS_A_BLOCK, number,
                nonnegative, best, best_filter, places,
            )  # fmt: skip


@spliced
def _gather(per_penalty, number, places, own):
    """Copy 1/λ of a block of filters at some positions, (n_positions, FILTERS_A_BLOCK)."""
    for n in range(len(places)):
        for k in range(FILTERS_A_BLOCK):
            own[n, k] = per_penalty[number + k, places[n]]


def scan_blocks(
    layout, pairs, residual, first_row, last_row, firsts, lasts, chosen, per_penalty, nonnegative, best, best_filter
):  # fmt: skip
    """Scan, in some grid rows, the positions that are chosen for each block of filters, and merge what is found.

    Block b has the positions ``chosen[firsts[b] : lasts[b]]``, ascending. Where as many neighbours are chosen as a vector
    has lanes, and a filter has one penalty, the lanes run over them; elsewhere they run over the filters, at a few scattered
    positions at a time. `pairs` are those of the layout's filters.
    """
    _scan_blocks(
        layout, pairs, residual, first_row, last_row, firsts, lasts, chosen, per_penalty, nonnegative, best, best_filter,
        *_room(layout, per_penalty.dtype),
    )  # fmt: skip


@kernel
def _scan_blocks(
    layout, pairs, residual, first_row, last_row, firsts, lasts, chosen, per_penalty, nonnegative, best, best_filter,
    own, bases, places,
):  # fmt: skip
    width, length, n_taps = 1 << len(layout.block_lanes), layout.row_length, len(layout.taps)
    a_block = len(pairs.offsets) * 2 * FILTERS_A_BLOCK
    shared = per_penalty.shape[1] == 1
    for block in range(len(firsts)):
        start, number = block * n_taps * FILTERS_A_BLOCK, block * FILTERS_A_BLOCK
        i = _first_from(chosen, firsts[block], lasts[block], first_row * length)
        end = _first_from(chosen, i, lasts[block], last_row * length)
        row, first_of_row = first_row, first_row * length  # followed along the ascending positions, without divisions
        while i < end:
            position = chosen[i]
            while position >= first_of_row + length:
                row += 1
                first_of_row += length
            neighbours = i + width <= end and chosen[i + width - 1] == position + width - 1
            if shared and neighbours and position + width <= first_of_row + length:
                best_of_block(
                    layout.block_lanes, residual, layout.row_bases[row] + position - first_of_row, layout.blocks, start,
                    layout.taps, per_penalty, number, nonnegative, best, best_filter, position,
                )  # fmt: skip
                i += width
                continue
            for n in range(len(places)):
                position = chosen[min(i + n, end - 1)]
                while position >= first_of_row + length:
                    row += 1
                    first_of_row += length
                bases[n] = layout.row_bases[row] + position - first_of_row
                places[n] = position
            if not shared:
                _gather(per_penalty, number, places, own)
            best_at_positions(
                layout.block_lanes, residual, bases, pairs.samples, block * a_block, pairs.offsets,
                per_penalty if shared else own, number if shared else 0, 0 if shared else FILTERS_A_BLOCK, number,
                nonnegative, best, best_filter, places,
            )  # fmt: skip
            i += len(places)


@spliced
def _first_from(ascending, first, last, bound):
    """The first place from `first` to `last` whose value is `bound` or more."""
    while first < last:
        middle = (first + last) // 2
        if ascending[middle] < bound:
            first = middle + 1
        else:
            last = middle
    return first


@allocating_kernel
def scan_sample(layout, residual, codes, per_penalty, nonnegative, best, best_filter):
    """Scan the sampled codes only (ascending) by dot products, some positions of a filter at a time."""
    length = layout.row_length
    n_positions = len(layout.row_bases) * length
    step = len(layout.run_offsets) << len(layout.run_lanes)
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


def window_sums(lines, width, out):
    """out[o, i, n] = Σ lines[o, i : i + width, n]; both are (outer, length, inner), `out` shorter by width − 1."""
    _window_sums(lines, width, out, np.empty(lines.shape[2]))


@kernel
def _window_sums(lines, width, out, running):
    outer, length, inner = lines.shape
    if inner == 1:  # the sum stays in a register
        for o in range(outer):
            total = 0.0
            for i in range(length):
                total += lines[o, i, 0]
                if i >= width:
                    total -= lines[o, i - width, 0]
                if i >= width - 1:
                    out[o, i - width + 1, 0] = total
        return
    for o in range(outer):
        for n in range(inner):
            running[n] = 0
        for i in range(length):
            for n in range(inner):
                running[n] += lines[o, i, n]
            if i >= width:
                for n in range(inner):
                    running[n] -= lines[o, i - width, n]
            if i >= width - 1:
                for n in range(inner):
                    out[o, i - width + 1, n] = running[n]
