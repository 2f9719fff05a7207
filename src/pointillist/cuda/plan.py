"""Division of the work on a device: buckets, colours, tiles and runs of positions, and groups of signals that fit.

Plain functions of shapes; nothing here needs a device. Signals are volumes (planes have one layer, lines one row too).
Codes are kept in *buckets* of positions at least (filter size − 1) wide: filters of two buckets with one in between never
overlap, so that buckets of one of the eight colours (four of a plane) can be descended on at once, a warp each. A signal
whose residual does not fit in a block's shared memory is cut into *tiles* of whole buckets, coloured alike. Around a circle
the last ones may meet the first: up to two of them along an axis are of further colours. The scan takes *runs* of eight
neighbouring positions.

Shared memory has 32 banks, and lanes of a warp that meet different words of one bank are served one after the other. It
depends on the order in which they take the samples of a filter, 32 at a time, and on how long the rows of a window are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import prod

import numpy as np

Shape = tuple[int, int, int]
"""Layers, rows and columns."""

RUN = 8
"""Neighbouring positions, and filters, that a thread of the scan handles at once."""
DEPTH, CHUNK = 16, 32
"""Taps and filters that a warp of the scan on tensor cores multiplies with at a time."""
MOVES = 3
"""Moves that an extrapolated step combines, as `extrapolation.cu` counts them."""
BANKS = 32
"""Banks of shared memory, and lanes of a warp."""
RESERVED_SHARED = 1024
"""Bytes of a block's shared memory that are left to the system and to the kernels' own variables."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Sizes of the pieces of work; measured by benchmarks.gpu on one H200."""

    scan_threads: tuple[int, ...] = (128, 64)
    """Threads of a block of the scan: four or eight blocks a multiprocessor, whose registers are then full."""
    group_positions: int = 512 * 100 * 100
    """Positions of the signals that are solved together: as many as fill a large device."""
    tile_bytes: int = 100 * 1024
    """Shared memory of a tile, where a signal needs several: two blocks a multiprocessor."""
    shared_at_once: int = 132 * 1024
    """Bytes of a multiprocessor's shared memory that tiles fill: the rest is a cache, for the filters."""
    spare_columns: int = 16
    """Columns that a row of a window may get behind its samples, so that lanes meet other banks."""


TUNING = Tuning()


