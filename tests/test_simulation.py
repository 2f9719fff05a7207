"""The simulation of clusters runs, and says what its formula says where nothing but the client and the workers matter."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "simulate_cluster.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("simulate_cluster", SCRIPT)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("workers", [1, 2, 10])
def test_ideal_links_and_equal_images_give_the_formula(script, workers, monkeypatch):
    monkeypatch.setattr(script.Costs, "update", 0.0)
    costs = script.Costs(100, 11, 0.024, 0.0, 0.005, 0.0, 1.0, 1e30, 0.0, 1e30)
    step = script.simulate(costs, workers, 20 * workers, np.random.default_rng(0))
    assert step.total == pytest.approx(20 * workers * (0.024 / workers + 0.005))


def test_sums_come_back_from_large_batches(script):
    costs = script.Costs(100, 11, 0.024, 0.25, 0.005, 5e-4, 120e3, 1.25e9, 2e-4, 4e9)
    assert script.piece_size(costs, 100) is None
    assert script.piece_size(costs, 1000) == 5
    many, few = (script.simulate(costs, n, 20 * n, np.random.default_rng(0)) for n in (1000, 10))
    assert few.limit == "client"
    assert 20_000 / many.total > 10 * 200 / few.total


def test_the_table_is_printed(script, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["simulate_cluster", "--steps", "1", "--batch-per-worker", "4"])
    script.main()
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(script.WORKERS) + 1
