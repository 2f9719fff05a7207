import numpy as np
import pytest

from pointillist.cuda.banks import best_pitch, lane_order, tap_offsets, turns
from pointillist.cuda.packing import at_once, lane_taps
from pointillist.cuda.plan import make_plan

SHAPES = [((1, 100, 100), (1, 11, 11), 1), ((1, 1, 500), (1, 1, 40), 2), ((20, 20, 20), (5, 5, 5), 1)]


def test_a_request_takes_a_turn_for_each_word_of_the_busiest_bank():
    assert turns(np.arange(32)) == 1
    assert turns(np.zeros(32, int)) == 1  # one word serves all lanes
    assert turns(np.array([0, 32, 64, 1])) == 3
    assert turns(np.arange(0, 64 * 32, 32)) == 64


@pytest.mark.parametrize(("grid", "filter_", "channels"), SHAPES)
def test_the_order_is_one_of_all_samples_and_takes_no_more_turns(grid, filter_, channels):
    plan = make_plan(grid, filter_, channels, 8)
    offsets = tap_offsets(channels, filter_, plan.window)
    order = lane_order(offsets)
    assert sorted(order) == list(range(plan.taps))
    assert turns(offsets[order]) <= turns(offsets)


def test_rows_of_the_usual_window_are_met_in_one_turn_a_request():
    plan = make_plan((1, 100, 100), (1, 11, 11), 1, 100)
    offsets = tap_offsets(1, (1, 11, 11), plan.window)
    assert 110 < plan.pitch <= 126
    assert turns(offsets[lane_order(offsets)]) == 4  # 121 samples, 32 in a request


def test_rows_are_not_longer_than_there_is_room():
    assert best_pitch(1, (1, 11, 11), (1, 110, 110), 110 * 112) <= 112
    assert best_pitch(1, (1, 11, 11), (1, 110, 110), 0) == 110


@pytest.mark.parametrize(("grid", "filter_", "channels"), SHAPES)
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
