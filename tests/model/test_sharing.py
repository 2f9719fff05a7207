"""A map whose items are shared out between this thread and others."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pointillist.model.sharing import map_in_order, shared_map


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_answers_come_in_the_order_of_the_items(n_jobs, count):
    with shared_map(n_jobs) as mapper:
        for _ in range(3):
            assert mapper(lambda x: x * x, range(count)) == [x * x for x in range(count)]


def test_this_thread_and_others_work_at_the_same_time():
    meeting = threading.Barrier(3, timeout=20)
    with shared_map(3) as mapper:
        names = mapper(lambda _: (meeting.wait(), threading.get_ident())[1], range(3))
    assert len(set(names)) == 3
    assert threading.get_ident() in names


@pytest.mark.parametrize("bad", [0, 5, 9])
def test_an_exception_reaches_the_caller(bad):
    def work(i):
        if i == bad:
            raise ZeroDivisionError
        return i

    with shared_map(2) as mapper, pytest.raises(ZeroDivisionError):
        mapper(work, range(10))


def test_one_thread_starts_no_other():
    before = threading.active_count()
    with shared_map(1) as mapper:
        assert mapper(lambda _: threading.active_count(), range(4)) == [before] * 4


def _chains(n):
    """Items of which each waits for one or two earlier ones, drawn at random."""
    drawn = random.Random(n)
    return [sorted({drawn.randrange(i) for _ in range(drawn.randrange(3))} if i else set()) for i in range(n)]


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("count", [0, 1, 7, 60])
def test_items_wait_for_those_before_them(n_jobs, count):
    after, done = _chains(count), []

    def work(i):
        assert all(other in done for other in after[i])
        time.sleep(0.0005 * (i % 3))
        done.append(i)
        return i * i

    with shared_map(n_jobs) as mapper:
        assert map_in_order(mapper, work, range(count), after) == [i * i for i in range(count)]
    assert sorted(done) == list(range(count))


def test_items_that_wait_for_nothing_are_worked_on_at_the_same_time():
    meeting = threading.Barrier(2, timeout=20)
    with ThreadPoolExecutor(2) as pool:
        assert (
            map_in_order(pool.map, lambda i: i > 1 or meeting.wait() >= 0, range(4), [[], [], [0], [1]]) == [True] * 4
        )


def test_one_thread_works_in_the_order_of_the_items():
    done = []
    map_in_order(map, done.append, range(9), _chains(9))
    assert done == list(range(9))


@pytest.mark.parametrize("bad", [0, 3, 8])
def test_an_exception_ends_all_waiting(bad):
    def work(i):
        if i == bad:
            raise ZeroDivisionError
        return i

    with shared_map(3) as mapper, pytest.raises(ZeroDivisionError):
        map_in_order(mapper, work, range(9), [[] if i == 0 else [i - 1] for i in range(9)])
