"""Tests of the logs of a run."""

import json
import os
import sys

import numpy as np
import pytest

from pointillist.learners import OnlineCSC
from pointillist.learners.watching import JsonLog, TensorBoardEvents, read_log

SIGNALS = np.random.default_rng(0).standard_normal((5, 40))


def test_lines_can_be_read_while_the_run_goes(tmp_path):
    path = tmp_path / "run.jsonl"
    seen = []
    log = JsonLog(path)
    callbacks = [log, lambda info: seen.append(len(read_log(path)))]
    model = OnlineCSC(3, 5, 0.5, n_epochs=1, random_state=0).fit(SIGNALS, callbacks=callbacks)
    assert seen == [1, 2, 3, 4, 5]
    assert read_log(path) == model.history_


def test_a_resumed_run_leaves_one_line_a_step(tmp_path):
    path = tmp_path / "run.jsonl"
    log = JsonLog(path)
    for step in range(1, 6):
        log({"iteration": step, "objective": float(step)})
    with path.open("a") as file:
        file.write('{"iteration": 6, "objec')
    log = JsonLog(path)
    for step in range(4, 8):
        log({"iteration": step, "objective": -float(step)})
    assert [info["objective"] for info in read_log(path)] == [1, 2, 3, -4, -5, -6, -7]


def test_a_new_run_begins_a_new_file_and_holds_only_json(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("something else\n")
    log = JsonLog(path)
    log({"iteration": 1, "gap": float("nan"), "objective": np.inf})
    assert json.loads(path.read_text()) == {"iteration": 1, "gap": None, "objective": None}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full disk")
def test_a_full_disk_does_not_stop_the_run(tmp_path, caplog):
    path = tmp_path / "run.jsonl"
    path.symlink_to("/dev/full")
    log = JsonLog(path)
    model = OnlineCSC(3, 5, 0.5, n_epochs=1, random_state=0).fit(SIGNALS, callbacks=[log])
    assert model.n_iter_ == len(SIGNALS)
    assert caplog.text.count("does not go on after step 0, learning does: No space left") == 1


def test_a_folder_that_vanishes_does_not_stop_the_run(tmp_path, caplog):
    log = JsonLog(tmp_path / "missing" / "run.jsonl")
    for step in (1, 2):
        assert log({"iteration": step}) is False
    assert caplog.text.count("learning does: No such file") == 1


@pytest.mark.parametrize("line", [b"[]", b"{}", b"\xff", b'{"iteration": "a"}', b"[" * 10**5])
def test_a_file_that_is_no_log_is_named(tmp_path, line):
    (tmp_path / "run.jsonl").write_bytes(b'{"iteration": 1}\n' + line + b"\n")
    with pytest.raises(ValueError, match=r"line 2 of .*run\.jsonl is no record of a run"):
        read_log(tmp_path / "run.jsonl")


def test_tensorboard_gets_the_numbers_or_says_what_is_missing(tmp_path, monkeypatch):
    pytest.importorskip("tensorboardX")
    events = TensorBoardEvents(tmp_path / "board")
    assert events({"iteration": 1, "objective": 2.0, "nnz": 3, "gap": 0.1, "seconds": 0.5}) is False
    (file,) = (tmp_path / "board").iterdir()
    assert b"objective" in file.read_bytes()
    for module in ("tensorboardX", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pointillist\[watch\]"):
        TensorBoardEvents(tmp_path / "other")
