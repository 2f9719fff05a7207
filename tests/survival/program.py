"""A program that learns with checkpoints and may be killed at any moment: run it again until it ends.

It prints a line for every step that it has done, so that whoever kills it knows how far it is.
"""

import argparse

import numpy as np

import pointillist as pt
from pointillist.learners.checkpoints import Checkpoints


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--every", default="1")
    for name, usual in {"signals": 12, "side": 40, "epochs": 5, "filters": 8, "size": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--rank", type=int, help="learn from three channels")
    parser.add_argument("--robust", action="store_true", help="learn from signals of which some are foreign")
    arguments = parser.parse_args()

    model = pt.OnlineCSC(
        n_filters=arguments.filters,
        filter_size=arguments.size,
        channels=arguments.rank is not None,
        rank=arguments.rank,
        robust=pt.Robust() if arguments.robust else None,
        batch_size=2,
        n_epochs=arguments.epochs,
        random_state=0,
        n_jobs=1,
    )
    checkpoints = Checkpoints(arguments.output, every=arguments.every, keep=True)
    told = [lambda info: print(info["iteration"], flush=True)]
    model.fit(make_signals(arguments), callbacks=told, checkpoint=checkpoints, resume=True)
    pt.save(model, arguments.output)
    checkpoints.clear()
    print("done", flush=True)


def make_signals(arguments: argparse.Namespace) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    pictures = [pt.contrast_normalise(picture) for picture in pt.photographs("train").values()]
    corners = rng.integers(0, 150, (arguments.signals, 2))
    signals = [
        pictures[i % len(pictures)][y : y + arguments.side, x : x + arguments.side] for i, (y, x) in enumerate(corners)
    ]
    if arguments.rank is not None:
        signals = [np.stack([one, one[::-1], one.T]) for one in signals]
    if arguments.robust:
        signals[0] = 10 * signals[0]
    return signals


if __name__ == "__main__":
    main()
