"""Finding a CUDA device and compiling kernels for it. CuPy is imported here and nowhere else."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from functools import cache
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from pointillist.backends.cuda.plan import RESERVED_SHARED

_INSTALL = "pip install 'pointillist[cuda]' (cupy-cuda12x, or cupy-cuda13x for a CUDA 13 driver)"
_PLAIN_SHARED = 48 * 1024  # shared memory that a kernel gets without asking

STREAMS = 4
"""Batches in flight: some are moved while another is computed."""

_SOURCES = ("common.cuh", "scan.cu", "descent.cu", "evaluate.cu", "statistics.cu")


def is_cpu(device: str) -> bool:
    """Whether a device's name means no device; anything but "cpu", "cuda" and "cuda:N" is an error."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:N", got {device!r}')
    return device == "cpu"


@cache
def open_device(device: str) -> Device:
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
        with self.use():
            attributes = cupy.cuda.Device(number).attributes
            self.multiprocessors = int(attributes["MultiProcessorCount"])
            self.shared_limit = int(attributes["MaxSharedMemoryPerBlockOptin"])
            # Kept, because the memory pool keeps what each of them frees.
            self.streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
        self._modules: dict[tuple[int, ...], Any] = {}
        self._kernels: dict[tuple[Any, ...], Any] = {}
        self._lock = Lock()
        self._staged: dict[int, np.ndarray] = {}

    def use(self) -> Any:
        """A context in which this device is the current one."""
        return self.cupy.cuda.Device(self.number)

    def free_memory(self) -> int:
        """Bytes that can be had, those that CuPy's pool holds and does not use included."""
        with self.use():
            free, _ = self.cupy.cuda.runtime.memGetInfo()
            return int(free + self.cupy.get_default_memory_pool().free_bytes())

    def upload(self, arrays: Sequence[np.ndarray]) -> Any:
        """Arrays of one shape, stacked, in float32 on this device."""
        shape = (len(arrays), *arrays[0].shape)
        staged = self._staging(shape, np.dtype(np.float32))
        np.stack(arrays, out=staged, casting="same_kind")
        moved = self.cupy.empty(shape, np.float32)
        moved.set(staged)
        self.cupy.cuda.get_current_stream().synchronize()
        return moved

    def download(self, array: Any) -> np.ndarray:
        """A device's array as one of the host."""
        if array.size == 0:
            return np.empty(array.shape, array.dtype)
        staged = self._staging(array.shape, array.dtype)
        self.cupy.ascontiguousarray(array).get(out=staged)
        return staged.copy()

    def _staging(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Page-locked host memory of the current stream, from and to which copies are fast and hold up nobody else."""
        size = prod(shape) * dtype.itemsize
        stream = self.cupy.cuda.get_current_stream().ptr
        if len(self._staged.get(stream, b"")) < size:
            self._staged.pop(stream, None)
            self._staged[stream] = importlib.import_module("cupyx").empty_pinned(size, np.uint8)
        return self._staged[stream][:size].view(dtype).reshape(shape)

    def kernel(
        self, name: str, filter_shape: tuple[int, int, int], flags: tuple[bool, bool, bool], shared: int = 0
    ) -> Any:
        """A kernel for filters (channels, rows, columns) and flags (nonnegative, sampled, mapped), with `shared` bytes."""
        key = (*filter_shape, *(int(flag) for flag in flags))
        with self._lock:
            found = self._kernels.get((name, key))
            if found is None:
                found = self._kernels[name, key] = self._module(key).get_function(name)
            if shared > _PLAIN_SHARED and found.max_dynamic_shared_size_bytes < shared:
                found.max_dynamic_shared_size_bytes = self.shared_limit - RESERVED_SHARED
        return found

    def _module(self, key: tuple[int, ...]) -> Any:
        if key not in self._modules:
            names = ("CH", "FH", "FW", "NONNEGATIVE", "SAMPLED", "MAPPED")
            options = tuple(f"-D{name}={value}" for name, value in zip(names, key, strict=True))
            self._modules[key] = self.cupy.RawModule(code=source(), options=("--std=c++14", *options))
        return self._modules[key]


@cache
def source() -> str:
    """All kernels as one text."""
    folder = Path(__file__).parent
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in _SOURCES)


def to_host(array: Any) -> Any:
    """A NumPy array from one that lives on a device (CuPy, torch); anything else as it is."""
    if isinstance(array, np.ndarray) or not hasattr(array, "__cuda_array_interface__"):
        return array
    cupy = importlib.import_module("cupy")
    return cupy.asnumpy(cupy.asarray(array))
