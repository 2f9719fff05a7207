"""Tests of arrays in chunks: what h5py and zarr write is read, codecs and sizes are limited, no other file is opened."""

import importlib.metadata
import json
import os
import pickle
import shutil
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from attack.specimens import zarr_store, zipped
from attack.traps import bombs

from pointillist.data.sources import Hdf5Source, ZarrSource
from pointillist.data.sources.stacks import ChunkedArray
from pointillist.errors import UnreadableFileError

h5py = pytest.importorskip("h5py")

STACK = np.random.default_rng(0).random((4, 9, 11)).astype(np.float32)
V2 = {
    "zarr_format": 2, "shape": [4, 9, 11], "chunks": [1, 9, 11], "dtype": "<f4", "compressor": None, "filters": None,
    "fill_value": 0, "order": "C",
}  # fmt: skip
V3 = {
    "zarr_format": 3, "node_type": "array", "shape": [4, 9, 11], "data_type": "float32", "fill_value": 0, "attributes": {},
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 9, 11]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}  # fmt: skip
SHARDED = {
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 9, 11]}},
    "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 9, 11], "codecs": V3["codecs"]}}],
}


def refused(kind, path, inside, words):
    with pytest.raises(UnreadableFileError, match=words) as found:
        kind(path, inside).read(0)
    assert path.name in str(found.value)


