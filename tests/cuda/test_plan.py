"""What a device computes where, checked on the host by brute force."""

import re
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from pointillist.cuda import plan as planning
from pointillist.cuda.engine import at_once, bfloat16, filter_blocks, fragments, lane_taps, pack, paired, slots
from pointillist.cuda.plan import as_volume, colours, lane_order, make_plan, signal_groups, tap_offsets, turns
from pointillist.cuda.sums import cosines, waves

SHAPES = [
    ((100, 100), (11, 11), 1), ((110, 90), (11, 11), 3), ((60, 77), (5, 5), 1), ((64, 64), (21, 21), 1),
    ((30, 41), (7, 4), 1), ((500,), (25,), 1), ((512, 300), (11, 11), 1), ((32, 40, 27), (5, 5, 5), 1),
    ((64, 64, 64), (7, 7, 7), 1), ((20, 90, 70), (3, 9, 4), 2), ((17, 30, 30), (1, 5, 5), 1),
    ((24, 24, 24), (11, 11, 11), 1),
]  # fmt: skip


def _plan(shape):
    grid, size, channels = shape
    return make_plan(as_volume(grid), as_volume(size), channels, 20)


def _unpack(plan, buckets, codes):
    """Flat code indices from bucket numbers and packed codes, as the kernel `collect` makes them."""
    places = codes.astype(np.int64) & 4095
    inside = places >> plan.lift, (places & ((1 << plan.lift) - 1)) >> plan.shift, places & ((1 << plan.shift) - 1)
    corner = np.unravel_index(buckets, plan.buckets)
    position = tuple(c * b + i for c, b, i in zip(corner, plan.bucket, inside, strict=True))
    return (codes.astype(np.int64) >> 12) * plan.n_positions + np.ravel_multi_index(position, plan.grid)


def _spans(count, side, length, reach):
    """First and last sample that each of `count` pieces of `side` positions touches."""
    return [(i * side, min((i + 1) * side, length) - 1 + reach) for i in range(count)]


@pytest.mark.parametrize("shape", SHAPES)
def test_buckets_and_tiles_of_one_colour_never_touch(shape):
    plan = _plan(shape)
    for axis in range(3):
        for count, size in ((plan.buckets[axis], 1), (plan.tiles[axis], plan.tile[axis])):
            spans = _spans(count, size * plan.bucket[axis], plan.grid[axis], plan.filter[axis] - 1)
            for parity in (0, 1):
                assert all(a[1] < b[0] for a, b in pairwise(spans[parity::2]))


@pytest.mark.parametrize("shape", SHAPES)
def test_colours_count_every_bucket_once(shape):
    plan = _plan(shape)
    for field in (plan.buckets, plan.tiles):
        counted = [0] * 8
        for layer, row, column in product(*map(range, field)):
            counted[4 * (layer % 2) + 2 * (row % 2) + column % 2] += 1
        assert [(colour, count) for colour, count in enumerate(counted) if count] == colours(field)


def _class_of(part, paired):
    """As the kernels number them: by parity among the paired ones, the others one by one."""
    return part % 2 if part < paired else 2 + part - paired


