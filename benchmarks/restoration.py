"""Photographs mended beside what people use today: ``python -m benchmarks.restoration --output bench-output [--quick]``.

Needs scikit-image and PyWavelets; BM3D joins where the ``bm3d`` package is installed. The photographs were held out of the
learning of the shipped dictionaries. Where a rival has a parameter that its documentation leaves open, it is given the value
that is best for the very picture; ours chooses by itself.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import skimage.data
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.ndimage import convolve
from skimage import restoration as peers
from sklearn.datasets import load_sample_image
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.measure import decibels, threads
from benchmarks.tables import Table
from pointillist import restore
from pointillist.data import load_filters
from pointillist.data.samples import to_grey

try:
    from bm3d import bm3d
except ImportError:
    bm3d = None

Mend = Callable[[NDArray], NDArray]


@dataclass(frozen=True)
class Task:
    """One damage: what is seen of a picture, the methods that mend it, and what it is mended to.

    `methods` come from the seen picture and what is known about the damage; each gives a picture in [0, 255].
    """

    name: str
    damage: Callable[[NDArray, np.random.Generator], tuple[NDArray, dict[str, Mend]]]


def pictures(quick: bool) -> dict[str, NDArray[np.uint8]]:
    """Held-out photographs, grey, uint8, with even sides."""
    found = {name: np.round(255 * image).astype(np.uint8) for name, image in pt.photographs("test").items()}
    found["coins"] = skimage.data.coins()
    for name in ("china", "flower"):  # CC BY 2.0, danielbuechele and vultilion, in scikit-learn's package
        colour = load_sample_image(f"{name}.jpg").astype(np.float64)
        found[name] = np.round(to_grey(colour))[40:392, 140:492].astype(np.uint8)
    if quick:
        found = {name: image[60:156, 60:156] for name, image in list(found.items())[:2]}
    return {name: image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2] for name, image in found.items()}


def missing_pixels(share: float) -> Task:
    def damage(image: NDArray, rng: np.random.Generator) -> tuple[NDArray, dict[str, Mend]]:
        return _inpainting(image, rng.random(image.shape) < share)

    return Task(f"{100 * share:.0f} % of the pixels missing", damage)


def scribble() -> Task:
    """Text and scratches, white."""

    def damage(image: NDArray, rng: np.random.Generator) -> tuple[NDArray, dict[str, Mend]]:
        canvas = Image.new("L", image.shape[::-1])
        pen = ImageDraw.Draw(canvas)
        for row in range(10, image.shape[0], 40):
            pen.text((5, row), "all that glitters is not gold " * 3, fill=255, font_size=16)
        for _ in range(8):
            ends = rng.integers(0, image.shape[::-1], (2, 2))
            pen.line([tuple(end) for end in ends.tolist()], fill=255, width=3)
        return _inpainting(image, np.asarray(canvas) > 127)

    return Task("text and scratches", damage)


def _inpainting(image: NDArray, mask: NDArray) -> tuple[NDArray, dict[str, Mend]]:
    seen = np.where(mask, 0, image).astype(np.uint8)
    return seen, {
        "pointillist": lambda y: restore.inpaint(y, mask),
        "pointillist, 400 filters": lambda y: restore.inpaint(y, mask, load_filters("natural-400")),
        "inpaint_biharmonic": lambda y: 255 * peers.inpaint_biharmonic(y / 255, mask),
    }


def gaussian_noise(sigma: float) -> Task:
    def damage(image: NDArray, rng: np.random.Generator) -> tuple[NDArray, dict[str, Mend]]:
        level = sigma / 255
        # Not rounded or clipped: the noise that all methods assume.
        noisy = (image + sigma * rng.standard_normal(image.shape)) / 255
        weights = (0.05, 0.08, 0.12, 0.18, 0.27)
        methods: dict[str, Mend] = {
            "pointillist": lambda y: 255 * restore.denoise(y, level, data_range=1.0),
            "pointillist, 400 filters": lambda y: (
                255 * restore.denoise(y, level, load_filters("natural-400"), data_range=1.0)
            ),
            "denoise_nl_means": lambda y: (
                255
                * peers.denoise_nl_means(y, patch_size=5, patch_distance=6, h=0.6 * level, sigma=level, fast_mode=True)
            ),
            "denoise_wavelet": lambda y: 255 * peers.denoise_wavelet(y, sigma=level, rescale_sigma=True),
            "denoise_tv_chambolle, best weight": _best(
                image, [lambda y, w=w: 255 * peers.denoise_tv_chambolle(y, weight=w) for w in weights]
            ),
        }
        if bm3d is not None:
            methods["bm3d"] = lambda y: 255 * bm3d(y, level)
        return noisy, methods

    return Task(f"Gaussian noise, σ = {sigma:g}", damage)


def blurred(name: str, psf: NDArray, sigma: float = 2.0) -> Task:
    def damage(image: NDArray, rng: np.random.Generator) -> tuple[NDArray, dict[str, Mend]]:
        seen = convolve(image.astype(np.float64), psf, mode="mirror") + sigma * rng.standard_normal(image.shape)
        seen = np.clip(np.round(seen), 0, 255).astype(np.uint8)
        iterations = (5, 10, 20, 40)
        return seen, {
            "pointillist": lambda y: restore.deblur(y, psf),
            "unsupervised_wiener": _padded(lambda y: 255 * peers.unsupervised_wiener(y / 255, psf, rng=0)[0]),
            "richardson_lucy, best number": _best(
                image,
                [_padded(lambda y, n=n: 255 * peers.richardson_lucy(y / 255, psf, num_iter=n)) for n in iterations],
            ),
        }

    return Task(f"{name}, noise σ = {sigma:g}", damage)


def halved() -> Task:
    """Every pixel of the small picture is the mean of four."""

    def damage(image: NDArray, rng: np.random.Generator) -> tuple[NDArray, dict[str, Mend]]:
        rows, columns = (n // 2 for n in image.shape)
        small = np.round(image.reshape(rows, 2, columns, 2).mean(axis=(1, 3))).astype(np.uint8)
        size = image.shape[::-1]
        return small, {
            "pointillist": lambda y: restore.super_resolve(y, 2),
            "bicubic": lambda y: np.asarray(Image.fromarray(y).resize(size, Image.Resampling.BICUBIC)),
            "Lanczos": lambda y: np.asarray(Image.fromarray(y).resize(size, Image.Resampling.LANCZOS)),
        }

    return Task("×2 super-resolution of 2×2 means", damage)


def _padded(mend: Mend) -> Mend:
    """With mirrored margins, cut off again: the rivals take what lies outside for zero, or for the other side."""
    return lambda y: mend(np.pad(y, _MARGIN, mode="reflect"))[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]


_MARGIN = 24


def _best(reference: NDArray, candidates: Sequence[Mend]) -> Mend:
    """The candidate that comes nearest to the undamaged picture, which nobody has in practice."""
    return lambda y: max((one(y) for one in candidates), key=lambda answer: decibels(reference, answer))


def tasks() -> dict[str, list[Task]]:
    line = np.exp(-0.5 * (np.arange(-6, 7) / 1.6) ** 2)
    bell, motion = np.outer(line, line) / line.sum() ** 2, np.eye(9) / 9
    return {
        "inpaint": [missing_pixels(0.5), missing_pixels(0.8), scribble()],
        "denoise": [gaussian_noise(sigma) for sigma in (15.0, 25.0, 50.0)],
        "deblur": [blurred("Gaussian blur, σ = 1.6", bell), blurred("motion blur, 9 pixels at 45°", motion)],
        "super-resolve": [halved()],
    }


def measured(task: Task, images: dict[str, NDArray], say: Callable[[str], None]) -> Table:
    """PSNR of every picture and method, and the mean seconds of a picture; the methods take turns on every picture."""
    table = Table(task.name, ["method", *images, "mean dB", "seconds"])
    scores: dict[str, list[float]] = {}
    times: dict[str, list[float]] = {}
    for number, (name, image) in enumerate(images.items()):
        seen, methods = task.damage(image, np.random.default_rng([7, number]))
        for method, mend in methods.items():
            begin = time.perf_counter()
            answer = mend(seen)
            times.setdefault(method, []).append(time.perf_counter() - begin)
            scores.setdefault(method, []).append(decibels(image, answer))
            say(f"{task.name}, {name}, {method}: {scores[method][-1]:.2f} dB, {times[method][-1]:.1f} s")
    for method, row in scores.items():
        cells = [f"{value:.2f}" for value in (*row, np.mean(row))]
        table.add(method, *cells, f"{np.mean(times[method]):.2f}")
    return table


def main() -> None:
    options = parser("benchmarks.restoration", __doc__, quick="a smoke test on two small pictures")
    options.add_argument("--only", nargs="+", choices=list(tasks()), default=list(tasks()))
    arguments = options.parse_args()
    context = Context.of(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    images = pictures(context.quick)
    crop = {name: image[:32, :32] for name, image in list(images.items())[:1]}
    found = []
    for group in arguments.only:
        for task in tasks()[group]:
            measured(task, crop, lambda text: None)  # compile and load what is loaded once
            found.append(measured(task, images, context.say))
    context.write("restoration", found, quick=context.quick)
    note = "BM3D takes part" if bm3d is not None else "BM3D is not installed (pip install bm3d)"
    context.console.print(f"{note}; PSNR in dB with 255 as peak; {threads()} threads")


if __name__ == "__main__":
    main()
