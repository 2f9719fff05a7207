"""This code beside an older commit, in one run: times of every headline as ratios, and whether answers are the same.

`python -m benchmarks.beside --old REVISION` checks the revision out into a temporary folder and starts a process of each
version. Both get the same cases in turns; a case is a call through public names on shipped or drawn data. What is reported
is the shortest processor time of several calls, new over old, and by how much objectives differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
Work = Callable[[], list[float]]
"""A call to be timed, which returns figures that both versions must agree on."""


def photographs(side: int, count: int) -> NDArray:
    """Crops (count, side, side) of the shipped photographs, contrast-normalised."""
    import pointillist as pt

    whole = [
        pt.contrast_normalise(one) for one in [*pt.photographs("train").values(), *pt.photographs("test").values()]
    ]
    grey = [one if one.ndim == 2 else one.mean(axis=-1) for one in whole]
    crops = [one[top : top + side, :side] for one in grey for top in range(0, one.shape[0] - side + 1, side)]
    return np.stack(crops[:count]).astype(np.float32)


def drawn(rng: np.random.Generator, *shape: int) -> NDArray:
    """Random filters of norm one."""
    filters = rng.standard_normal(shape)
    return (
        filters / np.sqrt((filters**2).reshape(len(filters), -1).sum(1)).reshape(-1, *[1] * (filters.ndim - 1))
    ).astype(np.float32)


def smooth(rng: np.random.Generator, n_filters: int, size: int) -> NDArray:
    """Random filters of one dimension that wave slowly."""
    waves = np.cumsum(rng.standard_normal((n_filters, size)), axis=1) * np.hanning(size)
    return (waves / np.linalg.norm(waves, axis=1, keepdims=True)).astype(np.float32)


def events(rng: np.random.Generator, filters: NDArray, samples: int, count: int) -> NDArray:
    """A noisy line (samples,) in which filters occur."""
    line = 0.1 * rng.standard_normal(samples)
    for k in rng.integers(len(filters), size=count):
        begin = rng.integers(samples - filters.shape[1])
        line[begin : begin + filters.shape[1]] += rng.uniform(1, 4) * filters[k]
    return line.astype(np.float32)


def coding(signals: Any, filters: NDArray, penalty: float, **options: Any) -> Work:
    """A call of `encode`; what must agree are the objectives, to the tolerance."""
    import pointillist as pt

    return lambda: [float(one) for one in pt.encode(signals, filters, penalty, **options).objective]


def learning(X: Any, n_filters: int, size: int, penalty: float, batch: int, **options: Any) -> Work:
    """Steps of `OnlineCSC.partial_fit`; what must agree is the objective of the last batch with the filters learned."""
    import pointillist as pt

    def run() -> list[float]:
        model = pt.OnlineCSC(n_filters, size, penalty, batch_size=batch, random_state=0, **options)
        for first in range(0, len(X), batch):
            model.partial_fit(X[first : first + batch])
        return [float(pt.encode(X[-batch:], model.filters_, penalty, **_channels(options)).objective.sum())]

    return run


def _channels(options: dict[str, Any]) -> dict[str, Any]:
    return {"channels": options["channels"]} if "channels" in options else {}


def cases() -> dict[str, Callable[[], Work]]:
    """Cases by name; each makes its data when it is asked for."""
    import pointillist as pt

    rng = np.random.default_rng(0)
    small, ten = (lambda: photographs(100, 1)), (lambda: photographs(100, 10))
    filters = {k: pt.load_filters(f"natural-{k}") for k in (100, 400)}
    found: dict[str, Callable[[], Work]] = {
        "encode, one image": lambda: coding(small(), filters[100], 1.0),
        "encode, ten images": lambda: coding(ten(), filters[100], 1.0),
        "encode, 400 filters": lambda: coding(small(), filters[400], 1.0),
        "encode, 512²": lambda: coding(np.tile(photographs(256, 1), (1, 2, 2)), filters[100], 1.0),
    }
    for penalty in (0.3, 0.1, 0.03):
        found[f"encode, λ = {penalty}"] = lambda penalty=penalty: coding(small(), filters[100], penalty)
    for side in (5, 21, 51):
        found[f"encode, {side}×{side}"] = lambda side=side: coding(
            photographs(150, 1), drawn(np.random.default_rng(side), 32, side, side), 0.5
        )
    found |= {
        "encode, circular": lambda: coding(small(), filters[100], 0.3, boundary="circular"),
        "encode, weights": lambda: coding(
            small(),
            filters[100],
            0.3,
            weights=(np.random.default_rng(1).random((1, 100, 100)) < 0.5).astype(np.float32),
        ),
        "encode, sampled": lambda: coding(small(), filters[100], 0.3, sampling=0.1, random_state=0),
        "encode, non-negative": lambda: coding(small(), filters[100], 0.3, nonnegative=True),
        "1,000 × 64": lambda: coding(
            np.stack([events(rng, smooth(np.random.default_rng(2), 8, 9), 64, 3) for _ in range(1000)]),
            smooth(np.random.default_rng(2), 8, 9),
            0.5,
        ),
        "one line of 64": lambda: coding(rng.standard_normal((1, 64)).astype(np.float32), drawn(rng, 8, 9), 1.0),
        "20,000 samples, 10 × 128": lambda: _line(20_000, 10, 128, 300),
        "20,000 samples, 5 × 128": lambda: _line(20_000, 5, 128, 300),
        "100,000 samples, 10 × 1,000": lambda: _line(100_000, 10, 1000, 300),
        "204 channels, rank one": lambda: _sensors(204),
        "volume 40³, 7³": lambda: coding(
            np.random.default_rng(3).standard_normal((1, 40, 40, 40)).astype(np.float32),
            drawn(np.random.default_rng(4), 20, 7, 7, 7),
            2.5,
        ),
        "learn online, patches": lambda: learning(photographs(64, 40), 64, 11, 1.0, 4),
        "learn online, lines": lambda: learning(
            np.stack([events(np.random.default_rng(5 + i), smooth(rng, 5, 31), 2000, 20) for i in range(8)]),
            5,
            31,
            0.5,
            2,
        ),
        "inpaint, half missing": _inpainting,
        "denoise": _denoising,
        "admm": lambda: coding(photographs(48, 2), filters[100][:32], 1.0, solver="admm", tol=1e-2),
    }
    return found


def _line(samples: int, n_filters: int, size: int, count: int) -> Work:
    filters = smooth(np.random.default_rng(size), n_filters, size)
    return coding(events(np.random.default_rng(samples), filters, samples, count)[None], filters, 0.5)


def _sensors(channels: int) -> Work:
    rng = np.random.default_rng(channels)
    waves, maps = smooth(rng, 10, 64), drawn(rng, 10, channels)
    filters = (maps[:, :, None] * waves[:, None, :]).astype(np.float32)
    signal = 0.05 * rng.standard_normal((channels, 10_000)).astype(np.float32)
    for k in rng.integers(10, size=100):
        begin = rng.integers(10_000 - 64)
        signal[:, begin : begin + 64] += 3 * filters[k]
    return coding(signal[None], filters, 0.3, channels=True)


def _decibels(truth: NDArray, answer: NDArray) -> float:
    return float(10 * np.log10(255**2 / np.mean((truth - answer) ** 2)))


def _inpainting() -> Work:
    import pointillist as pt

    picture = pt.photographs("test")
    truth = np.asarray(next(iter(picture.values())), np.float32)
    truth = truth if truth.ndim == 2 else truth.mean(axis=-1)
    missing = np.random.default_rng(0).random(truth.shape) < 0.5
    holed = np.where(missing, np.nan, truth)
    return lambda: [_decibels(truth[missing], np.asarray(pt.inpaint(holed))[missing])]


def _denoising() -> Work:
    import pointillist as pt

    truth = np.asarray(next(iter(pt.photographs("test").values())), np.float32)
    truth = (truth if truth.ndim == 2 else truth.mean(axis=-1))[:200, :200]
    noisy = truth + 25 * np.random.default_rng(0).standard_normal(truth.shape).astype(np.float32)
    return lambda: [_decibels(truth, np.asarray(pt.denoise(noisy, sigma=25)))]


def serve() -> None:
    """Answer the parent's requests, one a line: the name of a case, or the seed of a random problem."""
    warnings.simplefilter("ignore")
    answers, sys.stdout = sys.stdout, sys.stderr  # nothing but answers goes to the parent
    ready: dict[str, Work] = {}
    made = cases()
    for line in sys.stdin:
        name = json.loads(line)
        try:
            if isinstance(name, int):
                answer = _solved(name)
            else:
                if name not in ready:
                    ready[name] = made[name]()
                    ready[name]()  # kernels are compiled, caches warm
                begin, spent = time.perf_counter(), time.process_time()
                figures = ready[name]()
                answer = {"figures": figures, "cpu": time.process_time() - spent, "wall": time.perf_counter() - begin}
        except Exception as error:  # what one version refuses is a finding, not the end
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def _solved(seed: int) -> dict[str, Any]:
    """The objective, gap and status of a random problem, solved as tightly as its precision allows."""
    import pointillist as pt
    import pointillist.solvers
    from benchmarks.drawn import draw

    problem = draw(seed)
    tol = 1e-6 if problem["filters"].dtype == np.float32 else 1e-8
    problem["solver"] = pointillist.solvers.CoordinateDescent(tol=tol, max_iter=1000)
    result = pt.encode(**problem)
    return {"figures": result.objective.tolist(), "gaps": result.gap.tolist(), "status": result.status.value}


