"""Tests of the differences between systems: each branch is taken here, on whatever system the tests run."""

import ctypes
import os
import signal
import sys
from ctypes import wintypes
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from pointillist import system
from pointillist.cli import main

MIB = 2**20


@pytest.fixture
def on(monkeypatch):
    """A function that lets the package believe that it runs on another system."""
    return lambda name: monkeypatch.setattr(system, "SYSTEM", name)


class TestMemory:
    """Memory that a process has taken."""

    def test_figures_of_this_process(self):
        assert system.memory_peak() > 10**7

    def test_linux_tells_pages_and_kilobytes(self, on, monkeypatch, tmp_path):
        for process, peak in (("self", 9000), ("42", 77)):
            (tmp_path / process).mkdir()
            (tmp_path / process / "status").write_text(f"Name:\tpython\nVmPeak:\t 99999 kB\nVmHWM:\t {peak} kB\n")
        monkeypatch.setattr(system, "PROCESSES", tmp_path)
        on("linux")
        assert (system.memory_peak(), system.memory_peak(42), system.memory_peak(43)) == (9000 * 1024, 77 * 1024, 0)

    @pytest.mark.parametrize(("name", "unit"), [("linux", 1024), ("freebsd14", 1024), ("darwin", 1)])
    def test_other_unix_systems_tell_the_peak(self, on, monkeypatch, tmp_path, name, unit):
        usage = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda who: SimpleNamespace(ru_maxrss=12345))
        monkeypatch.setitem(sys.modules, "resource", usage)
        monkeypatch.setattr(system, "PROCESSES", tmp_path / "not mounted")
        on(name)
        assert system.memory_peak() == 12345 * unit
        assert system.memory_peak(1) == 0

    def test_windows_tells_its_counters(self, on, monkeypatch):
        def fill(process, counters, size):
            assert (process, size) == (-1, ctypes.sizeof(counters._obj))
            counters._obj.peak = 80 * MIB
            return 1

        kernel, told = SimpleNamespace(GetCurrentProcess=Mock(return_value=-1)), Mock(side_effect=fill)
        windll = SimpleNamespace(kernel32=kernel, psapi=SimpleNamespace(GetProcessMemoryInfo=told))
        monkeypatch.setattr(ctypes, "windll", windll, raising=False)
        on("win32")
        assert (system.memory_peak(), system.memory_peak(7)) == (80 * MIB, 0)
        assert told.argtypes[0] is kernel.GetCurrentProcess.restype is wintypes.HANDLE


@pytest.mark.parametrize(("name", "said"), [("linux", "Fast: 3 GHz"), ("darwin", "ARM64"), ("win32", "ARM64")])
def test_the_processor_has_a_name(on, monkeypatch, tmp_path, name, said):
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Fast: 3 GHz\nmodel name\t: Other\n")
    monkeypatch.setattr(system, "PROCESSES", tmp_path)
    monkeypatch.setattr(system.platform, "processor", lambda: "")
    monkeypatch.setattr(system.platform, "machine", lambda: "ARM64")
    on(name)
    assert system.processor() == said


def test_a_system_without_a_load_has_none(monkeypatch):
    monkeypatch.delattr(os, "getloadavg", raising=False)
    assert system.load() == []


class TestSignals:
    """Signals that not every system has."""

    @pytest.mark.parametrize("lacking", [(), ("SIGHUP",)], ids=["unix", "windows"])
    def test_those_that_there_are_are_handled_and_given_back(self, monkeypatch, lacking):
        handled = []
        before = signal.getsignal(signal.SIGTERM)
        for name in lacking:
            monkeypatch.delattr(signal, name, raising=False)
        with system.handling(("SIGINT", *system.ENDINGS), lambda number, frame: handled.append(number)):
            signal.raise_signal(signal.SIGTERM)
            assert handled == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) == before


class TestFiles:
    """Folders are flushed where that is possible; `tests/storage/test_files.py` has the rest."""

    @pytest.mark.skipif(os.name != "posix", reason="folders cannot be opened here")
    def test_a_network_drive_that_refuses_is_no_error(self, on, monkeypatch, tmp_path):
        asked = []

        def refuse(handle):
            asked.append(handle)
            raise OSError(22, "Invalid argument")

        monkeypatch.setattr(os, "fsync", refuse)
        on("darwin")
        system.flush_folder(tmp_path)
        assert len(asked) == 1
        on("win32")
        system.flush_folder(tmp_path)
        assert len(asked) == 1


def test_programs_without_a_console_have_no_streams(monkeypatch):
    """pythonw of Windows has None for stdout and stderr."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    system.keep_printing()
    with pytest.raises(SystemExit) as ended:
        main(["info", "nothing.safetensors"])
    assert ended.value.code == 2


@pytest.mark.skipif(os.name != "posix", reason="links need a permission on Windows")
def test_machines_differ_by_their_start_and_by_their_processes(tmp_path, monkeypatch):
    """Containers often share a name, and machines of a cluster a folder."""
    boot, spaces = tmp_path / "sys/kernel/random/boot_id", tmp_path / "self/ns"
    monkeypatch.setattr(system, "PROCESSES", tmp_path)
    assert system.machine() is None
    boot.parent.mkdir(parents=True)
    spaces.mkdir(parents=True)
    found = set()
    for started, space in (("a", "pid:[1]"), ("a", "pid:[2]"), ("b", "pid:[1]")):
        boot.write_text(started)
        (spaces / "pid").unlink(missing_ok=True)
        (spaces / "pid").symlink_to(space)
        found.add(system.machine())
    assert len(found) == 3
