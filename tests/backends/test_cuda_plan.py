"""What a device computes where, checked on the host by brute force."""

import re
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from pointillist.backends.cuda import plan as planning
from pointillist.backends.cuda.engine import filter_blocks
from pointillist.backends.cuda.plan import batches, make_plan, pack, slots
from pointillist.backends.cuda.sums import waves

SHAPES = [
    ((100, 100), (11, 11), 1),
    ((110, 90), (11, 11), 3),
    ((60, 77), (5, 5), 1),
    ((64, 64), (21, 21), 1),
    ((30, 41), (7, 4), 1),
    ((1, 500), (1, 25), 1),
    ((512, 300), (11, 11), 1),
]


def _plan(shape):
    grid, size, channels = shape
    return make_plan(grid, size, channels, 20)


def _unpack(plan, buckets, codes):
    """Flat code indices from bucket numbers and packed codes, as the kernel `collect` makes them."""
    places = codes.astype(np.int64) & 4095
    rows = buckets // plan.buckets[1] * plan.bucket[0] + (places >> plan.shift)
    columns = buckets % plan.buckets[1] * plan.bucket[1] + (places & ((1 << plan.shift) - 1))
    return (codes.astype(np.int64) >> 12) * plan.n_positions + rows * plan.grid[1] + columns


def _spans(count, side, length, reach):
    """First and last sample that each of `count` pieces of `side` positions touches."""
    return [(i * side, min((i + 1) * side, length) - 1 + reach) for i in range(count)]


@pytest.mark.parametrize("shape", SHAPES)
def test_buckets_of_one_colour_never_touch(shape):
    plan = _plan(shape)
    for axis in range(2):
        spans = _spans(plan.buckets[axis], plan.bucket[axis], plan.grid[axis], plan.filter[axis] - 1)
        for parity in (0, 1):
            chosen = spans[parity::2]
            assert all(a[1] < b[0] for a, b in pairwise(chosen))


@pytest.mark.parametrize("shape", SHAPES)
def test_tiles_of_one_colour_never_touch(shape):
    plan = _plan(shape)
    for axis in range(2):
        side = plan.bucket[axis] * plan.tile[axis]
        spans = _spans(plan.tiles[axis], side, plan.grid[axis], plan.filter[axis] - 1)
        for parity in (0, 1):
            chosen = spans[parity::2]
            assert all(a[1] < b[0] for a, b in pairwise(chosen))


@pytest.mark.parametrize("shape", SHAPES)
def test_colours_count_every_bucket_once(shape):
    plan = _plan(shape)
    for field in (plan.buckets, plan.tiles):
        counted = [0] * 4
        for row, column in product(*map(range, field)):
            counted[2 * (row % 2) + column % 2] += 1
        assert counted == [plan.of_colour(colour, field) for colour in range(4)]


@pytest.mark.parametrize("shape", SHAPES)
def test_packed_codes_come_back(shape):
    plan = _plan(shape)
    rng = np.random.default_rng(0)
    codes = np.sort(rng.choice(plan.n_filters * plan.n_positions, 300, replace=False))
    buckets, packed = pack(plan, codes)
    assert packed.dtype == np.int32
    assert 0 <= buckets.min() <= buckets.max() < plan.n_buckets
    np.testing.assert_array_equal(_unpack(plan, buckets, packed), codes)


@pytest.mark.parametrize("shape", SHAPES)
def test_scan_covers_every_position(shape):
    plan = _plan(shape)
    assert plan.panels * plan.runs * planning.RUN >= plan.grid[1]
    assert plan.threads * plan.blocks >= plan.grid[0] * plan.runs
    assert plan.scan_bytes <= 227 * 1024
    assert plan.tile_bytes <= 227 * 1024
    assert 1 <= plan.warps <= plan.most_warps <= 16


def test_few_threads_of_the_scan_are_idle():
    plan = _plan(SHAPES[0])
    assert plan.n_positions / (plan.threads * plan.blocks * planning.RUN) > 0.85


def test_a_large_signal_is_cut_into_tiles_that_leave_room_for_two():
    plan = make_plan((4096, 4096), (11, 11), 1, 100)
    assert plan.tiles[0] > 1
    assert plan.tile_bytes <= 100 * 1024
    assert plan.tile[0] * plan.tiles[0] >= plan.buckets[0]


def test_too_large_filters_are_refused():
    with pytest.raises(ValueError, match="use device='cpu'"):
        make_plan((300, 300), (120, 120), 1, 4)


def test_batches_fit_and_cover():
    plan = _plan(SHAPES[0])
    memory = 100 * plan.signal_bytes
    parts = list(batches(1000, plan, memory, in_flight=2))
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(1000))
    assert all(2 * (part.stop - part.start) * plan.signal_bytes <= memory for part in parts)


def test_one_small_batch_may_take_all_memory():
    plan = _plan(SHAPES[0])
    assert len(list(batches(90, plan, 100 * plan.signal_bytes, in_flight=3))) == 1


def test_a_signal_that_does_not_fit_says_how_much_it_needs():
    plan = _plan(SHAPES[0])
    with pytest.raises(MemoryError, match="one signal needs"):
        batches(3, plan, plan.signal_bytes, shared=1)


def test_slots_number_the_codes_of_a_bucket():
    number, fits = slots(np.array([3, 1, 3, 3, 1]), 2)
    np.testing.assert_array_equal(number, [0, 0, 1, 2, 1])
    np.testing.assert_array_equal(fits, [True, True, True, False, True])


def test_a_bucket_has_room_for_a_code_at_every_sample_and_more():
    assert planning.bucket_capacity((12, 12), 1) >= 2.5 * 144
    assert planning.bucket_capacity((6, 6), 3) >= 4 * 36


def test_integers_are_in_the_order_that_the_kernels_read():
    source = Path(planning.__file__).with_name("common.cuh").read_text(encoding="utf-8")
    names = re.findall(r"G_(\w+)", re.search(r"enum \{(.*?)\}", source, re.S)[1])
    plan = _plan(SHAPES[1])
    expected = {
        "H": plan.grid[0], "W": plan.grid[1], "PH": plan.padded[0], "PW": plan.padded[1],
        "BH": plan.bucket[0], "BW": plan.bucket[1], "NBY": plan.buckets[0], "NBX": plan.buckets[1],
        "SHIFT": plan.shift, "CAP": plan.capacity, "TBY": plan.tile[0], "TBX": plan.tile[1],
        "NTY": plan.tiles[0], "NTX": plan.tiles[1], "K": plan.n_filters,
        "PANELS": plan.panels, "RUNS": plan.runs, "BLOCKS": plan.blocks,
    }  # fmt: skip
    assert dict(zip(names, plan.integers().tolist(), strict=True)) == expected


def test_filter_blocks_hold_eight_filters_side_by_side():
    flat = np.random.default_rng(0).standard_normal((11, 6)).astype(np.float32)
    blocks = filter_blocks(flat)
    assert blocks.shape == (2, 6, 8)
    np.testing.assert_array_equal(blocks[1, :, 2], flat[10])
    assert not blocks[1, :, 3:].any()


def test_waves_give_the_spectrum_of_an_autocorrelation():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((5, 7))
    own = half + half[::-1, ::-1]
    spectrum = np.fft.fftn(np.fft.ifftshift(own)).real
    np.testing.assert_allclose(own.ravel() @ waves((5, 7)), spectrum.ravel(), atol=1e-12)
