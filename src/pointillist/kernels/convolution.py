"""Convolution with sparse and dense codes, and its adjoint, on flat padded signals.

All kernels take a `Layout` and one flat signal `(channels · padded samples + SPARE_SAMPLES,)`. A code is a flat
index filter · n_positions + position.
"""

import numpy as np

from pointillist.kernels.compiling import allocating_kernel, kernel, spliced
from pointillist.kernels.vectors import FILTERS_A_BLOCK, add_runs, correlate_block, dot_runs


@spliced
def base_of(layout, position):
    """Index of the padded signal at which the box of a code at `position` starts."""
    row = position // layout.row_length
    return layout.row_bases[row] + position - row * layout.row_length


@kernel
def synthesise(layout, codes, values, signal):
    """signal += Σ_j values[j] · (filter of codes[j] at its position)."""
    n_positions = len(layout.row_bases) * layout.row_length
    step = len(layout.run_offsets) << len(layout.run_lanes)
    for i in range(len(codes)):
        k = codes[i] // n_positions
        base = base_of(layout, codes[i] - k * n_positions)
        add_runs(layout.run_lanes, signal, base, layout.runs, k * step, layout.run_offsets, values[i])


@kernel
def synthesise_dense(layout, values, signal):
    """signal += Σ over all filters and positions; `values` is flat (n_filters · n_positions,)."""
    n_positions = len(layout.row_bases) * layout.row_length
    step = len(layout.run_offsets) << len(layout.run_lanes)
    for k in range(layout.n_filters):
        for position in range(n_positions):
            value = values[k * n_positions + position]
            if value != 0:
                base = base_of(layout, position)
                add_runs(layout.run_lanes, signal, base, layout.runs, k * step, layout.run_offsets, value)


@kernel
def correlate(layout, codes, signal, out):
    """out[j] = ⟨filter of codes[j] at its position, signal⟩."""
    n_positions = len(layout.row_bases) * layout.row_length
    step = len(layout.run_offsets) << len(layout.run_lanes)
    for i in range(len(codes)):
        k = codes[i] // n_positions
        base = base_of(layout, codes[i] - k * n_positions)
        out[i] = dot_runs(layout.run_lanes, signal, base, layout.runs, k * step, layout.run_offsets)


@allocating_kernel
def correlate_dense(layout, signal, first_row, last_row, out):
    """Correlations of all filters at all positions of some grid rows.

    `out` is flat: (n_blocks · FILTERS_A_BLOCK, last_row − first_row, row_length).
    """
    width = 1 << len(layout.block_lanes)
    length = layout.row_length
    n_taps = len(layout.taps)
    stride = (last_row - first_row) * length
    narrow = np.empty(FILTERS_A_BLOCK * width, out.dtype)
    for block in range(len(layout.blocks) // (n_taps * FILTERS_A_BLOCK)):
        start = block * n_taps * FILTERS_A_BLOCK
        for row in range(first_row, last_row):
            base = layout.row_bases[row]
            place = block * FILTERS_A_BLOCK * stride + (row - first_row) * length
            if length < width:
                correlate_block(layout.block_lanes, signal, base, layout.blocks, start, layout.taps, narrow, 0, width)
                for k in range(FILTERS_A_BLOCK):
                    for j in range(length):
                        out[place + k * stride + j] = narrow[k * width + j]
                continue
            for j in range(0, length, width):
                at = min(j, length - width)
                correlate_block(
                    layout.block_lanes, signal, base + at, layout.blocks, start, layout.taps, out, place + at, stride
                )


@kernel
def curvatures(layout, codes, weights, out):
    """out[j] = Σ weights · (filter of codes[j] at its position)²; `weights` is a flat padded signal."""
    n_positions = len(layout.row_bases) * layout.row_length
    step = len(layout.run_offsets) << len(layout.run_lanes)
    for i in range(len(codes)):
        k = codes[i] // n_positions
        base = base_of(layout, codes[i] - k * n_positions)
        out[i] = dot_runs(layout.run_lanes, weights, base, layout.squares, k * step, layout.run_offsets)


@kernel
def accumulate_boxes(layout, codes, values, signal, out):
    """out[k] += value · (the box of the signal that filter k meets), for every code; flat, one row a tap."""
    n_positions = len(layout.row_bases) * layout.row_length
    n_taps = len(layout.taps)
    for i in range(len(codes)):
        k = codes[i] // n_positions
        base = base_of(layout, codes[i] - k * n_positions)
        value = values[i]
        for m in range(n_taps):
            out[k * n_taps + m] += value * signal[base + layout.taps[m]]
