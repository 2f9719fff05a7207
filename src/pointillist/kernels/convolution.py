"""Convolution with sparse and dense codes, and its adjoint, on filters and signals laid out in flat memory.

One kernel serves every dimension. A filter is stored as runs of contiguous samples along the last axis: an 11×11 filter is
11 runs, an RGB one 33, a 1-D one of 40 samples three runs of 16. Code positions are rows of a grid, each with its place in
the padded signal. Two filter stores exist side by side: `runs` for one filter at a time and `blocks`, the transposed store
that `correlate_block` wants.

All kernels take a `Layout` and one flat signal `(channels · padded samples + SPARE_SAMPLES,)`. A code is a flat index
filter · n_positions + position.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np

from pointillist.kernels.compiling import allocating_kernel, kernel, spliced
from pointillist.kernels.vectors import FILTERS_A_BLOCK, add_runs, correlate_block, dot_runs, lanes_of

SPARE_SAMPLES = 32
"""Samples that every padded signal has behind its end, for the padded lanes of its last run."""


class Layout(NamedTuple):
    """Flat arrays that the kernels walk; see `make_layout`."""

    run_lanes: tuple[None, ...]  # the width of a run, as `lanes_of` tells it
    block_lanes: tuple[None, ...]  # the number of positions a correlation block serves
    runs: np.ndarray  # (n_filters · n_runs · width,) samples, zero-padded
    squares: np.ndarray  # the same, squared: dotted with weights they give curvatures
    run_offsets: np.ndarray  # (n_runs,) where each run lies relative to a code's base
    blocks: np.ndarray  # (n_blocks · n_taps · FILTERS_A_BLOCK,) samples, filters fastest
    taps: np.ndarray  # (n_taps,) where each sample lies relative to a code's base
    row_bases: np.ndarray  # (n_rows,) base of the first position of each grid row
    row_length: int
    n_filters: int


def make_layout(filters: np.ndarray, grid: tuple[int, ...], padded: tuple[int, ...]) -> Layout:
    """Lay out `filters` (n_filters, channels, *size) for codes on `grid` over a signal `(channels, *padded)`."""
    n_filters, *box = filters.shape
    shape, width = (box[0], *padded), run_width(box[-1])
    n_rows, chunks = prod(box[:-1]), -(-box[-1] // width)
    padded_rows = aligned_zeros((n_filters, n_rows, chunks * width), filters.dtype)
    padded_rows[..., : box[-1]] = filters.reshape(n_filters, n_rows, box[-1])
    runs = padded_rows.reshape(-1)
    whole = np.zeros((whole_blocks(n_filters), prod(box)), filters.dtype)
    whole[:n_filters] = filters.reshape(n_filters, -1)
    by_blocks = whole.reshape(-1, FILTERS_A_BLOCK, prod(box))
    with np.errstate(over="ignore"):  # problems that need the squares come in another scale
        squares = runs**2
    return Layout(
        run_lanes=lanes_of(width),
        block_lanes=lanes_of(register_width(filters.dtype)),
        runs=runs,
        squares=squares,
        run_offsets=row_offsets(tuple(box), shape, width),
        blocks=np.ascontiguousarray(by_blocks.transpose(0, 2, 1)).reshape(-1),
        taps=row_offsets(tuple(box), shape, 1),
        row_bases=flat_offsets(grid[:-1], strides_of(shape)[1:-1]),
        row_length=grid[-1],
        n_filters=n_filters,
    )


class Pairs(NamedTuple):
    """Filters by two neighbouring samples, for sums at scattered positions; see `make_pairs`."""

    samples: np.ndarray  # (n_blocks · n_pairs · FILTERS_A_BLOCK · 2,) the filters of a block, two samples of each
    offsets: np.ndarray  # (n_pairs,) where each pair lies relative to a code's base


def make_pairs(filters: np.ndarray, padded: tuple[int, ...]) -> Pairs:
    """Lay out `filters` (n_filters, channels, *size) for `vectors.best_at_positions` in a signal `(channels, *padded)`.

    Behind rows of an odd length stands a zero.
    """
    n_filters, *box = filters.shape
    half, n_rows = -(-box[-1] // 2), prod(box[:-1])
    full = np.zeros((whole_blocks(n_filters), n_rows, 2 * half), filters.dtype)
    full[:n_filters, :, : box[-1]] = filters.reshape(n_filters, n_rows, box[-1])
    two = np.result_type(filters.dtype, np.complex64)  # two samples are moved as one number
    by_blocks = full.view(two).reshape(-1, FILTERS_A_BLOCK, n_rows * half).transpose(0, 2, 1)
    samples = aligned_zeros(by_blocks.shape, two)
    samples[...] = by_blocks
    return Pairs(samples.view(filters.dtype).reshape(-1), row_offsets(tuple(box), (box[0], *padded), 2))


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros that begin where a line of the cache does, 64 bytes long, so that no run of filters lies in two of them."""
    n_bytes = prod(shape) * dtype.itemsize
    room = np.zeros(n_bytes + 64, np.uint8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + n_bytes].view(dtype).reshape(shape)


