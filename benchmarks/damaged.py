"""Learning from images with half of their pixels missing, in the time that whole ones take.

``python -m benchmarks.damaged --output bench-output [--quick]``
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import pointillist as pt
from benchmarks import measure, tables
from benchmarks.inputs import FILTER_SIZE, PENALTY, Inputs
from benchmarks.tables import Table

SEEN = 0.5


def learned(inputs: Inputs, images: NDArray, weights: NDArray | None, seconds: float | None = None) -> pt.OnlineCSC:
    """Filters from one pass over the images, or as many steps as fit into some seconds."""

    def stop(info: dict[str, Any]) -> bool:
        return seconds is not None and info["seconds"] >= seconds

    model = pt.OnlineCSC(
        inputs.n_filters,
        FILTER_SIZE,
        PENALTY,
        batch_size=10,
        update=pt.FilterUpdate(init=inputs.start(inputs.n_filters)),
        random_state=0,
    )
    return model.fit(images, weights=weights, n_epochs=1 if seconds is None else 10, callbacks=[stop])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.damaged", description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("bench-output"))
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    inputs = Inputs(quick=arguments.quick)
    images, held_out = (inputs.natural(split, count // (10 if inputs.quick else 1)) for split, count in _SPLITS)
    weights = (np.random.default_rng(0).random(images.shape) < SEEN).astype(np.float32)
    learned(inputs, images[:10], weights[:10])  # compile
    whole = learned(inputs, images, None)
    runs = {
        "whole images, one pass": whole,
        "half of the pixels, one pass": learned(inputs, images, weights),
        "half of the pixels, the same time": learned(inputs, images, weights, whole.history_[-1]["seconds"]),
    }
    table = Table(
        f"{inputs.n_filters} filters from {len(images)} patches, judged on {len(held_out)} unseen whole ones",
        ["", "steps", "seconds", "held-out objective", "against whole"],
    )
    objectives = {
        name: float(np.sum(pt.encode(held_out, model.filters_, PENALTY).objective)) for name, model in runs.items()
    }
    for name, model in runs.items():
        excess = objectives[name] / objectives["whole images, one pass"] - 1
        table.add(name, model.n_iter_, model.history_[-1]["seconds"], objectives[name], f"{100 * excess:+.1f} %")
    tables.show(table, Console(width=None if Console().is_terminal else 160))
    record = {"facts": measure.facts(), "table": vars(table)}
    (arguments.output / "damaged.json").write_text(json.dumps(measure.plain(record), indent=1, ensure_ascii=False))


_SPLITS = (("train", 300), ("test", 20))


if __name__ == "__main__":
    main()
