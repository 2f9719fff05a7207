"""Draw the pictures of the documentation's prose pages into docs/images; a minute on two cores; needs the extra `bench`."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from numpy.typing import NDArray
from PIL import Image
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt
from pointillist.codes import SparseCodes
from pointillist.plot import mosaic
from pointillist.plot.figures import BLUE, ORANGE, bare, new_figure, render, save_figure, tidy, title

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def home() -> None:
    """A colour photograph with 70 % of its pixels lost, and filled in: the two halves of the slider, pixel for pixel."""
    photo = skimage.data.coffee()  # CC0, larger than the shipped copy
    lost = np.random.default_rng(0).random(photo.shape[:2]) < 0.7
    before = np.where(lost[..., None], 0, photo).astype(np.uint8)
    after = pt.inpaint(before, lost)
    # The lost pixels must stay points, which only a lossless file keeps.
    Image.fromarray(before).save(IMAGES / "home-before.webp", lossless=True, method=6)
    Image.fromarray(after).save(IMAGES / "home-after.webp", quality=90, method=6)
    print(f"home: {pt.psnr(photo.astype(float), after.astype(float)):.1f} dB from 30 % of the pixels")


def points() -> None:
    """One picture from the strongest 1, 5 and 25 % of its codes, and from all."""
    image = pt.contrast_normalise(pt.photographs("train")["chelsea"])[:200, 60:300]
    filters = _filters(64, 6)
    codes = pt.encode([image], filters, 0.5).codes
    order = np.argsort(-np.abs(codes.values[0]))
    figure = new_figure(14, 3.4)
    panels = figure.subplots(1, 5)
    for panel, share in zip(panels, (0.01, 0.05, 0.25, 1.0), strict=False):
        chosen = np.sort(order[: int(share * len(order))])
        part = SparseCodes([codes.indices[0][chosen]], [codes.values[0][chosen]], codes.grids, codes.n_filters)
        _show(panel, pt.decode(part, filters)[0], f"{len(chosen):,} codes")
    _show(panels[4], image, "the picture")
    save_figure(figure, IMAGES / "how-points.png", crop=True)


def certificate() -> None:
    """Certified gap and true excess of one image after each round of the solver."""
    image = pt.contrast_normalise(pt.photographs("test")["camera"])[100:228, 100:228].astype(np.float64)
    filters = _filters(64, 6).astype(np.float64)
    best = pt.encode([image], filters, 1.0, tol=1e-9).objective[0]
    rounds, gaps, excesses = [], [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is the point
        for limit in range(1, 13):
            result = pt.encode([image], filters, 1.0, solver=pt.solvers.CoordinateDescent(max_iter=limit, tol=1e-8))
            rounds.append(limit)
            gaps.append(float(result.gap[0]))
            excesses.append(float(result.objective[0] / best - 1))
    figure = new_figure(7.5, 3.6)
    axes = figure.subplots()
    tidy(axes)
    axes.semilogy(rounds, gaps, "o-", color=BLUE)
    axes.semilogy(rounds, np.maximum(excesses, 1e-12), "o-", color=ORANGE)
    axes.text(rounds[-1] + 0.2, gaps[-1], "certified\ngap", color=BLUE, va="center", fontsize=9)
    axes.text(rounds[-1] + 0.2, max(excesses[-1], 1e-12), "true\nexcess", color=ORANGE, va="center", fontsize=9)
    axes.set(xlabel="rounds of the working set", xlim=(0.7, 13.6))
    title(
        axes,
        "How far above the optimum?",
        "128 × 128 pixels, 64 filters; the promise and the truth, relative to the objective",
    )
    save_figure(figure, IMAGES / "how-gap.png")


def learning() -> None:
    """The filters on their way from noise."""
    images = [pt.contrast_normalise(photo) for photo in pt.photographs("train").values()]
    model = pt.OnlineCSC(36, 11, 1.0, random_state=0)
    stages: dict[int, NDArray] = {}
    for step in range(1, 61):
        model.partial_fit([images[step % len(images)]])
        if step in (1, 3, 10, 60):
            stages[step] = model.filters_.copy()
    figure = new_figure(13, 3.6)
    for panel, (step, filters) in zip(figure.subplots(1, len(stages)), stages.items(), strict=True):
        bare(panel)
        panel.imshow(mosaic(filters, columns=6), cmap="gray")
        title(panel, f"{step} photograph{'s' if step > 1 else ''} seen")
    save_figure(figure, IMAGES / "how-learning.png", crop=True)


def plots() -> None:
    """The four plots of the reference, each drawn by the code block above its picture on docs/api/plots.md."""
    page = (IMAGES.parent / "api" / "plots.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for code, name in re.findall(
        r"^```python\n(.*?)^```\n\n!\[.*?\]\(\.\./images/(plots-\w+)\.png\)", page, re.M | re.S
    ):
        exec(code, names)
        picture = Image.fromarray(render(plt.gcf()))
        picture.quantize(256, dither=Image.Dither.FLOYDSTEINBERG).save(IMAGES / f"{name}.png", optimize=True)
        plt.close("all")


def _filters(count: int, epochs: int) -> NDArray:
    images = [pt.contrast_normalise(photo) for photo in pt.photographs("train").values()]
    return np.asarray(pt.OnlineCSC(count, 11, 1.0, random_state=0, n_epochs=epochs).fit(images).filters_)


def _show(panel, picture: NDArray, heading: str) -> None:  # type: ignore[no-untyped-def]
    bare(panel)
    panel.imshow(picture, cmap="gray", vmin=-2.5, vmax=2.5)
    title(panel, heading)


if __name__ == "__main__":
    for draw in (home, points, certificate, learning, plots):
        draw()