@lru_cache(maxsize=256)
def row_offsets(box: tuple[int, ...], shape: tuple[int, ...], width: int) -> np.ndarray:
    """Offsets of pieces, `width` long, of the rows of a filter of shape `box` (channels, *size) in a signal of `shape`.

    They are kept, since learners lay filters out several times a step; nobody writes into them.
    """
    leading = flat_offsets(box[:-1], strides_of(shape)[:-1])
    return (leading[:, None] + width * np.arange(-(-box[-1] // width))).reshape(-1)


def run_width(length: int) -> int:
    """Width of the runs for rows of `length` samples: the fewest runs, then the least padding."""
    return min((4, 8, 16), key=lambda width: (-(-length // width), width))


@cache
def register_width(dtype: np.dtype) -> int:
    """Samples of `dtype` in one vector register of this machine (32 bytes, or 64 with AVX-512)."""
    wide = llvm.get_host_cpu_features().get("avx512f", False)
    return (64 if wide else 32) // dtype.itemsize


def strides_of(shape: Sequence[int]) -> np.ndarray:
    """Samples between neighbours along each axis of a C-contiguous array."""
    return np.cumprod((1, *shape[:0:-1]), dtype=np.int64)[::-1]


def flat_offsets(shape: Sequence[int], strides: np.ndarray) -> np.ndarray:
    """Flat offsets of all index tuples of `shape`, in raster order."""
    offsets = np.zeros(1, np.int64)
    for length, stride in zip(shape, strides, strict=True):
        offsets = (offsets[:, None] + stride * np.arange(length, dtype=np.int64)).reshape(-1)
    return offsets


def whole_blocks(n_filters: int) -> int:
    """Filters in so many whole blocks as hold `n_filters`."""
    return -(-n_filters // FILTERS_A_BLOCK) * FILTERS_A_BLOCK


@spliced
def base_of(layout, position):
    """Index of the padded signal at which the box of a code at `position` starts."""
    row = position // layout.row_length
    return layout.row_bases[row] + position - row * layout.row_length


@spliced
def places_of(layout, code):
    """Number of a code's filter, begin of the filter in the runs, and begin of the code's box in the signal."""
    n_positions = len(layout.row_bases) * layout.row_length
    k = code // n_positions
    return k, k * len(layout.run_offsets) << len(layout.run_lanes), base_of(layout, code - k * n_positions)


@kernel
def synthesise(layout, codes, values, signal):
    """signal += Σ_j values[j] · (filter of codes[j] at its position)."""
    for i in range(len(codes)):
        _, start, base = places_of(layout, codes[i])
        add_runs(layout.run_lanes, signal, base, layout.runs, start, layout.run_offsets, values[i])


@kernel
def correlate(layout, codes, signal, out):
    """out[j] = ⟨filter of codes[j] at its position, signal⟩."""
    for i in range(len(codes)):
        _, start, base = places_of(layout, codes[i])
        out[i] = dot_runs(layout.run_lanes, signal, base, layout.runs, start, layout.run_offsets)


def curvatures(layout, codes, weights, out):
    """out[j] = Σ weights · (filter of codes[j] at its position)²; `weights` is a flat padded signal."""
    correlate(layout._replace(runs=layout.squares), codes, weights, out)


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
def accumulate_boxes(layout, codes, values, signal, out):
    """out[k] += value · (the box of the signal that filter k meets), for every code; flat, one row a tap."""
    n_taps = len(layout.taps)
    for i in range(len(codes)):
        k, _, base = places_of(layout, codes[i])
        value = values[i]
        for m in range(n_taps):
            out[k * n_taps + m] += value * signal[base + layout.taps[m]]


@allocating_kernel
def add_gram(layout, codes, places, roots, image_offsets, bandwidth, band):
    """Gram matrix A Aᵀ of sampled filters, in the banded storage that LAPACK factorises.

    band += Σ over codes of (box)(box)ᵀ, lower triangle: entry (i, j), i ≥ j, at band[j · (bandwidth + 1) + i − j].

    `places` maps padded samples to signal samples, −1 outside; `roots` holds √w on the padded signal;
    `image_offsets` are the run offsets in the signal's own strides. `band` has spare room for one run at its end.
    """
    width = 1 << len(layout.run_lanes)
    n_runs = len(layout.run_offsets)
    box = np.zeros(n_runs * width, band.dtype)
    for c in range(len(codes)):
        _, start, base = places_of(layout, codes[c])
        for i in range(n_runs):
            for j in range(width):
                sample = layout.runs[start + i * width + j]
                place = base + layout.run_offsets[i] + j
                box[i * width + j] = sample * roots[place] if sample != 0 and places[place] >= 0 else 0
        for i in range(n_runs):
            for j in range(width):
                value = box[i * width + j]
                if value == 0:
                    continue
                column = places[base + layout.run_offsets[i] + j] * (bandwidth + 1)
                for other in range(j, width):
                    band[column + other - j] += value * box[i * width + other]
                first = column - image_offsets[i] - j
                add_runs(layout.run_lanes, band, first, box, (i + 1) * width, image_offsets[i + 1 :], value)
