"""Tests of the model file: exact round trips, strict metadata and plain errors for every damaged file."""

import errno
import json
import math
import pickle
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from pointillist.errors import ModelFileError
from pointillist.storage import StoredModel, load_model, save_model

HEADER = {"format": "pointillist-model", "format_version": 1, "metadata": {}}


@pytest.fixture
def filters():
    return np.random.default_rng(0).standard_normal((4, 5, 5)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f8"])
def test_round_trip_is_exact(tmp_path, filters, dtype):
    path = tmp_path / "model.safetensors"
    filters = filters.astype(dtype)
    arrays = {
        "gram": np.random.default_rng(1).random((3, 3)),
        "count": np.array(7),
        "mask": np.eye(2, dtype=bool),
    }
    metadata = {"lam": 0.1, "steps": 12, "name": "Größe", "nested": {"list": [1, 2.5, None, True]}}
    save_model(path, filters, metadata, arrays)
    model = load_model(path)
    assert isinstance(model, StoredModel)
    assert model.filters.dtype == filters.dtype.newbyteorder("=")
    np.testing.assert_array_equal(model.filters, filters)
    assert model.metadata == metadata
    assert set(model.arrays) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(model.arrays[name], array)
        assert model.arrays[name].dtype == array.dtype
        assert model.arrays[name].shape == array.shape
    age = datetime.now(UTC) - datetime.fromisoformat(model.created)
    assert abs(age.total_seconds()) < 60
    assert model.pointillist_version


def test_memory_order_does_not_matter_and_the_result_is_writable(tmp_path, filters):
    save_model(tmp_path / "m", np.asfortranarray(filters)[:, ::-1], {}, {"t": filters.T})
    model = load_model(tmp_path / "m")
    np.testing.assert_array_equal(model.filters, filters[:, ::-1])
    np.testing.assert_array_equal(model.arrays["t"], filters.T)
    model.filters[0] = 0


def test_numpy_values_and_generator_states_become_plain_json(tmp_path, filters):
    state = np.random.default_rng(2).bit_generator.state
    given = {
        "a": np.float32(0.5),
        "b": np.int64(3),
        "c": np.arange(3),
        "d": (1, 2),
        "e": np.bool_(True),
        "state": state,
    }
    save_model(tmp_path / "m", filters, given)
    metadata = load_model(tmp_path / "m").metadata
    assert metadata == {"a": 0.5, "b": 3, "c": [0, 1, 2], "d": [1, 2], "e": True, "state": state}


def test_other_tools_can_read_the_file(tmp_path, filters):
    save_model(tmp_path / "m.safetensors", filters, {"lam": 1})
    np.testing.assert_array_equal(load_file(tmp_path / "m.safetensors")["filters"], filters)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"loss": math.nan}, r'metadata\["loss"\] is nan'),
        ({"a": {"b": [0, np.inf]}}, r'metadata\["a"\]\["b"\]\[1\] is inf'),
        ({1: 2}, "the key 1"),
        ({"path": Path("x")}, r'metadata\["path"\] is a .*Path'),
        ({"z": 1j}, "complex"),
    ],
)
def test_metadata_that_json_cannot_hold(tmp_path, filters, metadata, message):
    with pytest.raises(ValueError, match=message):
        save_model(tmp_path / "m", filters, metadata)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"filters": np.ones((2, 3), dtype=int)}, "filters has type int64"),
        ({"filters": np.full((2, 3), np.nan)}, "filters hold NaN"),
        ({"filters": np.ones(3)}, "filters must have shape"),
        ({"filters": np.ones((0, 3))}, "filters must have shape"),
        ({"arrays": {"filters": np.ones(2)}}, "reserved name"),
        ({"arrays": {"text": np.array(["a"])}}, r'arrays\["text"\] has type'),
        ({"arrays": {"things": np.array([None])}}, r'arrays\["things"\] has type object'),
    ],
)
def test_arrays_that_cannot_be_stored(tmp_path, filters, change, message):
    with pytest.raises(ValueError, match=message):
        save_model(tmp_path / "m", **({"filters": filters, "metadata": {}} | change))
    assert not list(tmp_path.iterdir())


