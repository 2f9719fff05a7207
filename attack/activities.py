"""What people do with the package in one process, over and over, in every shape: the work of `attack.soak`."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pointillist as pt
from pointillist.cli.app import run as command

Activity = Callable[[np.random.Generator, Path], None]
SOLVERS = ("cd", "cd", "admm")
BOUNDARIES = ("same", "valid", "full", "circular")


def some_signals(rng: np.random.Generator, count: int = 4) -> tuple[np.ndarray, int, bool]:
    """Signals of one to three dimensions with or without channels, a size for filters, and whether there are channels."""
    ndim, channels = int(rng.integers(1, 4)), bool(rng.random() < 0.3)
    longest = {1: 200, 2: 30, 3: 12}[ndim]
    space = tuple(rng.integers(longest // 2, longest, ndim))
    shape = (count, int(rng.integers(2, 5)), *space) if channels else (count, *space)
    dtype = np.float32 if rng.random() < 0.5 else np.float64
    return rng.standard_normal(shape).astype(dtype), int(rng.integers(2, 5)), channels


def learn_online(rng: np.random.Generator, folder: Path) -> None:
    """Learn from arrays, with checkpoints now and then, and put the model away."""
    signals, size, channels = some_signals(rng)
    how: dict[str, Any] = {"batch_size": int(rng.integers(1, 4)), "n_jobs": int(rng.integers(1, 3))}
    robust = pt.Robust() if rng.random() < 0.2 else None
    how |= {"channels": channels, "robust": robust, "n_epochs": 2}
    model = pt.OnlineCSC(int(rng.integers(2, 6)), size, 0.5, random_state=0, **how)
    keep = pt.Checkpoints(folder / "model.safetensors", every=1) if rng.random() < 0.3 else None
    model.fit(signals, checkpoint=keep)
    pt.save(model, folder / "model.safetensors")
    pt.load(folder / "model.safetensors").transform(signals)


def learn_batch(rng: np.random.Generator, folder: Path) -> None:
    """Learn from all signals in every step."""
    signals, size, channels = some_signals(rng)
    solver = SOLVERS[rng.integers(len(SOLVERS))]
    pt.BatchCSC(3, size, 0.5, channels=channels, solver=solver, max_iter=2, random_state=0, n_jobs=1).fit(signals)


def encode_anything(rng: np.random.Generator, folder: Path) -> None:
    """Find codes with weights, signs, samples, boundaries and solvers of all kinds, and put them together again."""
    signals, size, channels = some_signals(rng)
    ndim = signals.ndim - 1 - channels
    shape = (3, signals.shape[1], *[size] * ndim) if channels else (3, *[size] * ndim)
    filters = rng.standard_normal(shape)
    solver = SOLVERS[rng.integers(len(SOLVERS))]
    boundary = "same" if solver == "admm" else BOUNDARIES[rng.integers(len(BOUNDARIES))]
    how: dict[str, Any] = {"solver": solver, "boundary": boundary, "channels": channels, "n_jobs": 2}
    if solver == "cd":
        how |= {
            "nonnegative": bool(rng.random() < 0.3),
            "weights": rng.random(signals.shape) if rng.random() < 0.3 else None,
        }
    result = pt.encode(
        signals, filters, 0.5 * float(np.max(pt.max_penalty(signals, filters, channels=channels))), **how
    )
    result.codes.events()


def restore_something(rng: np.random.Generator, folder: Path) -> None:
    """Mend a small picture."""
    side = int(rng.integers(24, 48))
    picture = pt.photographs("test")["camera"][50 : 50 + side, 80 : 80 + side + 5]
    noisy = np.clip(picture + 0.1 * rng.standard_normal(picture.shape), 0, 1)
    way = rng.integers(3)
    if way == 0:
        pt.denoise(noisy, 0.1, n_jobs=1)
    elif way == 1:
        pt.inpaint(picture, rng.random(picture.shape) < 0.1, n_jobs=1)
    else:
        pt.super_resolve(picture[:24, :24], 2, n_jobs=1)


def draw_something(rng: np.random.Generator, folder: Path) -> None:
    """Draw filters, convergence, codes and what they make of a signal."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    signals, size, _ = some_signals(np.random.default_rng(int(rng.integers(5))))
    signals = rng.standard_normal((3, 40, 40)) if signals.ndim > 3 else signals[:, :40]
    model = pt.OnlineCSC(3, size, 0.5, random_state=0, n_jobs=1).fit(signals)
    pt.plot_filters(model)
    pt.plot_convergence(model)
    pt.plot_reconstruction(signals[0], model)
    pyplot.gcf().savefig(folder / "drawn.png", dpi=40)
    pyplot.close("all")


