"""Tests of what a zarr store may ask for: known codecs, numbers, chunks of a size, and no files but its own."""

import json
import os
import pickle
import shutil
import zipfile

import numpy as np
import pytest

from pointillist.data.sources import CropSource, ZarrSource
from pointillist.data.sources.survey import survey
from pointillist.data.sources.zarr_files import check_array, zarr_files
from pointillist.errors import UnreadableFileError

zarr = pytest.importorskip("zarr")

NEW = int(zarr.__version__.partition(".")[0]) >= 3
FORMATS = (2, 3) if NEW else (2,)
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


def store(folder, form, **changed):
    """A store without a chunk, so that all samples are zero."""
    name, plain = {2: (".zarray", V2), 3: ("zarr.json", V3)}[form]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps({**plain, **changed}))
    return folder


def written(path, form, stack=STACK, inside=""):
    how = {"zarr_format": form} if NEW else {}
    array = zarr.open_array(str(path), path=inside, mode="w", shape=stack.shape, chunks=(1, 5, 6), dtype="f4", **how)
    array[:] = stack
    return path


def refused(path, words, inside=""):
    with pytest.raises(UnreadableFileError, match=words) as found:
        ZarrSource(path, inside).read(0)
    assert path.name in str(found.value)


@pytest.mark.parametrize("form", FORMATS)
def test_both_formats_are_read_from_folders_and_zip_files(tmp_path, form):
    path = written(tmp_path / "a.zarr", form)
    written(tmp_path / "g.zarr", form, STACK[:2], "group/images")
    shutil.make_archive(str(tmp_path / "a"), "zip", path)
    shutil.make_archive(str(tmp_path / "g"), "zip", tmp_path / "g.zarr")
    for source in (ZarrSource(path), ZarrSource(tmp_path / "a.zip")):
        np.testing.assert_array_equal(source.read(3), STACK[3])
    for name in ("g.zarr", "g.zip"):
        assert len(ZarrSource(tmp_path / name)) == len(ZarrSource(tmp_path / name, "group/images")) == 2
        refused(tmp_path / name, "no array 'images' in it; it holds group/images", "images")


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
    refused(path, "only arrays of numbers" if dtype == "|O" else "codec 'pickle', which is not read")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"filters": [{"id": "json2"}]},
        {"filters": [{"id": "delta", "dtype": "|O"}]},
        {"filters": [{"id": "vlen-array", "dtype": "<f4"}]},
        {"filters": [{"id": "fixedscaleoffset", "scale": 0, "offset": 0, "dtype": "<f4"}]},
        {"filters": [{"id": "fixedscaleoffset", "scale": 1, "offset": "1", "dtype": "<f4"}]},
        {"compressor": {"id": "unheard_of"}},
        {"compressor": "zstd"},
        {"compressor": {}},
        {"filters": 3},
        {"dtype": [["a", "<f4"]]},
        {"dtype": "|V8"},
        {"dtype": "|S4"},
        {"shape": "many"},
        {"chunks": None},
    ],
)
def test_other_metadata_of_format_2_are_refused(tmp_path, changed):
    refused(store(tmp_path / "a.zarr", 2, **changed), "cannot read")


@pytest.mark.parametrize(
    "changed",
    [
        {"codecs": [*V3["codecs"], {"name": "numcodecs.pickle", "configuration": {}}]},
        {"codecs": [*V3["codecs"], {"name": "pickle"}]},
        {"codecs": [*V3["codecs"], "pickle"]},
        {"codecs": [*V3["codecs"], {"name": "numcodecs.zlib", "configuration": {"id": "pickle"}}]},
        {
            "chunk_grid": SHARDED["chunk_grid"],
            "codecs": [
                {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 9, 11], "codecs": ["pickle"]}},
            ],
        },
        {"chunk_grid": SHARDED["chunk_grid"], "codecs": [*SHARDED["codecs"], {"name": "gzip"}]},
        {"data_type": "object"},
        {"data_type": {"name": "struct"}},
        {"data_type": "string"},
    ],
)
def test_other_metadata_of_format_3_are_refused(tmp_path, changed):
    path = store(tmp_path / "a.zarr", 3, **changed)
    with pytest.raises((ValueError, TypeError)):
        check_array(zarr_files(path), "", 3)
    if NEW:
        refused(path, "cannot read")


