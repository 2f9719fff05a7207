"""The benchmarks lie beside the package, not in it."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))


@pytest.fixture
def sporco(monkeypatch):
    """SPORCO without the seconds that it takes to plan its transforms well, and with one thread; skipped where it is not."""
    transforms = pytest.importorskip("sporco.fft")
    monkeypatch.setattr(transforms, "pyfftw_planner_effort", "FFTW_ESTIMATE")
    monkeypatch.setattr(transforms, "pyfftw_threads", 1)
    return transforms