def test_unpacked_chunks_are_kept_for_the_windows_beside():
    """Each of many windows once unpacked its chunks again."""
    loads = []

    def load(number):
        loads.append(number)
        return None if number[0] == 3 else np.full((64, 2**14), 2.0 * number[0] + number[1], np.float32)

    array = ChunkedArray((256, 2**15), (64, 2**14), np.dtype(np.float32), 7, load)  # chunks of 4 MB
    for first in range(0, 64, 8):
        for row in (first, first + 64):
            np.testing.assert_array_equal(
                array[row : row + 8, 2**14 - 1 : 2**14 + 1], [[row // 64 * 2, row // 64 * 2 + 1]] * 8
            )
    assert loads == [(0, 0), (0, 1), (1, 0), (1, 1)]
    # A fifth one: that used longest ago goes, which is not the one just used.
    assert [array[row : row + 1, :1].item() for row in (0, 128)] == [0, 4]
    loads.clear()
    np.testing.assert_array_equal(array[:1, :][:, [0, -1]], [[0, 1]])
    assert loads == [(0, 1)]
    assert array[200:201, :1] == 7


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.h5"


def test_files_lead_to_no_other_file(path, tmp_path):
    secret, other = tmp_path / "secret", tmp_path / "elsewhere" / "other.h5"
    secret.write_bytes(bytes(range(64)))
    other.parent.mkdir()
    with h5py.File(other, "w") as file:
        file["images"] = STACK
    with h5py.File(path, "w") as file:
        file["images"] = h5py.ExternalLink("elsewhere/other.h5", "/images")
        file["group"] = h5py.ExternalLink(str(other), "/")
        file["soft"] = h5py.SoftLink("/group/images")
    for name in ("images", "group/images", "soft"):
        refused(Hdf5Source, path, name, r"leads to another file, .*other\.h5")
    refused(Hdf5Source, path, "", "it holds none")
    with h5py.File(path, "a") as file:
        file.create_dataset("stored", (8, 8), np.uint8, external=[(str(secret), 0, 64)])
        layout = h5py.VirtualLayout(STACK.shape, np.float32)
        layout[:] = h5py.VirtualSource(str(other), "images", STACK.shape)
        file.create_virtual_dataset("virtual", layout)
    for name in ("stored", "virtual"):
        refused(Hdf5Source, path, name, "lie in other datasets or files")


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
        refused(Hdf5Source, path, name, "more than 10,000 links")


def test_claims_and_chunks_of_hdf5_are_limited(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("many", (2**40, 8, 8), np.float32, chunks=(64, 8, 8))
        file.create_dataset("large", (2**18, 2**18), np.uint8, chunks=(2**12, 2**12))
    refused(Hdf5Source, path, "many", "it claims 281,474,976,710,656 bytes of samples")
    refused(Hdf5Source, path, "large", "it claims 68,719,476,736 bytes of samples")
    path = path.with_name("b.h5")
    with h5py.File(path, "w") as file:
        file.create_dataset("chunk", (2**15, 2**16), np.uint8, chunks=(2**15, 2**16))
        file["stored"] = np.zeros(2**20, np.uint8)
    refused(Hdf5Source, path, "chunk", "its chunks have 2,147,483,648 bytes each, at most 1,073,741,824")


def test_what_is_no_dataset_is_named(path):
    with h5py.File(path, "w") as file:
        file["images"] = STACK
        file["type"] = np.dtype("f4")
        file["dangling"] = h5py.SoftLink("/nothing")
        for i in range(25):
            file[f"d{i:02d}"] = np.zeros(3)
    for name in ("type", "dangling", "images/deeper", "nothing"):
        refused(Hdf5Source, path, name, rf"no array '{name}' in it; it holds d00, .*d19, …")


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


def test_bombs_in_hdf5_are_not_unpacked(path):
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


@pytest.fixture
def zarr():
    """The package zarr, of a version that writes both formats."""
    found = pytest.importorskip("zarr")
    if int(importlib.metadata.version("zarr").partition(".")[0]) < 3:
        pytest.skip("zarr 2 writes one format only")
    return found


def store(folder, form, **changed):
    """A store without a chunk, so that all samples are the fill value."""
    name, plain = {2: (".zarray", V2), 3: ("zarr.json", V3)}[form]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps({**plain, **changed}))
    return folder


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("dtype", ["f4", ">f8", "u1", "u2"])
def test_what_zarr_writes_is_read_from_folders_and_zip_files(tmp_path, zarr, form, dtype):
    stack = (255 * STACK).astype(dtype)
    for inside, name in (("", "a"), ("group/images", "g")):
        array = zarr.create_array(
            str(tmp_path / f"{name}.zarr"),
            name=inside,
            shape=stack.shape,
            chunks=(1, 5, 6),
            dtype=dtype,
            zarr_format=form,
        )
        array[:] = stack
        shutil.make_archive(str(tmp_path / name), "zip", tmp_path / f"{name}.zarr")
        for path in (tmp_path / f"{name}.zarr", tmp_path / f"{name}.zip"):
            source = ZarrSource(path, ndim=3)
            scale = {"u1": 255, "u2": 65535}.get(dtype, 1)
            np.testing.assert_allclose(source.read(0), stack.astype("f8") / scale, rtol=1e-6)
            np.testing.assert_array_equal(source.window(0, (1, 3, 2), (2, 4, 9)), source.read(0)[1:3, 3:7, 2:11])
    refused(ZarrSource, tmp_path / "g.zarr", "images", "no array 'images' in it; it holds group/images")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("packer", ["BZ2", "Blosc", "LZ4", "Zlib", "LZMA", "Zstd"])
def test_filters_are_undone_as_zarr_undoes_them(tmp_path, zarr, packer, order):
    numcodecs = pytest.importorskip("numcodecs")
    filters = {"BZ2": [numcodecs.Shuffle(4)], "Blosc": [numcodecs.BitRound(12)]}.get(packer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = zarr.create_array(
            str(tmp_path / "a.zarr"), shape=STACK.shape, chunks=(2, 5, 6), dtype="f4", zarr_format=2, order=order,
            filters=filters, compressors=getattr(numcodecs, packer)(), fill_value=0.5,
        )  # fmt: skip
        array[1:] = STACK[1:]
        np.testing.assert_array_equal(ZarrSource(tmp_path / "a.zarr", ndim=3).read(0), array[:])


@pytest.mark.parametrize("shards", [None, (4, 10, 12)])
@pytest.mark.parametrize("packer", ["gzip", "zstd", "blosc"])
def test_shards_and_codecs_of_format_3(tmp_path, zarr, shards, packer):
    codecs = {"gzip": zarr.codecs.GzipCodec(), "zstd": zarr.codecs.ZstdCodec(), "blosc": zarr.codecs.BloscCodec()}
    array = zarr.create_array(
        str(tmp_path / "a.zarr"), shape=STACK.shape, chunks=(1, 5, 6), shards=shards, dtype="f4", fill_value=np.nan,
        filters=[zarr.codecs.TransposeCodec(order=(2, 0, 1))], compressors=[codecs[packer], zarr.codecs.Crc32cCodec()],
        serializer=zarr.codecs.BytesCodec(endian="big"),
    )  # fmt: skip
    array[1:, :5] = STACK[1:, :5]
    np.testing.assert_array_equal(ZarrSource(tmp_path / "a.zarr", ndim=3).read(0), array[:])


@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("packer", ["zlib", "gzip", "bz2", "lzma"])
def test_bombs_in_zarr_are_not_unpacked(tmp_path, form, packer, kind):
    files = zarr_store(form)
    name, first = (".zarray", "0.0.0") if form == 2 else ("zarr.json", "c/0/0/0")
    metadata = json.loads(files[name])
    if form == 2:
        metadata["compressor"] = {"id": packer}
    else:
        metadata["codecs"][1] = {"name": f"numcodecs.{packer}", "configuration": {}}
    files |= {name: json.dumps(metadata).encode(), first: bombs()[packer][:500]}
    path = tmp_path / f"a.{'zarr' if kind == 'folder' else 'zip'}"
    if kind == "zip":
        path.write_bytes(zipped(files))
    for inner, content in files.items() if kind == "folder" else ():
        (path / inner).parent.mkdir(parents=True, exist_ok=True)
        (path / inner).write_bytes(content)
    source = ZarrSource(path)
    tracemalloc.start()
    with pytest.raises(UnreadableFileError, match=r"a\.z.*(does not unpack into the 304 bytes of a chunk|smaller)"):
        source.read(0)
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()


def test_bombs_in_shards_and_long_chunks(tmp_path):
    files = zarr_store(3)
    metadata = json.loads(files.pop("zarr.json"))
    inside = {"chunk_shape": [1, 8, 9], "codecs": metadata["codecs"], "index_codecs": metadata["codecs"][:1]}
    metadata["codecs"] = [{"name": "sharding_indexed", "configuration": inside}]
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = [3, 8, 9]
    parts = list(files.values())
    path = tmp_path / "a.zarr"
    (path / "c" / "0" / "0").mkdir(parents=True)
    (path / "zarr.json").write_text(json.dumps(metadata))
    for last, words in ((parts[2], None), (bombs()["gzip"][:500], "does not unpack"), (bombs()["gzip"], "longer than")):
        held = [*parts[:2], last]
        begins = np.cumsum([0, *map(len, held)])[:3]
        index = np.stack([begins, [len(part) for part in held]], axis=1).astype("<u8").tobytes()
        (path / "c" / "0" / "0" / "0").write_bytes(b"".join(held) + index)
        source = ZarrSource(path)
        if words is None:
            assert source.read(2).shape == (8, 9)
        else:
            with pytest.raises(UnreadableFileError, match=words):
                source.read(2)
    store(tmp_path / "b.zarr", 2)
    (tmp_path / "b.zarr" / "0.0.0").write_bytes(bytes(2**20))
    refused(ZarrSource, tmp_path / "b.zarr", "", "its 0.0.0 is longer than")
    (tmp_path / "b.zarr" / "0.0.0").write_bytes(bytes(395))
    refused(ZarrSource, tmp_path / "b.zarr", "", "smaller than requested")


@pytest.mark.parametrize("place", [{"compressor": {"id": "pickle"}}, {"filters": [{"id": "delta"}, {"id": "pickle"}]}])
@pytest.mark.parametrize("dtype", ["|O", "<f4"])
def test_no_pickle_of_a_store_is_loaded(tmp_path, place, dtype):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    path = store(tmp_path / "a.zarr", 2, dtype=dtype, **place)
    (path / "0.0.0").write_bytes(pickle.dumps(Harm()))
    # Metadata of the whole store that say otherwise are not believed.
    (tmp_path / "a.zarr" / ".zmetadata").write_text(
        json.dumps({"zarr_consolidated_format": 1, "metadata": {".zarray": V2}})
    )
    refused(ZarrSource, path, "", "only arrays of numbers|codec 'pickle', which is not read")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("form", "changed"),
    [
        (2, {"filters": [{"id": "json2"}]}), (2, {"filters": [{"id": "delta", "dtype": "|O"}]}),
        (2, {"filters": [{"id": "zlib"}], "compressor": {"id": "zlib"}}), (2, {"compressor": {"id": "unheard_of"}}),
        (2, {"compressor": {"name": "zlib", "id": "pickle"}}), (2, {"filters": 3}), (2, {"dtype": [["a", "<f4"]]}),
        (2, {"dtype": "|V8"}), (2, {"dtype": "|S4"}), (2, {"shape": "many"}), (2, {"shape": [4, 9]}),
        (2, {"chunks": None}), (2, {"chunks": [0, 9, 11]}), (2, {"dimension_separator": "../"}),
        (3, {"codecs": [*V3["codecs"], {"name": "numcodecs.pickle", "configuration": {}}]}),
        (3, {"codecs": [*V3["codecs"], "pickle"]}),
        (3, {"codecs": [*V3["codecs"], {"name": "numcodecs.zlib", "configuration": {"id": "pickle"}}]}),
        (3, {"chunk_grid": SHARDED["chunk_grid"], "codecs": [*SHARDED["codecs"], {"name": "gzip"}]}),
        (3, {"data_type": "object"}), (3, {"data_type": {"name": "struct"}}), (3, {"data_type": "string"}),
    ],
)  # fmt: skip
def test_other_metadata_are_refused(tmp_path, form, changed):
    refused(ZarrSource, store(tmp_path / "a.zarr", form, **changed), "", "cannot read")


@pytest.mark.parametrize("value", ["NaN", "-Infinity", None, 3, 1e300, True])
def test_fill_values(tmp_path, value):
    expected = {"NaN": np.nan, "-Infinity": -np.inf, None: 0, 1e300: np.inf}.get(value, value)
    source = ZarrSource(store(tmp_path / "a.zarr", 3, fill_value=value))
    np.testing.assert_array_equal(source.read(1), np.full((9, 11), expected, np.float32))


@pytest.mark.parametrize("form", [2, 3])
def test_claims_and_chunks_of_zarr_are_limited_before_anything_is_read(tmp_path, form):
    def shaped(name, shape, chunk):
        grid = {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}}}
        return store(tmp_path / name, form, shape=shape, **({"chunks": chunk} if form == 2 else grid))

    refused(ZarrSource, shaped("many.zarr", [2**40, 8, 8], [64, 8, 8]), "", "it claims 281,474,976,710,656 bytes")
    refused(
        ZarrSource, shaped("chunk.zarr", [4, 32, 32], [1, 2**15, 2**15]), "", "its chunks have 4,294,967,296 bytes each"
    )


