"""Calls that end at a true excess: searches that end at the right number, and calls that are worth what they say."""

import numpy as np
import pytest
from benchmarks.reach import EXCESS, Task, optimum_of, reach

import pointillist as pt


@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_calls_end_within_the_excess_and_not_a_round_later_than_needed(boundary):
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((6, 5, 5)).astype(np.float32) / 5
    task = Task(rng.standard_normal((2, 24, 24)).astype(np.float32), filters, 0.3, boundary)
    optimum = optimum_of(task)
    assert optimum.gap <= 1e-7
    reached = reach(task, optimum)
    for solver in reached.solvers.values():
        assert optimum.excess(task.solve(solver, n_jobs=1).objective) <= EXCESS
    earlier = task.solve(pt.solvers.CoordinateDescent(tol=1e-12, max_iter=reached.rounds - 1), n_jobs=1)
    assert optimum.excess(earlier.objective) > EXCESS
    assert 0 < reached.excess <= EXCESS
    assert reached.gap >= reached.excess
