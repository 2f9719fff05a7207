"""Finding a CUDA device, compiling kernels for it and moving arrays to it. CuPy is imported only once one is asked for."""

import importlib
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from math import prod
from pathlib import Path
from queue import LifoQueue
from threading import Lock
from typing import Any

import numpy as np

from pointillist.arrays import as_cupy, is_resident, stacked
from pointillist.cuda.plan import RESERVED_SHARED

_INSTALL = "pip install 'pointillist[cuda]' (cupy-cuda12x, or cupy-cuda13x for a CUDA 13 driver)"
_STAGED_BYTES = 2**25  # of host memory that arrays go through on their way, unless one of them has more
_SHARED_COPY, _COPIERS = 2**22, 4  # bytes from which on threads share a copy, and how many do
_ALIGNED = 256  # bytes at whose multiples arrays begin
_PLAIN_SHARED = 48 * 1024 - RESERVED_SHARED  # shared memory that a kernel gets without asking, beside its own variables

STREAMS = 4
"""Streams, each with a group of signals: some are moved while another is computed."""

CONSTANTS = ("CH", "FD", "FH", "FW", "NONNEGATIVE", "SAMPLED", "MAPPED", "AROUND")
"""Constants that the kernels are compiled with: a filter's channels, layers, rows and columns, and flags."""

_SOURCES = (
    "common.cuh",
    "scan.cu",
    "working_set.cu",
    "sweeps.cu",
    "extrapolation.cu",
    "evaluate.cu",
    "statistics.cu",
    "tensor.cu",
)


def is_cpu(device: str) -> bool:
    """Whether a device's name means no device; anything but "cpu", "cuda" and "cuda:N" is an error."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:N", got {device!r}')
    return device == "cpu"


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
            for _ in range(STREAMS):
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
        step = max(1, _STAGED_BYTES * len(arrays) // max(moved.nbytes, 1))
        for first in range(0, len(arrays), step):
            part, there = arrays[first : first + step], moved[first : first + step]
            with self._staging(there.shape, there.dtype) as staged:
                if not isinstance(part, np.ndarray):
                    np.stack(part, out=staged, casting="same_kind")
                elif staged.nbytes < _SHARED_COPY:
                    np.copyto(staged, part, casting="same_kind")
                else:
                    _copy_by_threads(staged, part)
                there.set(staged)
                self.wait()
        return moved

    def upload_all(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """Arrays of the host by their names, moved here in one piece."""
        sizes = [-(-array.nbytes // _ALIGNED) * _ALIGNED for array in arrays.values()]
        bounds = np.cumsum([0, *sizes])
        moved = self.cupy.empty(int(bounds[-1]), np.uint8)
        with self._staging(moved.shape, np.dtype(np.uint8)) as staged:
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
        with self._staging(array.shape, array.dtype) as staged:
            self.cupy.ascontiguousarray(array).get(out=staged)
            return staged.copy()

    @contextmanager
    def _staging(self, shape: tuple[int, ...], dtype: np.dtype) -> Iterator[np.ndarray]:
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
            found = self._kernels.get((name, key))
            if found is None:
                found = self._kernels[name, key] = self._module(key).get_function(name)
            room = self.shared_limit - RESERVED_SHARED
            if shared > _PLAIN_SHARED and found.max_dynamic_shared_size_bytes != room:
                found.max_dynamic_shared_size_bytes = room
        return found

    def _module(self, key: tuple[int, ...]) -> Any:
        if key not in self._modules:
            options = tuple(f"-D{name}={value}" for name, value in zip(CONSTANTS, key, strict=True))
            self._modules[key] = self.cupy.RawModule(code=source(), options=("--std=c++14", *options))
        return self._modules[key]


def _copy_by_threads(to: np.ndarray, given: np.ndarray) -> None:
    """Copy an array along its first axis in several threads."""
    bounds = np.linspace(0, len(to), _COPIERS + 1).astype(int).tolist()
    with ThreadPoolExecutor(_COPIERS) as pool:
        copies = [pool.submit(np.copyto, to[a:b], given[a:b], "same_kind") for a, b in pairwise(bounds)]
    for copy in copies:
        copy.result()


@cache
def source() -> str:
    """All kernels as one text."""
    folder = Path(__file__).parent
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in _SOURCES)


def check_device(device: str) -> None:
    """Refuse a string that names no device, and a device that is not there."""
    if not is_cpu(device):
        open_device(device)
