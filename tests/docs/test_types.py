"""A user's script that uses the public names passes the type checker in its strict mode."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
def test_strict_mode_passes_on_a_users_script(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -e '.[dev]'")
    # Errors inside the package are those of `make lint`; here it stands for an installed one.
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file="]
    environment = {**os.environ, "MYPYPATH": str(HERE.parents[1] / "src")}
    done = subprocess.run(
        [*command, f"--cache-dir={tmp_path}", HERE / "users_script.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
