"""Tests of the codec: exact round trips, strict metadata, one module that opens such files, and a plain error for damage."""

import errno
import json
import math
import pickle
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import pointillist as pt
from pointillist.cli import main
from pointillist.errors import FileVersionError, ModelFileError
from pointillist.storage import codec, load_codes_metadata, load_model, read_arrays, save_model, write_arrays

SOURCES = Path(codec.__file__).parents[1]
ARRAYS = {
    "half": np.arange(4, dtype=np.float16),
    "transposed": np.arange(6.0).reshape(3, 2).T,
    "backwards": np.arange(5, dtype=np.float32)[::-1],
    "big endian": np.arange(3, dtype=">f8"),
    "number": np.array(7),
    "flags": np.array([True, False]),
    "none": np.empty((0, 4), np.float32),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


def test_what_was_written_comes_back(path):
    metadata = {"lam": 0.1, "steps": 12, "name": "Größe", "nested": {"list": [1, 2.5, None, True]}}
    write_arrays(path, "thing", metadata, ARRAYS)
    stored = read_arrays(path, "thing")
    assert stored.path == path
    assert stored.metadata == metadata
    assert stored.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(stored.arrays[name], array)
        assert (stored.arrays[name].dtype, stored.arrays[name].shape) == (array.dtype.newbyteorder("="), array.shape)
        assert stored.arrays[name].flags.writeable
    np.testing.assert_array_equal(load_file(path)["transposed"], ARRAYS["transposed"])  # as any other tool reads it
    age = datetime.now(UTC) - datetime.fromisoformat(stored.created)
    assert abs(age.total_seconds()) < 60
    assert stored.pointillist_version == codec.own_version()


def test_numpy_values_and_generator_states_become_plain_json(path):
    state = np.random.default_rng(2).bit_generator.state
    given = {"a": np.float32(0.5), "b": np.int64(3), "c": np.arange(3), "d": (1, 2), "e": np.bool_(True), "s": state}
    write_arrays(path, "thing", given, {})
    assert read_arrays(path, "thing").metadata == {"a": 0.5, "b": 3, "c": [0, 1, 2], "d": [1, 2], "e": True, "s": state}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"loss": math.nan}, "give text, finite numbers"),
        ({"a": {"b": [0, np.inf]}}, "give text, finite numbers"),
        ({(1, 2): 2}, "keys must be"),
        ({"path": Path("x")}, r"it holds a .*Path"),
        ({"z": 1j}, "it holds a complex"),
        ({"names": ["a" * 45_000_000]}, r"at most 45,000,000 fit: store long lists as arrays"),
    ],
)
def test_metadata_that_json_cannot_hold(path, metadata, message):
    with pytest.raises(ValueError, match=message):
        write_arrays(path, "thing", metadata, {})
    assert not path.exists()


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    write_arrays(path, "thing", {"round": 1}, ARRAYS)

    def full(tensors, path, metadata):
        path.write_bytes(b"half")
        raise codec.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(codec, "save_file", full)
    with pytest.raises(OSError, match=r"No space left on device.*file") as caught:
        write_arrays(path, "thing", {"round": 2}, ARRAYS)
    assert caught.value.errno == errno.ENOSPC
    assert read_arrays(path, "thing").metadata == {"round": 1}
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def refused(path) -> str:
    with pytest.raises(ModelFileError, match=path.name) as caught:
        read_arrays(path, "thing")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_truncation_is_refused(path):
    write_arrays(path, "thing", {"lam": 1}, ARRAYS)
    whole = path.read_bytes()
    for length in [*range(0, 40), *range(40, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert "truncated" in refused(path)
    path.write_bytes(whole + b"\0")
    refused(path)


def test_every_changed_byte_is_refused(path):
    """But for the padding behind the header, which means nothing."""
    write_arrays(path, "thing", {"lam": 1}, ARRAYS)
    whole = path.read_bytes()
    end = 8 + int.from_bytes(whole[:8], "little")
    padding = range(len(whole[:end].rstrip(b" ")), end)
    generator = np.random.default_rng(4)
    for position in set(range(len(whole))) - set(padding):
        damaged = bytearray(whole)
        damaged[position] ^= int(generator.integers(1, 256))
        path.write_bytes(damaged)
        refused(path)


def test_random_bytes_pickles_and_folders_are_refused(path):
    generator = np.random.default_rng(3)
    for length in (1, 8, 100, 5000):
        path.write_bytes(generator.bytes(length))
        refused(path)
    path.write_bytes(pickle.dumps({"filters": np.ones((2, 2))}))
    refused(path)
    path.unlink()
    path.mkdir()
    assert "not a file" in refused(path)


def test_exchanged_arrays_are_refused(path):
    """The arrays are part of the checksum with their names, types and shapes."""
    write_arrays(path, "thing", {}, {"a": np.zeros(4), "b": np.zeros(4)})
    with codec.safe_open(path, framework="numpy") as file:
        entries = file.metadata()
    for other in ({"a": np.zeros((2, 2)), "b": np.zeros(4)}, {"a": np.zeros(4), "c": np.zeros(4)}):
        save_file(other, path, entries)
        assert "checksum" in refused(path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "not one written by pointillist"),
        ("{", "is damaged"),
        ("[1]", "not one written by pointillist"),
        ('{"format": "pointillist-other"}', "holds pointillist-other, not pointillist-thing"),
        ("[" * 10**5, "is damaged"),
        (json.dumps({"format": "pointillist-thing", "format_version": codec.FORMAT_VERSION}), "checksum"),
    ],
)
def test_foreign_headers(path, header, message):
    save_file({"a": np.ones(2)}, path, None if header is None else {"pointillist": header})
    assert message in refused(path)


