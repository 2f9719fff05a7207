"""Tests of packed chunks: whatever a chunk becomes, no more of it is unpacked than its array has room for."""

import bz2
import gzip
import importlib.metadata
import json
import lzma
import tracemalloc
import zlib

import imagecodecs
import numpy as np
import pytest
from attack.specimens import STACK, zarr_store, zipped
from attack.traps import bombs

from pointillist.data import packed
from pointillist.data.packed import CheckedArray, check_packed, check_stored
from pointillist.data.sources import Hdf5Source, ZarrSource
from pointillist.errors import UnreadableFileError

ROOM = 2**16
PACK = {
    "zlib": zlib.compress,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "lzma": lzma.compress,
    "zstd": imagecodecs.zstd_encode,
    "lz4": lambda content: len(content).to_bytes(4, "little") + b"...",
    "blosc": lambda content: b"\2\1\1\4" + len(content).to_bytes(4, "little") + b"...",
}


@pytest.fixture
def little_harmless(monkeypatch):
    """Small chunks count as large ones, so that the tests are quick."""
    monkeypatch.setattr(packed, "_HARMLESS", ROOM)


@pytest.mark.usefixtures("little_harmless")
@pytest.mark.parametrize("codec", PACK)
def test_chunks_that_fit_pass_and_others_do_not(codec):
    check_packed(codec, PACK[codec](bytes(ROOM)), ROOM)
    check_packed(codec, PACK[codec](b"abc"), 3)
    with pytest.raises(ValueError, match=r"unpacks to far more than the 1,000 of a chunk"):
        check_packed(codec, PACK[codec](bytes(ROOM + 1)), 1000)


