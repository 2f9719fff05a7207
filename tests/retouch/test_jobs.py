"""Jobs run, report, fail and stop."""

import threading
import time

from pointillist.kernels.compiling import compilation
from pointillist.retouch.jobs import Job


def _run(work):
    kept = []
    job = Job("mend", work, kept.append)
    job.start()
    assert job.wait(10)
    return job, kept


def test_the_answer_is_kept():
    job, kept = _run(lambda progress: 7)
    assert (job.state, kept, job.describe()["fraction"]) == ("done", [7], 1.0)


def test_a_sentence_for_what_goes_wrong():
    def work(progress):
        raise ValueError("the picture\n is  too small")

    job, kept = _run(work)
    assert (job.state, job.error, kept) == ("failed", "the picture is too small", [])


def test_what_nobody_expected_is_said_and_logged(caplog):
    def work(progress):
        raise RuntimeError("oh")

    job, _ = _run(work)
    assert job.state == "failed"
    assert "RuntimeError: oh" in job.error
    assert "mend failed" in caplog.text


def test_cancelling_stops_at_the_next_report_and_keeps_nothing():
    begun, kept = threading.Event(), []

    def work(progress):
        while True:
            progress(0.1)
            begun.set()
            time.sleep(0.001)

    job = Job("mend", work, kept.append)
    job.start()
    assert begun.wait(10)
    job.cancel()
    assert job.wait(10)
    assert (job.state, kept) == ("cancelled", [])


def test_cancelling_drops_the_answer_of_work_that_never_reports():
    go, kept = threading.Event(), []
    job = Job("mend", lambda progress: go.wait(10), kept.append)
    job.start()
    job.cancel()
    assert job.describe()["state"] == "stopping"
    go.set()
    assert job.wait(10)
    assert (job.state, kept) == ("cancelled", [])


def test_the_time_left_follows_from_what_is_done():
    go, half = threading.Event(), threading.Event()

    def work(progress):
        progress(0.8)
        progress(0.5)  # never goes back
        half.set()
        go.wait(10)

    job = Job("mend", work, print)
    job.start()
    assert half.wait(10)
    job._begin -= 8
    told = job.describe()
    assert told["fraction"] == 0.8
    assert abs(told["left"] - 2) < 0.5
    go.set()
    assert job.wait(10)
    assert job.describe()["left"] is None


def test_compilation_is_shown_and_not_counted():
    began, go_on = threading.Event(), threading.Event()

    def work(progress):
        with compilation.elsewhere():
            began.set()
            go_on.wait(60)
            time.sleep(0.3)

    job = Job("mend", work, lambda answer: None)
    job.start()
    assert began.wait(60)
    assert job.describe()["compiling"]
    go_on.set()
    assert job.wait(60)
    assert not job.describe()["compiling"]
    assert job.describe()["seconds"] < 0.3
