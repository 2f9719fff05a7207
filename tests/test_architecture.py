"""Layers, light imports and the length of files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "pointillist").rglob("*.py"))


def _lint(folder):
    command = Path(sys.executable).with_name("lint-imports")
    if not command.exists():
        pytest.skip("import-linter is not installed beside this Python")
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [command, "--no-cache"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_imports_keep_the_contracts():
    done = _lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("model/metrics.py", "import numba", "Compilers and devices stay behind backends"),
        ("learners/feed.py", "from llvmlite import binding", "Compilers and devices stay behind backends"),
        ("solvers/base.py", "from pointillist.backends.cuda import plan", "Compilers and devices stay behind backends"),
        ("cli/kernels.py", "from pointillist.backends import devices", "Commands and the page never reach kernels"),
        ("model/metrics.py", "import pointillist.solvers.base", "Imports point down the layers"),
    ],
)
def test_a_broken_contract_is_found(module, line, contract, tmp_path):
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.safetensors", "*.jpg")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "src" / "pointillist" / module).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    done = _lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{contract} BROKEN" in done.stdout
    assert "1 broken" in done.stdout


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