@pytest.mark.parametrize("size", [1, 2, 4, 7, 11, 13])
def test_around_a_circle_parts_of_one_class_never_touch(size):
    for length in range(max(size, 2), 120):
        side = planning.bucket_side(size, length)
        count = -(-length // side)
        paired = planning.paired_parts(count, side, length, size)
        classes = [_class_of(part, paired) for part in range(count)]
        assert max(classes) <= 3
        counted = [planning.class_size(number, count, paired) for number in range(4)]
        assert counted == [classes.count(number) for number in range(4)]
        owner = {}
        for part, number in enumerate(classes):
            for sample in range(part * side, min((part + 1) * side, length) + size - 1):
                assert owner.setdefault((number, sample % length), part) == part


@pytest.mark.parametrize("shape", SHAPES)
def test_colours_of_a_circle_count_every_tile_once(shape):
    grid, size, channels = shape
    plan = make_plan(as_volume(grid), as_volume(size), channels, 20, around=True)
    counted = [0] * 64
    for place in product(*map(range, plan.tiles)):
        z, y, x = (_class_of(part, paired) for part, paired in zip(place, plan.paired_tiles, strict=True))
        counted[z << 4 | y << 2 | x] += 1
    assert [(colour, count) for colour, count in enumerate(counted) if count] == plan.tile_colours()
    assert all(plan.tiles[axis] > 1 for axis in plan.seams)


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
    assert plan.panels * plan.runs * planning.RUN >= plan.grid[2]
    assert plan.threads * plan.blocks >= plan.grid[1] * plan.runs
    assert plan.scan_blocks == plan.panels * plan.blocks * plan.grid[0]
    assert plan.scan_bytes <= 227 * 1024
    assert plan.tile_bytes <= 227 * 1024
    assert 1 <= plan.warps <= 16


def test_a_large_signal_is_cut_into_tiles_that_leave_room_for_two():
    for grid, size in (((1, 4096, 4096), (1, 11, 11)), ((128, 128, 128), (7, 7, 7))):
        plan = make_plan(grid, size, 1, 100)
        assert plan.tiles[1] > 1
        assert plan.tile_bytes <= 100 * 1024
        assert all(t * n >= b for t, n, b in zip(plan.tile, plan.tiles, plan.buckets, strict=True))


def test_as_many_moves_are_kept_as_the_kernels_combine():
    source = Path(planning.__file__).with_name("extrapolation.cu").read_text(encoding="utf-8")
    assert int(re.search(r"#define MEMORY (\d+)", source)[1]) == planning.MOVES
    assert int(re.search(r"#define MOST_WARPS (\d+)", source)[1]) == 16


def test_what_is_too_large_is_refused():
    for grid, size, words in (
        ((1, 300, 300), (1, 120, 120), "use device='cpu'"),
        ((60, 60, 60), (21, 21, 21), "use device='cpu'"),
        ((2048, 1024, 1024), (3, 3, 3), "too large for a device"),
    ):
        with pytest.raises(ValueError, match=words):
            make_plan(grid, size, 1, 4)


def test_shapes_of_up_to_three_dimensions():
    assert as_volume((5,)) == (1, 1, 5)
    assert as_volume((4, 5), 0) == (0, 4, 5)
    with pytest.raises(ValueError, match="up to three dimensions"):
        as_volume((2, 3, 4, 5))


def test_batches_fit_and_cover():
    plan = _plan(SHAPES[0])
    memory = 100 * plan.signal_bytes
    parts = list(signal_groups(1000, plan, memory, in_flight=2))
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(1000))
    assert all(2 * (part.stop - part.start) * plan.signal_bytes <= memory for part in parts)


def test_a_signal_that_does_not_fit_says_how_much_it_needs():
    plan = _plan(SHAPES[0])
    with pytest.raises(MemoryError, match="one signal needs"):
        signal_groups(3, plan, plan.signal_bytes, shared=1)


@pytest.mark.parametrize("span", [(1, 1, 9), (1, 5, 7), (3, 5, 3)])
def test_one_product_gives_the_real_parts_of_all_spectra(span):
    blocks = np.random.default_rng(0).standard_normal((4, *span))
    spectra = blocks.astype(complex)
    for side in span:
        spectra = np.tensordot(spectra, waves(side), axes=(1, 0))
    found = blocks.reshape(4, -1) @ cosines(span)
    np.testing.assert_allclose(found, spectra.real.reshape(4, -1), atol=1e-12)


def test_slots_number_the_codes_of_a_bucket():
    number, fits = slots(np.array([3, 1, 3, 3, 1]), 2)
    np.testing.assert_array_equal(number, [0, 0, 1, 2, 1])
    np.testing.assert_array_equal(fits, [True, True, True, False, True])


def test_integers_are_in_the_order_that_the_kernels_read():
    source = Path(planning.__file__).with_name("common.cuh").read_text(encoding="utf-8")
    names = re.findall(r"G_(\w+)", re.search(r"enum \{(.*?)\}", source, re.S)[1])
    plan = _plan(SHAPES[9])
    shapes = {"DHW": plan.grid, "PD PH PW": plan.padded, "BD BH BW": plan.bucket, "NBZ NBY NBX": plan.buckets}
    shapes |= {"TBZ TBY TBX": plan.tile, "NTZ NTY NTX": plan.tiles}
    expected = {"SHIFT": plan.shift, "LIFT": plan.lift, "CAP": plan.capacity, "K": plan.n_filters}
    expected |= {"PANELS": plan.panels, "RUNS": plan.runs, "BLOCKS": plan.blocks, "PITCH": plan.pitch}
    shapes |= {"PBZ PBY PBX": plan.paired_buckets, "PTZ PTY PTX": plan.paired_tiles}
    for axes, shape in shapes.items():
        expected |= dict(zip(axes.split() if " " in axes else axes, shape, strict=True))
    assert dict(zip(names, plan.integers().tolist(), strict=True)) == expected


def test_filter_blocks_hold_eight_filters_side_by_side():
    flat = np.random.default_rng(0).standard_normal((11, 6)).astype(np.float32)
    blocks = filter_blocks(flat)
    assert blocks.shape == (2, 6, 8)
    np.testing.assert_array_equal(blocks[1, :, 2], flat[10])
    assert not blocks[1, :, 3:].any()


