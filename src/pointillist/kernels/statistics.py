"""Kernels for the dictionary's statistics: pairs of neighbouring codes, and products with block-Toeplitz blocks."""

from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from pointillist.kernels.compiling import kernel, routine, spliced
from pointillist.kernels.convolution import flat_offsets, register_width, strides_of
from pointillist.kernels.vectors import ROWS_AT_ONCE, correlate_planes, correlate_rows, lanes_of

_ROOM = 2**15
"""Products that are kept before they are added: walking and adding alternate seldom, and the caches hold them."""


def add_pairs(owners, filters, positions, values, weighted, grid, size, spans, out, mapper, room=_ROOM):
    """Add weight · z_i z_j for every pair of codes closer than a filter.

    Codes are sorted by position on the grid: `filters`, `positions`, `values` z and `weighted` weight · z hold one entry a
    code. `owners` lists codes filter by filter, so that one filter's sums stay in the cache. `out[pair(k ≤ l)]` is the block
    of shifts δ = (position of l) − (position of k), flat, of shape (2·size − 1). `mapper` shares out the `spans` (first,
    last) of filters k.
    """
    rows, columns = np.divmod(positions, grid[-1])
    coordinates = np.stack(np.unravel_index(np.arange(prod(grid[:-1])), grid[:-1]), axis=1)
    leading = np.array(list(product(*[range(1 - s, s) for s in size[:-1]])), np.int64)
    first_at = np.zeros(prod(grid) + 1, np.int32)  # codes before each position
    np.cumsum(np.bincount(positions, minlength=prod(grid)), out=first_at[1:])
    in_a_row = (2 * size[-1] - 1) * int(np.max(np.diff(first_at), initial=0))  # codes that one can meet there
    room = max(room, min(in_a_row, len(filters)))
    arrays = (owners, filters, columns, values, weighted, first_at, rows, coordinates)
    shapes = (np.array(grid), np.array(size), leading)

    def work(span):
        _add_pairs(*arrays, *shapes, *span, out, out.reshape(-1), np.empty(room, np.int64), np.empty(room))

    mapper(work, spans)


