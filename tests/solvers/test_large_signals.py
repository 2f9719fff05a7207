"""Tests of the descent by tiles: the answer of the undivided one, bits that no thread changes, and no seams."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.problem import Geometry, certificate
from pointillist.solvers import CoordinateDescent, encoding
from pointillist.solvers.base import Status
from pointillist.solvers.large_signals import Blocks, TiledDescent

SHAPES = [((300,), (5,), 32), ((70, 83), (4, 5), 16), ((12, 20, 18), (2, 3, 3), 5)]


def _solved(problem, x, *, side, tol=1e-3, n_jobs=1, start=None, **more):
    solver = TiledDescent(coder=CoordinateDescent(tol=tol), side=side, **more)
    return solver.solve(solver.prepare(problem), [x], n_jobs=n_jobs, start=start)


@pytest.mark.parametrize("boundary", ["valid", "same", "full"])
@pytest.mark.parametrize("weights", [None, "mask", "uneven"])
@pytest.mark.parametrize(("signal", "size", "side"), SHAPES)
def test_tiles_find_the_optimum_of_the_whole(reference, signal, size, side, weights, boundary):
    rng = np.random.default_rng(0)
    problem, x = reference.problem(rng, signal, size, weights=weights, boundary=boundary)
    if problem.weights is not None:
        x = np.where(problem.weights > 0, x, 0)
    undivided = CoordinateDescent(tol=1e-6)
    best = undivided.solve(undivided.prepare(problem), [x])
    found = _solved(problem, x, side=side)
    exact = certificate(problem, 0, x, found.codes.indices[0], found.codes.values[0])
    assert found.status is Status.CONVERGED
    assert found.objective[0] == pytest.approx(exact.objective, rel=1e-9)
    assert found.gap[0] <= 1e-3
    assert found.objective[0] * (1 - found.gap[0]) <= best.objective[0]  # what the gap promises
    assert best.objective[0] * (1 - 1e-6) <= found.objective[0] <= best.objective[0] * (1 + 1e-3)
    np.testing.assert_allclose(found.residuals[0], exact.residual, atol=1e-9)


@pytest.mark.parametrize(
    "more",
    [
        {"nonnegative": True},
        {"channels": 2},
        {"penalty": np.array([0.3, 0.4, 0.6])},
        {"penalty": 0.3 + 0.4 * np.random.default_rng(2).random((3, 60, 61))},
    ],
)
def test_signs_channels_and_penalties(reference, more):
    problem, x = reference.problem(np.random.default_rng(1), (60, 61), (5, 4), **more)
    undivided = CoordinateDescent(tol=1e-6)
    best = undivided.solve(undivided.prepare(problem), [x])
    found = _solved(problem, x, side=16)
    assert found.objective[0] == pytest.approx(best.objective[0], rel=1e-4)
    assert found.gap[0] <= 1e-3


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tol", [0.3, 1e-2, 3e-4])
def test_gaps_keep_their_promise(reference, seed, tol):
    """Blocks that are hardly larger than a filter, so that every bound is raised by many neighbours."""
    rng = np.random.default_rng(seed)
    more = {"weights": [None, "mask", "uneven"][seed % 3], "nonnegative": seed % 2 == 0}
    problem, x = reference.problem(rng, (38, 41), (5, 4), **more)
    if problem.weights is not None:
        x = np.where(problem.weights > 0, x, 0)
    undivided = CoordinateDescent(tol=1e-9)
    best = undivided.solve(undivided.prepare(problem), [x])
    found = _solved(problem, x, side=6, tol=tol)
    assert found.gap[0] <= tol
    assert found.objective[0] * (1 - found.gap[0]) <= best.objective[0] * (1 + 1e-12)


@pytest.mark.parametrize("weights", [None, "uneven"])
def test_float32_and_threads_do_not_change_the_answer(reference, weights):
    problem, x = reference.problem(np.random.default_rng(3), (90, 95), (5, 5), dtype=np.float32, weights=weights)
    one, four = (_solved(problem, x, side=16, n_jobs=jobs) for jobs in (1, 4))
    np.testing.assert_array_equal(one.codes.indices[0], four.codes.indices[0])
    np.testing.assert_array_equal(one.codes.values[0], four.codes.values[0])
    np.testing.assert_array_equal(one.residuals[0], four.residuals[0])
    exact = certificate(problem, 0, x, one.codes.indices[0], one.codes.values[0])
    assert one.objective[0] == pytest.approx(exact.objective, rel=1e-12)
    assert one.codes.dtype == np.float32
    assert np.all(np.diff(one.codes.indices[0]) > 0)


def test_a_start_is_used(reference):
    problem, x = reference.problem(np.random.default_rng(4), (60, 60), (5, 5), weights="uneven")
    cold = _solved(problem, x, side=16, tol=1e-5)
    warm = _solved(problem, x, side=16, tol=1e-4, start=cold.codes)
    assert warm.iterations[0] < cold.iterations[0]
    assert warm.objective[0] == pytest.approx(cold.objective[0], rel=1e-4)


def test_borders_of_tiles_are_like_the_rest(reference):
    problem, x = reference.problem(np.random.default_rng(5), (128, 128), (5, 5))
    residual = _solved(problem, x, side=16).residuals[0][0]
    rows, columns = (np.arange(n) for n in residual.shape)
    near = (np.minimum(rows % 16, -rows % 16) <= 2)[:, None] | (np.minimum(columns % 16, -columns % 16) <= 2)
    assert np.sqrt(np.mean(residual[near] ** 2)) == pytest.approx(np.sqrt(np.mean(residual[~near] ** 2)), rel=0.03)


@pytest.mark.parametrize(
    ("signal", "size", "side"), [((100,), (7,), 10), ((50, 61), (9, 3), 8), ((9, 20, 30), (2, 5, 3), 4)]
)
def test_every_block_is_in_one_tile_and_tiles_of_one_colour_reach_disjoint_samples(signal, size, side):
    blocks = Blocks.of(Geometry(signal, size, 1, "full"), side)
    shifts = {blocks.shift(number) for number in range(2 ** len(signal))}
    assert len(shifts) == 2 ** len(signal)
    for shift in shifts:
        owned = np.zeros(blocks.counts, int)
        for tiles in blocks.colours(shift):
            reached = np.zeros(blocks.geometry.padded, int)
            for tile in tiles:
                owned[tile] += 1
                box = blocks.box(tile, blocks.overlap)
                reached[tuple(slice(b.start, b.stop + f - 1) for b, f in zip(box, size, strict=True))] += 1
            assert reached.max() <= 1
        assert np.all(owned == 1)


def test_encode_takes_tiles_for_large_signals_and_files(reference, tmp_path, monkeypatch):
    """One call for signals of all sizes; what lives in a file stays there."""
    monkeypatch.setattr("pointillist.solvers.large_signals.LARGE", 2000)
    rng = np.random.default_rng(6)
    filters = reference.filters(rng, 4, 1, (5, 5), np.float32)[:, 0]
    np.save(tmp_path / "big.npy", (100 * rng.standard_normal((60, 70))).astype(np.int16))
    mapped = np.load(tmp_path / "big.npy", mmap_mode="r")
    small = rng.standard_normal((30, 30)).astype(np.float32)
    seen = []
    found = encoding.encode([mapped, small], filters, 30.0, progress=seen.append)
    monkeypatch.undo()
    whole = encoding.encode([np.array(mapped), small], filters, 30.0)
    np.testing.assert_allclose(found.objective, whole.objective, rtol=1e-3)
    assert isinstance(found.residuals[0], np.memmap)
    assert not isinstance(found.residuals[1], np.memmap)
    assert seen[-1] == pytest.approx(1)
    assert len(seen) > 4
    assert all(0 <= share <= 1 for share in seen)


def test_a_large_circle_is_solved_whole(reference, monkeypatch):
    rng = np.random.default_rng(7)
    filters = reference.filters(rng, 4, 1, (5, 5), np.float32)[:, 0]
    image = rng.standard_normal((1, 60, 70)).astype(np.float32)
    whole = encoding.encode(image, filters, 0.4, boundary="circular")
    monkeypatch.setattr("pointillist.solvers.large_signals.LARGE", 2000)
    found = encoding.encode(image, filters, 0.4, boundary="circular")
    assert found.objective[0] == whole.objective[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tiles_in_the_span_of_filters_reach_the_tolerance_or_say_so():
    """Rounding in the span may hide whether the tolerance is met: then the last steps are made in all channels."""
    rng = np.random.default_rng(0)
    signals = rng.standard_normal((1, 6, 40, 40)).astype(np.float32)
    filters = (rng.standard_normal((3, 1, 5, 5)) * rng.standard_normal((1, 6, 1, 1))).astype(np.float32)
    solver = TiledDescent(coder=CoordinateDescent(tol=3e-4, max_iter=20), side=8)
    found = pt.encode(signals, filters, 0.01, channels=True, solver=solver, n_jobs=1)
    assert found.status is not pt.Status.CONVERGED or found.gap[0] <= 3e-4
