"""A process that has imported the package and forks itself for every run of a command: a run costs no start.

It reads requests and writes answers as lines of JSON; `attack.forks.Programs` is the other side. The whole file works only
where processes can be forked.
"""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from attack.shim import Fault, Shim
from pointillist.cli import main as command_line

PATIENCE = 120.0
"""Seconds after which a run counts as one that hangs."""
_SIGNALS: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}


def main() -> None:
    """Serve until the other side closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    for line in sys.stdin:
        request = json.loads(line)
        answers.write(json.dumps(_here(request) if request.get("here") else _forked(request)) + "\n")
        answers.flush()


def _here(request: dict[str, Any]) -> dict[str, Any]:
    """Run a command in this process, so that its modules and kernels are there for all others."""
    os.chdir(request["folder"])
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        code = _command(request["words"])
    gc.collect()
    gc.freeze()
    return {"code": code, "threads": len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1}


def _command(words: list[str]) -> int:
    try:
        if words[0].startswith("@"):
            module, _, name = words[0][1:].partition(":")
            return int(getattr(import_module(module), name)(*words[1:]) or 0)
        command_line(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def _forked(request: dict[str, Any]) -> dict[str, Any]:
    begin = time.monotonic()
    process = os.fork()
    if process == 0:
        _child(request)
    tracer = None
    if request.get("strace"):
        os.waitpid(process, os.WUNTRACED)
        tracer = _traced(process, request["strace"])
    status, hung = _watch(process, [(float(seconds), int(number)) for seconds, number in request["signals"]])
    if tracer is not None:
        tracer.wait(timeout=10)
    return {"code": os.waitstatus_to_exitcode(status), "hung": hung, "seconds": time.monotonic() - begin}


def _traced(process: int, options: list[str]) -> subprocess.Popen[bytes]:
    """Attach strace to a stopped process, then let it go on."""
    command = [shutil.which("strace") or "strace", "-f", "-p", str(process), *options]
    tracer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    status = Path(f"/proc/{process}/status")
    while "TracerPid:\t0" in status.read_text(encoding="ascii") and tracer.poll() is None:
        time.sleep(0.002)
    os.kill(process, signal.SIGCONT)
    return tracer


def _watch(process: int, signals: list[tuple[float, int]]) -> tuple[int, bool]:
    """Wait for a process and send it signals at their times; its status, and whether it had to be ended for hanging."""
    begin, hung = time.monotonic(), False
    waiting = [*sorted(signals), (PATIENCE, int(signal.SIGKILL))]
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return status, hung
        due = begin + waiting[0][0] if waiting else time.monotonic() + 1.0
        signal.sigtimedwait([signal.SIGCHLD], max(0.0, due - time.monotonic()))
        if waiting and time.monotonic() >= due:
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                return status, hung
            hung = len(waiting) == 1
            os.kill(process, waiting.pop(0)[1])


def _child(request: dict[str, Any]) -> None:
    """Run a command in a forked process that ends with its exit code."""
    code = 70
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        for number, handler in _SIGNALS.items():
            signal.signal(number, handler)
        os.chdir(request["folder"])
        sys.stdout, sys.stderr = (_stream(i, request[name]) for i, name in ((1, "out"), (2, "err")))
        shim = Shim(request["folder"], Fault(*request["fault"]) if request.get("fault") else None)
        if not request.get("strace"):
            shim.install()
        else:
            os.kill(os.getpid(), signal.SIGSTOP)
        code = _command(request["words"])
        if not request.get("strace"):  # whose faults are for the command alone
            with open(request["calls"], "w", encoding="utf-8") as file:
                json.dump(shim.calls, file)
    except KeyboardInterrupt:  # before the command could take care of signals
        code = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _stream(number: int, path: str) -> TextIO:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(handle, number)
    os.close(handle)
    return io.TextIOWrapper(
        io.FileIO(number, "w", closefd=False), encoding="utf-8", line_buffering=True, write_through=True
    )


if __name__ == "__main__":
    main()
