"""Tests of results, statuses and threads."""

import numpy as np

from pointillist.codes import SparseCodes
from pointillist.solvers.base import Result, Status, judge, merge_results


def part(numbers, statuses):
    return Result(
        SparseCodes.from_dense([np.full((1, 3), n, float) for n in numbers]),
        np.array(numbers, float),
        np.array(numbers) / 100,
        tuple(statuses),
        np.array(numbers),
        [np.full((1, 3), n) for n in numbers],
    )


def test_merge_puts_every_signal_in_its_place():
    ok, limit = Status.CONVERGED, Status.ITERATION_LIMIT
    merged = merge_results([part([5, 1, 3], [ok, ok, limit]), part([2, 4], [ok, ok])], [[4, 0, 2], [1, 3]])
    np.testing.assert_array_equal(merged.objective, [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(merged.gap, np.arange(1, 6) / 100)
    np.testing.assert_array_equal(merged.iterations, [1, 2, 3, 4, 5])
    assert merged.statuses == (ok, ok, limit, ok, ok)
    assert merged.status is limit
    assert [one.values[0][0] for one in merged.codes] == [1, 2, 3, 4, 5]
    assert [residual[0, 0] for residual in merged.residuals] == [1, 2, 3, 4, 5]


def test_the_worst_status_wins():
    assert part([1, 2], [Status.CONVERGED] * 2).status is Status.CONVERGED
    assert part([1, 2], [Status.ITERATION_LIMIT, Status.DIVERGED]).status is Status.DIVERGED
    assert len({status.advice for status in Status}) == 3


def test_judge():
    assert judge(0.1, 1.0, 0.1) is Status.CONVERGED
    assert judge(0.2, 1.0, 0.1) is Status.ITERATION_LIMIT
    assert judge(0.0, float("nan"), 0.1) is Status.DIVERGED
    assert judge(0.0, float("inf"), 0.1) is Status.DIVERGED
    assert judge(float("nan"), 1.0, 0.1) is not Status.CONVERGED
