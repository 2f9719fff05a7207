"""The notebook runs from top to bottom, and is kept with its outputs, which are small."""

import docs_notebook
import pytest

nbformat = pytest.importorskip("nbformat", reason="the extra docs is not installed: pip install -e '.[docs]'")


def _told(notebook):
    """Numbers of executed cells, of pictures, and of words of each text that was printed."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    pictures = [one for one in outputs if {"image/png", "image/jpeg"} & set(one.get("data", {}))]
    words = [len(one.text.split()) for one in outputs if one.output_type == "stream"]
    return [cell.execution_count for cell in cells], len(pictures), words


def test_outputs_are_kept_small_and_on_the_page():
    kept = nbformat.read(docs_notebook.NOTEBOOK, as_version=4)
    page, pictures = docs_notebook.page()
    counts, n_pictures, _ = _told(kept)
    assert counts == list(range(1, page.count("```python\n") + 1))
    assert n_pictures == len(pictures) > 0
    assert all(f"]({address})" in page for address in pictures)
    assert docs_notebook.NOTEBOOK.stat().st_size < 400_000


@pytest.mark.slow
def test_it_runs():
    pytest.importorskip("ipykernel", reason="the extra docs is not installed: pip install -e '.[docs]'")
    fresh, kept = docs_notebook.execute(docs_notebook.NOTEBOOK), nbformat.read(docs_notebook.NOTEBOOK, as_version=4)
    assert _told(fresh)[1:] == _told(kept)[1:]
