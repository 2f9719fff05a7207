"""Tests of the attack by files: planted defects are found, and the package has none of them."""

import builtins
import io
import warnings

import attack.__main__ as command
import attack.files
import numpy as np
import pytest
from attack.files import Files
from attack.judging import judge_command, judge_printed, judge_process
from attack.making import Strange
from attack.traps import SECRET, Traps

from attack import judging


@pytest.fixture
def found(tmp_path, monkeypatch):
    """What an attempt finds when a reader with a planted defect is the only one."""

    def look(read, words=None):
        folder = tmp_path / "attempt"
        folder.mkdir()
        monkeypatch.setitem(attack.files.READERS, "npy", (read,))
        monkeypatch.setattr(attack.files, "commands", lambda *given: [] if words is None else [words])

        def made(seed, inside, traps: Traps):
            (inside / "strange.npy").write_bytes(traps.pickle)
            return Strange("npy", inside / "strange.npy", "planted")

        monkeypatch.setattr(attack.files, "make_strange", made)
        return {finding.kind for finding in Files().attempt(0, folder)}

    return look


def test_a_reader_without_a_defect_is_left_alone(found):
    assert found(lambda path: np.zeros(3)) == set()


def test_code_that_runs_is_found(found):
    def read(path):
        header = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }\n"
        content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + path.read_bytes()
        np.lib.format.read_array(io.BytesIO(content), allow_pickle=True)

    assert found(read) == {"code ran"}


def test_other_files_are_found(found):
    assert found(lambda path: [np.array([0, SECRET])]) == {"other file"}


@pytest.mark.parametrize(
    "error", [KeyError("strange"), ValueError("without a name"), RecursionError("strange"), TypeError("strange")]
)
def test_errors_that_are_not_clear_are_found(found, error):
    def read(path):
        raise error

    assert found(read) == {"unnamed error"}


def test_memory_is_found(found, monkeypatch):
    monkeypatch.setattr(attack.files, "PLAN", 10**7)

    def read(path):
        np.ones(5 * 10**6)

    assert found(read) == {"memory"}


def test_warnings_and_leftovers_are_found(found):
    def read(path):
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        (path.parent.parent / "out" / ".pointillist-0-1").mkdir()

    assert found(read) == {"warning", "left behind"}


def test_words_of_c_libraries_are_found(found):
    def read(path):
        with builtins.open(2, "w", closefd=False) as stream:
            stream.write("\x1b[31m")

    assert found(read) == {"raw output"}


@pytest.mark.parametrize(
    ("code", "err", "kind"),
    [
        (2, "error: cannot read strange.npy\n", None),
        (0, "", None),
        (2, "error: cannot read it\n", "unnamed error"),
        (2, "", "unnamed error"),
        (1, "error: unexpected KeyError: strange (add --debug to see where)\n", "unnamed error"),
        (2, "Traceback\nerror: strange\n", "unnamed error"),
        (2, "error: strange \x1b[2J\n", "raw output"),
        (0, "x.py:1: RuntimeWarning: overflow\n", "warning"),
    ],
)
def test_what_commands_print_is_judged(code, err, kind):
    assert {fault.kind for fault in judge_printed(["info"], code, "", err)} == ({kind} - {None})


def test_commands_are_run_here_and_as_processes(tmp_path, monkeypatch):
    (tmp_path / "strange.npy").write_text("no array")
    words = ["info", str(tmp_path / "strange.npy")]
    assert judge_command(words) == []
    monkeypatch.setattr(judging, "COMMAND", ("-c", "print('x' * 9); import sys; sys.exit(3)"))
    assert {fault.kind for fault in judge_process(words, tmp_path, 10**10)} == {"unnamed error"}
    assert {fault.kind for fault in judge_process(words, tmp_path, 10)} == {"unnamed error", "memory"}
    monkeypatch.setattr(judging, "COMMAND", ("-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(judging, "HANG", 0.2)
    assert {fault.kind for fault in judge_process(words, tmp_path, 10**10)} == {"hang"}


def test_a_few_files_do_no_harm(tmp_path):
    """A smoke of what ``make attack`` does for as long as one likes."""
    for seed in range(25):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert Files().attempt(seed, folder) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_minutes_find_nothing(tmp_path):
    assert command.main(["--seconds", "120", "--output", str(tmp_path / "attack")]) == 0
