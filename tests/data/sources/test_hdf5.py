"""Tests of what an HDF5 file may lead to: itself, and in bounded time."""

import numpy as np
import pytest
from attack.traps import bombs

from pointillist.data.sources import Hdf5Source
from pointillist.errors import UnreadableFileError

h5py = pytest.importorskip("h5py")

STACK = np.random.default_rng(0).random((4, 9, 11)).astype(np.float32)


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "elsewhere" / "other.h5"
    path.parent.mkdir()
    with h5py.File(path, "w") as file:
        file["images"] = STACK
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.h5"


def refused(path, name, words):
    with pytest.raises(UnreadableFileError, match=words) as found:
        Hdf5Source(path, name).read(0)
    assert path.name in str(found.value)


def test_files_lead_to_no_other_file(path, other, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(64)))
    with h5py.File(path, "w") as file:
        file["images"] = h5py.ExternalLink("elsewhere/other.h5", "/images")
        file["group"] = h5py.ExternalLink(str(other), "/")
        file["soft"] = h5py.SoftLink("/group/images")
    for name in ("images", "group/images", "soft"):
        refused(path, name, r"leads to another file, .*other\.h5")
    refused(path, "", "it holds none")
    with h5py.File(path, "a") as file:
        file.create_dataset("stored", (8, 8), np.uint8, external=[(str(secret), 0, 64)])
    for name in ("stored", ""):
        refused(path, name, "lie in other datasets or files")


def virtual(path, source, name):
    layout = h5py.VirtualLayout(STACK.shape, np.float32)
    layout[:] = h5py.VirtualSource(source, name, STACK.shape)
    with h5py.File(path, "a") as file:
        file.create_virtual_dataset("virtual", layout)


def test_virtual_datasets_are_refused(path, other):
    virtual(path, str(other), "images")
    for name in ("virtual", ""):
        refused(path, name, "lie in other datasets or files")


def test_knotted_links_end_at_once(path):
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(30):
            below = group.create_group("a")
            group["b"] = below
            group = below
        group["images"] = STACK
        group["root"] = file["/"]
        file["self"] = h5py.SoftLink("/self")
        for level in range(40):
            file[f"s{level}"] = h5py.SoftLink(f"/s{level + 1}/s{level + 1}" if level < 39 else "/")
    assert len(Hdf5Source(path)) == 4
    assert len(Hdf5Source(path, "b/" * 30 + "root/" + "a/" * 30 + "images")) == 4
    for name in ("self", "s0"):
        refused(path, name, "more than 10,000 links")


def test_claims_and_chunks_are_limited_before_anything_is_read(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("many", (2**40, 8, 8), np.float32, chunks=(64, 8, 8))
        file.create_dataset("large", (2**18, 2**18), np.uint8, chunks=(2**12, 2**12))
    refused(path, "many", "it claims 281,474,976,710,656 bytes of samples")
    refused(path, "large", "it claims 68,719,476,736 bytes of samples")
    path = path.with_name("b.h5")
    with h5py.File(path, "w") as file:
        file.create_dataset("chunk", (2**15, 2**16), np.uint8, chunks=(2**15, 2**16))
        file["stored"] = np.zeros(2**20, np.uint8)
    refused(path, "chunk", "its chunks have 2,147,483,648 bytes each, at most 1,073,741,824")


def test_what_is_no_dataset_is_named(path):
    with h5py.File(path, "w") as file:
        file["images"] = STACK
        file["type"] = np.dtype("f4")
        file["dangling"] = h5py.SoftLink("/nothing")
        for i in range(25):
            file[f"d{i:02d}"] = np.zeros(3)
    for name in ("type", "dangling", "images/deeper", "nothing"):
        refused(path, name, rf"no array '{name}' in it; it holds d00, .* and 6 more")


@pytest.mark.parametrize(
    "how", [{}, {"shuffle": True}, {"shuffle": True, "fletcher32": True}, {"compression": "lzf"}, {"compression": None}]
)
@pytest.mark.parametrize("dtype", ["f4", ">f8", "u2"])
def test_packed_chunks_are_read(path, dtype, how):
    with h5py.File(path, "w") as file:
        data = (1000 * STACK).astype(dtype)
        settings = {"compression": "gzip", "chunks": (2, 4, 7), "fillvalue": 7, **how}
        dataset = file.create_dataset("images", (5, 9, 11), dtype, **settings)
        dataset[:4] = data
    read = Hdf5Source(path).read(1)
    scale = 65535 if dtype == "u2" else 1
    np.testing.assert_allclose(read, data[1].astype("f8") / scale, rtol=1e-6)
    np.testing.assert_array_equal(Hdf5Source(path).window(1, (3, 2), (5, 8)), read[3:8, 2:10])
    np.testing.assert_allclose(Hdf5Source(path).read(4), 7 / scale, rtol=1e-6)


def test_bombs_are_not_unpacked(path):
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("images", data=STACK, chunks=(1, 9, 11), compression="gzip")
        dataset.id.write_direct_chunk((0, 0, 0), bombs()["zlib"][:700])
        dataset.id.write_direct_chunk((1, 0, 0), bombs()["zlib"])
    source = Hdf5Source(path, "images")
    with pytest.raises(UnreadableFileError, match=r"a\.h5.*does not unpack into the 400 bytes of a chunk"):
        source.read(0)
    with pytest.raises(UnreadableFileError, match=r"a\.h5.*far more than the 400 of a chunk"):
        source.read(1)
    np.testing.assert_array_equal(source.read(2), STACK[2])
