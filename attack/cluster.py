"""Learns on a local Dask cluster whose workers are killed, stopped and starved of memory: the filters must stay the same."""

from __future__ import annotations

import asyncio
import ctypes
import importlib.util
import os
import random
import signal
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import pointillist as pt
from attack.base import Finding

WORKERS = 2
LIMIT = 900 * 2**20
"""Bytes that Dask grants a worker; its guardian ends one that takes more."""
PATIENCE = 60.0
WAYS = ("kill", "stop", "starve", "squeeze", "sys.exit", "graceful", "segfault")
"""What happens to a worker; the last three are those of Dask's own `distributed.chaos.KillWorker`."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"sampling": 0.5},
    {"batch_size": 6},
    {"update": pt.FilterUpdate(init="patches")},
    {"robust": pt.Robust(fraction=0.2)},
)
"""Settings of the learner that are tried in turn."""


class Cluster:
    """One attempt is one run of learning with one to three disturbances."""

    name = "cluster"
    about = "learning on a local Dask cluster whose workers are killed, stopped and starved"
    patience = 300.0

    def __init__(self) -> None:
        self._alone: dict[int, pt.OnlineCSC] = {}
        self.disturbances = 0
        """Disturbances so far."""

    @property
    def missing(self) -> str:
        """Why the attack cannot run here, empty where it can."""
        if os.name != "posix":
            return "signals of POSIX systems are needed"
        found = importlib.util.find_spec("distributed")
        return "" if found else "Dask is not here: pip install 'pointillist[cluster]'"

    @cached_property
    def _signals(self) -> np.ndarray:
        return np.cumsum(np.random.default_rng(0).standard_normal((18, 120)), axis=1) / 3

    @cached_property
    def _client(self) -> Any:
        import distributed

        cluster = distributed.LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=LIMIT,
            silence_logs=50,
        )
        return distributed.Client(cluster)

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """One run with disturbances."""
        if self.missing:
            return []
        rng, which = random.Random(seed), seed % len(SETTINGS)
        if which not in self._alone:
            self._alone[which] = self._fit(which)
        steps = len(self._alone[which].history_)
        plan = {rng.randrange(steps - 1): rng.choice(WAYS) for _ in range(rng.randint(1, 3))}
        self._client.wait_for_workers(WORKERS, timeout=PATIENCE)
        trouble = _Trouble(self._client, plan, rng)
        begin = time.monotonic()
        try:
            there = self._fit(which, cluster=self._client, callbacks=[trouble])
        except Exception as error:  # whatever comes out of a run is a finding
            return [self._finding(seed, "unnamed error", f"{type(error).__name__}: {error}", plan)]
        finally:
            trouble.end()
            self.disturbances += len(plan)
            self._recover()
        return [self._finding(seed, "bits", f"{what} differ after {time.monotonic() - begin:.1f} s", plan)
                for what in differences(there, self._alone[which])]  # fmt: skip

    def close(self) -> None:
        """End the cluster."""
        if "_client" in vars(self):
            client = vars(self).pop("_client")
            cluster = client.cluster
            client.close(timeout=10)
            cluster.close(timeout=10)

    def _fit(self, which: int, **how: Any) -> pt.OnlineCSC:
        given = {"batch_size": 3, "n_epochs": 3, "random_state": 0, "n_jobs": 1, **SETTINGS[which]}
        return pt.OnlineCSC(4, 7, 0.3, **given).fit(self._signals, **how)

    def _recover(self) -> None:
        """Have all workers again; a cluster that cannot give them is replaced."""
        try:
            self._client.wait_for_workers(WORKERS, timeout=PATIENCE / 4)
        except TimeoutError:
            self.close()

    def _finding(self, seed: int, kind: str, title: str, plan: dict[int, str]) -> Finding:
        return Finding(self.name, seed, kind, title, f"disturbances after steps: {plan}")


def differences(one: pt.OnlineCSC, other: pt.OnlineCSC) -> list[str]:
    """What of two learners is not the same to the bit."""
    found = [name for name in ("filters_", "usage_") if not np.array_equal(getattr(one, name), getattr(other, name))]
    first, second = ([{**info, "seconds": 0} for info in model.history_] for model in (one, other))
    return found if first == second else [*found, "history_"]


class _Trouble:
    """A callback that makes trouble for a worker after some steps; it lasts beside the next ones."""

    def __init__(self, client: Any, plan: dict[int, str], rng: random.Random) -> None:
        self._client, self._plan, self._rng = client, plan, rng
        self._threads: list[threading.Thread] = []

    def __call__(self, info: dict[str, Any]) -> bool:
        way = self._plan.get(int(info["iteration"]) - 1)
        if way is not None:
            thread = threading.Thread(target=self._disturb, args=(way, self._rng.random(), self._rng.uniform(0, 0.05)))
            thread.start()
            self._threads.append(thread)
        return False

    def end(self) -> None:
        """Wait until all trouble is over."""
        for thread in self._threads:
            thread.join()

    def _disturb(self, way: str, share: float, delay: float) -> None:
        time.sleep(delay)
        known = self._client.run(os.getpid, on_error="ignore")
        if not known:
            return
        addresses = sorted(known)
        address = addresses[int(share * len(addresses))]
        if way in ("kill", "stop"):
            _signal(known[address], way)
            return
        sent = {"starve": _starve, "squeeze": _squeeze}.get(way, _chaos)
        arguments = (way,) if sent is _chaos else (LIMIT,)
        self._client.run(sent, *arguments, workers=[address], wait=False, on_error="ignore")


def _signal(process: int, way: str) -> None:
    try:
        os.kill(process, signal.SIGKILL if way == "kill" else signal.SIGSTOP)
        if way == "stop":
            time.sleep(1.0)
            os.kill(process, signal.SIGCONT)
    except ProcessLookupError:
        return  # another disturbance came first


def _starve(limit: int) -> None:
    """Take more memory than a worker has, beside its work, until its guardian ends it."""
    threading.Thread(target=_take, args=(1.5 * limit, 3600.0), daemon=True).start()


def _squeeze(limit: int) -> None:
    """Take so much memory that a worker takes no more work for some time."""
    threading.Thread(target=_take, args=(0.6 * limit, 1.5), daemon=True).start()


def _take(size: float, seconds: float) -> None:
    held: list[np.ndarray] = []
    while len(held) * 2**23 < size:
        held.append(np.ones(2**23, np.uint8))
        time.sleep(0.002)
    time.sleep(seconds)


def _chaos(way: str, dask_worker: Any) -> None:
    """End a worker as `distributed.chaos.KillWorker` does."""
    loop = dask_worker.loop.asyncio_loop
    if way == "graceful":
        loop.call_soon(lambda: asyncio.create_task(dask_worker.close(nanny=False, executor_wait=False)))
    elif way == "segfault":
        loop.call_soon(lambda: ctypes.string_at(0))
    else:
        loop.call_soon(lambda: os._exit(0))