@kernel
def _add_pairs(
    owners, filters, columns, values, weighted, first_at, row_of, row_coordinates, grid, size, leading, first, last, out,
    flat, places, products,
):  # fmt: skip
    n_filters = int((2 * out.shape[0] + 0.25) ** 0.5)
    axis_last = len(size) - 1
    reach, width, block = size[axis_last] - 1, grid[axis_last], out.shape[1]
    kept = 0
    for n in range(len(owners)):
        i = owners[n]
        k = filters[i]
        if k < first or k >= last:
            continue
        start = (k * n_filters - k * (k - 1) // 2 - k) * block
        row, column, value = row_of[i], columns[i], weighted[i]
        begin, end = max(column - reach, 0), min(column + reach + 1, width)
        for h in range(len(leading)):
            other_row, stride, inside, place = row, 1, True, 0
            for axis in range(axis_last - 1, -1, -1):
                at = row_coordinates[row, axis] + leading[h, axis]
                inside &= 0 <= at < grid[axis]
                other_row += leading[h, axis] * stride
                stride *= grid[axis]
            if not inside:
                continue
            for axis in range(axis_last):
                place = place * (2 * size[axis] - 1) + leading[h, axis] + size[axis] - 1
            place = start + place * (2 * size[axis_last] - 1) + reach - column
            nearest, beyond = first_at[other_row * width + begin], first_at[other_row * width + end]
            if kept + beyond - nearest > len(places):
                _add_at(flat, places, products, kept)
                kept = 0
            for j in range(nearest, beyond):
                # The other half of the pairs is overwritten: skipping it would be guessed wrong every other time.
                places[kept] = place + filters[j] * block + columns[j]
                products[kept] = value * values[j]
                kept += filters[j] >= k
    _add_at(flat, places, products, kept)


@routine
def _add_at(flat, places, products, count):
    """Add products at their places: C is larger than the caches, and a loop without branches waits for many at once."""
    for n in range(count):
        flat[places[n]] += products[n]


class Toeplitz(NamedTuple):
    """Block-Toeplitz sums and how their blocks are walked; see `make_toeplitz`."""

    lanes: tuple[None, ...]  # the number of positions done at once along the last axis, as `lanes_of` tells it
    blocks: np.ndarray  # flat, all pairs k ≤ l, and `toeplitz_spare` samples
    block_size: int
    first: np.ndarray  # (n_filters,) number of the pair (k, k)
    bases: np.ndarray  # (n_groups,) where each group of rows of positions begins in a block
    stride: int  # distance of its rows
    places: np.ndarray  # (n_groups · ROWS_AT_ONCE · width,) which position a lane holds, −1 for none
    plane: tuple[int, int]  # rows and columns of a filter's planes
    planes: np.ndarray  # (n_planes,) where each plane meets a block; none where its rows are few
    order: np.ndarray  # (n_taps,) which sample of a filter its taps are: those of a plane column by column
    met: np.ndarray  # (n_taps,) where each tap meets a block
    spare: int  # samples that a block needs behind its end, for rows and lanes that a group has too many


def toeplitz_spare(size):
    """Samples that blocks need behind their end, for rows and lanes that a group has too many."""
    return ROWS_AT_ONCE * (2 * size[-1] + 16)


def make_toeplitz(blocks, size, dtype):
    """Describe `blocks` (flat, n_pairs · (2·size − 1) samples and `toeplitz_spare`) to kernels for filters of a type."""
    n_pairs = (len(blocks) - toeplitz_spare(size)) // prod(2 * s - 1 for s in size)
    return _walk(n_pairs, tuple(size), np.dtype(dtype))._replace(blocks=blocks)


@lru_cache(maxsize=16)
def _walk(n_pairs, size, dtype):
    """A `Toeplitz` without its blocks: a step of learning needs it many times."""
    span = [2 * s - 1 for s in size]
    n_filters = int((2 * n_pairs + 0.25) ** 0.5)
    k = np.arange(n_filters, dtype=np.int64)
    lattice = flat_offsets(size, strides_of(span))
    width = min(2 * register_width(dtype), next(w for w in (4, 8, 16) if w >= min(size[-1], 16)))
    plane = (size[-2] if len(size) > 1 else 1, size[-1])
    planes = lattice[:: prod(plane)] if plane[0] >= ROWS_AT_ONCE else lattice[:0]
    order = np.arange(lattice.size).reshape(-1, *plane).swapaxes(1, 2).reshape(-1)
    # Positions in groups of equally spaced rows: rows of one plane, or pieces of one row for 1-D filters.
    pieces = [range(at, min(at + width, size[-1])) for at in range(0, size[-1], width)]
    tops, rows = range(0, lattice.size, prod(plane)), range(0, prod(plane), size[-1])
    if plane[0] == 1:
        stride, lines = width, [[(top, piece) for piece in pieces] for top in tops]
    else:
        stride, lines = span[-1], [[(top + row, piece) for row in rows] for top in tops for piece in pieces]
    groups = [line[at : at + ROWS_AT_ONCE] for line in lines for at in range(0, len(line), ROWS_AT_ONCE)]
    places = np.full((len(groups), ROWS_AT_ONCE, width), -1, np.int64)
    for group, slots in zip(groups, places, strict=True):
        for (row, piece), slot in zip(group, slots, strict=False):
            slot[: len(piece)] = row + np.array(piece)
    return Toeplitz(
        lanes=lanes_of(width),
        blocks=np.empty(0),
        block_size=prod(span),
        first=k * n_filters - k * (k - 1) // 2,
        bases=lattice[places[:, 0, 0]],
        stride=stride,
        places=places.reshape(-1),
        plane=plane,
        planes=planes.copy(),
        order=order,
        met=lattice[order],
        spare=toeplitz_spare(size),
    )


class Sums(NamedTuple):
    """Sums of products of blocks with filters, all flat and in the precision of the filters."""

    later: np.ndarray  # (n · channels · places,) sums of n filters over those that do not come before them
    earlier: np.ndarray  # the same over those that do, mirrored
    block: np.ndarray  # (block_size + spare,) one block at a time
    taps: np.ndarray  # (2 · n_filters · channels · n_taps,) filters as `Toeplitz.order` says, and all of them mirrored


def make_sums(toeplitz, filters, count):
    """Make room for the products of so many filters with all filters (n_filters, channels, n_taps)."""
    sums = np.empty((2, count * filters.shape[1] * len(toeplitz.places)), filters.dtype)
    block = np.zeros(toeplitz.block_size + toeplitz.spare, filters.dtype)
    taps = np.stack([filters[..., toeplitz.order], filters[..., ::-1][..., toeplitz.order]])
    return Sums(*sums, block, taps.reshape(-1))


def toeplitz_product(toeplitz, scale, filters, k, out):
    """out = scale · (C d)_k for filters (n_filters, channels, n_taps), in their precision; out is (channels, n_taps)."""
    ranks = np.full(len(filters), -1)
    _toeplitz_product(toeplitz, scale, k, ranks, make_sums(toeplitz, filters, 1), out)


@kernel
def _toeplitz_product(toeplitz, scale, k, ranks, sums, out):
    _clear(sums, 0, len(sums.later))
    _add_products(toeplitz, scale, len(out), k, ranks, False, sums, 0)
    _collect(toeplitz, sums, 0, out)


@routine
def _clear(sums, begin, end):
    for slot in range(begin, end):
        sums.later[slot] = 0
        sums.earlier[slot] = 0


@routine
def _add_products(toeplitz, scale, n_channels, k, ranks, moved, sums, n):
    """Add scale · C_km d_m to sum n for the filters m that come before k, the n-th of a group, in it; or for all others."""
    n_filters, n_taps, n_places = len(ranks), len(toeplitz.order), len(toeplitz.places)
    size, block = toeplitz.block_size, sums.block
    for m in range(n_filters):
        if (0 <= ranks[m] < n) != moved:
            continue
        # C_kl(δ) = C_lk(−δ): filters before k meet their block mirrored, so their sums come out mirrored.
        low, high = min(k, m), max(k, m)
        begin = (toeplitz.first[low] + high - low) * size
        stored = toeplitz.blocks[begin : begin + size]
        for i in range(size):
            block[i] = scale * stored[i]
        out, first = (sums.later, n_filters + m) if m >= k else (sums.earlier, m)
        for c in range(n_channels):
            start = (first * n_channels + c) * n_taps
            _correlate(toeplitz, block, sums.taps, start, out, (n * n_channels + c) * n_places)


@spliced
def _correlate(toeplitz, block, taps, start, out, out_start):
    """Add the correlation of a block with the filter that begins at taps[start]."""
    group_size, (rows, columns) = ROWS_AT_ONCE << len(toeplitz.lanes), toeplitz.plane
    for g in range(len(toeplitz.bases)):
        base, stride, place = toeplitz.bases[g], toeplitz.stride, out_start + g * group_size
        if len(toeplitz.planes) == 0:
            correlate_rows(toeplitz.lanes, block, base, stride, taps, start, toeplitz.met, out, place)
        for p in range(len(toeplitz.planes)):
            at, tap = base + toeplitz.planes[p], start + p * rows * columns
            correlate_planes(toeplitz.lanes, block, at, stride, taps, tap, rows, columns, out, place)


@routine
def _collect(toeplitz, sums, n, out):
    """out = row n of the sums, each position in its place."""
    n_channels, n_taps = out.shape
    places = toeplitz.places
    for c in range(n_channels):
        for m in range(n_taps):
            out[c, m] = 0
        for slot in range(len(places)):
            if places[slot] >= 0:
                at = (n * n_channels + c) * len(places) + slot
                out[c, places[slot]] += sums.later[at]
                out[c, n_taps - 1 - places[slot]] += sums.earlier[at]


def toeplitz_columns(toeplitz, rows, k, out):
    """out[m, i] = C_mk w_i for rows w (n_rows, n_taps) and every filter m; out is (n_filters, n_rows, n_taps)."""
    filters, ranks = np.zeros(out.shape, rows.dtype), np.full(len(out), -1)
    filters[k], ranks[k] = rows, 0
    _toeplitz_columns(toeplitz, ranks, make_sums(toeplitz, filters, 2), out)


@kernel
def _toeplitz_columns(toeplitz, ranks, sums, out):
    width = out.shape[1] * len(toeplitz.places)
    for m in range(len(out)):
        _clear(sums, width, 2 * width)
        _add_products(toeplitz, 1.0, out.shape[1], m, ranks, True, sums, 1)
        _collect(toeplitz, sums, 1, out[m])


@kernel
def sweep_group(
    toeplitz,
    scale,
    linear,
    group,
    first,
    last,
    moves,
    lipschitz,
    support,
    zero_mean,
    nonnegative,
    filters,
    ranks,
    sums,
    gradient,
):
    """One pass of projected block coordinate descent over a group of filters (n_filters, channels, n_taps), in place.

    It takes two calls, of one kernel so that products are compiled once. Without `moves`, sums first … last − 1 become the
    products of filters group[first:last] with all that are not moved before them; they are independent of each other, so
    that threads may share them if each has a block of its own. With it, the filters are moved one after the other.

    Filter m has the place ranks[m] in the group, or −1. C is multiplied by `scale`; `linear` (n_filters, channels, n_taps)
    and `lipschitz` (n_filters,) are scaled already; `gradient` (channels, n_taps) is room.
    """
    n_filters, n_channels, n_taps = filters.shape
    width = n_channels * len(toeplitz.places)
    if not moves:
        _clear(sums, first * width, last * width)
    for n in range(first, last):
        k = group[n]
        if lipschitz[k] <= 0:
            continue
        _add_products(toeplitz, scale, n_channels, k, ranks, moves, sums, n)
        if not moves:
            continue
        _collect(toeplitz, sums, n, gradient)
        _descend(filters, k, gradient, linear[k], lipschitz[k], support, zero_mean, nonnegative)
        for c in range(n_channels):
            straight, mirrored = (k * n_channels + c) * n_taps, ((n_filters + k) * n_channels + c) * n_taps
            for i in range(n_taps):
                sums.taps[straight + i] = filters[k, c, toeplitz.order[i]]
                sums.taps[mirrored + i] = filters[k, c, n_taps - 1 - toeplitz.order[i]]


@routine
def _descend(filters, k, gradient, linear, lipschitz, support, zero_mean, nonnegative):
    """Make a projected gradient step with filter k."""
    _, n_channels, n_taps = filters.shape
    energy = 0.0
    for c in range(n_channels):
        total, count = 0.0, 0
        for m in range(n_taps):
            value = filters[k, c, m] - (gradient[c, m] - linear[c, m]) / lipschitz
            filters[k, c, m] = value if support[k, m] else 0.0
            total += filters[k, c, m]
            count += support[k, m]
        for m in range(n_taps):
            if zero_mean and support[k, m]:
                filters[k, c, m] -= total / count
            if nonnegative and filters[k, c, m] < 0:
                filters[k, c, m] = 0.0
            energy += filters[k, c, m] ** 2
    if energy > 1:
        shrink = 1 / np.sqrt(energy)
        for c in range(n_channels):
            for m in range(n_taps):
                filters[k, c, m] *= shrink
