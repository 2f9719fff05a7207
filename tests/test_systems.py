"""The package on systems that lack what Unix has."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pointillist

IMPORT_ALL = """
import pkgutil, sys
for name in ("resource", "fcntl", "pwd", "grp", "termios", "tty", "pty", "syslog"):
    sys.modules[name] = None
import pointillist
modules = [one.name for one in pkgutil.walk_packages(pointillist.__path__, "pointillist.")]
for name in modules:
    if not name.startswith("pointillist.backends.cuda.") and not name.endswith("__main__"):
        __import__(name)
for name in pointillist.__all__:
    getattr(pointillist, name)
print(len(modules))
"""

ONLY_ON_UNIX = {
    "os": {
        "fork",
        "getuid",
        "geteuid",
        "uname",
        "sched_getaffinity",
        "mkfifo",
        "killpg",
        "setsid",
        "nice",
        "O_DIRECTORY",
    },
    "signal": {
        "SIGHUP",
        "SIGKILL",
        "SIGUSR1",
        "SIGUSR2",
        "SIGALRM",
        "SIGPIPE",
        "SIGTSTP",
        "alarm",
        "setitimer",
        "pause",
    },
    "time": {"tzset"},
}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need the modules that are hidden")
def test_every_module_imports_without_what_only_unix_has(tmp_path):
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150


def _found(source):
    """``module.name`` wherever a name that only Unix has is taken directly, instead of by getattr or behind a function."""
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


def test_text_files_are_read_and_written_in_a_named_encoding():
    """Without a name Windows takes its own code page, and a σ ends in an error or in other letters."""
    unnamed = []
    for path in Path(pointillist.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("read_text", "write_text"):
                named = any(one.arg == "encoding" for one in node.keywords)
                unnamed += [] if named else [f"{path.name}:{node.lineno}"]
    assert unnamed == []
