"""Finding a device, and saying what is missing in one line."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from threading import Barrier
from types import SimpleNamespace

import numpy as np
import pytest

from pointillist.arrays import is_cpu
from pointillist.cuda import device as devices
from pointillist.cuda.device import CONSTANTS, open_device, source


@pytest.fixture(autouse=True)
def _forget_devices():
    open_device.cache_clear()
    yield
    open_device.cache_clear()


def test_device_names():
    assert is_cpu("cpu")
    assert not is_cpu("cuda")
    assert not is_cpu("cuda:1")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "CPU", 0, None])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="device must be"):
        is_cpu(name)


def _cupy(count):
    """CuPy where a driver counts so many devices, or where there is no driver."""

    def devices_there():
        if count is None:
            raise OSError("no driver\nat all")
        return count

    return SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=devices_there)))


@pytest.mark.parametrize(
    ("cupy", "name", "words"),
    [
        (None, "cuda", r"pip install 'pointillist\[cuda\]'"),
        (_cupy(None), "cuda", "found no CUDA device"),
        (_cupy(1), "cuda:1", "there are 1 CUDA devices"),
    ],
)
def test_what_is_missing_is_said_in_one_line(monkeypatch, cupy, name, words):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(RuntimeError, match=words) as caught:
        open_device(name)
    assert "\n" not in str(caught.value)


class _Stream(nullcontext):
    def __init__(self, non_blocking):
        super().__init__()


@pytest.fixture
def device(monkeypatch):
    """A device without one: arrays of the host stand for its own, and copies are made at once."""

    class Array(np.ndarray):
        def set(self, given):
            self[...] = given

        def get(self, out):
            out[...] = self

    class Number(nullcontext):
        attributes = {"MaxSharedMemoryPerBlockOptin": 2**17}  # noqa: RUF012
        compute_capability = "90"

    current = SimpleNamespace(synchronize=lambda: None)
    cuda = SimpleNamespace(Device=Number, Stream=_Stream, get_current_stream=lambda: current)
    cupy = SimpleNamespace(
        cuda=cuda, empty=lambda shape, dtype: np.empty(shape, dtype).view(Array), ascontiguousarray=lambda array: array
    )
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(empty_pinned=np.empty))
    return devices.Device(cupy, 0)


def test_threads_never_share_a_stream_or_memory_for_copies(device):
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((1, 300)).astype(np.float32) for _ in range(40)]
    together, met = Barrier(devices.TUNING.streams), []

    def moved(i):
        with device.own_stream():
            found = device.download(device.upload_all({"a": given[i][0]})["a"].view(type(device.cupy.empty(1, "f4"))))
        return found, device.download(device.upload(given[i]))

    def hold(_):
        with device.own_stream(), device.staging((5,), np.dtype(np.uint8)) as staged:
            together.wait(10)  # all are held at once
            met.append(staged.__array_interface__["data"][0])
            together.wait(10)

    with ThreadPoolExecutor(8) as pool:
        for i, (one, other) in enumerate(pool.map(moved, range(len(given)))):
            np.testing.assert_array_equal(one, given[i][0])
            np.testing.assert_array_equal(other, given[i])
        list(pool.map(hold, range(devices.TUNING.streams)))
    assert len(set(met)) == devices.TUNING.streams
    with ExitStack() as stack:  # all streams were given back
        for _ in range(devices.TUNING.streams):
            stack.enter_context(device.own_stream())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc, but no device")
@pytest.mark.parametrize(
    "constants",
    [
        (1, 1, 11, 11, 0, 0, 0, 0), (3, 1, 5, 4, 1, 1, 1, 0), (1, 1, 1, 25, 0, 1, 0, 1), (1, 5, 5, 5, 0, 1, 1, 0),
        (2, 7, 3, 4, 1, 0, 0, 1),
    ],
)  # fmt: skip
def test_kernels_compile(tmp_path, constants):
    options = [f"-D{name}={value}" for name, value in zip(CONSTANTS, constants, strict=True)]
    (tmp_path / "kernels.cu").write_text(devices.source(), encoding="utf-8")
    subprocess.run(["nvcc", "-arch=sm_90", "-cubin", *options, "kernels.cu"], cwd=tmp_path, check=True)
    assert "scan" in source()
