"""Tests of sweeps over strips: what they come to is what sweeps over the whole come to, whoever does them."""

import threading

import numpy as np
import pytest

from pointillist.kernels import sweeps, team
from pointillist.kernels.sweeps import Effort
from pointillist.parallel import SharedMap
from pointillist.solvers import strips, sweeping
from pointillist.solvers.staging import field_of
from pointillist.solvers.sweeping import Ground


@pytest.fixture
def tiny(monkeypatch):
    """Strips of few positions, and helpers for sweeps of any size."""
    monkeypatch.setattr(strips, "_LEAST_POSITIONS", 1)
    monkeypatch.setattr(sweeping, "_WORTH_HELP", 0)


def _descended(problem, x, codes, effort, mapper=map, ridge=0.0):
    """Values of codes and the residual after a descent, and how many strips there were."""
    ground = Ground(problem, 0, field_of(problem.geometry, problem.operator.layout))
    working = ground.codes(codes, np.zeros(len(codes), x.dtype))
    weights = problem.weights_of(0)
    stage = ground.stage(codes, problem.geometry.spread(x if weights is None else weights * x))
    ground.sweep(stage, working, effort, mapper, ridge)
    return working.values, ground.inside(stage), len(stage.strips.reached)


def _some_codes(rng, problem, count):
    keys = np.sort(rng.choice(problem.operator.n_codes, count, replace=False))  # in the order of their positions
    return keys % problem.n_filters * problem.geometry.n_positions + keys // problem.n_filters


@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize("boundary", ["same", "full", "circular"])
@pytest.mark.parametrize("size", [(5, 4), (31, 4)])
def test_strips_come_to_what_the_whole_comes_to(reference, monkeypatch, boundary, weights, size):
    rng = np.random.default_rng(7)
    problem, x = reference.problem(rng, (90, 35), size, n_filters=3, boundary=boundary, weights=weights, penalty=0.3)
    codes, effort = _some_codes(rng, problem, 900), Effort(1e-12, 6, 400, 2)
    monkeypatch.setattr(strips, "_LEAST_POSITIONS", 10**9)
    whole, _, one = _descended(problem, x, codes, effort)
    monkeypatch.setattr(strips, "_LEAST_POSITIONS", 1)
    cut, _, many = _descended(problem, x, codes, effort)
    assert one == 1 < 6 <= many
    assert np.count_nonzero(whole) > 300
    np.testing.assert_allclose(cut, whole, atol=1e-8)


@pytest.mark.parametrize("n_jobs", [2, 3, 7])
@pytest.mark.parametrize("boundary", ["valid", "same", "circular"])
@pytest.mark.parametrize(
    ("signal", "size", "channels", "weights"),
    [
        ((120, 50), (5, 4), 1, None),
        ((90, 30), (1, 9), 2, "uneven"),
        ((700,), (20,), 2, None),
        ((44, 9, 20), (3, 2, 11), 1, None),
        ((150, 20), (40, 9), 2, "uneven"),
    ],
)
def test_any_number_of_threads_comes_to_the_same_bits(
    reference, tiny, boundary, signal, size, channels, weights, n_jobs
):
    rng = np.random.default_rng(8)
    problem, x = reference.problem(
        rng,
        signal,
        size,
        n_filters=3,
        channels=channels,
        boundary=boundary,
        weights=weights,
        penalty=0.2,
        dtype=np.float32,
    )
    codes = _some_codes(rng, problem, 1200)
    for effort in (Effort(1e-3, 6, 4, 3), Effort(1e-6, 12, 2), Effort(0.0, 0, 0, 4, True)):
        alone, left, count = _descended(problem, x, codes, effort, ridge=0.1)
        assert count >= 4
        assert np.count_nonzero(alone) > 50
        for _ in range(3):
            shared, other, _ = _descended(problem, x, codes, effort, SharedMap(n_jobs), 0.1)
            np.testing.assert_array_equal(shared, alone)
            np.testing.assert_array_equal(other, left)


def test_helpers_take_their_share(reference, tiny, monkeypatch):
    """Threads that come to help do something: who does what is told by the thread that a strip's memory was written by."""
    rng = np.random.default_rng(9)
    problem, x = reference.problem(rng, (400, 200), (7, 7), n_filters=3, penalty=0.05, dtype=np.float32)
    codes, ranks = _some_codes(rng, problem, 40_000), []
    plain = sweeps.descend
    monkeypatch.setattr(
        sweeps, "descend", lambda rank, *args, **kwargs: ranks.append(rank) or plain(rank, *args, **kwargs)
    )
    _descended(problem, x, codes, Effort(1e-9, 6, 10), SharedMap(2))
    assert sorted(ranks) == [0, 1]


def test_no_help_is_asked_for_little_work(reference, monkeypatch):
    rng = np.random.default_rng(9)
    problem, x = reference.problem(rng, (400, 200), (7, 7), n_filters=3, penalty=0.05, dtype=np.float32)
    monkeypatch.setattr(SharedMap, "ask", lambda *_: pytest.fail("nobody is needed"))
    _descended(problem, x, _some_codes(rng, problem, 100), Effort(1e-3, 6, 10), SharedMap(2))


def test_after_a_helper_was_late_the_leader_works_alone(reference, tiny, monkeypatch):
    rng = np.random.default_rng(9)
    problem, x = reference.problem(rng, (200, 60), (5, 5), n_filters=3, penalty=0.05, dtype=np.float32)
    codes, asked = _some_codes(rng, problem, 2000), []
    ground = Ground(problem, 0, field_of(problem.geometry, problem.operator.layout))
    monkeypatch.setattr(SharedMap, "ask", lambda self, work: asked.append(work))
    monkeypatch.setattr(sweeping, "disperse", lambda found: bool(team.disperse(found)) or len(asked) == 1)
    for _ in range(3):
        stage = ground.stage(codes, problem.geometry.spread(x))
        ground.sweep(stage, ground.codes(codes, np.zeros(len(codes), x.dtype)), Effort(1e-3, 6, 3), SharedMap(2))
    assert len(asked) == 1
    before = threading.active_count()
    asked[0]()  # much too late: it finds that all is over
    assert threading.active_count() == before


def test_an_exception_sends_helpers_home(reference, tiny, monkeypatch):
    rng = np.random.default_rng(9)
    problem, x = reference.problem(rng, (200, 60), (5, 5), n_filters=3, penalty=0.05, dtype=np.float32)
    codes, plain, done = _some_codes(rng, problem, 2000), sweeps.descend, threading.Event()

    def descend(rank, *args, **kwargs):
        if rank == 0:
            raise KeyboardInterrupt
        plain(rank, *args, **kwargs)
        done.set()

    monkeypatch.setattr(sweeps, "descend", descend)
    with pytest.raises(KeyboardInterrupt):
        _descended(problem, x, codes, Effort(1e-3, 6, 3), SharedMap(2))
    assert done.wait(30), "a helper waits for a leader that never began"
