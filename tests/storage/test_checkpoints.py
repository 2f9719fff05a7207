"""Tests of checkpoint files: the newest whole one comes back, damage is noticed, the last two are kept."""

import errno

import numpy as np
import pytest
from safetensors import SafetensorError

from pointillist.codes import SparseCodes
from pointillist.errors import CheckpointError, FileVersionError, ModelFileError
from pointillist.storage import CheckpointFolder, PartFolder, codec, read_arrays

ARRAYS = {"a": np.arange(6.0).reshape(3, 2).T}


@pytest.fixture
def folder(tmp_path):
    return CheckpointFolder(tmp_path / "filters.safetensors")


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def test_what_was_written_comes_back(folder):
    path = folder.write(3, {"step": 3, "text": "λ", "none": None, "count": np.int64(2)}, ARRAYS)
    assert path.name == "filters.checkpoint-00000003.safetensors"
    stored = folder.newest()
    assert stored.metadata == {"step": 3, "text": "λ", "none": None, "count": 2}
    np.testing.assert_array_equal(stored.arrays["a"], ARRAYS["a"])


def test_the_last_two_are_kept_by_number_not_by_name(folder, tmp_path):
    for number in (99_999_999, 100_000_000, 100_000_001):
        folder.write(number, {"step": number}, {})
    (tmp_path / "filters.checkpoint-old.safetensors").touch()
    (tmp_path / "other.checkpoint-00000001.safetensors").touch()
    assert [int(path.stem.rpartition("-")[2]) for path in folder.files()] == [100_000_001, 100_000_000]
    assert CheckpointFolder(tmp_path / "missing" / "x").files() == []
    folder.clear()
    assert names(tmp_path) == ["filters.checkpoint-old.safetensors", "other.checkpoint-00000001.safetensors"]


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_a_damaged_checkpoint_is_passed_over(folder, caplog, kept):
    assert folder.newest() is None
    for number in (1, 2):
        path = folder.write(number, {"step": number}, ARRAYS)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelFileError, match="is damaged"):
        read_arrays(path, "model")
    assert folder.newest().metadata == {"step": 1}
    assert "trying the one before" in caplog.text
    folder.file(1).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"checkpoints of .* are damaged"):
        folder.newest()


def test_another_format_is_refused_not_skipped(folder, monkeypatch):
    folder.write(1, {}, {})
    monkeypatch.setattr(codec, "FORMAT_VERSION", 9)
    folder.write(2, {}, {})
    monkeypatch.undo()
    with pytest.raises(FileVersionError, match="format 9, this version of pointillist reads 2: use the version"):
        folder.newest()


def test_a_planted_link_is_not_followed(folder, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    folder.file(2).symlink_to(precious)
    folder.write(2, {"step": 2}, ARRAYS)
    assert folder.newest().metadata == {"step": 2}
    assert precious.read_text() == "kept"


def test_parts_come_back_in_order_up_to_a_damaged_one(tmp_path, caplog):
    folder, dense = PartFolder(tmp_path / "codes.safetensors"), np.eye(4, dtype=np.float32)[None]
    for number in (20, 100_000_000, 3):
        folder.write(number, SparseCodes.from_dense(number * dense), {"first": number})
    assert names(tmp_path) == [f"codes.part-{number}.safetensors" for number in ("00000003", "00000020", "100000000")]
    read = list(folder.read())
    assert [metadata["first"] for _, _, metadata in read] == [3, 20, 100_000_000]
    np.testing.assert_array_equal(read[1][1].to_dense(), 20 * dense)
    folder.file(20).write_bytes(b"nonsense")
    assert [metadata["first"] for _, _, metadata in folder.read()] == [3]
    assert "going on from the part before" in caplog.text
    folder.drop_from(20)
    assert names(tmp_path) == ["codes.part-00000003.safetensors"]
    folder.clear()
    assert names(tmp_path) == []


@pytest.mark.parametrize("failure", [OSError(errno.EMFILE, "Too many open files"), SafetensorError("(os error 5)")])
def test_a_failing_disk_is_not_taken_for_damage(folder, tmp_path, monkeypatch, failure):
    """Parts behind a damaged one are coded again and removed: a part that cannot be read just now must not be one."""
    parts = PartFolder(tmp_path / "codes.safetensors")
    parts.write(0, SparseCodes.from_dense(np.eye(4)[None]), {})
    folder.write(1, {}, ARRAYS)

    def fail(*arguments, **how):
        raise failure

    monkeypatch.setattr(codec, "safe_open", fail)
    for read in (folder.newest, lambda: list(parts.read()), lambda: codec.kind_of(folder.file(1))):
        with pytest.raises(OSError, match="safetensors") as caught:
            read()
        assert caught.value.errno in (errno.EMFILE, errno.EIO)


def test_an_old_checkpoint_that_cannot_be_removed_is_a_warning(folder, monkeypatch, caplog):
    def refuse(path, missing_ok):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    folder.write(1, {}, ARRAYS)
    folder.write(2, {}, ARRAYS)
    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    assert folder.write(3, {"step": 3}, ARRAYS) == folder.file(3)
    assert folder.newest().metadata == {"step": 3}
    assert "an old checkpoint cannot be removed" in caplog.text