def test_no_file_outside_of_the_store_is_read(tmp_path):
    inner = store(tmp_path / "a.zarr" / "images", 2)
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(9 * 11 * 4))
    for inside in ("../a.zarr/images", "images/../images", "/images", "images/"):
        refused(ZarrSource, tmp_path / "a.zarr", inside, "no path inside of a store")
    (inner / "0.0.0").symlink_to(secret)
    refused(ZarrSource, tmp_path / "a.zarr", "images", "leads out of the store")
    (inner / "0.0.0").unlink()
    (inner / "copy").write_bytes(bytes(9 * 11 * 4))
    (inner / "0.0.0").symlink_to("copy")
    assert ZarrSource(tmp_path / "a.zarr", "images").read(0).shape == (9, 11)
    store(tmp_path / "outside", 2)
    (tmp_path / "a.zarr" / "linked").symlink_to(tmp_path / "outside")
    refused(ZarrSource, tmp_path / "a.zarr", "linked", "leads out of the store")
    assert len(ZarrSource(tmp_path / "a.zarr")) == 4  # links to folders are not listed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("name", [".zarray", "0.0.0"])
def test_pipes_in_a_store_are_refused(tmp_path, name):
    path = store(tmp_path / "a.zarr", 2)
    (path / name).unlink(missing_ok=True)
    os.mkfifo(path / name)
    refused(ZarrSource, path, "", "a pipe, not a file")


def test_metadata_that_are_none_are_refused(tmp_path):
    path = store(tmp_path / "a.zarr", 2)
    for text in ("", "[", "[]", "3", "[" * 100_000, "\xff", "{}"):
        (path / ".zarray").write_text(text, encoding="latin-1")
        refused(ZarrSource, path, "", "cannot read")
    (path / ".zarray").write_bytes(b" " * (2**24 + 1))
    refused(ZarrSource, path, "", "longer than 16,777,216 bytes")


def test_zip_files_that_unpack_to_too_much_are_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(".zarray", json.dumps(V2))
        file.writestr("0.0.0", bytes(2**26))
    refused(ZarrSource, tmp_path / "a.zip", "", "its 0.0.0 is longer than")
