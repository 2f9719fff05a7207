"""Tests of the plan: its terms against the arrays that they stand for, and what it gives up to stay within a limit."""

from dataclasses import replace

import numpy as np
import pytest

from pointillist.dictionary.statistics import make_statistics
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.learners.calibration import Pace, measure_pace, warm_up
from pointillist.learners.plan import Plan, RunSizes, duration, in_bytes, parse_bytes, within
from pointillist.sampling import Draws
from pointillist.system import memory_now, memory_peak

RUN = RunSizes(
    n_filters=100, channels=1, size=(11, 11), signal=(100, 100), n_signals=1000, n_steps=50, batch_size=20, n_jobs=4,
    prefetch=2, cache=10**8,
)  # fmt: skip


@pytest.mark.parametrize("kind", ["toeplitz", "dense"])
@pytest.mark.parametrize(("n_filters", "channels", "size"), [(7, 1, (5, 4)), (3, 3, (6,)), (2, 2, (2, 3, 2))])
def test_statistics_take_what_is_said(kind, n_filters, channels, size):
    run = replace(RUN, n_filters=n_filters, channels=channels, size=size, signal=(9,) * len(size), statistics=kind)
    arrays = make_statistics(kind, n_filters, channels, size).arrays()
    assert run.statistics_bytes[0] == pytest.approx(sum(array.nbytes for array in arrays.values()), abs=64)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"n_filters": 200}, "statistics"),
        ({"signal": (200, 100)}, "solving"),
        ({"n_jobs": 64}, "solving"),
        ({"batch_size": 21}, "solving"),
        ({"sampling": Draws(0.3, "codes")}, "solving"),
        ({"batch_size": 40}, "batch"),
        ({"held_out": 10**7}, "batch"),
        ({"robust": True}, "batch"),
        ({"prefetch": 4}, "reading ahead"),
        ({"reading": 10**7}, "reading ahead"),
        ({"cache": 10**9}, "image cache"),
        ({"n_steps": 10**6}, "history"),
    ],
)
def test_more_of_anything_takes_more(more, part):
    assert replace(RUN, **more).memory()[part] > RUN.memory()[part]


def test_disk_counts_checkpoints_only_where_there_are_any():
    assert RUN.disk() < 10**6
    assert replace(RUN, checkpoints=True).disk() > 3 * RUN.statistics_bytes[0]


def test_what_costs_only_time_is_given_up_first():
    base = 10**8
    assert within(RUN, 10**9, base) == (RUN, ())
    sizes = [Plan(replace(RUN, cache=0), base).memory, Plan(replace(RUN, cache=0, prefetch=0), base).memory]
    smaller, words = within(RUN, sizes[0], base)
    assert (smaller.batch_size, smaller.prefetch) == (20, 2)
    assert smaller.cache < RUN.cache
    assert len(words) == 1
    smaller, words = within(RUN, sizes[1] - 1, base)
    assert (smaller.cache, smaller.prefetch) == (0, 0)
    assert smaller.batch_size < 20
    assert smaller.n_steps * smaller.batch_size == 1000
    assert smaller.n_jobs == 4
    assert Plan(smaller, base).memory <= sizes[1] - 1
    assert "signals in a batch" in words[-1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"n_filters": 1000}, "statistics of 1000 filters of 11×11: use fewer"),
        ({"signal": (9000, 7000)}, "a signal of 9000×7000"),
        ({"reading": 10**10}, "leave the largest files out"),
    ],
)
def test_refuses_with_the_reason(change, reason):
    with pytest.raises(ValueError, match="max_memory of 100 MB is not enough") as caught:
        within(replace(RUN, **change), 10**8, 9 * 10**7)
    assert reason in str(caught.value)
    with pytest.raises(ValueError, match="the program itself"):
        within(replace(RUN, **change), 10**8, 11 * 10**7)


def test_never_promises_less_than_was_already_taken():
    assert Plan(RUN, 10**8, peak=10**10).memory == 10**10


def test_the_line_and_the_record():
    plan = Plan(RUN, 10**8, 7200.0)
    assert plan.line().startswith(f"up to {in_bytes(plan.memory)} of memory (")
    assert plan.line().endswith("about 2 h")
    assert plan.record()["batch_size"] == 20
    assert sum(plan.uses().values()) < plan.memory


@pytest.mark.parametrize(
    ("text", "amount"),
    [("2G", 2e9), ("1.5 GB", 1.5e9), ("500MB", 5e8), ("10k", 1e4), ("123", 123), ("2GiB", 2**31), ("1Mi", 2**20)],
)
def test_sizes_as_people_write_them(text, amount):
    assert parse_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "lots", "G", "-1G", "0", "2X", "nan", "inf", "2iB"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="max_memory must be a size"):
        parse_bytes(text)


def test_numbers_for_people():
    assert [in_bytes(size) for size in (12, 3400, 282e6, 1.77e9)] == ["12 bytes", "3.4 kB", "282 MB", "1.77 GB"]
    assert [duration(s) for s in (0.1, 80, 600, 9000, 200_000)] == ["1 s", "80 s", "10 min", "2.5 h", "2.3 days"]


@pytest.mark.parametrize("learner", [OnlineCSC, BatchCSC])
def test_calibration_leaves_the_model_alone(learner):
    model = learner([3, 2], [5, 3], 0.5, n_jobs=1, random_state=1)
    before = model.get_params()
    assert memory_now() <= memory_peak()
    assert 10**7 < warm_up(model, (20, 24)) <= memory_peak()
    pace = measure_pace(model, list(np.random.default_rng(0).standard_normal((3, 20, 24)).astype(np.float32)))
    assert pace.signal > 0
    assert pace.step >= 0
    assert model.get_params() == before
    assert not hasattr(model, "filters_")


def test_a_pace_adds_up():
    assert Pace(0.5, 0.1).seconds(4, 30) == pytest.approx(5)
