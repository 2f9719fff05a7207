"""The package on systems that lack what Unix has."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pointillist

HIDDEN = """
import os, pkgutil, signal, sys
for name in ("resource", "fcntl", "pwd", "grp", "termios", "tty", "pty", "syslog"):
    sys.modules[name] = None
for name in ("fork", "geteuid", "getuid", "getloadavg"):
    delattr(os, name)
del signal.SIGHUP, signal.SIGUSR1

import pointillist
modules = [one.name for one in pkgutil.walk_packages(pointillist.__path__, "pointillist.")]
for name in modules:
    if not name.startswith("pointillist.cuda.") and not name.endswith("__main__"):
        __import__(name)
for name in pointillist.__all__:
    getattr(pointillist, name)

import numpy as np
from PIL import Image
np.save("a.npy", np.random.default_rng(0).random((3, 20, 20)))
pixels = np.full((24, 30, 3), 90, np.uint8)
pixels[10:13, 5:25] = 255, 0, 255
Image.fromarray(pixels).save("photo.png")
learn = "learn a.npy -o m.safetensors --filters 3 --size 5 --epochs 1 --max-memory 9G --report r.html -q"
rest = ["encode m.safetensors a.npy -o c.safetensors -q", "show m.safetensors -o f.png", "inpaint photo.png -q"]
for line in (learn, *rest):
    assert pointillist.cli.app.run(line.split()) == 0, line
print(len(modules), pointillist.plot.page.peak_mb())
"""

ONLY_ON_UNIX = {
    "os": re.findall(r"\w+", "fork getuid geteuid uname sched_getaffinity mkfifo killpg setsid nice O_DIRECTORY"),
    "signal": re.findall(r"\w+", "SIGHUP SIGKILL SIGUSR1 SIGUSR2 SIGALRM SIGPIPE SIGTSTP alarm setitimer pause"),
    "time": ["tzset"],
}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need the modules that are hidden")
def test_everything_is_imported_and_runs_without_what_only_unix_has(tmp_path):
    done = subprocess.run([sys.executable, "-c", HIDDEN], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules, peak = done.stdout.splitlines()[-1].split()
    assert int(modules) > 90
    assert float(peak) > 10
    assert {"r.html", "c.safetensors", "f.png", "photo-inpainted.png"} <= {path.name for path in tmp_path.iterdir()}


def _found(source):
    """``module.name`` wherever a name that only Unix has is taken directly, instead of by getattr."""
    nodes = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Attribute)]
    return [
        f"{one.value.id}.{one.attr}"
        for one in nodes
        if isinstance(one.value, ast.Name) and one.attr in ONLY_ON_UNIX.get(one.value.id, ())
    ]


def test_no_name_of_unix_is_taken_without_asking():
    folder = Path(pointillist.__file__).parent
    assert _found("import os\nos.fork()") == ["os.fork"]
    assert {path: names for path in folder.rglob("*.py") if (names := _found(path.read_text(encoding="utf-8")))} == {}


def test_one_module_asks_which_system_it_is():
    asked = re.compile(r"\b(sys\.platform|os\.name|platform\.system)\b")
    folder = Path(pointillist.__file__).parent
    found = [
        path.relative_to(folder) for path in folder.rglob("*.py") if asked.search(path.read_text(encoding="utf-8"))
    ]
    assert found == [Path("system.py")]


def test_text_files_are_read_and_written_in_a_named_encoding():
    """Without a name Windows takes its own code page, and a σ ends in an error or in other letters."""
    unnamed = []
    for path in Path(pointillist.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("read_text", "write_text"):
                named = any(one.arg == "encoding" for one in node.keywords)
                unnamed += [] if named else [f"{path.name}:{node.lineno}"]
    assert unnamed == []


@pytest.mark.skipif(os.name != "posix", reason="drives and backslashes are parts of names only here")
def test_drives_backslashes_and_capitals_of_paths(tmp_path, monkeypatch):
    """The colon of a drive is not taken for FILE::NAME, a backslash not for an escape, and suffixes have either case."""
    h5py = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    stack = np.random.default_rng(0).random((3, 8, 9))
    for number in (10, 9):
        with open(f"C:\\shots\\a{number}.NPY", "wb") as file:
            np.save(file, stack[:1] * number)
    with h5py.File("D:\\stack.H5", "w") as file:
        file["group/images"] = stack
    found = pointillist.open_source(["C:\\shots\\*.NPY", "D:\\stack.H5::group/images"])
    assert [found.name(i) for i in range(3)] == [
        "C:\\shots\\a9.NPY[0]",
        "C:\\shots\\a10.NPY[0]",
        "D:\\stack.H5::group/images[0]",
    ]
    np.testing.assert_allclose(found.read(4), stack[2], rtol=1e-6)