def read_sources(rng: np.random.Generator, folder: Path) -> None:
    """Learn from files of several kinds, in streams and crops."""
    pictures = rng.standard_normal((3, 32, 32)).astype(np.float32)
    kind = rng.integers(3)
    if kind == 0:
        np.save(folder / "signals.npy", pictures)
        source = pt.open_source(folder / "signals.npy")
    elif kind == 1:
        import h5py

        with h5py.File(folder / "signals.h5", "w") as file:
            file["x"] = pictures
        source = pt.open_source(folder / "signals.h5")
    else:
        source = pt.sources.CropSource(pt.sources.ArraySource(list(pictures)), 6, (16, 16), seed=0)
    pt.OnlineCSC(3, 5, 0.5, random_state=0, n_jobs=1, batch_size=2).fit(source)


def command_lines(rng: np.random.Generator, folder: Path) -> None:
    """Commands in this process: learning, looking at the model, coding."""
    np.save(folder / "rows.npy", np.cumsum(rng.standard_normal((4, 120)), axis=1))
    model, rows = str(folder / "m.safetensors"), str(folder / "rows.npy")
    small = ["--ndim", "1", "--filters", "3", "--size", "7", "--epochs", "1", "--jobs", "1", "-q"]
    _quietly(["learn", rows, "-o", model, *small], 0)
    _quietly(["info", model], 0)
    _quietly(["encode", model, rows, "-o", str(folder / "c.safetensors"), "--jobs", "1", "-q"], 0)
    (folder / "broken.safetensors").write_bytes(rng.bytes(200))
    _quietly(["info", str(folder / "broken.safetensors")], 2)


def fail_somehow(rng: np.random.Generator, folder: Path) -> None:
    """Wrong arguments, damaged files, and a run that its callback stops with an error."""
    signals, size, channels = some_signals(rng)
    (folder / "broken.npy").write_bytes(b"\x93NUMPY" + rng.bytes(50))
    model = pt.OnlineCSC(3, size, 0.5, channels=channels, random_state=0, n_jobs=1)

    def stop(info: dict[str, Any]) -> bool:
        raise RuntimeError("a callback failed")

    attempts: tuple[tuple[type[Exception], Callable[[], Any]], ...] = (
        (ValueError, lambda: pt.encode(signals, np.ones((2, 500, 500)), 1.0)),
        (ValueError, lambda: pt.OnlineCSC(3, size, -1.0).fit(signals)),
        (ValueError, lambda: pt.load_signals(folder / "broken.npy")),
        (OSError, lambda: pt.load(folder / "missing.safetensors")),
        (RuntimeError, lambda: model.fit(signals, callbacks=[stop])),
    )
    for kind, call in attempts:
        try:
            call()
        except kind:
            continue
        raise AssertionError(f"nothing was raised, {kind.__name__} was expected")


def _quietly(words: list[str], code: int) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        ended = command(words)
    if ended != code:
        raise AssertionError(f"{' '.join(words)} ended with {ended}, not {code}: {said.getvalue()}")


ACTIVITIES: tuple[Activity, ...] = (
    learn_online,
    learn_batch,
    encode_anything,
    restore_something,
    draw_something,
    read_sources,
    command_lines,
    fail_somehow,
)