def test_rows_of_filters_are_padded_to_pairs_of_taps():
    filters = np.random.default_rng(0).standard_normal((3, 2, 1, 4, 5)).astype(np.float32)
    plan = make_plan((1, 30, 30), (1, 4, 5), 2, 3)
    flat = paired(filters, plan.paired_taps)
    assert flat.shape == (3, 48)
    np.testing.assert_array_equal(flat.reshape(3, 2, 4, 6)[..., :5], filters[:, :, 0])
    assert not flat.reshape(3, 2, 4, 6)[..., 5].any()


def _floats(halves):
    return (halves.astype(np.uint32) << 16).view(np.float32)


def test_two_halves_of_bfloat16_hold_sixteen_bits():
    numbers = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    high = bfloat16(numbers)
    assert np.all(np.abs(_floats(high) - numbers) <= 2.0**-8 * np.abs(numbers))
    low = bfloat16(numbers - _floats(high))
    assert np.all(np.abs(_floats(high) + _floats(low) - numbers) <= 2.0**-16 * np.abs(numbers))


def test_lanes_hold_the_taps_that_tensor_cores_expect():
    flat = np.random.default_rng(0).standard_normal((40, 48)).astype(np.float32)
    laid = _floats(fragments(flat))
    assert laid.shape == (2, 3, 2, 2, 32, 8)
    # Of a product of 16 filters and 16 taps lane l holds filters l // 4 and 8 further, taps 2 (l % 4), the next, 8 further.
    for chunk, step, tile, lane, number in product(range(2), range(3), range(2), range(32), range(8)):
        filter_ = 32 * chunk + 16 * tile + lane // 4 + 8 * (number // 2 % 2)
        tap = 16 * step + 2 * (lane % 4) + 8 * (number // 4) + number % 2
        expected = flat[filter_, tap] if filter_ < 40 else 0.0
        assert laid[chunk, step, tile, :, lane, number].sum() == pytest.approx(expected, rel=1e-5)


def test_waves_give_the_spectrum_of_an_autocorrelation():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((3, 5, 7))
    own = half + half[::-1, ::-1, ::-1]
    spectrum = own
    for side in own.shape:
        spectrum = np.tensordot(spectrum, waves(side), axes=(0, 0))
    np.testing.assert_allclose(spectrum, np.fft.fftn(np.fft.ifftshift(own)), atol=1e-12)


WINDOWS = [((1, 100, 100), (1, 11, 11), 1), ((1, 1, 500), (1, 1, 40), 2), ((20, 20, 20), (5, 5, 5), 1)]


def test_a_request_takes_a_turn_for_each_word_of_the_busiest_bank():
    assert turns(np.arange(32)) == 1
    assert turns(np.zeros(32, int)) == 1  # one word serves all lanes
    assert turns(np.array([0, 32, 64, 1])) == 3
    assert turns(np.arange(0, 64 * 32, 32)) == 64


@pytest.mark.parametrize(("grid", "filter_", "channels"), WINDOWS)
def test_the_order_is_one_of_all_samples_and_takes_no_more_turns(grid, filter_, channels):
    plan = make_plan(grid, filter_, channels, 8)
    offsets = tap_offsets(channels, filter_, plan.window)
    order = lane_order(offsets)
    assert sorted(order) == list(range(plan.taps))
    assert turns(offsets[order]) <= turns(offsets)


@pytest.mark.parametrize(("grid", "filter_", "channels"), WINDOWS)
def test_lanes_have_the_samples_that_the_order_says(grid, filter_, channels):
    plan = make_plan(grid, filter_, channels, 3)
    flat = np.random.default_rng(0).standard_normal((3, plan.taps)).astype(np.float32)
    filters, lanes = lane_taps(plan, flat)
    assert filters.shape == (3, lanes.shape[1])
    assert lanes.shape[1] % 32 == 0
    assert filters.flags.c_contiguous  # as the kernels read them
    assert lanes.flags.c_contiguous
    share = lanes.shape[1] // 32
    assert share % at_once(plan) == 0
    in_turns = np.empty_like(filters)
    for lane in range(32):
        for turn in range(share):
            group, place = divmod(turn, at_once(plan))
            in_turns[:, 32 * turn + lane] = filters[:, (32 * group + lane) * at_once(plan) + place]
    np.testing.assert_array_equal(in_turns[:, : plan.taps], flat[:, lanes[0, : plan.taps]])
    assert not in_turns[:, plan.taps :].any()
    signal = np.arange(channels * np.prod(plan.padded)).reshape(channels, *plan.padded)
    met = signal[tuple(slice(n) for n in (channels, *filter_))].ravel()
    np.testing.assert_array_equal(lanes[1, : plan.taps], met[lanes[0, : plan.taps]])
