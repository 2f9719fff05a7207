"""Tests of strips: what can be swept over at the same time never touches, and all samples are in one of them."""

import numpy as np
import pytest

from pointillist.kernels.vectors import width_of
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.solvers import strips as module
from pointillist.solvers.staging import field_of

CASES = [
    ((500,), (5,), 1), ((500,), (5,), 2), ((41, 50), (3, 11), 1), ((40, 17), (1, 9), 2), ((95, 24), (11, 5), 1),
    ((23, 12, 10), (2, 3, 3), 1), ((441, 20), (1, 4), 2), ((90,), (20,), 2), ((7, 90), (6, 9), 1), ((60, 9), (5, 9), 2),
    ((30, 17), (9, 4), 2), ((50, 12), (21, 4), 1), ((140,), (20,), 2), ((13, 12, 10), (4, 3, 3), 1),
]  # fmt: skip


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Strips of as few positions as there may be."""
    monkeypatch.setattr(module, "_LEAST_POSITIONS", 1)


def _touched(field, layout, codes):
    """Samples that an update of codes reads or writes, with the padding of runs, and those that stand twice."""
    places, lanes = field.places(codes), np.arange(width_of(layout.run_lanes))
    if places.circle is None:
        offsets = np.broadcast_to(layout.run_offsets, (len(codes), len(layout.run_offsets)))
    else:
        offsets = places.circle.offsets[places.circle.ways[:, None] + np.arange(len(layout.run_offsets))]
    touched = [(places.bases[:, None, None] + offsets[:, :, None] + lanes).ravel()]
    if places.circle is not None:
        seamed = places.circle.seams >= 0
        begins = (places.bases - places.circle.columns)[seamed, None] + offsets[seamed][:, :: places.circle.runs_a_row]
        touched += [(begins[..., None] + shift + lanes).ravel() for shift in (0, places.circle.length)]
    return np.unique(np.concatenate(touched))


def _changed(field, layout, codes):
    """Samples that an update of codes changes."""
    places, lanes = field.places(codes), np.arange(width_of(layout.run_lanes))
    if places.circle is None:
        offsets = np.broadcast_to(layout.run_offsets, (len(codes), len(layout.run_offsets)))
    else:
        offsets = places.circle.offsets[places.circle.ways[:, None] + np.arange(len(layout.run_offsets))]
    filled = (layout.runs != 0).reshape(-1, len(lanes))
    changed = [(places.bases[:, None, None] + offsets[:, :, None] + lanes)[:, filled].ravel()]
    if places.circle is not None:
        seamed = places.circle.seams >= 0
        begins = (places.bases - places.circle.columns)[seamed, None] + offsets[seamed][:, :: places.circle.runs_a_row]
        twice = np.arange(places.circle.doubled)
        changed += [(begins[..., None] + shift + twice).ravel() for shift in (0, places.circle.length)]
    return np.unique(np.concatenate(changed))


def _samples(strips, s, lengths):
    """Samples of a strip, whose rows have some lengths."""
    some = range(strips.bounds[s], strips.bounds[s + 1])
    return np.concatenate([strips.rows[i] + np.arange(lengths[i]) for i in some])


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
@pytest.mark.parametrize(("signal", "size", "channels"), CASES)
def test_strips_of_a_colour_write_to_disjoint_samples(signal, size, channels, boundary):
    """Padded lanes count: they are read and written back, so that two threads there lose updates."""
    geometry = Geometry(signal, size, channels, boundary)
    layout = ConvolutionOperator(np.ones((1, channels, *size), np.float32), geometry).layout
    field, positions = field_of(geometry, layout), np.arange(geometry.n_positions)
    strips = field.plan.strips(positions)
    count = len(field.plan)
    assert count % strips.n_colours == 0
    assert count == 1 or count >= 2 * strips.n_colours
    assert np.all(np.diff(strips.codes) > 0)
    touched = [
        _touched(field, layout, positions[a:b]) for a, b in zip(strips.codes[:-1], strips.codes[1:], strict=True)
    ]
    for colour in range(strips.n_colours):
        together = np.concatenate(touched[colour :: strips.n_colours])
        assert len(np.unique(together)) == len(together), "two strips touch at the same time"


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
@pytest.mark.parametrize(("signal", "size", "channels"), CASES)
def test_codes_of_a_strip_reach_the_next_ones_of_other_colours_and_each_sample_is_in_one(
    signal, size, channels, boundary
):
    geometry = Geometry(signal, size, channels, boundary)
    operator = ConvolutionOperator(np.ones((1, channels, *size), np.float32), geometry)
    field, positions = field_of(geometry, operator.layout), np.arange(geometry.n_positions)
    strips, count = field.plan.strips(positions), len(field.plan)
    all_samples = np.concatenate([_samples(strips, s, strips.lengths) for s in range(count)])
    counted = np.concatenate([_samples(strips, s, strips.counted) for s in range(count)])
    assert len(np.unique(all_samples)) == len(all_samples)
    held = field.laid(geometry.spread(np.ones((channels, *signal), np.float32)))
    assert np.sum(held[counted]) == channels * np.prod(signal)
    for s in range(count):
        changed = _changed(field, operator.layout, positions[strips.codes[s] : strips.codes[s + 1]])
        near = [_samples(strips, (s + z) % count, strips.lengths) for z in range(strips.n_colours)]
        assert set(changed) <= set(np.concatenate(near))


def test_strips_without_codes_are_reached_by_those_before_them():
    geometry = Geometry((100, 40), (5, 5), 1, "same")
    plan = field_of(geometry, ConvolutionOperator(np.ones((1, 1, 5, 5)), geometry).layout).plan
    assert len(plan) == 20
    strips = plan.strips(np.array([3, 5, 12 * 40, 99 * 40]))
    np.testing.assert_array_equal(np.diff(strips.codes), [2, 0, 1] + [0] * 16 + [1])
    np.testing.assert_array_equal(np.flatnonzero(strips.reached), [0, 1, 2, 3, 19])
    assert not np.any(plan.strips(np.empty(0, int)).reached)


@pytest.mark.parametrize(
    ("grid", "count"), [((4000, 30), 64), ((10, 300), 1), ((21, 300), 1), ((30, 300), 6), ((40, 300), 4), ((5000,), 64)]
)
def test_there_are_as_many_strips_as_filters_allow(grid, count):
    geometry = Geometry(grid, (10,) * len(grid), 1, "same")
    assert (
        len(field_of(geometry, ConvolutionOperator(np.ones((1, 1, *geometry.filter)), geometry).layout).plan) == count
    )


def test_filters_of_a_third_of_the_signal_leave_work_for_two_threads():
    geometry = Geometry((200, 40), (71, 5), 1, "same")
    plan = field_of(geometry, ConvolutionOperator(np.ones((1, 1, 71, 5)), geometry).layout).plan
    strips = plan.strips(np.array([0, 3, 40 * 60]))  # in the first two of eight strips of 25 rows
    assert (len(plan), strips.n_colours) == (8, 4)
    np.testing.assert_array_equal(np.flatnonzero(strips.reached), [0, 1, 2, 3, 4, 5])


def test_small_signals_are_not_cut(monkeypatch):
    monkeypatch.undo()
    geometry = Geometry((45, 45), (5, 5), 1, "same")
    assert len(field_of(geometry, ConvolutionOperator(np.ones((1, 1, 5, 5)), geometry).layout).plan) == 1
