"""Time and memory of mending photographs: 24 megapixels by the command, 0.3 megapixels in a process that is warm.

The command runs in a fresh process on a JPEG file with magenta lines, 1.4% of its pixels. A photograph with fewer pixels is
continued by reflection, never enlarged, so that its detail stays that of a camera.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import binary_dilation

from benchmarks import fills, measure, photo_sets, scars
from benchmarks.tables import Table
from pointillist.plot.page import peak_mb

SHAPE = (4000, 6000)
QUICK_SHAPE = (400, 600)
FRINGE = 2
"""Pixels around the lines that the given mask covers too, because JPEG smears their colour."""


def continued(picture: NDArray, shape: tuple[int, int]) -> NDArray:
    """A picture cut to a shape, or continued to it by reflection."""
    cut = picture[: shape[0], : shape[1]]
    lacking = [(0, wanted - has) for wanted, has in zip(shape, cut.shape[:2], strict=True)]
    return np.pad(cut, [*lacking, (0, 0)], mode="symmetric")


def commanded(*arguments: str) -> tuple[float, float | None]:
    """Wall seconds and peak memory in MiB of ``pointillist …`` in a fresh process; no memory where the system hides it."""
    begin = time.perf_counter()
    work = subprocess.Popen(
        [sys.executable, "-m", "pointillist.cli", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    peak = None
    while work.poll() is None:
        peak = peak_mb(work.pid) or peak
        time.sleep(0.02)
    spent = time.perf_counter() - begin
    if work.returncode:
        message = work.stderr.read().decode() if work.stderr else ""
        raise RuntimeError(f"pointillist {' '.join(arguments)} failed:\n{message[-2000:]}")
    return spent, peak


def by_command(place: str | Path, quick: bool, say: Callable[[str], None]) -> Table:
    """A large JPEG with magenta lines, mended by the command with a mask, and with marks that it finds by itself."""
    truth = continued(photo_sets.load(place), QUICK_SHAPE if quick else SHAPE)
    mask = scars.damage("lines", (truth.shape[0], truth.shape[1]), np.random.default_rng(0))
    damaged = fills.painted_over(truth, mask)
    table = Table(
        f"{mask.size / 1e6:.1f} megapixels, {100 * mask.mean():.1f}% missing, JPEG, in a fresh process",
        ["command", "seconds", "peak MB", "dB on missing pixels"],
        note=f"{measure.threads()} cores; reading, writing and the start of Python count.",
    )
    with tempfile.TemporaryDirectory() as name:
        picture, cover, answer = (Path(name) / file for file in ("photo.jpg", "mask.png", "mended.png"))
        Image.fromarray(damaged).save(picture, quality=92)
        Image.fromarray(binary_dilation(mask, iterations=FRINGE)).save(cover)
        for title, options in {"--mask": ["--mask", str(cover)], "marks found": []}.items():
            answer.unlink(missing_ok=True)
            seconds, peak = commanded("inpaint", str(picture), "-o", str(answer), *options)
            quality = measure.decibels(truth, photo_sets.load(answer), mask)
            table.add(title, f"{seconds:.1f}", None if peak is None else round(peak), f"{quality:.2f}")
            say(f"inpaint, {title}: {seconds:.1f} s, {peak or 0:.0f} MB, {quality:.2f} dB")
    return table


def in_warm_process(places: dict[str, str | Path], repeats: int, say: Callable[[str], None]) -> Table:
    """Text on small pictures, after start: the median of several calls, all methods in turns."""
    table = Table("0.3 megapixels with text, after start", ["picture", *[f"{name} s" for name in fills.FILLS]])
    for name, place in places.items():
        truth = photo_sets.load(place, 0.3)
        mask = scars.damage("text", (truth.shape[0], truth.shape[1]), np.random.default_rng(0))
        image = fills.painted_over(truth, mask)
        works = {
            method: lambda variants=variants, image=image, mask=mask: variants[0](image, mask)
            for method, variants in fills.FILLS.items()
        }
        for work in works.values():
            work()
        times = measure.in_turns(works, repeats)
        table.add(name, *[f"{times[method]:.3f}" for method in fills.FILLS])
        say(f"text, {name}: {times[fills.OURS]:.3f} s")
    return table


def tables_of(places: dict[str, str | Path], quick: bool, say: Callable[[str], None]) -> list[Table]:
    """Both tables; the large picture is the largest of the set."""
    largest = max(places.values(), key=lambda place: int(np.prod(photo_sets.pixels(place))))
    few = dict(list(places.items())[: 1 if quick else 4])
    return [in_warm_process(few, 2 if quick else 7, say), by_command(largest, quick, say)]
