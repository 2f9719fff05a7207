"""Layers, light imports and the length of files."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "pointillist").rglob("*.py"))


def test_imports_point_down_the_layers():
    command = Path(sys.executable).with_name("lint-imports")
    if not command.exists():
        pytest.skip("import-linter is not installed beside this Python")
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 kept, 0 broken" in done.stdout


@pytest.mark.parametrize("heavy", ["matplotlib", "typer", "cupy", "torch", "dask"])
def test_importing_the_package_stays_light(heavy, imported):
    assert "pointillist.learners.batch" in imported
    assert heavy not in imported


@pytest.fixture(scope="module")
def imported():
    """Modules that a fresh interpreter has after `import pointillist` and making a learner."""
    script = "import sys, pointillist; pointillist.BatchCSC(); print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_files_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450


def test_the_sources_were_found():
    assert len(SOURCES) > 20
