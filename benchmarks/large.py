"""One image of any size, coded by tiles: ``python -m benchmarks.large --output bench-output [--side 4096] [--mapped]``.

Prints time, peak memory of the whole process, the gap of the whole image, and the residual along the borders of cells and
tiles over that elsewhere: one where there are no seams.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from benchmarks import measure
from benchmarks.context import Context, parser
from benchmarks.inputs import PENALTY
from benchmarks.tables import Table
from pointillist.plot.page import peak_mb
from pointillist.problem import Geometry
from pointillist.solvers.large_signals import Blocks

_NEAR = 5  # samples on either side of a border: where filters of both sides overlap


def code(folder: str, *, mapped: bool, tol: float) -> dict[str, Any]:
    """Code the image in a folder; run in a process of its own."""
    image = np.load(Path(folder) / "image.npy", mmap_mode="r" if mapped else None)
    filters = np.load(Path(folder) / "filters.npy")
    begin = time.perf_counter()
    result = pt.encode([image], filters, PENALTY, tol=tol)
    seconds = time.perf_counter() - begin
    peak = peak_mb()
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
    options = parser("benchmarks.large", __doc__, quick=None)
    options.add_argument("--side", type=int, nargs="+", default=[2048, 4096], help="pixels along a side")
    options.add_argument("--tol", type=float, default=1e-3)
    options.add_argument("--mapped", action="store_true", help="leave the image in its file, its residual in another")
    arguments = options.parse_args()
    context = Context.of(arguments)
    inputs = context.inputs
    title = f"one image, {len(inputs.filters)} filters of 11×11, λ = {PENALTY:g}, gap {arguments.tol:g}"
    columns = ["side", "seconds", "peak MB", "of it before coding", "gap", "non-zeros", "seam", "status"]
    table = Table(title, columns, note=f"{measure.threads()} threads{', image in a file' if arguments.mapped else ''}")
    for side in arguments.side:
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "image.npy", inputs.large(side))
            np.save(Path(folder) / "filters.npy", inputs.filters)
            found = measure.apart("benchmarks.large:code", folder=folder, mapped=arguments.mapped, tol=arguments.tol)
        memory, gap, seam = [found["coding_peak_mb"], found["import_mb"]], f"{found['gap']:.1e}", f"{found['seam']:.3f}"
        table.add(side, found["seconds"], *memory, gap, found["nonzeros"], seam, found["status"])
    context.write("large", [table])


if __name__ == "__main__":
    main()
