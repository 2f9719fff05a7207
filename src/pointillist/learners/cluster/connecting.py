"""Finding a Dask cluster, or starting one on this machine."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
PATIENCE = 60.0
"""Seconds to wait for a scheduler, and for the first worker."""
_TELLING = 30.0
"""Seconds to wait until all workers know the filters of a step."""
_ATTEMPTS, _PAUSE = 5, 0.2
"""How often workers are told something, and the seconds between: by then a scheduler has noticed who is gone."""


def wait_for_workers(client: Client) -> None:
    """Wait until there is somebody to do the work."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise ConnectionError(
            f"the cluster has no workers after {PATIENCE:.0f} s: start some with dask worker SCHEDULER-ADDRESS"
        ) from error


def tell(client: Client, value: Any, patience: float = _TELLING) -> Any:
    """Send a value to all workers, because Dask gives tasks only to workers that have what the tasks need.

    Each worker is sent its own copy, under one key. A worker that is lost meanwhile, or does not answer within `patience`
    seconds, goes without it; Dask's own way of sending to all may wait for ever for such a one, and lets nobody else in.
    """
    key = f"pointillist-{uuid4().hex}"

    async def send(address: str) -> Any:
        sent = client.scatter({key: value}, workers=[address], hash=False, timeout=_PAUSE, asynchronous=True)
        return await asyncio.wait_for(sent, patience)

    async def send_to(addresses: list[str]) -> list[Any]:
        return await asyncio.gather(*map(send, addresses), return_exceptions=True)

    for _ in range(_ATTEMPTS):
        answers = client.sync(send_to, list(client.nthreads()))
        told = [answer[key] for answer in answers if isinstance(answer, dict)]
        if told:
            return told[0]
        for answer in answers:
            if not isinstance(answer, OSError | KeyError):  # those say that a worker is gone, or busy
                raise answer
        log.info("no worker could be told what to do: telling them again")
        time.sleep(_PAUSE)
        wait_for_workers(client)
    raise ConnectionError(f"the cluster lost all its workers {_ATTEMPTS} times while they were told what to do")


@contextmanager
def connect(cluster: Client | str) -> Iterator[Client]:
    """The client itself, or one for the scheduler at an address such as ``tcp://host:8786``, closed afterwards."""
    if not isinstance(cluster, str):
        if not hasattr(cluster, "submit"):
            raise ValueError(f"cluster must be a dask.distributed Client or an address, got {cluster!r}")
        yield cluster
        return
    client_class = _distributed().Client
    try:
        client = client_class(cluster, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConnectionError(
            f"cluster {cluster!r} does not answer ({reason}); is its dask scheduler running?"
        ) from error
    with client:
        yield client


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Client]:
    """A client of workers on this machine, each a process with one thread, that live as long as the context.

    They listen on the loopback address only: a scheduler runs code for whoever reaches it.
    """
    distributed = _distributed()
    with ExitStack() as stack:
        with _ignoring_interrupts():
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=n_workers, threads_per_worker=1, processes=True, host=LOOPBACK, dashboard_address=None
                )
            )
        yield stack.enter_context(distributed.Client(cluster))


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes started meanwhile ignore Ctrl-C, which a terminal sends to all of them: the client decides what it means."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("a cluster needs Dask: pip install 'pointillist[cluster]'") from error
    return distributed
