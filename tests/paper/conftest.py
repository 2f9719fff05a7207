"""A scale on which every figure takes about a second, and a laboratory of that scale."""

import pytest
from paper.inputs import Inputs, Scale
from paper.lab import Lab

from paper import report

TINY = Scale(
    n_filters=4, n_overcomplete=8, filter_size=5, n_images=2, side=24, n_judged=1, iterations=3, passes=2,
    rival_passes=1, rival_seconds=0.1, n_patches=6, n_rival_patches=3, n_single=3, batch_size=2, n_tested=1,
    n_pictures=2, picture_side=24, fractions=(0.2, 1.0), counts=(4, 8), sides=(3, 5), signals=(20, 28), repeats=1,
)  # fmt: skip


@pytest.fixture
def tiny(monkeypatch):
    """Runs that ask for the quick scale get the tiny one, and no SPORCO."""
    monkeypatch.setattr(report, "QUICK", TINY)
    monkeypatch.setattr("paper.rivals.has_sporco", lambda: False)
    return TINY


@pytest.fixture
def lab(tiny):
    return Lab(Inputs(tiny))
