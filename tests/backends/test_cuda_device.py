"""Finding a device, and saying what is missing in one line."""

import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from pointillist.backends.cuda import device as devices
from pointillist.backends.cuda.device import CONSTANTS, is_cpu, open_device, source


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


def test_without_cupy_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(RuntimeError, match=r"pip install 'pointillist\[cuda\]'") as caught:
        open_device("cuda")
    assert "\n" not in str(caught.value)


def _fake(count):
    def devices_there():
        if count is None:
            raise OSError("no driver\nat all")
        return count

    return SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=devices_there)))


def test_without_a_driver_one_line_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", _fake(None))
    with pytest.raises(RuntimeError, match="found no CUDA device") as caught:
        open_device("cuda")
    assert "\n" not in str(caught.value)


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", _fake(1))
    with pytest.raises(RuntimeError, match="there are 1 CUDA devices"):
        open_device("cuda:1")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc, but no device")
@pytest.mark.parametrize(
    "constants",
    [
        (1, 1, 11, 11, 0, 0, 0, 0),
        (3, 1, 5, 4, 1, 1, 1, 0),
        (1, 1, 1, 25, 0, 1, 0, 1),
        (1, 5, 5, 5, 0, 1, 1, 0),
        (2, 7, 3, 4, 1, 0, 0, 1),
    ],
)
def test_kernels_compile(tmp_path, constants):
    options = [f"-D{name}={value}" for name, value in zip(CONSTANTS, constants, strict=True)]
    (tmp_path / "kernels.cu").write_text(devices.source(), encoding="utf-8")
    subprocess.run(["nvcc", "-arch=sm_90", "-cubin", *options, "kernels.cu"], cwd=tmp_path, check=True)
    assert "scan" in source()