def test_failing_write_keeps_the_old_model(tmp_path, filters, monkeypatch):
    path = tmp_path / "m"
    save_model(path, filters, {"round": 1})

    def half_written(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", half_written)
        with pytest.raises(OSError, match=r"No space left on device.*m"):
            save_model(path, filters, {"round": 2})
    assert load_model(path).metadata == {"round": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["m"]


def test_missing_folder_and_missing_file(tmp_path, filters):
    with pytest.raises(FileNotFoundError, match="create it first"):
        save_model(tmp_path / "missing" / "m", filters, {})
    with pytest.raises(FileNotFoundError, match="no such model file"):
        load_model(tmp_path / "m")


def refused(path) -> str:
    with pytest.raises(ModelFileError, match=path.name) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_truncation_is_refused(tmp_path, filters):
    path = tmp_path / "model"
    save_model(path, filters, {"lam": 1})
    whole = path.read_bytes()
    for length in [*range(0, 40), *range(40, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert "truncated" in refused(path)
    path.write_bytes(whole + b"\0")
    refused(path)


def test_random_bytes_pickles_and_folders_are_refused(tmp_path):
    path = tmp_path / "model"
    generator = np.random.default_rng(3)
    for length in (1, 8, 100, 5000):
        path.write_bytes(generator.bytes(length))
        refused(path)
    path.write_bytes(pickle.dumps({"filters": np.ones((2, 2))}))
    refused(path)
    path.unlink()
    path.mkdir()
    assert "not a file" in refused(path)


def test_flipped_bytes_never_escape_as_another_error(tmp_path, filters):
    path = tmp_path / "model"
    save_model(path, filters, {"lam": 1})
    whole = path.read_bytes()
    generator = np.random.default_rng(4)
    for position in generator.integers(0, len(whole), 200):
        damaged = bytearray(whole)
        damaged[position] ^= int(generator.integers(1, 256))
        path.write_bytes(damaged)
        try:
            load_model(path)
        except ModelFileError as error:
            assert "\n" not in str(error)  # noqa: PT017


def with_header(path, header, tensors=None):
    tensors = {"filters": np.ones((2, 3), dtype=np.float32)} if tensors is None else tensors
    save_file(tensors, path, None if header is None else {"pointillist": header})
    return path


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "not one written by pointillist"),
        ("{", "not JSON"),
        ("[1]", "do not say"),
        (json.dumps(HEADER | {"format": "other"}), "do not say"),
        (json.dumps(HEADER | {"format_version": 2}), "format version 2.*upgrade"),
        (json.dumps(HEADER | {"format_version": "1"}), "format_version is '1'"),
        (json.dumps(HEADER | {"format_version": True}), "format_version is True"),
        (json.dumps(HEADER | {"format_version": 0}), "format_version is 0"),
        (json.dumps(HEADER | {"metadata": 3}), "metadata are missing"),
    ],
)
def test_foreign_and_newer_headers(tmp_path, header, message):
    with pytest.raises(ModelFileError, match=message):
        load_model(with_header(tmp_path / "model", header))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"other": np.ones(2)}, "holds no filters"),
        ({"filters": np.ones((2, 2), dtype=np.int32)}, "filters has type int32"),
        ({"filters": np.full((2, 2), np.inf)}, "filters hold NaN or infinity"),
        ({"filters": np.ones(2)}, "filters must have shape"),
    ],
)
def test_unusable_filters_in_the_file(tmp_path, tensors, message):
    with pytest.raises(ModelFileError, match=message):
        load_model(with_header(tmp_path / "model", json.dumps(HEADER), tensors))
