"""Tests of the attack by files: planted defects are found, and the package has none of them."""

import io

import attack.__main__ as command
import attack.files
import numpy as np
import pytest
from attack.files import Files
from attack.making import Strange
from attack.traps import Traps


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


@pytest.mark.parametrize(
    "error", [KeyError("strange"), ValueError("without a name"), RecursionError("strange"), TypeError("strange")]
)
def test_errors_that_are_not_clear_are_found(found, error):
    def read(path):
        raise error

    assert found(read) == {"unnamed error"}


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
