"""Tests of results, statuses and threads."""

import threading
from multiprocessing.dummy import DummyProcess as PoolThread

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pointillist.codes import SparseCodes
from pointillist.solvers.base import Result, Status, check_jobs, effective_jobs, judge, merge_results, parallel


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


def test_parallel_keeps_the_order_and_uses_threads():
    barrier = threading.Barrier(2, timeout=20)

    def work(n):
        barrier.wait()
        return n * n, threading.get_ident()

    answers = parallel(work, range(4), 2)
    assert [square for square, _ in answers] == [0, 1, 4, 9]
    assert len({thread for _, thread in answers}) == 2
    assert parallel(lambda n: n + 1, iter([1, 2]), 1) == [2, 3]
    assert parallel(lambda n: n, [], 3) == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_workers_have_one_blas_thread_whatever_their_number(n_jobs):
    """Sums of many terms depend on the BLAS threads: answers for any n_jobs agree only if each worker has the same."""

    def threads(_):
        return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)

    assert parallel(threads, range(2), n_jobs) == [1, 1]


def test_numbers_of_threads_are_those_of_joblib():
    cores = joblib.cpu_count()
    assert effective_jobs(3) == effective_jobs(np.int64(3)) == 3
    assert effective_jobs(-1) == cores
    assert effective_jobs(-2) == max(cores - 1, 1)
    assert effective_jobs(-100) == 1
    assert effective_jobs(None) == 1
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert effective_jobs(None) == 3


@pytest.mark.parametrize("bad", [0, 1.5, "all", True])
def test_what_is_no_number_of_threads_is_refused(bad):
    for check in (effective_jobs, check_jobs):
        with pytest.raises(ValueError, match="n_jobs must be a positive number of threads, -1 for all cores"):
            check(bad)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_workers_of_joblib_share_the_cores(backend):
    cores = joblib.cpu_count()
    shares = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(effective_jobs)(-1) for _ in range(4))
    assert shares == [1 if backend == "multiprocessing" else max(cores // 2, 1)] * 4
    assert joblib.Parallel(n_jobs=2, backend=backend)([joblib.delayed(effective_jobs)(n) for n in (5, None)]) == [5, 1]


def test_threads_of_joblib_share_many_cores(monkeypatch):
    for thread in threading.enumerate():  # pools of other tests count until their threads have ended
        if isinstance(thread, PoolThread):
            thread.join(timeout=10)
    for module in ("joblib", "joblib._parallel_backends"):
        monkeypatch.setattr(f"{module}.cpu_count", lambda: 8)
    pool = joblib.Parallel(n_jobs=3, backend="threading")
    assert pool(joblib.delayed(effective_jobs)(n) for n in (-1, -2, -3, -1)) == [2, 1, 1, 2]
    assert joblib.Parallel(n_jobs=1)([joblib.delayed(effective_jobs)(-1)]) == [8]
