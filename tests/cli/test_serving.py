"""``pointillist app`` from the command line: bad input, a missing extra, and how it ends."""

import os
import signal
import subprocess
import sys

import pytest
from tests.cli.conftest import refused

COMMAND = [sys.executable, "-m", "pointillist.cli", "app", "--no-browser"]


def test_without_the_extra_it_says_what_to_install(tmp_path):
    (tmp_path / "starlette.py").write_text("raise ImportError('not here')", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(COMMAND, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == "error: the page needs a web server: pip install 'pointillist[app]'"


def test_a_picture_that_cannot_be_opened_ends_it(cli, tmp_path):
    pytest.importorskip("starlette")
    (tmp_path / "letter.png").write_text("Dear all", encoding="utf-8")
    refused(cli("app", tmp_path / "letter.png", "--no-browser"), "letter.png could not be opened as a photograph")
    assert cli("app", tmp_path / "nowhere.png", "--no-browser").code == 2


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_it_ends_in_good_order(name, tmp_path):
    pytest.importorskip("starlette")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert "http://127.0.0.1:" in process.stdout.readline()
    assert len(list(tmp_path.iterdir())) == 1
    process.send_signal(getattr(signal, name))
    _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name)
    assert "stopped; nothing was left behind" in told
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == []
