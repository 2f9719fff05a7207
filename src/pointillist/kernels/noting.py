"""Codes that nearly violate, noted while all are scanned, and the search for violators among them."""

from pointillist.kernels.blocks import FILTERS_A_BLOCK
from pointillist.kernels.compiling import kernel
from pointillist.kernels.convolution import base_of
from pointillist.kernels.vectors import POSITIONS_AT_ONCE, dot_runs, dot_runs_at, note_block


@kernel
def note(layout, residual, first_row, last_row, per_penalty, nonnegative, best, best_filter, floor, notes, count):
    """Do what `descent.scan` does, and note the codes whose ratio exceeds `floor`; see `note_block`.

    A filter must have one penalty at all positions, and a row of the grid as many positions as a vector has lanes. `count`
    (1,) starts from zero.
    """
    width = 1 << len(layout.block_lanes)
    length = layout.row_length
    n_taps = len(layout.taps)
    n_positions = len(layout.row_bases) * length
    for row in range(first_row, last_row):
        for j in range(0, length, width):
            at = min(j, length - width)
            for block in range(len(layout.blocks) // (n_taps * FILTERS_A_BLOCK)):
                note_block(
                    layout.block_lanes, residual, layout.row_bases[row] + at, layout.blocks,
                    block * n_taps * FILTERS_A_BLOCK, layout.taps, per_penalty, block * FILTERS_A_BLOCK, nonnegative,
                    best, best_filter, row * length + at, j - at, floor, n_positions, notes, count,
                )  # fmt: skip


@kernel
def sort_notes(layout, codes, positions, bases, filters, bounds):
    """Sort codes by their filters: find the position, the filter and the beginning of the box of each.

    Those of filter k are at bounds[k] to bounds[k + 1] then; `bounds` (n_filters + 1,) starts from zero. Codes of one filter
    keep their order.
    """
    n_positions = len(layout.row_bases) * layout.row_length
    for code in codes:
        bounds[code // n_positions + 1] += 1
    for k in range(len(bounds) - 1):
        bounds[k + 1] += bounds[k]
    for code in codes:
        k = code // n_positions
        place = bounds[k]
        positions[place] = code - k * n_positions
        bases[place] = base_of(layout, positions[place])
        filters[place] = k
        bounds[k] += 1
    for k in range(len(bounds) - 1, 0, -1):
        bounds[k] = bounds[k - 1]
    bounds[0] = 0


@kernel
def correlate_notes(layout, residual, bases, bounds, per_penalty, ratios):
    """Correlations of codes, sorted by `sort_notes`, divided by their penalties; some positions of a filter at a time."""
    step = len(layout.run_offsets) << len(layout.run_lanes)
    for k in range(len(bounds) - 1):
        first, last, factor = bounds[k], bounds[k + 1], per_penalty[k, 0]
        whole = last - (last - first) % POSITIONS_AT_ONCE
        for n in range(first, whole, POSITIONS_AT_ONCE):
            dot_runs_at(
                layout.run_lanes, residual, bases[n : n + POSITIONS_AT_ONCE], layout.runs, k * step, layout.run_offsets,
                ratios[n : n + POSITIONS_AT_ONCE],
            )  # fmt: skip
        for n in range(whole, last):
            ratios[n] = dot_runs(layout.run_lanes, residual, bases[n], layout.runs, k * step, layout.run_offsets)
        for n in range(first, last):
            ratios[n] *= factor


@kernel
def keep_violators(positions, filters, ratios, nonnegative, best, best_filter):
    """Keep the largest ratio above one of each position, and its filter; other positions stay as they are."""
    for n in range(len(ratios)):
        ratio = ratios[n] if nonnegative else abs(ratios[n])
        if ratio > 1 and ratio > best[positions[n]]:
            best[positions[n]] = ratio
            best_filter[positions[n]] = filters[n]
