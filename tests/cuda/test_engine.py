"""Circular signals as a device pads them, checked on the host against the geometry of the CPU."""

import numpy as np
import pytest

from pointillist.cuda import engine
from pointillist.cuda.plan import as_volume
from pointillist.problem import Geometry

CASES = [((9,), (4,)), ((7, 10), (3, 6)), ((5, 6, 8), (5, 1, 4))]


def _geometry(case):
    return Geometry(*case, 2, "circular")


def _padded(geometry, rng):
    return rng.standard_normal((2, *as_volume(geometry.padded)))


@pytest.mark.parametrize("case", CASES)
def test_signals_continue_around(case):
    geometry, rng = _geometry(case), np.random.default_rng(0)
    signal = rng.standard_normal((2, *geometry.signal))
    padded = np.zeros((2, *as_volume(geometry.padded)))
    offset, lengths = as_volume(geometry.offset, 0), as_volume(geometry.signal)
    inside = tuple(slice(o, o + n) for o, n in zip(offset, lengths, strict=True))
    padded[(slice(None), *inside)] = signal.reshape(2, *lengths)
    engine.continue_around(padded, lengths, offset)
    np.testing.assert_array_equal(padded.ravel(), geometry.spread(signal)[: padded.size])


@pytest.mark.parametrize("case", CASES)
def test_folding_is_what_the_cpu_does_and_the_adjoint_of_extending(case):
    geometry, rng = _geometry(case), np.random.default_rng(0)
    lengths = as_volume(geometry.signal)
    core = tuple(slice(n) for n in lengths)
    folded, extended = _padded(geometry, rng), _padded(geometry, rng)
    before, other = folded.copy(), extended.copy()
    engine.fold(folded, lengths)
    engine.extend(extended, lengths)
    inner = np.sum(folded[(slice(None), *core)] * other[(slice(None), *core)])
    assert np.sum(before * extended) == pytest.approx(inner, rel=1e-12)
    turned = np.roll(folded[(slice(None), *core)], tuple(-o for o in as_volume(geometry.offset, 0)), (1, 2, 3))
    flat = np.concatenate([before.ravel(), np.zeros(geometry.padded_length - before.size)])
    np.testing.assert_allclose(turned.reshape(2, *geometry.signal), geometry.gather(flat), atol=1e-12)
    assert np.sum(folded != 0) == np.prod(turned.shape), "nothing is left behind the circle"


@pytest.mark.parametrize("case", CASES)
def test_changes_of_both_copies_are_joined(case):
    geometry, rng = _geometry(case), np.random.default_rng(0)
    lengths, array, change = as_volume(geometry.signal), _padded(geometry, rng), _padded(geometry, rng)
    engine.extend(array, lengths)
    start = array.copy()
    seams = engine.Seams(array, lengths, engine.AXES)
    array += change
    seams.join()
    engine.fold(change, lengths)
    engine.extend(change, lengths)
    np.testing.assert_allclose(array, start + change, atol=1e-12)


def test_what_lies_behind_is_cleared():
    array = np.ones((1, 1, 5, 7))
    engine.clear(array, (1, 4, 5))
    assert array.sum() == 20
