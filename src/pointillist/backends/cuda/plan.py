"""What a device computes where: buckets, colours, tiles and runs of positions, and how many signals fit at a time.

Plain functions of shapes; nothing here needs a device. Signals are planes (1-D ones a single row). Codes are kept in
*buckets* of positions at least (filter size − 1) wide: filters of two buckets with one in between never overlap, so that
buckets of one of four colours can be descended on at once, a warp each. A signal whose residual does not fit in a block's
shared memory is cut into *tiles* of whole buckets, coloured alike. The scan takes *runs* of eight neighbouring positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

RUN = 8
"""Neighbouring positions, and filters, that a thread of the scan handles at once."""

RESERVED_SHARED = 1024
"""Bytes of a block's shared memory that are left to the system and to the kernels' own variables."""

_PLACES = 4096  # positions of a bucket that fit into a code's lower bits
_MAX_FILTERS = 1 << 19
_THREADS = (128, 64)  # four or eight blocks of the scan a multiprocessor, whose registers are then full
_PART_POSITIONS = 512 * 100 * 100
_TILE_BYTES = 100 * 1024  # two blocks a multiprocessor


@dataclass(frozen=True)
class Plan:
    """Where everything lies, for signals of one shape and filters of one size.

    Attributes
    ----------
    grid, padded, filter : (rows, columns)
    channels, n_filters : int
    bucket, buckets : (rows, columns)
        Positions of a bucket, and how many buckets.
    shift : int
        Bits of a column in a bucket.
    capacity : int
        Codes that a bucket has room for.
    tile, tiles : (rows, columns)
        Buckets of a tile, and how many tiles.
    warps, most_warps : int
        Warps that share a tile when there are many tiles, and when there are few.
    panels, runs, threads, blocks : int
        The scan's columns of panels, runs in a row of one, threads of a block and blocks of a panel.
    """

    grid: tuple[int, int]
    padded: tuple[int, int]
    filter: tuple[int, int]
    channels: int
    n_filters: int
    bucket: tuple[int, int]
    buckets: tuple[int, int]
    shift: int
    capacity: int
    tile: tuple[int, int]
    tiles: tuple[int, int]
    warps: int
    most_warps: int
    panels: int
    runs: int
    threads: int
    blocks: int

    @property
    def n_positions(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def n_buckets(self) -> int:
        return self.buckets[0] * self.buckets[1]

    @property
    def taps(self) -> int:
        return self.channels * self.filter[0] * self.filter[1]

    @property
    def filter_blocks(self) -> int:
        return -(-self.n_filters // RUN)

    @property
    def tile_bytes(self) -> int:
        """Shared memory of a block that descends on a tile."""
        return tile_bytes(self.grid, self.filter, self.channels, self.bucket, self.tile)

    @property
    def scan_bytes(self) -> int:
        """Shared memory of a block of the scan."""
        rows = min(self.grid[0], (self.threads - 1) // self.runs + 2) + self.filter[0] - 1
        window = -(-(RUN + self.filter[1] - 1) // 4) * 4
        return 4 * (2 * self.taps * RUN + self.channels * rows * (self.runs * RUN + window - RUN))

    @property
    def enlarge_warps(self) -> int:
        """Warps of a block that enlarges the working set, a bucket each."""
        return max(1, min(4, 48 * 1024 // (12 * self.capacity)))

    @property
    def enlarge_bytes(self) -> int:
        """Shared memory of such a block: code, value and curvature of all that its buckets have room for."""
        return 12 * self.capacity * self.enlarge_warps

    @property
    def signal_bytes(self) -> int:
        """Device memory that one signal takes while it is solved, with weights of its own."""
        samples = self.channels * self.padded[0] * self.padded[1]
        return samples * (4 + 4 + 8 + 4) + self.n_positions * 8 + self.n_buckets * (self.capacity * 12 + 4) + 64

    def shared_bytes(self, sampled: bool = False, mapped: bool = False) -> int:
        """Device memory that all signals share: filters twice, a bit for each code, penalties by position thrice."""
        codes = self.filter_blocks * RUN * self.panels * self.grid[0] * self.runs * RUN
        sample = codes // 8 + 8 * codes if sampled else 0
        return 8 * self.filter_blocks * RUN * self.taps + sample + (16 * codes if mapped else 0) + (1 << 20)

    def integers(self) -> np.ndarray:
        """The numbers that the kernels read, in the order of `common.cuh`."""
        pairs = (self.grid, self.padded, self.bucket, self.buckets)
        flat = [number for pair in pairs for number in pair]
        flat += [self.shift, self.capacity, *self.tile, *self.tiles, self.n_filters]
        return np.array([*flat, self.panels, self.runs, self.blocks], np.int32)

    def of_colour(self, colour: int, field: tuple[int, int]) -> int:
        """How many of a field of buckets or tiles have one of the four colours."""
        down, across = ((length - part + 1) // 2 for length, part in zip(field, divmod(colour, 2), strict=True))
        return down * across


def make_plan(
    grid: tuple[int, int], filter_: tuple[int, int], channels: int, n_filters: int, shared_limit: int = 227 * 1024
) -> Plan:
    """Plan for codes on `grid` of filters (channels, *filter_), with blocks of at most `shared_limit` bytes."""
    if n_filters >= _MAX_FILTERS:
        raise ValueError(f"a device takes fewer than {_MAX_FILTERS} filters, got {n_filters}")
    bucket = (bucket_side(filter_[0], grid[0]), bucket_side(filter_[1], grid[1]))
    shift = max(bucket[1] - 1, 1).bit_length()
    if bucket[0] << shift > _PLACES:
        raise ValueError(f"filters of {filter_} are too large for a device; use device='cpu'")
    buckets = (-(-grid[0] // bucket[0]), -(-grid[1] // bucket[1]))
    tile = tile_buckets(grid, filter_, channels, bucket, buckets, shared_limit - RESERVED_SHARED)
    tiles = (-(-buckets[0] // tile[0]), -(-buckets[1] // tile[1]))
    panels, runs = scan_panels(grid)
    threads, blocks = scan_threads(grid[0] * runs)
    plan = Plan(
        grid=grid,
        padded=(grid[0] + filter_[0] - 1, grid[1] + filter_[1] - 1),
        filter=filter_,
        channels=channels,
        n_filters=n_filters,
        bucket=bucket,
        buckets=buckets,
        shift=shift,
        capacity=bucket_capacity(bucket, channels),
        tile=tile,
        tiles=tiles,
        warps=tile_warps(tile, tile_bytes(grid, filter_, channels, bucket, tile), shared_limit),
        most_warps=tile_warps(tile, shared_limit, shared_limit),
        panels=panels,
        runs=runs,
        threads=threads,
        blocks=blocks,
    )
    if max(plan.scan_bytes, plan.enlarge_bytes) > shared_limit - RESERVED_SHARED:
        raise ValueError(f"filters of {channels}×{filter_} do not fit a block's shared memory; use device='cpu'")
    return plan


def bucket_side(size: int, length: int) -> int:
    """Side of a bucket: at least size − 1, and a multiple of the usual cells (3, 2, 1), so that cells nest in buckets."""
    return min(max(6, -(-(size - 1) // 6) * 6), length)


def bucket_capacity(bucket: tuple[int, int], channels: int) -> int:
    """Codes that a bucket has room for, a multiple of 32: an optimum has one for each sample, and a round adds some."""
    return -(-(2 * channels + 3) * bucket[0] * bucket[1] // 64) * 32


def tile_bytes(
    grid: tuple[int, int], filter_: tuple[int, int], channels: int, bucket: tuple[int, int], tile: tuple[int, int]
) -> int:
    """Bytes of the float32 residual that the codes of a tile touch, and of one number for each bucket."""
    height, width = (min(b * t, g) + f - 1 for b, t, g, f in zip(bucket, tile, grid, filter_, strict=True))
    return 4 * (channels * height * width + tile[0] * tile[1])


def tile_buckets(
    grid: tuple[int, int],
    filter_: tuple[int, int],
    channels: int,
    bucket: tuple[int, int],
    buckets: tuple[int, int],
    limit: int,
) -> tuple[int, int]:
    """Buckets of a tile: all of them where the residual fits, the largest square ones that leave room for two otherwise."""
    if tile_bytes(grid, filter_, channels, bucket, buckets) <= limit:
        return buckets
    for room in (min(_TILE_BYTES, limit), limit):
        for side in range(max(buckets), 0, -1):
            tile = (min(side, buckets[0]), min(side, buckets[1]))
            if tile_bytes(grid, filter_, channels, bucket, tile) <= room:
                return tile
    raise ValueError(f"filters of {channels}×{filter_} do not fit a block's shared memory; use device='cpu'")


def tile_warps(tile: tuple[int, int], size: int, shared_limit: int) -> int:
    """Warps for a tile of `size` bytes: about 32 a multiprocessor, and no more than its largest colour has buckets."""
    largest = -(-tile[0] // 2) * -(-tile[1] // 2)
    blocks = max(1, shared_limit // (size + RESERVED_SHARED))
    return min(max(4, min(16, 32 // blocks)), max(largest, 1))


def scan_panels(grid: tuple[int, int]) -> tuple[int, int]:
    """Panels of columns and runs in a row of one: about 128 positions wide, more for flat grids."""
    widest = min(1024, max(128, -(-1024 // grid[0])))
    panels = -(-grid[1] // widest)
    return panels, -(-grid[1] // (panels * RUN))


def scan_threads(runs: int) -> tuple[int, int]:
    """Threads of a block that leave the fewest idle over all blocks of a panel, and how many blocks."""
    candidates = [(-(-runs // threads), threads) for threads in _THREADS]
    blocks, threads = min(candidates, key=lambda pair: round(50 * pair[0] * pair[1] / runs))
    return threads, blocks


def batches(count: int, plan: Plan, memory: int, in_flight: int = 1, shared: int = 0) -> Iterator[slice]:
    """Signals in nearly equal parts, so that `in_flight` of them fit in `memory` bytes beside `shared` ones.

    A part has about as many positions as fill a large device; more would only wait longer for the slowest signal.
    """
    largest = min(8192, max(1, _PART_POSITIONS // plan.n_positions))
    in_flight = min(in_flight, -(-count // largest))
    room = (memory - shared) // (in_flight * plan.signal_bytes)
    if room < 1:
        need = (shared + plan.signal_bytes) / 2**30
        raise MemoryError(f"one signal needs {need:.1f} GiB of device memory, {memory / 2**30:.1f} GiB may be used")
    parts = -(-count // int(min(room, largest)))
    bounds = np.linspace(0, count, parts + 1).round().astype(int)
    return (slice(int(a), int(b)) for a, b in pairwise(bounds))


def pack(plan: Plan, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bucket number and packed code of flat code indices (filter · n_positions + position)."""
    filters, positions = np.divmod(indices, plan.n_positions)
    rows, columns = np.divmod(positions, plan.grid[1])
    bucket_row, row = np.divmod(rows, plan.bucket[0])
    bucket_column, column = np.divmod(columns, plan.bucket[1])
    codes = filters << 12 | row << plan.shift | column
    return bucket_row * plan.buckets[1] + bucket_column, codes.astype(np.int32)


def slots(buckets: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """For codes in the given buckets their number in the bucket, and which of them find room."""
    order = np.argsort(buckets, kind="stable")
    ordered = buckets[order]
    first = np.searchsorted(ordered, ordered)
    number = np.empty(len(buckets), np.int64)
    number[order] = np.arange(len(buckets)) - first
    return number, number < capacity
