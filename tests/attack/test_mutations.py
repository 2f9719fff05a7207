"""Tests of the mutations: the same seed makes the same file, files differ, and structure survives where it should."""

import io
import json
import random
import zlib

import numpy as np
import pytest
import tifffile
from attack.bytewise import mutated_bytes
from attack.jsonwise import mutated_text
from attack.making import make_strange, specimens
from attack.nonsense import mutated_file
from attack.specimens import PICTURES, TIFFS, contents_of, npy, written_by_runs
from attack.structures import mutated_png, mutated_tiff
from attack.traps import Traps, bombs

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


def test_every_kind_of_file_has_a_specimen():
    wanted = {
        "npy",
        "table",
        "tiff",
        "picture",
        "hdf5",
        "zarr",
        "model",
        "checkpoint",
        "codes",
        "part",
    }
    assert set(specimens()) == wanted


def test_bytes_are_changed_here_and_there():
    content = npy()
    changed = [mutated_bytes(random.Random(seed), content, [content[::-1]]) for seed in range(200)]
    assert len(set(changed)) > 190
    assert {len(one) > len(content) for one in changed} == {True, False}


def test_texts_of_json_are_mostly_json():
    value, parsed = {"a": [1, 2.5, {"b": "c"}], "d": None}, 0
    for seed in range(200):
        try:
            json.loads(mutated_text(random.Random(seed), value))
            parsed += 1
        except (ValueError, RecursionError):
            continue
    assert 100 < parsed < 200


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


def test_chunks_of_png_have_right_checksums(traps):
    for seed in range(50):
        content = mutated_png(random.Random(seed), PICTURES["png"](), traps)
        place = 8
        while place < len(content):
            length = int.from_bytes(content[place : place + 4], "big")
            body = content[place + 4 : place + 8 + length]
            assert zlib.crc32(body) == int.from_bytes(content[place + 8 + length : place + 12 + length], "big")
            place += 12 + length


def test_tags_of_tiff_change_and_the_rest_stays(traps):
    content = TIFFS["tiff"]()
    changed = [mutated_tiff(random.Random(seed), content, traps) for seed in range(50)]
    assert all(len(one) == len(content) and one[:8] == content[:8] for one in changed)
    assert len(set(changed)) > 30
    assert tifffile.TiffFile(io.BytesIO(content)).pages[0].shape == (8, 9)


def test_bombs_are_small_and_become_large():
    assert all(len(packed) < 2**21 for packed in bombs().values())
    for name, stream in {"zlib": zlib.decompressobj(), "gzip": zlib.decompressobj(wbits=31)}.items():
        assert len(stream.decompress(bombs()[name], 2**22)) == 2**22
    assert zlib.decompressobj().decompress(bombs()["zlib"], 2**25) == bytes(2**25)


def test_the_pickle_would_leave_a_mark(traps):
    assert not traps.sprung
    np.lib.format.read_array(io.BytesIO(_object_array(traps.pickle)), allow_pickle=True)
    assert traps.sprung


def _object_array(pickled):
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + pickled
