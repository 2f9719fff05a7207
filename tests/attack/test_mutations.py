"""Tests of the mutations: the same seed makes the same file, files differ, and structure survives where it should."""

import io
import random

import numpy as np
import pytest
from attack.making import make_strange
from attack.nonsense import mutated_file
from attack.specimens import contents_of, written_by_runs
from attack.traps import Traps

from pointillist.errors import ModelFileError
from pointillist.storage import read_arrays


@pytest.fixture
def traps(tmp_path):
    return Traps(tmp_path / "traps")


def test_seeds_repeat(tmp_path):
    def made(folder, seed):
        inside = tmp_path / folder / str(seed)
        inside.mkdir(parents=True)
        strange = make_strange(seed, inside, Traps(inside / "traps"))
        path = strange.path
        return strange.how, path.name, path.stat().st_size if path.is_file() else 0

    names = set()
    for seed in range(60):
        one, two = made("a", seed), made("b", seed)
        assert one == two  # bytes differ: the order of arrays is safetensors', and traps name their folder
        names.add(one[0])
    assert len(names) > 20


def test_nonsense_has_a_right_checksum(tmp_path):
    refused = []
    for seed in range(100):
        path = tmp_path / "m"
        path.write_bytes(mutated_file(random.Random(seed), "model", *contents_of(written_by_runs()["model"], "model")))
        try:
            read_arrays(path, "model")
        except ModelFileError as error:
            refused.append(str(error))
    assert 0 < len(refused) < 50
    assert not any("checksum" in words for words in refused)


def test_the_pickle_would_leave_a_mark(traps):
    assert not traps.sprung
    np.lib.format.read_array(io.BytesIO(_object_array(traps.pickle)), allow_pickle=True)
    assert traps.sprung


def _object_array(pickled):
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + pickled
