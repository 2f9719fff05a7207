"""Paths of penalties."""

import numpy as np
import pytest

import pointillist as pt
from pointillist import penalty_path

RNG = np.random.default_rng(0)


def test_a_path_starts_at_zero_codes_and_agrees_with_encode():
    signals, filters = RNG.standard_normal((2, 14, 15)), RNG.standard_normal((4, 3, 3)) / 3
    path = penalty_path(signals, filters, n=5, smallest=0.05, tol=1e-6)
    values = [point.penalty for point in path]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(0.05 * values[0])
    assert path[0].result.codes.nnz == 0
    alone = pt.encode(signals, filters, values[-1], tol=1e-6)
    np.testing.assert_allclose(path[-1].result.objective, alone.objective, rtol=1e-5)


def test_a_path_of_ones_own_with_weights():
    signals, filters = RNG.standard_normal((1, 40)), RNG.standard_normal((2, 5))
    weights = np.ones((1, 40))
    weights[0, :10] = 0
    path = penalty_path(signals, filters, penalties=[0.1, 1.0], weights=weights)
    assert [point.penalty for point in path] == [1.0, 0.1]


@pytest.mark.parametrize("change", [{"n": 0}, {"smallest": 1.5}, {"penalties": [-1.0]}])
def test_bad_paths(change):
    with pytest.raises(ValueError, match=r"n must|smallest|penalties"):
        penalty_path(RNG.standard_normal((1, 20)), RNG.standard_normal((2, 5)), **change)


def test_no_path_for_silence():
    with pytest.raises(ValueError, match="zero"):
        penalty_path(np.zeros((1, 20)), RNG.standard_normal((2, 5)))


@pytest.mark.parametrize("change", [{"n": 4}, {"smallest": 0.1}])
def test_penalties_of_ones_own_are_the_only_ones(change):
    with pytest.raises(ValueError, match="leave out penalties"):
        penalty_path(RNG.standard_normal((1, 20)), RNG.standard_normal((2, 5)), penalties=[1.0], **change)


def test_each_penalty_starts_from_the_codes_of_the_one_before():
    signals, filters = RNG.standard_normal((1, 60)), RNG.standard_normal((3, 5))
    twice = penalty_path(signals, filters, penalties=[0.5, 0.5])
    assert twice[1].result.iterations[0] <= 1 < twice[0].result.iterations[0]


def test_solvers_that_begin_at_zero_and_objects_with_a_tolerance_have_paths_too():
    signals, filters = RNG.standard_normal((1, 60)), RNG.standard_normal((3, 5))
    paths = [
        penalty_path(signals, filters, n=3, **how)
        for how in ({"tol": 1e-6}, {"solver": pt.solvers.SampledADMM(tol=1e-4, max_iter=3000)})
    ]
    np.testing.assert_allclose(*([point.result.objective[0] for point in path] for path in paths), rtol=2e-4)
    with pytest.raises(ValueError, match="tol"):
        penalty_path(signals, filters, solver=pt.solvers.CoordinateDescent(), tol=1e-2)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["cupy", "torch"])
def test_paths_of_arrays_on_a_device(kind):
    module = pytest.importorskip(kind)
    signals, filters = (
        RNG.standard_normal((2, 30, 31)).astype(np.float32),
        RNG.standard_normal((4, 5, 5)).astype(np.float32),
    )
    weights = (RNG.random(signals.shape) < 0.7).astype(np.float32)
    move = module.asarray if kind == "cupy" else lambda array: module.as_tensor(array, device="cuda")
    np.testing.assert_array_equal(
        pt.max_penalty(move(signals), move(filters), weights=move(weights)),
        pt.max_penalty(signals, filters, weights=weights),
    )
    there = penalty_path(
        move(signals), move(filters), n=3, smallest=0.1, weights=move(weights), tol=1e-4, device="cuda"
    )
    here = penalty_path(signals, filters, n=3, smallest=0.1, weights=weights, tol=1e-4)
    for one, other in zip(there, here, strict=True):
        assert one.penalty == other.penalty
        np.testing.assert_allclose(one.result.objective, other.result.objective, rtol=1e-3)
        assert type(one.result.codes.values[0]) is type(move(signals))


def test_a_smallest_penalty_that_is_lost_beside_the_signals_is_named():
    signals = np.random.default_rng(0).standard_normal((1, 60))
    with pytest.raises(ValueError, match="smallest asks for more than there is: penalty is so small"):
        pt.penalty_path(signals, np.ones((1, 5)), smallest=1e-300)
    with pytest.raises(ValueError, match="penalties asks for more than there is: penalty is so small"):
        pt.penalty_path(signals, np.ones((1, 5)), penalties=[1e-300])
