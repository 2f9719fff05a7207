"""The notebook runs from top to bottom, and is kept with its outputs, which are small."""

import importlib.util
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="the extra docs is not installed: pip install -e '.[docs]'")
ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "tour.ipynb"


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("docs_notebook", ROOT / "scripts" / "docs_notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _pictures(notebook):
    outputs = [output for cell in _cells(notebook) for output in cell.outputs]
    return [output for output in outputs if {"image/png", "image/jpeg"} & set(output.get("data", {}))]


def _words(notebook):
    outputs = [output for cell in _cells(notebook) for output in cell.outputs]
    return [output.text for output in outputs if output.output_type == "stream"]


def test_outputs_are_kept_and_small():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert [cell.execution_count for cell in _cells(notebook)] == list(range(1, len(_cells(notebook)) + 1))
    assert len(_pictures(notebook)) == 6
    assert len(_words(notebook)) == 3
    assert NOTEBOOK.stat().st_size < 400_000


def test_the_page_shows_code_outputs_and_pictures(maker):
    page, pictures = maker.page()
    assert page.startswith("# A tour of Pointillist\n")
    assert len(pictures) == 6
    assert all(f"]({address})" in page for address in pictures)
    assert page.count("```python\n") == len(_cells(nbformat.read(NOTEBOOK, as_version=4)))
    assert "% above the optimum" in page


@pytest.mark.slow
def test_it_runs(maker):
    pytest.importorskip("ipykernel", reason="the extra docs is not installed: pip install -e '.[docs]'")
    fresh, kept = maker.execute(NOTEBOOK), nbformat.read(NOTEBOOK, as_version=4)
    assert len(_pictures(fresh)) == 6
    assert [len(text.split()) for text in _words(fresh)] == [len(text.split()) for text in _words(kept)]
