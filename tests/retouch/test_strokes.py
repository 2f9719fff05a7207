"""Strokes against the distance of every pixel from the line, and steps in their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointillist.retouch.strokes import draw_mask

SHAPE = (31, 47)
PLACES = st.floats(-20, 60)


def _distances(points):
    """From every pixel's centre to the nearest of many points along the line."""
    points = np.asarray(points, float).reshape(-1, 2)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5
    far = np.full(SHAPE, np.inf)
    for start, end in zip(points, points[1:] if len(points) > 1 else points, strict=False):
        for part in np.linspace(0, 1, 400):
            px, py = start + part * (end - start)
            far = np.minimum(far, np.hypot(x - px, y - py))
    return far


@given(st.lists(PLACES, min_size=2, max_size=8).filter(lambda p: len(p) % 2 == 0), st.floats(0.8, 12))
def test_a_stroke_is_all_within_its_radius(points, radius):
    mask = draw_mask([{"kind": "paint", "radius": radius, "points": points}], SHAPE, {})
    far = _distances(points)
    assert mask[far <= radius].all()
    assert not mask[far > radius + 0.15].any()


def test_long_strokes_at_full_size_are_exact():
    line = {"kind": "paint", "radius": 4.0, "points": [10.0, 10.0, 2990.0, 1990.0]}
    mask = draw_mask([line], (2000, 3000), {})
    assert mask.sum() == pytest.approx(8 * np.hypot(2980, 1980) + np.pi * 16, rel=1e-3)


def test_the_smallest_dot_marks_a_pixel_wherever_it_is():
    for place in ((5.0, 5.0), (5.5, 5.5), (5.25, 5.0)):
        assert draw_mask([{"kind": "paint", "radius": 0.1, "points": place}], SHAPE, {}).any()


def test_steps_count_in_their_order():
    paint = {"kind": "paint", "radius": 3, "points": [10, 10, 30, 10]}
    erase = {"kind": "erase", "radius": 5, "points": [10, 10, 30, 10]}
    found = np.zeros(SHAPE, bool)
    found[20:22] = True
    use = {"kind": "found", "id": 7}
    assert draw_mask([paint, erase], SHAPE, {}).sum() == 0
    assert np.array_equal(draw_mask([erase, paint], SHAPE, {}), draw_mask([paint], SHAPE, {}))
    assert np.array_equal(draw_mask([paint, {"kind": "clear"}, use], SHAPE, {7: found}), found)
    both = draw_mask([use, {"kind": "erase", "radius": 50, "points": [0, 0]}], SHAPE, {7: found})
    assert 0 < both.sum() < found.sum()


@pytest.mark.parametrize(
    "step",
    [
        {"kind": "found", "id": 3},
        {"kind": "sing"},
        {"kind": "paint", "radius": 3},
        {"kind": "paint", "radius": 3, "points": [1]},
        {"kind": "paint", "radius": 3, "points": []},
        {"kind": "paint", "radius": -1, "points": [1, 1]},
        {"kind": "paint", "radius": 3, "points": [1, float("nan")]},
        {"kind": "paint", "radius": None, "points": [1, 1]},
        {"kind": "paint", "radius": 3, "points": "everywhere"},
    ],
)
def test_impossible_steps_are_refused(step):
    with pytest.raises(ValueError, match="reload the page"):
        draw_mask([step], SHAPE, {})
