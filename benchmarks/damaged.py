"""Learning from images with half of their pixels missing, in the time that whole ones take.

``python -m benchmarks.damaged --output bench-output [--quick]``
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.inputs import FILTER_SIZE, PENALTY, Inputs
from benchmarks.judge import objective
from benchmarks.tables import Table

SEEN = 0.5


def learned(inputs: Inputs, images: NDArray, weights: NDArray | None, seconds: float | None = None) -> pt.OnlineCSC:
    """Filters from one pass over the images, or as many steps as fit into some seconds."""

    def stop(info: dict[str, Any]) -> bool:
        return seconds is not None and info["seconds"] >= seconds

    start = inputs.start(inputs.scale.n_filters)
    update = pt.FilterUpdate(init=start)
    how = {"batch_size": 10, "n_epochs": 1 if seconds is None else 10, "update": update}
    model = pt.OnlineCSC(len(start), FILTER_SIZE, PENALTY, random_state=0, **how)
    return model.fit(images, weights=weights, callbacks=[stop])


def main() -> None:
    context = Context.of(parser("benchmarks.damaged", __doc__).parse_args())
    inputs = context.inputs
    images, held_out = inputs.patches("train", context.pick(300, 30)), inputs.patches("test", context.pick(20, 2))
    weights = (np.random.default_rng(0).random(images.shape) < SEEN).astype(np.float32)
    learned(inputs, images[:10], weights[:10])  # compile
    whole = learned(inputs, images, None)
    runs = {
        "whole images, one pass": whole,
        "half of the pixels, one pass": learned(inputs, images, weights),
        "half of the pixels, the same time": learned(inputs, images, weights, whole.history_[-1]["seconds"]),
    }
    table = Table(
        f"{inputs.scale.n_filters} filters from {len(images)} patches, judged on {len(held_out)} unseen whole ones",
        ["", "steps", "seconds", "held-out objective", "against whole"],
    )
    level = objective(held_out, whole.filters_)
    for name, model in runs.items():
        value = objective(held_out, model.filters_)
        table.add(name, model.n_iter_, model.history_[-1]["seconds"], value, f"{100 * (value / level - 1):+.1f} %")
    context.write("damaged", [table])


if __name__ == "__main__":
    main()
