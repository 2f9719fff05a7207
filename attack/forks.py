"""Runs of commands in forked processes, with faults and signals: the side that asks `attack.server`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from attack.child import Child
from attack.shim import Fault

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
        self._server = Child("attack.server", _ONE_THREAD)

    def warm(self, words: Sequence[str], folder: Path) -> int:
        """Run a command in the server itself, so that modules and kernels are loaded; its exit code."""
        answer = self._server.ask({"here": True, "words": list(words), "folder": str(folder)})
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
        answer = self._server.ask(
            request | {"strace": list(strace), "out": str(out), "err": str(err), "calls": str(calls)}
        )
        # Whoever is killed while it writes the list has written half of it.
        whole = calls.exists() and answer["code"] >= 0
        made = json.loads(calls.read_text(encoding="utf-8")) if whole else []
        said, warned = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
        return Outcome(
            answer["code"], said, warned, answer["seconds"], answer["hung"], tuple((verb, path) for verb, path in made)
        )

    def close(self) -> None:
        """End the server."""
        self._server.close()