@pytest.mark.parametrize("codec", bombs())
def test_bombs_are_not_unpacked(codec):
    bombs()
    tracemalloc.start()
    with pytest.raises(ValueError, match="far more"):
        check_packed(codec, bombs()[codec], 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


@pytest.mark.usefixtures("little_harmless")
@pytest.mark.parametrize("codec", ["zlib", "gzip", "bz2", "lzma"])
def test_several_streams_count_together(codec):
    """Zlib's format knows one stream; behind it lies what a checksum may have left."""
    streams = PACK[codec](bytes(ROOM // 2 + 2)) * 2
    if codec == "zlib":
        check_packed(codec, streams, 1000)
    else:
        with pytest.raises(ValueError, match="far more"):
            check_packed(codec, streams, 1000)


@pytest.mark.parametrize("codec", [name for name in PACK if name not in ("lz4", "blosc")])
@pytest.mark.parametrize("content", [b"", b"\0", b"\x28\xb5\x2f\xfd", b"\x78\x9c" + bytes(10**5)])
def test_damage_is_left_to_the_reader(codec, content):
    check_packed(codec, content, 1000)
    check_packed(codec, PACK[codec](bytes(2000))[:-5] + content, 1000)


def test_zstandard_says_its_size_or_is_tried():
    frames = PACK["zstd"](bytes(2**25 + 2)) * 2
    with pytest.raises(ValueError, match="far more"):
        check_packed("zstd", frames, 1000)
    # A frame that does not say its size: magic number, no flags, a window, and one block of repeated zeros.
    block = (2**17 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (2**17 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    silent = b"\x28\xb5\x2f\xfd\x00\x58" + block * 600 + last
    with pytest.raises(ValueError, match="far more"):
        check_packed("zstd", silent, 1000)
    check_packed("zstd", silent[:6] + last, 1000)


@pytest.mark.usefixtures("little_harmless")
def test_sizes_of_files_are_limited():
    check_stored(ROOM, 1000)
    with pytest.raises(ValueError, match="stored in"):
        check_stored(ROOM + 1, 1000)


def test_only_chunks_that_are_read_are_checked_each_once():
    class Array:
        shape, dtype, chunks = (3, 8, 9), np.dtype("f4"), (1, 4, 9)

        def __getitem__(self, place):
            return STACK[place]

    seen = []
    array = CheckedArray(Array(), Array.chunks, seen.append)
    for place in (1, (1,), (1, slice(0, 4)), (1, ..., slice(2, 3))):
        np.testing.assert_array_equal(array[place], STACK[place])
    assert seen == [(1, 0, 0), (1, 1, 0)]
    np.testing.assert_array_equal(array[-1, 3::-1], STACK[-1, 3::-1])
    assert seen[2:] == [(2, 0, 0)]
    assert array[0, 3:3].size == 0
    assert len(seen) == 3
    array[2, 5:6]
    array[()]
    assert sorted(seen) == [(i, j, 0) for i in range(3) for j in range(2)]


@pytest.fixture(params=["folder", "zip"])
def store(tmp_path, request):
    """A store of zarr, as a folder and as a zip file."""
    pytest.importorskip("zarr")

    def write(files):
        path = tmp_path / ("a.zarr" if request.param == "folder" else "a.zip")
        if request.param == "zip":
            path.write_bytes(zipped(files))
            return ZarrSource(path)
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
        return ZarrSource(path)

    return write


def _needs_third_format():
    """Skip where the installed zarr knows the second format only."""
    if int(importlib.metadata.version("zarr").partition(".")[0]) < 3:
        pytest.skip("zarr 2 reads no stores of the third format")


@pytest.mark.parametrize("form", [2, 3])
def test_bombs_in_zarr_stores(store, form):
    if form == 3:
        _needs_third_format()
    files = zarr_store(form)
    first, codec = ("0.0.0", "zlib") if form == 2 else ("c/0/0/0", "gzip")
    source = store({**files, first: bombs()[codec]})
    with pytest.raises(UnreadableFileError, match=r"a\.z.*unpacks to far more than the 288 of a chunk"):
        source.read(0)
    np.testing.assert_array_equal(source.read(1), STACK[1])


def test_bombs_in_shards(store):
    _needs_third_format()
    files = zarr_store(3)
    metadata = json.loads(files.pop("zarr.json"))
    inside = {"chunk_shape": [1, 8, 9], "codecs": metadata["codecs"], "index_codecs": metadata["codecs"][:1]}
    metadata["codecs"] = [{"name": "sharding_indexed", "configuration": inside}]
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = [3, 8, 9]
    for parts in (list(files.values()), [*list(files.values())[:2], bombs()["gzip"]]):
        begins = np.cumsum([0, *map(len, parts)])[:3]
        index = np.stack([begins, [len(part) for part in parts]], axis=1).astype("<u8").tobytes()
        source = store({"zarr.json": json.dumps(metadata).encode(), "c/0/0/0": b"".join(parts) + index})
        if len(parts[2]) < 1000:
            np.testing.assert_array_equal(source.read(2), STACK[2])
        else:
            with pytest.raises(UnreadableFileError, match="unpacks to far more"):
                source.read(2)


def test_what_is_packed_twice_is_refused(store):
    files = zarr_store(2)
    metadata = json.loads(files[".zarray"])
    with pytest.raises(UnreadableFileError, match="packed by zlib and then changed again"):
        store({**files, ".zarray": json.dumps({**metadata, "filters": [{"id": "zlib"}]}).encode()})


def test_bombs_in_hdf5_files(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("images", data=STACK, chunks=(1, 8, 9), compression="gzip")
        dataset.id.write_direct_chunk((0, 0, 0), bombs()["zlib"])
        layout = h5py.VirtualLayout((3, 8, 9), "f4")
        layout[...] = h5py.VirtualSource(".", "images", (3, 8, 9))
        file.create_virtual_dataset("virtual", layout)
    source = Hdf5Source(tmp_path / "a.h5", "images")
    with pytest.raises(UnreadableFileError, match=r"a\.h5.*unpacks to far more than the 288 of a chunk"):
        source.read(0)
    np.testing.assert_array_equal(source.read(1), STACK[1])
    with pytest.raises(UnreadableFileError, match="unpacks to far more"):
        Hdf5Source(tmp_path / "a.h5", "virtual")