class Version:
    """A process that runs one version of the package."""

    def __init__(self, source: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
        command = [sys.executable, "-m", "benchmarks.beside", "--serve"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, request: str | int) -> dict[str, Any]:
        """The answer to a request."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """The sources of a revision in a temporary folder, or those of a folder that is named instead."""
    if Path(revision).is_dir():
        yield Path(revision).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder) / "src"


def compare(old: Version, new: Version, names: list[str], repeats: int) -> list[dict[str, Any]]:
    """A row for each case: the shortest times of both versions, their ratios, and how far figures differ."""
    rows = []
    for name in names:
        runs: list[list[dict[str, Any]]] = [[], []]
        for _ in range(repeats):
            for version, kept in zip((old, new), runs, strict=True):
                kept.append(version.ask(name))
        wrong = [one["error"] for kept in runs for one in kept if "error" in one]
        if wrong:
            print(f"{name:32} {wrong[0]}", flush=True)
            rows.append({"case": name, "error": wrong[0]})
            continue
        cpu, wall = ([min(one[clock] for one in kept) for kept in runs] for clock in ("cpu", "wall"))
        differs = _difference(runs[0][0]["figures"], runs[1][0]["figures"])
        rows.append({"case": name, "old": wall[0], "new": wall[1], "wall": wall[1] / wall[0], "cpu": cpu[1] / cpu[0]})
        print(
            f"{name:32} {1e3 * wall[0]:9.1f} → {1e3 * wall[1]:9.1f} ms   wall {wall[1] / wall[0]:5.2f}   "
            f"cpu {cpu[1] / cpu[0]:5.2f}   figures differ by {differs:.1e}",
            flush=True,
        )
        rows[-1]["differs"] = differs
    return rows


def _difference(left: list[float], right: list[float]) -> float:
    return float(np.max(np.abs(np.asarray(right) / np.asarray(left) - 1)))


def same_answers(old: Version, new: Version, seeds: range) -> dict[str, Any]:
    """How far objectives of random problems differ at most, and which of them converged in one version alone."""
    worst, where, lost, gained = 0.0, 0, [], []
    for seed in seeds:
        before, after = old.ask(seed), new.ask(seed)
        if "error" in before or "error" in after:
            if ("error" in before) != ("error" in after):
                lost.append(seed)
                print(seed, before.get("error"), after.get("error"))
            continue
        differs = _difference(before["figures"], after["figures"])
        statuses = before["status"], after["status"]
        if statuses[0] != statuses[1]:
            (lost if statuses[0] == "converged" else gained).append(seed)
        if all(one == "converged" for one in statuses) and differs > worst:
            worst, where = differs, seed
    print(f"{len(seeds)} problems: objectives differ by {worst:.1e} at most (seed {where}); "
          f"converged only before: {lost}, only now: {gained}")  # fmt: skip
    return {"problems": len(seeds), "differs": worst, "lost": lost, "gained": gained}


def main() -> None:
    """Compare, print and write a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--old", default="v0.1", help="a revision of this repository, or the folder `src` of one")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--answers", type=int, default=0, help="random problems to compare the answers of")
    parser.add_argument("--output", type=Path, help="a JSON file")
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return
    with checked_out(arguments.old) as source:
        old, new = Version(source), Version(ROOT / "src")
        names = [name for name in cases() if arguments.only in name] if arguments.repeats else []
        record: dict[str, Any] = {"old": arguments.old, "cases": compare(old, new, names, arguments.repeats)}
        if arguments.answers:
            record["answers"] = same_answers(old, new, range(arguments.answers))
    if arguments.output:
        arguments.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
