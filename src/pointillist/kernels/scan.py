"""The search for codes worth descending on: for every position the filter with the largest |correlation| / λ.

`factors` are 1/λ, (n_filters padded to whole blocks, 1 or n_positions), zero for the padding; `best` and `best_filter`
(n_positions,) take up larger ratios than they hold. With `nonnegative` the sign of a correlation counts.
"""

import numpy as np

from pointillist.kernels.compiling import kernel
from pointillist.kernels.vectors import (
    FILTERS_A_BLOCK,
    best_at_positions,
    best_of_block,
    dot_runs,
    width_of,
)


def scan(layout, residual, first_row, last_row, factors, nonnegative, best, best_filter, near=None):
    """Scan all filters at the positions of some grid rows, which are as long as a vector at least.

    `near` is None or (floor, codes, count): codes whose ratios exceed the floor are listed as far as there is room, and
    counted in count[0].
    """
    _scan(
        layout, residual, first_row, last_row, factors.reshape(-1), factors.shape[1] if factors.shape[1] > 1 else None,
        nonnegative, best, best_filter, *((None,) * 3 if near is None else near),
    )  # fmt: skip


@kernel
def _scan(
    layout, residual, first_row, last_row, factors, stride, nonnegative, best, best_filter, floor, near, count
):  # fmt: skip
    width, length, n_taps = 1 << len(layout.block_lanes), layout.row_length, len(layout.taps)
    n_positions = len(layout.row_bases) * length
    for row in range(first_row, last_row):
        for j in range(0, length, width):
            at = min(j, length - width)  # what was scanned before is not listed again
            for block in range(len(layout.blocks) // (n_taps * FILTERS_A_BLOCK)):
                best_of_block(
                    layout.block_lanes, residual, layout.row_bases[row] + at, layout.blocks,
                    block * n_taps * FILTERS_A_BLOCK, layout.taps, factors, stride, block * FILTERS_A_BLOCK, nonnegative,
                    best, best_filter, row * length + at, floor, near, count, n_positions, j - at,
                )  # fmt: skip


def scan_positions(layout, pairs, residual, positions, firsts, lasts, factors, nonnegative, best, best_filter):
    """Scan block b of the filters at the ascending positions[firsts[b] : lasts[b]]; `pairs` are those of the filters.

    Lanes of a vector run over the filters, at some positions at a time.
    """
    count = width_of(layout.block_lanes) // 2
    own = np.empty((count, FILTERS_A_BLOCK), factors.dtype)
    places = np.empty((2, count), np.int64)
    _scan_positions(
        layout, pairs, residual, positions, firsts, lasts, factors, nonnegative, best, best_filter, own, *places
    )


@kernel
def _scan_positions(
    layout, pairs, residual, positions, firsts, lasts, factors, nonnegative, best, best_filter, own, bases, places
):
    length, shared = layout.row_length, factors.shape[1] == 1
    a_block = len(pairs.offsets) * 2 * FILTERS_A_BLOCK
    for block in range(len(firsts)):
        number = block * FILTERS_A_BLOCK
        row, first_of_row = 0, 0  # followed along the ascending positions, without divisions
        for i in range(firsts[block], lasts[block], len(places)):
            for n in range(len(places)):
                place = positions[min(i + n, lasts[block] - 1)]
                while place >= first_of_row + length:
                    row += 1
                    first_of_row += length
                bases[n] = layout.row_bases[row] + place - first_of_row
                places[n] = place
                for k in range(0 if shared else FILTERS_A_BLOCK):
                    own[n, k] = factors[number + k, place]
            best_at_positions(
                layout.block_lanes, residual, bases, pairs.samples, block * a_block, pairs.offsets,
                factors if shared else own, number if shared else 0, 0 if shared else FILTERS_A_BLOCK, number, nonnegative,
                best, best_filter, places,
            )  # fmt: skip


@kernel
def scan_codes(layout, residual, codes, factors, nonnegative, best, best_filter, ratios):
    """Scan some codes only, ascending, and keep their correlations / λ."""
    length, shared, k = layout.row_length, factors.shape[1] == 1, 0
    n_positions, step = len(layout.row_bases) * length, len(layout.run_offsets) << len(layout.run_lanes)
    row, first_of_row = 0, 0  # followed along the ascending codes: divisions would cost as much as a dot
    for i in range(len(codes)):
        while codes[i] >= (k + 1) * n_positions:
            k += 1
            row, first_of_row = 0, 0
        position = codes[i] - k * n_positions
        while position >= first_of_row + length:
            row += 1
            first_of_row += length
        base = layout.row_bases[row] + position - first_of_row
        slope = dot_runs(layout.run_lanes, residual, base, layout.runs, k * step, layout.run_offsets)
        ratios[i] = slope * factors[k, 0 if shared else position]
        ratio = ratios[i] if nonnegative else abs(ratios[i])
        if ratio > best[position]:
            best[position], best_filter[position] = ratio, k


def merge(codes, values, fresh, n_positions, n_filters):
    """Codes in the order of their positions with `fresh` ones put in between, of value zero; known ones are dropped."""
    every = np.concatenate([codes, fresh])
    filters, positions = np.divmod(every, n_positions)
    keys = positions * n_filters + filters
    order = np.argsort(keys, kind="stable")  # known ones come before fresh ones
    order = order[np.diff(keys[order], prepend=-1) > 0]
    return every[order], np.concatenate([values, np.zeros(len(fresh), values.dtype)])[order]


@kernel
def window_sums(lines, width, running, out):
    """out[o, i, n] = Σ lines[o, i : i + width, n]; both are (outer, length, inner), `out` shorter by width − 1.

    `running` (inner,) is room for sums in float64.
    """
    outer, length, inner = lines.shape
    for o in range(outer):
        for n in range(inner):
            running[n] = 0
        for i in range(width - 1):
            for n in range(inner):
                running[n] += lines[o, i, n]
        for first in range(length - width + 1):
            for n in range(inner):
                total = running[n] + lines[o, first + width - 1, n]
                out[o, first, n] = total
                running[n] = total - lines[o, first, n]
