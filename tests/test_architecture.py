"""Layers that imports keep, and what stays unloaded until it is needed."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("heavy", ["matplotlib", "typer", "cupy", "torch", "dask", "mne"])
def test_importing_the_package_stays_light(heavy, imported):
    assert "pointillist.learners.batch" in imported
    assert heavy not in imported


@pytest.fixture(scope="module")
def imported():
    """Modules that a fresh interpreter has after `import pointillist` and making a learner."""
    script = "import sys, pointillist; pointillist.BatchCSC(); print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
