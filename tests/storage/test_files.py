"""Tests of atomic writing: either the old content or the complete new one, and nothing left behind."""

import errno
import os
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from pointillist import system
from pointillist.errors import ModelFileError, UnreadableFileError
from pointillist.storage import atomic_path, check_regular, check_writable, files, read_whole

needs_user = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("name", ["a.bin", "n" * 250 + ".bin"])
def test_new_file_and_replacement(tmp_path, name):
    target = tmp_path / name
    for content in (b"first", b"second"):
        with atomic_path(target) as temporary:
            assert temporary.parent.parent == tmp_path
            assert temporary.suffix == ".bin"
            temporary.write_bytes(content)
        assert target.read_bytes() == content
    assert names(tmp_path) == [name]


def test_a_relative_path_and_a_link_are_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.bin"
    link.symlink_to(tmp_path / "real" / "a.bin")
    with atomic_path("link.bin") as temporary:
        temporary.write_bytes(b"new")
    assert link.is_symlink()
    assert (tmp_path / "real" / "a.bin").read_bytes() == b"new"


@pytest.mark.parametrize("failure", [RuntimeError("midway"), KeyboardInterrupt(), OSError("no number")])
def test_error_midway_keeps_the_old_file_and_leaves_nothing(tmp_path, failure):
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")

    def write() -> None:
        with atomic_path(target) as temporary:
            temporary.write_bytes(b"ne")
            raise failure

    with pytest.raises(type(failure)):
        write()
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_full_disk_is_reported_with_the_name_of_the_file(tmp_path, monkeypatch):
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    with (
        pytest.raises(OSError, match=r"cannot write: No space left.*a\.bin") as caught,
        atomic_path(target) as t,
    ):
        t.write_bytes(b"new")
    assert caught.value.errno == errno.ENOSPC
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("times", [3, 99])
def test_a_file_that_windows_holds_open_is_waited_for_a_while(tmp_path, monkeypatch, times):
    waits, moving = [], os.replace

    def replace(source, target):
        if len(waits) < times:
            raise PermissionError(errno.EACCES, "Access is denied", str(source))
        moving(source, target)

    monkeypatch.setattr(system, "SYSTEM", "win32")
    monkeypatch.setattr(system.time, "sleep", waits.append)
    monkeypatch.setattr(files.os, "replace", replace)
    words = r"if another program has it open, close it there.*a\.bin"
    stays = pytest.raises(PermissionError, match=words) if times == 99 else nullcontext()
    with stays, atomic_path(tmp_path / "a.bin") as temporary:
        temporary.write_bytes(b"new")
    assert names(tmp_path) == ([] if times == 99 else ["a.bin"])


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX systems")
def test_permissions_follow_the_umask_and_then_the_existing_file(tmp_path):
    target = tmp_path / "a.bin"
    plain = tmp_path / "plain"
    plain.touch()
    with atomic_path(target) as temporary:
        temporary.write_bytes(b"1")
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    target.chmod(0o640)
    with atomic_path(target) as temporary:
        temporary.write_bytes(b"2")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_check_writable_names_the_obstacle_and_creates_nothing(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    check_writable(tmp_path / "new.bin")
    check_writable(tmp_path / "file")
    cases = [
        (tmp_path / "folder", IsADirectoryError, "it is a folder"),
        (tmp_path / "missing" / "a.bin", FileNotFoundError, "create it first"),
        (tmp_path / "file" / "a.bin", NotADirectoryError, "is not a folder"),
        (tmp_path / "file" / "deep" / "a.bin", NotADirectoryError, "is not a folder"),
    ]
    for path, kind, message in cases:
        with pytest.raises(kind, match=message) as caught:
            check_writable(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        with pytest.raises(kind, match=message), atomic_path(path):
            pytest.fail("the block must not run")
    assert names(tmp_path) == ["file", "folder"]
    with pytest.raises(OSError, match="not a regular file"):
        check_writable(os.devnull)


@pytest.mark.parametrize("real", [pytest.param(True, marks=needs_user), False])
def test_missing_permission(tmp_path, monkeypatch, real):
    folder, file = tmp_path / "locked", tmp_path / "a.bin"
    folder.mkdir(mode=0o500)
    file.touch(mode=0o400)
    if not real:
        monkeypatch.setattr(files.os, "access", lambda path, mode: Path(path) == tmp_path)
    with pytest.raises(PermissionError, match="no permission to create files"):
        check_writable(folder / "a.bin")
    with pytest.raises(PermissionError, match="read-only"):
        check_writable(file)


def test_only_regular_files_are_read(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "link").symlink_to("a")
    check_regular(tmp_path / "a")
    check_regular(tmp_path / "link")
    with pytest.raises(ModelFileError, match="is a folder, not a file: give the model itself"):
        check_regular(tmp_path, "model", ModelFileError)
    with pytest.raises(UnreadableFileError, match=f"{os.devnull} is a device, not a file"):
        check_regular(os.devnull)
    with pytest.raises(FileNotFoundError, match="no such image: -: standard input is not read"):
        check_regular("-", "image")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(FileNotFoundError, match="circle"):
        check_regular(tmp_path / "circle")


def _abandon(target, monkeypatch, process):
    """Leave a temporary folder as a program with this number does that is killed while it writes."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: process)
        patch.setattr(files, "replace_file", lambda temporary, target: (_ for _ in ()).throw(KeyboardInterrupt))
        patch.setattr("shutil.rmtree", lambda path, ignore_errors: None)
        with pytest.raises(KeyboardInterrupt), atomic_path(target) as temporary:
            temporary.write_bytes(b"half")
    return temporary.parent


@pytest.mark.skipif(system.machine() is None, reason="this system does not tell machines apart")
def test_what_a_killed_program_left_is_removed_by_the_next_writer(tmp_path, monkeypatch):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = _abandon(tmp_path / "a.bin", monkeypatch, dead.pid)
    alive = _abandon(tmp_path / "a.bin", monkeypatch, os.getpid())
    with monkeypatch.context() as patch:
        patch.setattr(files, "machine", lambda: "another machine")
        elsewhere = _abandon(tmp_path / "a.bin", monkeypatch, dead.pid)
    link, file = (tmp_path / f"{left.name[:-6]}{digit * 6}" for digit in "ab")  # planted by whoever shares the folder
    link.symlink_to(tmp_path)
    file.touch()
    with monkeypatch.context() as patch:
        patch.setattr(files, "machine", lambda: None)  # where machines cannot be told apart nothing is taken away
        with atomic_path(tmp_path / "b.bin") as temporary:
            temporary.write_bytes(b"older")
    assert left.exists()
    with atomic_path(tmp_path / "b.bin") as temporary:
        temporary.write_bytes(b"new")
    assert set(names(tmp_path)) == {"b.bin", alive.name, elsewhere.name, link.name, file.name}


def test_a_folder_that_cannot_be_flushed_does_not_fail_the_write(tmp_path, monkeypatch):
    opening = os.open

    def refuse(path, flags, *rest, **how):
        if path == tmp_path:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return opening(path, flags, *rest, **how)

    monkeypatch.setattr(system.os, "open", refuse)
    with atomic_path(tmp_path / "a.bin") as temporary:
        temporary.write_bytes(b"new")
    assert (tmp_path / "a.bin").read_bytes() == b"new"


def test_whole_files_are_read_or_named(tmp_path):
    file = tmp_path / "few.json"
    file.write_bytes(b"12345")
    assert read_whole(file, "log", 5) == b"12345"
    with pytest.raises(UnreadableFileError, match=r"few\.json is no log: it has 5 bytes, more than 4"):
        read_whole(file, "log", 4)
    with pytest.raises(UnreadableFileError, match="is a folder"):
        read_whole(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no file that fails when it is read")
def test_a_disk_that_fails_is_named(tmp_path):
    """The first page of a process's memory is never there."""
    (tmp_path / "results.json").symlink_to("/proc/self/mem")
    with pytest.raises(OSError, match=r"Input/output error.*results\.json"):
        read_whole(tmp_path / "results.json")
