"""Finding a CUDA device, compiling kernels for it and moving arrays to it. CuPy is imported only once one is asked for."""

import importlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import prod
from pathlib import Path
from queue import LifoQueue
from threading import Lock
from typing import Any

import numpy as np

from pointillist.arrays import as_cupy, is_cpu, is_resident, stacked
from pointillist.cuda.plan import RESERVED_SHARED

_INSTALL = "pip install 'pointillist[cuda]' (cupy-cuda12x, or cupy-cuda13x for a CUDA 13 driver)"


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Copies between the host and a device; measured by benchmarks.gpu on one H200."""

    streams: int = 4
    """Streams, each with a group of signals: some are moved while another is computed."""
    staged_bytes: int = 2**25
    """Bytes of host memory that arrays go through on their way, unless one of them has more."""
    shared_copy: int = 2**22
    """Bytes from which on threads share a copy."""
    copiers: int = 4
    """Threads that share a copy."""


TUNING = Tuning()

CONSTANTS = ("CH", "FD", "FH", "FW", "NONNEGATIVE", "SAMPLED", "MAPPED", "AROUND")
"""Constants that the kernels are compiled with: a filter's channels, layers, rows and columns, and flags."""


@cache
def open_device(device: str) -> "Device":
    """The named CUDA device, or an error of one line that says what is missing."""
    if is_cpu(device):
        raise ValueError('open_device is for "cuda" and "cuda:N"')
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise RuntimeError(f'device="{device}" needs CuPy: {_INSTALL}') from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy's own class, not known here; whatever it is, there is no device
        reason = " ".join(str(error).split())
        raise RuntimeError(
            f'device="{device}" found no CUDA device ({reason}); {_INSTALL}, or use device="cpu"'
        ) from error
    number = int(device.partition(":")[2] or 0)
    if number >= count:
        raise RuntimeError(f'device="{device}" does not exist: there are {count} CUDA devices, numbered from 0')
    return Device(cupy, number)


