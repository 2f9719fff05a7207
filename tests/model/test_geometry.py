"""Tests of the shapes that a boundary implies and of laying signals into padded arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointillist.problem import Geometry
from pointillist.validation import BOUNDARIES


@st.composite
def geometries(draw):
    ndim = draw(st.integers(1, 3))
    size = tuple(draw(st.integers(1, 4)) for _ in range(ndim))
    signal = tuple(f + draw(st.integers(0, 5)) for f in size)
    return Geometry(signal, size, draw(st.integers(1, 3)), draw(st.sampled_from(BOUNDARIES)))


@pytest.mark.parametrize(
    ("boundary", "grid", "padded", "offset"),
    [
        ("valid", (6, 5), (8, 8), (0, 0)),
        ("same", (8, 8), (10, 11), (1, 1)),
        ("full", (10, 11), (12, 14), (2, 3)),
        ("circular", (8, 8), (10, 11), (1, 1)),
    ],
)
def test_shapes_of_each_boundary(boundary, grid, padded, offset):
    geometry = Geometry((8, 8), (3, 4), boundary=boundary)
    assert (geometry.grid, geometry.padded, geometry.offset) == (grid, padded, offset)
    assert geometry.n_positions == grid[0] * grid[1]
    assert geometry.padded_length >= padded[0] * padded[1] + 16


@given(geometries())
def test_gather_is_the_adjoint_of_spread(geometry):
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((geometry.channels, *geometry.signal))
    flat = rng.standard_normal(geometry.padded_length)
    left = np.vdot(geometry.spread(signal), flat)
    right = np.vdot(signal, geometry.gather(flat))
    assert left == pytest.approx(right, rel=1e-12, abs=1e-12)


@given(geometries())
def test_spread_puts_the_signal_at_its_offset(geometry):
    rng = np.random.default_rng(1)
    signal = rng.standard_normal((geometry.channels, *geometry.signal)).astype(np.float32)
    flat = geometry.spread(signal)
    assert flat.dtype == np.float32
    assert flat.shape == (geometry.padded_length,)
    box = flat[: geometry.channels * int(np.prod(geometry.padded))].reshape(-1, *geometry.padded)
    for place in np.ndindex(geometry.padded):
        inside = tuple(p - o for p, o in zip(place, geometry.offset, strict=True))
        if geometry.boundary == "circular":
            inside = tuple(p % s for p, s in zip(inside, geometry.signal, strict=True))
        seen = all(0 <= p < s for p, s in zip(inside, geometry.signal, strict=True))
        expected = signal[(slice(None), *inside)] if seen else 0
        np.testing.assert_array_equal(box[(slice(None), *place)], expected)
    assert not np.any(flat[box.size :])


@pytest.mark.parametrize("boundary", ["valid", "same", "full"])
def test_gather_undoes_spread(boundary):
    geometry = Geometry((7, 9), (3, 4), 2, boundary)
    signal = np.random.default_rng(2).standard_normal((2, 7, 9))
    np.testing.assert_array_equal(geometry.gather(geometry.spread(signal)), signal)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((8, 8), (3, 3), 1, "mirror"), "boundary must be one of .* got 'mirror'"),
        (((8,), (3, 3)), "dimensions"),
        (((8, 2), (3, 3)), "larger than the signal"),
    ],
)
def test_bad_geometry_says_why(arguments, message):
    with pytest.raises(ValueError, match=message):
        Geometry(*arguments)
