"""A Python process beside this one that answers requests, one line of JSON each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]


class Child:
    """A running module of the attack; `close` ends it.

    Parameters
    ----------
    module : str
        What ``python -m`` runs. It reads requests from its standard input and writes answers to its standard output.
    environment : mapping of str
        Variables besides those of this process.
    """

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        paths = [str(_ROOT / "src"), str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(environment or {}), "PYTHONPATH": os.pathsep.join(paths)},
            text=True,
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer; raises RuntimeError where the process ended instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._module} ended with {self._process.wait(timeout=30)}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=30)
