"""The attack by files: seeds repeat their files, planted defects are found, and the package has none of them."""

import io

import attack.__main__ as command
import attack.files
import numpy as np
import pytest
from attack.files import Files
from attack.making import Strange, make_strange
from attack.traps import Traps


def _runs_code(path):
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + path.read_bytes()
    np.lib.format.read_array(io.BytesIO(content), allow_pickle=True)


def _fails(path):
    raise KeyError("strange")


@pytest.mark.parametrize(
    ("read", "kinds"), [(_runs_code, {"code ran"}), (_fails, {"unnamed error"}), (lambda path: np.zeros(3), set())]
)
def test_planted_defects_of_readers_are_found(read, kinds, tmp_path, monkeypatch):
    def made(seed, inside, traps):
        (inside / "strange.npy").write_bytes(traps.pickle)
        return Strange("npy", inside / "strange.npy", "planted")

    monkeypatch.setitem(attack.files.READERS, "npy", (read,))
    monkeypatch.setattr(attack.files, "commands", lambda *given: [])
    monkeypatch.setattr(attack.files, "make_strange", made)
    assert {finding.kind for finding in Files().attempt(0, tmp_path)} == kinds


def test_a_seed_repeats_its_file_and_seeds_differ(tmp_path):
    def made(folder, seed):
        inside = tmp_path / folder / str(seed)
        inside.mkdir(parents=True)
        strange = make_strange(seed, inside, Traps(inside / "traps"))
        return strange.how, strange.path.name, strange.path.stat().st_size if strange.path.is_file() else 0

    files = [made("a", seed) for seed in range(60)]
    assert files == [made("b", seed) for seed in range(60)]
    assert len({how for how, *_ in files}) > 20


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
