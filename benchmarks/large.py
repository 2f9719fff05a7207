"""One image of any size, coded by tiles: ``python -m benchmarks.large --output bench-output [--side 4096] [--mapped]``.

Prints time, peak memory of the whole process, the gap of the whole image, and the residual along the borders of cells and
tiles over that elsewhere: one where there are no seams.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import pointillist as pt
from benchmarks import measure, tables
from benchmarks.inputs import PENALTY, Inputs
from benchmarks.tables import Table
from pointillist.model.geometry import Geometry
from pointillist.solvers.tiles import Blocks

_NEAR = 5  # samples on either side of a border: where filters of both sides overlap


def code(folder: str, *, mapped: bool, tol: float) -> dict[str, Any]:
    """Code the image in a folder; run in a process of its own."""
    image = np.load(Path(folder) / "image.npy", mmap_mode="r" if mapped else None)
    filters = np.load(Path(folder) / "filters.npy")
    begin = time.perf_counter()
    result = pt.encode([image], filters, PENALTY, tol=tol)
    seconds = time.perf_counter() - begin
    peak = measure.peak_mb()
    side = Blocks.of(Geometry(image.shape, filters.shape[1:]), None).side
    return {
        "seconds": seconds,
        "coding_peak_mb": peak,
        "gap": float(result.gap[0]),
        "status": result.status.value,
        "objective": float(result.objective[0]),
        "nonzeros": result.codes.nnz,
        "seam": seam(result.residuals[0][0], side),
    }


def seam(residual: NDArray, side: int) -> float:
    """Root mean square of a residual near the lines that divide it every `side` samples, over that elsewhere."""
    lines = [np.minimum(np.arange(n) % side, -np.arange(n) % side) <= _NEAR for n in residual.shape]
    for near in lines:
        near[: _NEAR + 1] = near[-_NEAR:] = False  # the image's own border is none of the tiles'
    near = lines[0][:, None] | lines[1]
    return float(
        np.sqrt(np.mean(residual[near] ** 2, dtype=np.float64) / np.mean(residual[~near] ** 2, dtype=np.float64))
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("bench-output"))
    parser.add_argument("--side", type=int, nargs="+", default=[2048, 4096], help="pixels along a side")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument(
        "--mapped", action="store_true", help="leave the image in its file, and its residual in another"
    )
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    inputs = Inputs()
    title = f"one image, {len(inputs.filters)} filters of 11×11, λ = {PENALTY:g}, gap {arguments.tol:g}"
    columns = ["side", "seconds", "peak MB", "of it before coding", "gap", "non-zeros", "seam", "status"]
    table = Table(title, columns, note=f"{measure.threads()} threads{', image in a file' if arguments.mapped else ''}")
    for side in arguments.side:
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "image.npy", inputs.large(side))
            np.save(Path(folder) / "filters.npy", inputs.filters)
            found = measure.apart("benchmarks.large:code", folder=folder, mapped=arguments.mapped, tol=arguments.tol)
        table.add(
            side, found["seconds"], found["coding_peak_mb"], found["import_mb"], f"{found['gap']:.1e}", found["nonzeros"],
            f"{found['seam']:.3f}", found["status"],
        )  # fmt: skip
    tables.show(table, Console(width=None if Console().is_terminal else 160))
    record = {"facts": measure.facts(), "table": vars(table)}
    (arguments.output / "large.json").write_text(json.dumps(measure.plain(record), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