@pytest.mark.parametrize("number", [codec.FORMAT_VERSION + 1, 1, "2", None])
def test_another_version_is_named(path, number, monkeypatch):
    monkeypatch.setattr(codec, "FORMAT_VERSION", number)
    write_arrays(path, "thing", {}, {})
    monkeypatch.undo()
    with pytest.raises(
        FileVersionError, match=f"format {number!r}, this version of pointillist reads 2: use the version"
    ):
        read_arrays(path, "thing")


def test_the_kind_of_a_file_is_told_by_its_header(tmp_path):
    write_arrays(tmp_path / "a", "forest", {}, {"x": np.zeros(2)})
    assert codec.kind_of(tmp_path / "a") == "forest"
    save_file({"x": np.zeros(3)}, tmp_path / "b")
    (tmp_path / "c").write_bytes(b"nonsense")
    for name, words in {"b": "not one written by pointillist", "c": "is damaged", ".": "is a folder"}.items():
        with pytest.raises(ModelFileError, match=words):
            codec.kind_of(tmp_path / name)


@pytest.fixture
def filters():
    return np.random.default_rng(0).standard_normal((4, 5, 5)).astype(np.float32)


def test_a_model_comes_back_in_its_precision(tmp_path, filters):
    for dtype in ("float16", "float32", "float64"):
        save_model(tmp_path / "m", filters.astype(dtype), {"lam": 0.1}, {"usage": np.arange(4.0)})
        model = load_model(tmp_path / "m")
        assert (model.arrays["filters"].dtype, model.metadata) == (dtype, {"lam": 0.1})
        np.testing.assert_array_equal(model.arrays["filters"], filters.astype(dtype))
        np.testing.assert_array_equal(model.arrays["usage"], np.arange(4.0))


@pytest.mark.parametrize(
    ("unusable", "message"),
    [
        (np.ones((2, 3), int), "filters must not be of type int64"),
        (np.full((2, 3), np.nan), "filters holds values that are not finite"),
        (np.ones(3), "filters must have shape"),
        (np.ones((0, 3)), "filters must have shape"),
    ],
)
def test_unusable_filters_are_neither_written_nor_read(path, unusable, message):
    with pytest.raises(ValueError, match=message):
        save_model(path, unusable, {})
    assert not path.exists()
    for arrays, words in (({"filters": unusable}, message), ({"other": unusable}, "filters is missing")):
        write_arrays(path, "model", {}, arrays)
        with pytest.raises(ModelFileError, match=words):
            load_model(path)


PARAMETERS = {
    "n_filters": 4, "filter_size": {"tuple": [5]}, "penalty": 0.5, "sampling": 1.0, "solver": "cd", "boundary": "same",
    "channels": False, "batch_size": 1, "n_epochs": 2, "shuffle": True, "forgetting": 3.0,
    "init": {"array": "parameter.init"},
    "nonnegative": False, "nonnegative_filters": False, "zero_mean": True, "statistics": "toeplitz", "n_sweeps": 1,
    "replace_unused": True, "tol": 1e-3, "learning_tol": None, "ridge": 1.0, "ridge_steps": 30, "n_jobs": None,
    "device": "cpu", "random_state": 0,
}  # fmt: skip
"""Parameters of `OnlineCSC` as version 0.1 stored them."""


