"""Runs of commands in forked processes, with faults and signals: the side that asks `attack.server`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from attack.shim import Fault

_ROOT = Path(__file__).parents[1]
_ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


class Outcome(NamedTuple):
    """How a run ended: its exit code (negative for a signal that killed it), what it printed, and the calls it made."""

    code: int
    out: str
    err: str
    seconds: float
    hung: bool = False
    calls: tuple[tuple[str, str], ...] = ()


class Programs:
    """A server of forked runs; `close` ends it.

    Parameters
    ----------
    spool : Path
        A new folder for what runs print.
    """

    def __init__(self, spool: Path) -> None:
        spool.mkdir()
        self._spool = spool
        paths = [str(_ROOT / "src"), str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(paths)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "attack.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def warm(self, words: Sequence[str], folder: Path) -> int:
        """Run a command in the server itself, so that modules and kernels are loaded; its exit code."""
        answer = self._ask({"here": True, "words": list(words), "folder": str(folder)})
        if answer["threads"] > 1:
            raise RuntimeError(f"the server has {answer['threads']} threads: it cannot be forked safely")
        return int(answer["code"])

    def run(
        self,
        words: Sequence[str],
        folder: Path,
        *,
        fault: Fault | None = None,
        signals: Sequence[tuple[float, int]] = (),
        strace: Sequence[str] = (),
    ) -> Outcome:
        """Run a command in a process of its own, in a folder, and wait for it.

        Parameters
        ----------
        words : sequence of str
            The command line, or ``@module:function`` and the function's arguments.
        folder : path
            The current folder of the run, whose calls are counted.
        fault : Fault, optional
            What goes wrong.
        signals : sequence of (float, int)
            Seconds after the start, and the signal to send then.
        strace : sequence of str
            Options of strace, which is attached before the run begins; there is no `fault` then.
        """
        out, err, calls = (self._spool / name for name in ("out", "err", "calls"))
        calls.unlink(missing_ok=True)
        request = {"words": list(words), "folder": str(folder), "fault": fault, "signals": list(signals)}
        answer = self._ask(request | {"strace": list(strace), "out": str(out), "err": str(err), "calls": str(calls)})
        made = json.loads(calls.read_text(encoding="utf-8")) if calls.exists() else []
        said, warned = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
        return Outcome(
            answer["code"], said, warned, answer["seconds"], answer["hung"], tuple((verb, path) for verb, path in made)
        )

    def close(self) -> None:
        """End the server."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=30)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server of runs ended with {self._process.wait(timeout=10)}")
        answer: dict[str, Any] = json.loads(line)
        return answer
