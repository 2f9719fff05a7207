"""How far a reader has to go to follow a call, and what stays unloaded until it is needed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ENTERED = {
    "encode": (18, 160),
    "OnlineCSC.fit": (28, 268),
    "inpaint": (14, 90),
    "pointillist learn": (48, 412),
    "pointillist encode": (47, 372),
}
"""Modules and functions of the package that a call enters at most."""


@pytest.fixture(scope="module")
def entered():
    script = Path(__file__).parents[1] / "scripts" / "calls.py"
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    return {name: (int(m), int(n)) for name, m, n in re.findall(r"^(.*): (\d+) modules, (\d+) functions$", said, re.M)}


@pytest.mark.parametrize("call", ENTERED)
def test_a_call_goes_through_few_rooms(call, entered):
    modules, functions = entered[call]
    assert (modules <= ENTERED[call][0], functions <= ENTERED[call][1]) == (True, True), (modules, functions)


@pytest.mark.parametrize("heavy", ["matplotlib", "typer", "cupy", "torch", "dask", "mne"])
def test_importing_the_package_stays_light(heavy, imported):
    assert "pointillist.learners.estimators" in imported
    assert heavy not in imported


@pytest.fixture(scope="module")
def imported():
    """Modules that a fresh interpreter has after `import pointillist` and making a learner."""
    script = "import sys, pointillist; pointillist.BatchCSC(); print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