@pytest.mark.skipif(not NEW, reason="zarr 2 does not read format 3")
def test_shards_and_known_codecs_are_read(tmp_path):
    assert ZarrSource(store(tmp_path / "s.zarr", 3, **SHARDED)).read(0).shape == (9, 11)
    zipped = [*V3["codecs"], {"name": "gzip", "configuration": {"level": 1}}, {"name": "crc32c"}]
    assert ZarrSource(store(tmp_path / "c.zarr", 3, codecs=zipped)).read(0).shape == (9, 11)


@pytest.mark.parametrize("form", FORMATS)
def test_claims_and_chunks_are_limited_before_anything_is_read(tmp_path, form):
    def shaped(name, shape, chunk):
        grid = {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}}}
        return store(tmp_path / name, form, shape=shape, **({"chunks": chunk} if form == 2 else grid))

    refused(shaped("many.zarr", [2**40, 8, 8], [64, 8, 8]), "it claims 281,474,976,710,656 bytes")
    refused(shaped("chunk.zarr", [4, 32, 32], [1, 2**15, 2**15]), "its chunks have 4,294,967,296 bytes each")
    few = ZarrSource(shaped("few.zarr", [2, 64, 64], [1, 2**11, 2**11]))
    assert survey(CropSource(few, 5, (32, 32))).reading == 2 * 2**24


def test_no_file_outside_of_the_store_is_read(tmp_path):
    inner = store(tmp_path / "a.zarr" / "images", 2)
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(9 * 11 * 4))
    for inside in ("../a.zarr/images", "images/../images", "/images", "images/"):
        refused(tmp_path / "a.zarr", "no path inside of a store", inside)
    (inner / "0.0.0").symlink_to(secret)
    refused(tmp_path / "a.zarr", "leads out of the store", "images")
    (inner / "0.0.0").unlink()
    (inner / "copy").write_bytes(bytes(9 * 11 * 4))
    (inner / "0.0.0").symlink_to("copy")
    assert ZarrSource(tmp_path / "a.zarr", "images").read(0).shape == (9, 11)
    store(tmp_path / "outside", 2)
    (tmp_path / "a.zarr" / "linked").symlink_to(tmp_path / "outside")
    refused(tmp_path / "a.zarr", "leads out of the store", "linked")
    assert len(ZarrSource(tmp_path / "a.zarr")) == 4  # links to folders are not listed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("name", [".zarray", ".zattrs", "0.0.0"])
def test_pipes_in_a_store_are_refused(tmp_path, name):
    path = store(tmp_path / "a.zarr", 2)
    (path / name).unlink(missing_ok=True)
    os.mkfifo(path / name)
    refused(path, "a pipe, not a file")


def test_metadata_that_are_none_are_refused(tmp_path):
    path = store(tmp_path / "a.zarr", 2)
    for text in ("", "[", "[]", "3", "[" * 100_000, "\xff", "{}"):
        (path / ".zarray").write_text(text, encoding="latin-1")
        refused(path, "cannot read")
    (path / ".zarray").write_bytes(b" " * (2**24 + 1))
    refused(path, "longer than 16,777,216 bytes")


def test_files_in_a_zip_store_have_a_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr("pointillist.data.damage.LARGEST_CHUNK", 5000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(".zarray", json.dumps(V2))
        file.writestr("0.0.0", bytes(9 * 11 * 4))
    assert ZarrSource(tmp_path / "a.zip").read(0).shape == (9, 11)
    with zipfile.ZipFile(tmp_path / "a.zip", "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("1.0.0", bytes(5001))
    refused(tmp_path / "a.zip", "its chunks have 5,001 bytes")