def _of_0_1(path, kind, **changed):
    """A file as version 0.1 wrote it: a model, a checkpoint or codes."""
    history = [{"iteration": 1, "seconds": 0.1, "objective": None, "nnz": 3, "gap": None}]
    filters = 0.1 * np.random.default_rng(0).standard_normal((4, 5))
    arrays = {"usage": np.ones(4), "parameter.init": filters, "statistics.gram": np.ones((4, 4, 9))}
    header = {"format": f"pointillist-{kind}", "format_version": 1}
    facts = {"class": "OnlineCSC", "parameters": PARAMETERS | changed, "seed": 3, "n_seen": 12}
    entries = {}
    if kind == "model":
        arrays |= {"filters": filters, "fitted.penalty": np.array(0.5)}
        more = {"history": history, "n_iter": 6, "preprocessing": {"normalise": "none"}, "extra": {}}
        header |= {"created": "2026-01-01T00:00:00+00:00", "pointillist_version": "0.1.0", "metadata": facts | more}
    elif kind == "checkpoint":
        records = np.frombuffer(json.dumps(history).encode(), np.uint8)
        arrays |= {"filters": filters[:, None], "penalty": np.array(0.5), "history": records}
        entries = {"facts": json.dumps(facts | {"step": 6, "seconds": 0.1, "stream": {}, "data": {}, "record": {}})}
    else:
        arrays = {"indices": np.array([1, 4]), "values": np.array([1.0, 2.0])}
        arrays |= {"offsets": np.array([0, 2]), "grids": np.array([[5]])}
        header |= {"n_filters": 2, "metadata": {"penalty": 0.5}}
    save_file(arrays, path, entries | {"pointillist": json.dumps(header)})
    return filters


@pytest.mark.parametrize("kind", ["model", "checkpoint"])
def test_models_and_checkpoints_of_version_0_1_load(path, kind, capsys):
    filters = _of_0_1(path, kind)
    model = pt.load(path)
    np.testing.assert_array_equal(model.filters_, filters)
    assert (model.n_iter_, model.n_seen_, model.seed_, model.penalty_, len(model.history_)) == (6, 12, 3, 0.5, 1)
    assert (model.learning, model.n_jobs, model.n_epochs, model.filter_size) == (pt.Ridge(1.0, 30), -1, 2, (5,))
    assert (model.update.zero_mean, model.update.forgetting, model.update.nonnegative) == (True, 3.0, False)
    np.testing.assert_array_equal(model.update.init, filters)
    assert model.preprocessing_ == ({"normalise": "none"} if kind == "model" else {})
    signals = np.random.default_rng(1).standard_normal((2, 30))
    assert model.transform(signals).nnz > 0
    assert model.partial_fit(signals).n_iter_ == 7
    with pytest.raises(SystemExit, match="0"):
        main(["info", str(path)])
    assert "6 steps, 12 signals seen" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ({"ridge": 0}, {"learning": 0.1, "solver": "cd"}),
        ({"learning_tol": 0.01}, {"learning": 0.01}),
        ({"solver": "admm"}, {"learning": None, "solver": "admm"}),
        ({"solver": {"class": "CoordinateDescent", "settings": {"tol": 1e-4, "gone": 1}}}, {"solver": "cd"}),
    ],
)
def test_settings_of_version_0_1_get_their_closest_meaning(path, then, now):
    _of_0_1(path, "model", **then)
    assert {name: pt.load(path).get_params()[name] for name in now} == now


def test_codes_of_version_0_1_load(path):
    _of_0_1(path, "codes")
    np.testing.assert_array_equal(pt.load_codes(path).to_dense(), [[[0, 1, 0, 0, 2], [0, 0, 0, 0, 0]]])
    assert load_codes_metadata(path) == {"penalty": 0.5}


def test_a_damaged_file_of_version_0_1_is_refused(path):
    save_file({"a": np.ones(2)}, path, {"pointillist": '{"format": "pointillist-model", "format_version": 1}'})
    with pytest.raises(ModelFileError, match="is damaged"):
        pt.load(path)
    _of_0_1(path, "model")
    with pytest.raises(FileVersionError, match="format 1, this version of pointillist reads 2"):
        read_arrays(path, "model")  # as checkpoints to be resumed are read