class Device:
    """One CUDA device: CuPy, and kernels compiled for it."""

    def __init__(self, cupy: Any, number: int) -> None:
        self.cupy, self.number = cupy, number
        self.name = f"cuda:{number}"
        with self.use():
            attributes = cupy.cuda.Device(number).attributes
            self.shared_limit = int(attributes["MaxSharedMemoryPerBlockOptin"])
            self.has_tensor_cores = int(cupy.cuda.Device(number).compute_capability) >= 80  # those that know bfloat16
            # Kept, because the memory pool keeps what each of them frees; the last one that was put back is used first.
            self._idle_streams: LifoQueue[Any] = LifoQueue()
            for _ in range(TUNING.streams):
                self._idle_streams.put(cupy.cuda.Stream(non_blocking=True))
            self.mover = cupy.cuda.Stream(non_blocking=True)
        self._modules: dict[tuple[int, ...], Any] = {}
        self._kernels: dict[tuple[Any, ...], Any] = {}
        self._lock = Lock()
        self._idle_memory: list[np.ndarray] = []  # page-locked

    def use(self) -> Any:
        """A context in which this device is the current one."""
        return self.cupy.cuda.Device(self.number)

    @contextmanager
    def own_stream(self) -> Iterator[None]:
        """Make a stream current that no other thread has meanwhile; where all are taken, wait for one."""
        stream = self._idle_streams.get()
        try:
            with self.use(), stream:
                yield
        finally:
            self._idle_streams.put(stream)

    def free_memory(self) -> int:
        """Bytes that can be had, those that CuPy's pool holds and does not use included."""
        with self.use():
            free, _ = self.cupy.cuda.runtime.memGetInfo()
            return int(free + self.cupy.get_default_memory_pool().free_bytes())

    def take(self, array: Any, name: str = "signals") -> Any:
        """Any array as a CuPy one on this device; its memory is shared where it lives here already."""
        if not is_resident(array):
            return self.cupy.asarray(np.asarray(array))
        taken = as_cupy(array)
        if taken.device.id != self.number:
            other = f"cuda:{taken.device.id}"
            raise ValueError(f'{name} must live on device="{self.name}" or on the host, got an array on {other}')
        return taken

    def wait(self) -> None:
        """Wait for the current stream: what was made on it may then be used on others."""
        self.cupy.cuda.get_current_stream().synchronize()

    def settle(self) -> None:
        """Wait for everything that was started on this device, on any stream."""
        with self.use():
            self.cupy.cuda.runtime.deviceSynchronize()

    def upload(self, arrays: Sequence[Any], dtype: Any = np.float32) -> Any:
        """Arrays of one shape, of the host or of this device, stacked here."""
        if is_resident(arrays[0]):
            return stacked(arrays).astype(dtype, copy=False)
        moved = self.cupy.empty((len(arrays), *arrays[0].shape), dtype)
        step = max(1, TUNING.staged_bytes * len(arrays) // max(moved.nbytes, 1))
        for first in range(0, len(arrays), step):
            part, there = arrays[first : first + step], moved[first : first + step]
            with self.staging(there.shape, there.dtype) as staged:
                if not isinstance(part, np.ndarray):
                    np.stack(part, out=staged, casting="same_kind")
                elif staged.nbytes < TUNING.shared_copy:
                    np.copyto(staged, part, casting="same_kind")
                else:
                    bounds = np.linspace(0, len(part), TUNING.copiers + 1).astype(int).tolist()
                    with ThreadPoolExecutor(TUNING.copiers) as pool:
                        copies = [
                            pool.submit(np.copyto, staged[a:b], part[a:b], "same_kind") for a, b in pairwise(bounds)
                        ]
                    for copy in copies:
                        copy.result()
                there.set(staged)
                self.wait()
        return moved

    def upload_all(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """Arrays of the host by their names, moved here in one piece."""
        sizes = [-(-array.nbytes // 256) * 256 for array in arrays.values()]  # as CUDA aligns what it allocates
        bounds = np.cumsum([0, *sizes])
        moved = self.cupy.empty(int(bounds[-1]), np.uint8)
        with self.staging(moved.shape, np.dtype(np.uint8)) as staged:
            for array, first in zip(arrays.values(), bounds[:-1].tolist(), strict=True):
                staged[first : first + array.nbytes].view(array.dtype).reshape(array.shape)[...] = array
            moved.set(staged)
            self.wait()
        return {
            name: moved[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
            for (name, array), first in zip(arrays.items(), bounds[:-1].tolist(), strict=True)
        }

    def download(self, array: Any) -> np.ndarray:
        """A device's array as one of the host."""
        if array.size == 0:
            return np.empty(array.shape, array.dtype)
        with self.staging(array.shape, array.dtype) as staged:
            self.cupy.ascontiguousarray(array).get(out=staged)
            return staged.copy()

    @contextmanager
    def staging(self, shape: tuple[int, ...], dtype: np.dtype) -> Iterator[np.ndarray]:
        """Page-locked host memory, from and to which copies are fast; no other thread has it until they are done."""
        size = prod(shape) * dtype.itemsize
        with self._lock:
            idle = sorted(self._idle_memory, key=len)
            fitting = [memory for memory in idle if len(memory) >= size]
            chosen = fitting[0] if fitting else idle[-1] if idle else None  # what is too small is given up for more
            self._idle_memory = [memory for memory in idle if memory is not chosen]
        if chosen is None or len(chosen) < size:
            chosen = importlib.import_module("cupyx").empty_pinned(size, np.uint8)
        yield chosen[:size].view(dtype).reshape(shape)
        with self._lock:  # only after copies that are done: an exception may have left one under way
            self._idle_memory.append(chosen)

    def kernel(self, name: str, filter_shape: tuple[int, ...], flags: tuple[bool, ...], shared: int = 0) -> Any:
        """A kernel for filters (channels, layers, rows, columns) and flags (nonnegative, sampled, mapped, around).

        `shared` is how many bytes of shared memory it will be launched with.
        """
        key = (*filter_shape, *(int(flag) for flag in flags))
        with self._lock:
            if key not in self._modules:
                options = tuple(f"-D{name}={value}" for name, value in zip(CONSTANTS, key, strict=True))
                self._modules[key] = self.cupy.RawModule(code=source(), options=("--std=c++14", *options))
            found = self._kernels.get((name, key))
            if found is None:
                found = self._kernels[name, key] = self._modules[key].get_function(name)
            room = self.shared_limit - RESERVED_SHARED
            # A kernel gets 48 KiB of shared memory without asking.
            if shared > 48 * 1024 - RESERVED_SHARED and found.max_dynamic_shared_size_bytes != room:
                found.max_dynamic_shared_size_bytes = room
        return found


@cache
def source() -> str:
    """All kernels as one text."""
    folder, names = (
        Path(__file__).parent,
        ["scan", "working_set", "sweeps", "extrapolation", "evaluate", "statistics", "tensor"],
    )
    files = [folder / "common.cuh", *(folder / f"{name}.cu" for name in names)]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def check_device(device: str) -> None:
    """Refuse a string that names no device, and a device that is not there."""
    if not is_cpu(device):
        open_device(device)