@dataclass(frozen=True)
class KernelPlan:
    """Places of everything, for signals of one shape and filters of one size, and the memory that it takes.

    Attributes
    ----------
    grid, padded, filter : (layers, rows, columns)
    channels, n_filters : int
    bucket, buckets : (layers, rows, columns)
        Positions of a bucket, and how many buckets.
    shift, lift : int
        Bits of a column in a bucket, and of a row and a column.
    capacity : int
        Codes that a bucket has room for.
    tile, tiles : (layers, rows, columns)
        Buckets of a tile, and how many tiles.
    pitch : int
        Samples from one row of a tile's window to the next.
    warps : int
        Warps that share a tile.
    panels, runs, threads, blocks : int
        The scan's columns of panels, runs in a row of one, threads of a block and blocks of a panel's layer.
    around : bool
        Whether signals are circular; see `engine` for how these are padded.
    """

    grid: Shape
    padded: Shape
    filter: Shape
    channels: int
    n_filters: int
    bucket: Shape
    buckets: Shape
    shift: int
    lift: int
    capacity: int
    tile: Shape
    tiles: Shape
    pitch: int
    warps: int
    panels: int
    runs: int
    threads: int
    blocks: int
    around: bool = False

    @property
    def n_positions(self) -> int:
        return prod(self.grid)

    @property
    def n_buckets(self) -> int:
        return prod(self.buckets)

    @property
    def taps(self) -> int:
        return self.channels * prod(self.filter)

    @property
    def samples(self) -> int:
        """Samples of a padded signal."""
        return self.channels * prod(self.padded)

    @property
    def filter_blocks(self) -> int:
        return -(-self.n_filters // RUN)

    @property
    def paired_taps(self) -> int:
        """Taps of a filter whose rows are padded to pairs, and all to whole instructions of the tensor cores."""
        pairs = self.channels * self.filter[0] * self.filter[1] * -(-self.filter[2] // 2) * 2
        return -(-pairs // DEPTH) * DEPTH

    @property
    def scan_blocks(self) -> int:
        """Blocks of the scan for one signal."""
        return self.panels * self.grid[0] * self.blocks

    @property
    def box_tiles(self) -> int:
        """Blocks that sum squares over boxes, 32 × 32 positions of a layer each."""
        return self.grid[0] * -(-self.grid[1] // 32) * -(-self.grid[2] // 32)

    @property
    def enlarge_warps(self) -> int:
        """Warps of a block that enlarges the working set, a bucket each."""
        return max(1, min(4, 48 * 1024 // (12 * self.capacity)))

    @property
    def mask_positions(self) -> int:
        """Positions of a filter in the mask of sampled codes, the unused ends of runs included."""
        return self.panels * self.grid[0] * self.grid[1] * self.runs * RUN

    @property
    def paired_buckets(self) -> tuple[int, ...]:
        """Buckets along each axis that alternate between two colours; the rest, around a circle, have their own."""
        return self._paired(self.buckets, self.bucket)

    @property
    def paired_tiles(self) -> tuple[int, ...]:
        """Tiles along each axis that alternate between two colours; the rest, around a circle, have their own."""
        return self._paired(self.tiles, tuple(b * t for b, t in zip(self.bucket, self.tile, strict=True)))

    def _paired(self, field: Shape, part: tuple[int, ...]) -> tuple[int, ...]:
        axes = zip(field, part, self.grid, self.filter, strict=True)
        return tuple(paired_parts(*axis) for axis in axes) if self.around else field

    @property
    def seams(self) -> tuple[int, ...]:
        """Axes (−1 is columns) along which the repeated samples of a circle lie in other tiles than those they repeat."""
        return tuple(a for a in (-1, -2, -3) if self.around and self.tiles[a] > 1 and self.filter[a] > 1)

    def tile_colours(self) -> list[tuple[int, int]]:
        """The colours of the tiles, as the kernels number them, and how many tiles of each."""
        if not self.around:
            return colours(self.tiles)
        sizes = [
            [class_size(number, *axis) for number in range(4)]
            for axis in zip(self.tiles, self.paired_tiles, strict=True)
        ]
        counts = [sizes[0][colour >> 4] * sizes[1][colour >> 2 & 3] * sizes[2][colour & 3] for colour in range(64)]
        return [(colour, count) for colour, count in enumerate(counts) if count]

    @property
    def tile_bytes(self) -> int:
        """Shared memory of a block that descends on a tile: a window of the residual, and one number for each bucket."""
        return 4 * (self.channels * prod(self.window) + prod(self.tile))

    @property
    def window(self) -> Shape:
        """Layers, rows and columns of a tile's window, with the columns that no sample is in."""
        layers, rows, _ = tile_window(self.grid, self.filter, self.bucket, self.tile)
        return layers, rows, self.pitch

    @property
    def history_floats(self) -> int:
        """Numbers that a block keeps of the moves that it extrapolates, and of their combination."""
        return (MOVES + 1) * (self.channels * prod(self.window) + prod(self.tile) * self.capacity)

    @property
    def appraisal_bytes(self) -> int:
        """Shared memory of a block that evaluates a signal: all of it in float64."""
        return 8 * self.samples

    @property
    def _scan_rows(self) -> int:
        """Rows of samples, of all channels and layers, that the positions of a block of the scan meet."""
        rows = min(self.grid[1], (self.threads - 1) // self.runs + 2) + self.filter[1] - 1
        return self.channels * self.filter[0] * rows

    @property
    def scan_bytes(self) -> int:
        """Shared memory of a block of the scan."""
        window = -(-(RUN + self.filter[2] - 1) // 4) * 4
        return 4 * (2 * self.taps * RUN + self._scan_rows * (self.runs * RUN + window - RUN))

    @property
    def tensor_bytes(self) -> int:
        """Shared memory of a block of the scan on tensor cores: two chunks of filters, and the samples four times."""
        pitch = self.runs * RUN + -(-self.filter[2] // 8) * 8
        words = -(-self._scan_rows * pitch // 64) * 32 + 16
        return 2 * CHUNK * self.paired_taps * 4 + self.paired_taps // DEPTH * 32 + 4 * 4 * words

    @property
    def box_bytes(self) -> int:
        """Shared memory of a block that sums squares over boxes: the samples that it meets, and their sums along rows."""
        return 4 * (31 + self.filter[1]) * (31 + self.filter[2] + 32)

    @property
    def enlarge_bytes(self) -> int:
        """Shared memory of a block that enlarges the working set: all codes that its buckets have room for."""
        return 12 * self.capacity * self.enlarge_warps

    @property
    def signal_bytes(self) -> int:
        """Device memory that one signal takes while it is solved, with weights of its own."""
        codes = self.n_buckets * (self.capacity * 12 + 4)
        history = 4 * self.history_floats * max(count for _, count in self.tile_colours())
        return self.samples * (4 + 4 + 8 + 4) + self.n_positions * 8 + codes + history + 64

    def shared_bytes(self, sampled: bool = False, mapped: bool = False) -> int:
        """Device memory that all signals share: filters thrice, a bit for each code, penalties by position thrice."""
        codes = self.filter_blocks * RUN * self.mask_positions
        sample = codes // 8 + 8 * codes if sampled else 0
        filters = 8 * self.filter_blocks * RUN * self.taps + 4 * (self.n_filters + CHUNK) * self.paired_taps
        return filters + sample + (16 * codes if mapped else 0) + (1 << 20)

    def integers(self) -> np.ndarray:
        """The numbers that the kernels read, in the order of `common.cuh`."""
        shapes = (self.grid, self.padded, self.bucket, self.buckets)
        flat = [number for shape in shapes for number in shape]
        flat += [self.shift, self.lift, self.capacity, *self.tile, *self.tiles, self.n_filters]
        flat += [self.panels, self.runs, self.blocks, *self.paired_buckets, *self.paired_tiles, self.pitch]
        return np.array(flat, np.int32)


def colours(field: Shape) -> list[tuple[int, int]]:
    """The colours that a field of buckets or tiles has, and how many of each: bits are the parities along the axes."""
    counts = [prod((n - (colour >> 2 - axis & 1) + 1) // 2 for axis, n in enumerate(field)) for colour in range(8)]
    return [(colour, count) for colour, count in enumerate(counts) if count]


def paired_parts(count: int, side: int, length: int, size: int) -> int:
    """Count the first parts around a circle that never touch another part of the same parity, out of `count` parts.

    All parts but the last have `side` positions, at least size − 1. Those left over, at most two, are classes of their own.
    """
    last = length - (count - 1) * side
    if size == 1 or (count % 2 == 0 and last >= size - 1):
        return count
    return count - 1 if count % 2 else count - 2


def class_size(number: int, count: int, paired: int) -> int:
    """Parts of an axis that are of class 0 or 1, by their parity among the paired ones, or the first or second left over."""
    return (paired - number + 1) // 2 if number < 2 else int(paired + number - 2 < count)


def as_volume(shape: Sequence[int], missing: int = 1) -> Shape:
    """A shape (or place) of one to three dimensions as layers, rows and columns."""
    if len(shape) > 3:
        raise ValueError(f"a device takes signals of up to three dimensions, got {len(shape)}; use device='cpu'")
    layers, rows, columns = (missing, missing, *shape)[-3:]
    return int(layers), int(rows), int(columns)


@cache
def make_plan(
    grid: Shape, filter_: Shape, channels: int, n_filters: int, shared_limit: int = 227 * 1024, *, around: bool = False
) -> KernelPlan:
    """Make the plan for codes on `grid` of filters (channels, *filter_), with blocks of at most `shared_limit` bytes."""
    if n_filters >= 1 << 19:  # a code has 12 bits for its place in a bucket
        raise ValueError(f"a device takes fewer than {1 << 19} filters, got {n_filters}")
    limit = shared_limit - RESERVED_SHARED
    layers, rows, columns = (bucket_side(*axis) for axis in zip(filter_, grid, strict=True))
    bucket = layers, rows, columns
    shift = max(columns - 1, 1).bit_length()
    lift = shift + (rows - 1).bit_length()
    if layers << lift > 1 << 12:
        raise ValueError(f"filters of {filter_} are too large for a device; use device='cpu'")
    buckets = _parts(grid, bucket)
    tile = tile_buckets(grid, filter_, channels, bucket, buckets, limit)
    # Panels of columns of about 128 positions, wider for grids of few rows; runs in a row of one.
    panels = -(-grid[2] // min(1024, max(128, -(-1024 // grid[1]))))
    runs = -(-grid[2] // (panels * RUN))
    # The threads of a block that leave the fewest idle over all blocks of a panel's layer.
    candidates = [(-(-grid[1] * runs // threads), threads) for threads in TUNING.scan_threads]
    blocks, threads = min(candidates, key=lambda pair: round(50 * pair[0] * pair[1] / (grid[1] * runs)))
    size = tile_bytes(grid, filter_, channels, bucket, tile) + RESERVED_SHARED
    at_once = max(1, min(TUNING.shared_at_once, shared_limit) // size)
    room = (max(TUNING.shared_at_once // at_once, size) - RESERVED_SHARED) // 4 - prod(tile)
    # About 32 warps a multiprocessor, and no more than the largest colour of a tile has buckets.
    warps = min(max(4, min(16, 32 // at_once)), max(prod(-(-side // 2) for side in tile), 1))
    plan = KernelPlan(
        grid=grid,
        padded=(grid[0] + filter_[0] - 1, grid[1] + filter_[1] - 1, grid[2] + filter_[2] - 1),
        filter=filter_,
        channels=channels,
        n_filters=n_filters,
        bucket=bucket,
        buckets=buckets,
        shift=shift,
        lift=lift,
        capacity=bucket_capacity(bucket, channels),
        tile=tile,
        tiles=_parts(buckets, tile),
        pitch=best_pitch(channels, filter_, tile_window(grid, filter_, bucket, tile), room),
        warps=warps,
        panels=panels,
        runs=runs,
        threads=threads,
        blocks=blocks,
        around=around,
    )
    if plan.samples >= 2**31:  # the kernels count them in 32 bits
        raise ValueError(f"signals of {plan.samples} samples are too large for a device; cut them, or use device='cpu'")
    step = 8 * (prod(2 * size - 1 for size in filter_) + plan.taps)  # of the statistics: shifts of two filters, and one
    if max(plan.scan_bytes, plan.enlarge_bytes, step) > limit:
        raise ValueError(f"filters of {channels}×{filter_} do not fit a block's shared memory; use device='cpu'")
    return plan


def _parts(whole: Shape, part: Shape) -> Shape:
    """Number of parts that cover the whole, along each axis."""
    return -(-whole[0] // part[0]), -(-whole[1] // part[1]), -(-whole[2] // part[2])


def bucket_side(size: int, length: int) -> int:
    """Side of a bucket: at least size − 1, and a multiple of the usual cells (3, 2, 1), so that cells nest in buckets."""
    return min(max(6, -(-(size - 1) // 6) * 6), length)


def bucket_capacity(bucket: Shape, channels: int) -> int:
    """Codes that a bucket has room for, a multiple of 32: an optimum has one for each sample, and a round adds some."""
    return -(-(2 * channels + 3) * prod(bucket) // 64) * 32


def tile_buckets(grid: Shape, filter_: Shape, channels: int, bucket: Shape, buckets: Shape, limit: int) -> Shape:
    """Buckets of a tile: all of them where the residual fits, the largest cubes that leave room for two otherwise."""
    if tile_bytes(grid, filter_, channels, bucket, buckets) <= limit:
        return buckets
    for room in (min(TUNING.tile_bytes, limit), limit):
        for side in range(max(buckets), 0, -1):
            tile = (min(side, buckets[0]), min(side, buckets[1]), min(side, buckets[2]))
            if tile_bytes(grid, filter_, channels, bucket, tile) <= room:
                return tile
    raise ValueError(f"filters of {channels}×{filter_} do not fit a block's shared memory; use device='cpu'")


def signal_groups(count: int, plan: KernelPlan, memory: int, in_flight: int = 1, shared: int = 0) -> Iterator[slice]:
    """Divide signals into groups, so that `in_flight` groups fit in `memory` bytes beside `shared` ones.

    A group has about as many positions as fill a large device; more would only wait longer for the slowest signal. Groups
    are nearly equal, but where there are many the first ones grow, so that not all that are in flight end at once.
    """
    largest = min(8192, max(1, TUNING.group_positions // plan.n_positions))
    in_flight = min(in_flight, -(-count // largest))
    room = (memory - shared) // (in_flight * plan.signal_bytes)
    if room < 1:
        need = (shared + plan.signal_bytes) / 2**30
        raise MemoryError(f"one signal needs {need:.1f} GiB of device memory, {memory / 2**30:.1f} GiB may be used")
    largest = int(min(room, largest))
    first = [largest * (i + 1) // in_flight for i in range(in_flight - 1)] if count > in_flight * largest else []
    left = count - sum(first)
    sizes = [*filter(None, first), *np.diff(np.linspace(0, left, -(-left // largest) + 1).round().astype(int)).tolist()]
    bounds = np.cumsum([0, *sizes]).tolist()
    return (slice(a, b) for a, b in pairwise(bounds))


def tile_window(grid: Shape, filter_: Shape, bucket: Shape, tile: Shape) -> Shape:
    """Layers, rows and columns of the residual that the codes of a tile touch."""
    axes = zip(bucket, tile, grid, filter_, strict=True)
    layers, rows, columns = (min(b * t, g) + f - 1 for b, t, g, f in axes)
    return layers, rows, columns


def tile_bytes(grid: Shape, filter_: Shape, channels: int, bucket: Shape, tile: Shape) -> int:
    """Bytes of the samples that the codes of a tile touch, in float32, and of one number for each bucket."""
    return 4 * (channels * prod(tile_window(grid, filter_, bucket, tile)) + prod(tile))


def tap_offsets(channels: int, filter_: Shape, shape: Shape) -> np.ndarray:
    """Offsets of the samples of a filter from its first, in a signal (channels, *shape)."""
    places = np.unravel_index(np.arange(channels * prod(filter_)), (channels, *filter_))
    return np.ravel_multi_index(places, (channels, *shape))


def lane_order(offsets: np.ndarray) -> np.ndarray:
    """An order of samples at some offsets in which each 32 of them meet a bank as rarely as possible."""
    banks = offsets % BANKS
    by_bank = np.argsort(banks, kind="stable")
    number = np.empty_like(by_bank)  # of a sample among those of its bank
    number[by_bank] = np.arange(len(banks)) - np.searchsorted(banks[by_bank], banks[by_bank])
    return np.lexsort((banks, number))


def turns(offsets: np.ndarray) -> int:
    """Number of turns of shared memory until all samples at some offsets are there, 32 of them in a request."""
    requests = np.split(offsets, range(BANKS, len(offsets), BANKS))
    return sum(int(np.max(np.bincount(np.unique(request) % BANKS))) for request in requests)


@cache
def best_pitch(channels: int, filter_: Shape, window: Shape, room: int) -> int:
    """Length of the rows of a window, its columns at least, with which filters are met in the fewest turns.

    The window may have `room` samples in all channels.
    """
    layers, rows, columns = window
    most = max(columns, min(room // (channels * layers * rows), columns + TUNING.spare_columns))

    def cost(pitch: int) -> int:
        offsets = tap_offsets(channels, filter_, (layers, rows, pitch))
        return turns(offsets[lane_order(offsets)])

    return min(range(columns, most + 1), key=cost)
