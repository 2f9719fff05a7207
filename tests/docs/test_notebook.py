"""The notebook runs from top to bottom, and is kept without its outputs."""

import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="the extra docs is not installed: pip install -e '.[docs]'")
NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "tour.ipynb"


def _cells():
    return [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]


def test_outputs_are_stripped():
    cells = _cells()
    assert len(cells) > 5
    assert not any(cell.outputs or cell.execution_count for cell in cells)


@pytest.mark.slow
def test_it_runs(tmp_path):
    pytest.importorskip("ipykernel", reason="the extra docs is not installed: pip install -e '.[docs]'")
    from jupyter_client import KernelManager
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    manager = KernelManager()
    # This Python, whatever kernels the machine has on record.
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    NotebookClient(notebook, km=manager, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    pictures = [
        out
        for cell in notebook.cells
        if cell.cell_type == "code"
        for out in cell.outputs
        if "image/png" in out.get("data", {})
    ]
    assert len(pictures) == 6
