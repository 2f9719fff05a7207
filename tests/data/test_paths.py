"""Tests of the grammar of paths: files, folders with and without subfolders, patterns, arrays in files."""

import logging

import pytest

import pointillist as pt
from pointillist.data.paths import files_of, find_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["10.png", "2.png", "a/1.png", "a/b/3.png", "a/.hidden.png", ".git/4.png", "s.zarr/5.png", "notes.txt"]
    for name in names:
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "photos"


def test_folders(folder, caplog):
    assert find_files("photos", [".png"], recursive=False).files == ["photos/2.png", "photos/10.png"]
    assert not caplog.records
    assert files_of("photos", [".png"]) == ["photos/2.png", "photos/10.png"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "photos: 2 more in subfolders not read; recursive=True reads them too"
    found = find_files("photos", {".png"}, recursive=True)
    assert found.files == ["photos/2.png", "photos/10.png", "photos/a/1.png", "photos/a/b/3.png"]
    assert len(caplog.records) == 1


def test_patterns_find_what_folders_hold_in_the_same_order(folder):
    found = find_files("photos/**/*.png", [])
    assert [file for file in found.files if "zarr" not in file] == find_files("photos", {".png"}, recursive=True).files
    assert (str(found.root), found.named) == ("photos", False)
    assert find_files("photo?/*.txt", []).files == ["photos/notes.txt"]
    with pytest.raises(FileNotFoundError, match=r"no file matches photos/a\*, only folders \(1\): end it in /\* or"):
        find_files("photos/a*", [])


def test_files_are_taken_by_their_names(folder, tmp_path):
    (tmp_path / "[1].png").touch()
    found = find_files("[1].png", [])
    assert (found.files, found.named) == (["[1].png"], True)
    assert find_files("photos/notes.txt", {".png"}).files == ["photos/notes.txt"]
    assert find_files("photos/s.zarr", {".png"}).files == ["photos/s.zarr"]


def test_arrays_in_files(folder):
    assert find_files("photos/s.zarr::images", []).files == ["photos/s.zarr::images"]
    assert find_files("photos/*.zarr::images", []).files == ["photos/s.zarr::images"]
    with pytest.raises(FileNotFoundError, match=r"no such file or folder: photos/t\.zarr"):
        find_files("photos/t.zarr::images", [])


def test_links_to_folders_are_not_followed(folder):
    (folder / "a" / "around").symlink_to(folder, target_is_directory=True)
    assert len(find_files("photos", {".png"}, recursive=True).files) == 4


def test_readers_take_the_choice(tmp_path):
    from PIL import Image

    (tmp_path / "a").mkdir()
    for name in ("1.png", "a/2.png"):
        Image.new("L", (8, 6)).save(tmp_path / name)
    for read in (pt.load_images, pt.load_signals, pt.open_source):
        assert [len(read(tmp_path, recursive=choice)) for choice in (True, False)] == [2, 1]
        assert len(read(tmp_path / "**" / "*.png")) == 2
