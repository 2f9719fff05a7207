"""Tests of numbers of threads, and of maps whose items are shared out between this thread and others."""

import os
import threading
import time

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pointillist.parallel import SharedMap, effective_jobs, parallel


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_answers_come_in_the_order_of_the_items_also_of_work_within_work(n_jobs):
    for count in (0, 1, 3, 40):
        within = SharedMap(n_jobs)(lambda x: sum(SharedMap(2)(lambda y: x * y, range(4))), range(count))
        assert within == [6 * x for x in range(count)]


def test_this_thread_and_others_work_at_the_same_time():
    meeting = threading.Barrier(3, timeout=20)
    names = SharedMap(3)(lambda _: (meeting.wait(), threading.get_ident())[1], range(3))
    assert len(set(names)) == 3
    assert threading.get_ident() in names


@pytest.mark.parametrize("bad", [0, 5, 9])
def test_an_exception_reaches_the_caller(bad):
    def work(i):
        if i == bad:
            raise ZeroDivisionError
        return i

    with pytest.raises(ZeroDivisionError):
        SharedMap(2)(work, range(10))


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_after_an_exception_nobody_begins_with_anything_else(where):
    begun, meeting = [], threading.Barrier(2, timeout=20)
    caller = threading.get_ident()

    def work(i):
        begun.append(i)
        if i < 2:
            meeting.wait()
            if (threading.get_ident() == caller) == (where == "here"):
                raise ZeroDivisionError
            time.sleep(0.2)

    with pytest.raises(ZeroDivisionError):
        SharedMap(2)(work, range(50))
    assert sorted(begun) == [0, 1]


def test_threads_that_others_keep_busy_are_not_waited_for():
    occupied, released = threading.Event(), threading.Event()

    def occupy(i):
        if threading.current_thread() is not keeper:  # the one thread that there is beside the keeper
            occupied.set()
            assert released.wait(20)
        else:
            assert occupied.wait(20)

    keeper = threading.Thread(target=lambda: SharedMap(2)(occupy, range(2)))
    keeper.start()
    assert occupied.wait(20)
    assert SharedMap(2)(lambda x: x + 1, range(5)) == [1, 2, 3, 4, 5]
    released.set()
    keeper.join(20)
    assert not keeper.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    SharedMap(2)(time.sleep, [0.001] * 4)
    child = os.fork()
    if child == 0:
        os._exit(0 if SharedMap(2)(lambda x: x, range(4)) == [0, 1, 2, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_who_is_asked_works_when_it_can():
    came, shared = threading.Event(), SharedMap(2)
    shared.ask(came.set)
    assert came.wait(20)
    shared.ask(lambda: 1 // 0)  # nobody hears of it
    assert shared(lambda x: x, range(4)) == [0, 1, 2, 3]


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
    with pytest.raises(ValueError, match="n_jobs must be a positive number of threads, -1 for all cores"):
        effective_jobs(bad)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_workers_of_joblib_share_the_cores(backend):
    cores = joblib.cpu_count()
    shares = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(effective_jobs)(-1) for _ in range(4))
    assert shares == [1 if backend == "multiprocessing" else max(cores // 2, 1)] * 4
    assert joblib.Parallel(n_jobs=2, backend=backend)([joblib.delayed(effective_jobs)(n) for n in (5, None)]) == [5, 1]
