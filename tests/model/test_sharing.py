"""A map whose items are shared out between this thread and others."""

import threading

import pytest

from pointillist.model.sharing import shared_map


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
