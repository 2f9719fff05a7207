"""Run the notebook and make a page of it.

``python scripts/docs_notebook.py`` runs ``notebooks/tour.ipynb`` and stores what it prints and draws in it, pictures
as small files. The site's build joins prose, code and outputs into a page, without running anything.
"""

from __future__ import annotations

import base64
import io
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "tour.ipynb"
_WIDEST = 900
_KINDS = {"image/png": "png", "image/jpeg": "jpg"}
_BEFORE = "The notebook `notebooks/tour.ipynb` with what it prints and draws; run it to try things.\n"


def page() -> tuple[str, dict[str, bytes]]:
    """Markdown of the notebook, and its pictures by the address that the page has for them."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts.append(_shown(output, pictures))
    first, _, rest = "\n\n".join(filter(None, parts)).partition("\n")
    return f"{first}\n\n{_BEFORE}{rest}\n", pictures


def _shown(output: dict[str, Any], pictures: dict[str, bytes]) -> str:
    """One output as Markdown; its picture, if it has one, is added to the others."""
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = output.get("data", {})
    for kind in data.keys() & _KINDS:
        address = f"images/tour-{len(pictures) + 1}.{_KINDS[kind]}"
        pictures[address] = base64.b64decode("".join(data[kind]))
        return f"![What the cell above draws]({address})"
    return f"```text\n{''.join(data['text/plain']).rstrip()}\n```" if "text/plain" in data else ""


def small(png: bytes) -> tuple[str, bytes]:
    """A picture not wider than the page, as PNG in few colours or as JPEG, whichever is smaller, after its kind."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    if picture.width > _WIDEST:
        picture = picture.resize((_WIDEST, round(picture.height * _WIDEST / picture.width)), Image.Resampling.LANCZOS)
    drawn, taken = io.BytesIO(), io.BytesIO()
    picture.quantize(64).save(drawn, format="PNG", optimize=True)
    picture.save(taken, format="JPEG", quality=82, optimize=True)
    return min(("image/png", drawn.getvalue()), ("image/jpeg", taken.getvalue()), key=lambda one: len(one[1]))


def execute(path: Path) -> Any:
    """The notebook after a run from top to bottom in an empty folder, by this Python whatever kernels are on record."""
    import nbformat
    from jupyter_client import KernelManager
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    manager = KernelManager()
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, km=manager, timeout=120, resources={"metadata": {"path": folder}}).execute()
    return notebook


def keep() -> None:
    """Run the notebook and store its outputs, without times and without what a machine says about itself."""
    import nbformat

    notebook = execute(NOTEBOOK)
    notebook.metadata.pop("language_info", None)
    for cell in (one for one in notebook.cells if one.cell_type == "code"):
        cell.metadata = {}
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                kind, drawn = small(base64.b64decode(output.data["image/png"]))
                output.data = {kind: base64.b64encode(drawn).decode()}
    text = nbformat.writes(notebook, indent=1)
    NOTEBOOK.write_text(re.sub(r"\n*\Z", "\n", text), encoding="utf-8")


if __name__ == "__main__":
    keep()
    print(f"{NOTEBOOK.name}: {NOTEBOOK.stat().st_size / 1e3:.0f} kB")
