"""Blurs found and blurs refused, with times: ``python -m benchmarks.blurs --photos DIR --output bench-output``.

Photographs of DIR are reduced to 0.37 megapixels, blurred beyond their borders, and given noise of σ = 2 of 255 and whole
numbers. The photographs that estimation and checks were tuned on are not to be among them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.signal
from numpy.typing import NDArray
from PIL import Image

import pointillist as pt
from benchmarks import photo_sets
from benchmarks.context import Context, parser
from benchmarks.measure import decibels
from benchmarks.tables import Table

_MEGAPIXELS = 0.37
_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
_HARM = 0.3  # dB
_CROP = (slice(100, 260), slice(150, 350))

Say = Callable[[str], None]


def pictures(folder: Path, most: int) -> dict[str, NDArray]:
    """Colour photographs (height, width, 3) of at most 0.37 megapixels, uint8."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in _SUFFIXES)[:most]
    return {file.stem: photo_sets.load(file, _MEGAPIXELS, Image.Resampling.LANCZOS) for file in files}


def blurred(image: NDArray, kernel: NDArray, sigma: float, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """A blurred and noisy picture without its borders, and the sharp one, both uint8."""
    seen = scipy.signal.fftconvolve(image, kernel[..., None], mode="valid", axes=(0, 1))
    seen = np.clip(np.rint(seen + sigma * rng.standard_normal(seen.shape)), 0, 255).astype(np.uint8)
    top, left = ((n - 1) - (n - 1) // 2 for n in kernel.shape)
    return seen, image[top : top + seen.shape[0], left : left + seen.shape[1]]


def disk(radius: float) -> NDArray:
    """An aperture out of focus."""
    n, fine = int(np.ceil(radius)), 8
    across = np.arange(-n * fine - fine / 2, n * fine + fine / 2) + 0.5
    inside = np.hypot(across[:, None], across) <= fine * radius
    kernel = inside.reshape(2 * n + 1, fine, 2 * n + 1, fine).sum(axis=(1, 3)).astype(np.float64)
    return kernel / kernel.sum()


def estimates(images: dict[str, NDArray], say: Say) -> Table:
    """Length, angle and width of random blurs, as they are and as they are found."""
    motion_columns, sharp_columns = ["length", "found", "angle", "found", "confidence"], ["sharp: length", "σ"]
    columns = ["picture", *motion_columns, "σ", "found", *sharp_columns, "seconds"]
    table = Table("estimated blurs, noise σ = 2", columns)
    errors = []
    for number, (name, image) in enumerate(images.items()):
        rng = np.random.default_rng([12, number])
        length, angle, width = rng.uniform(5, 25), rng.uniform(0, 180), rng.uniform(0.8, 4)
        seen = blurred(image, pt.motion_kernel(length, angle), 2, rng)[0]
        begin = time.perf_counter()
        motion = pt.estimate_blur(seen)
        seconds = time.perf_counter() - begin
        bell = pt.estimate_blur(blurred(image, pt.gaussian_kernel(width), 2, rng)[0], "gaussian")
        sharp = [pt.estimate_blur(image, kind) for kind in ("motion", "gaussian")]
        turned = abs((motion.angle - angle + 90) % 180 - 90)
        errors.append((abs(motion.length - length), turned, abs(bell.sigma / width - 1)))
        values = [length, motion.length, angle, motion.angle, motion.confidence, width, bell.sigma]
        table.add(name, *[f"{value:.2f}" for value in (*values, sharp[0].length, sharp[1].sigma, seconds)])
        say(f"{name}: off by {errors[-1][0]:.2f} px, {turned:.2f}°, {100 * errors[-1][2]:.0f} %")
    good = np.array(errors) <= (1, 3, 0.15)
    say(f"within 1 px and 3°: {np.sum(good[:, 0] & good[:, 1])} of {len(good)}; σ within 15 %: {np.sum(good[:, 2])}")
    return table


Case = tuple[str, bool, NDArray, NDArray, float]
"""A name, whether the blur is right, the picture's blur, the one given, and the noise."""


def cases(rng: np.random.Generator) -> Iterator[Case]:
    bell, line, point = pt.gaussian_kernel, pt.motion_kernel, np.ones((1, 1))
    width, length, angle = rng.uniform(1, 3), rng.uniform(5, 20), rng.uniform(0, 180)
    aperture = disk(rng.uniform(1, 3))
    for noise in (0, 2, 5):
        yield f"right: Gaussian, noise {noise}", True, bell(width), bell(width), noise
        yield f"right: motion, noise {noise}", True, line(length, angle), line(length, angle), noise
        yield f"right: disk, noise {noise}", True, aperture, aperture, noise
    yield "nearly: motion + 0.7 px, 2°", True, line(length, angle), line(length + 0.7, angle + 2), 2
    yield "nearly: Gaussian × 1.1", True, bell(width), bell(1.1 * width), 2
    yield "motion turned by 90°", False, line(length, angle), line(length, angle + 90), 2
    yield "motion turned by 45°", False, line(length, angle), line(length, angle + 45), 2
    yield "motion twice as long", False, line(length, angle), line(2 * length, angle), 2
    yield "motion half as long", False, line(length, angle), line(length / 2, angle), 2
    yield "Gaussian × 2", False, bell(width), bell(2 * width), 2
    yield "Gaussian × 1.4", False, bell(width), bell(1.4 * width), 2
    yield "Gaussian / 2", False, bell(width), bell(width / 2), 2
    yield "motion for a sharp picture", False, point, line(length, angle), 2
    yield "Gaussian for a sharp picture", False, point, bell(width), 2
    yield "motion for a Gaussian", False, bell(width), line(length, angle), 2
    yield "Gaussian for a motion", False, line(length, angle), bell(width), 2


def misfits(images: dict[str, NDArray], say: Say) -> Table:
    """How often a blur is refused, and what deblurring does to a crop where it is not."""
    table = Table(
        "blurs that do not fit", ["case", "pictures", "refused", "not refused, harmed", "worst dB", "most seconds"]
    )
    rows: dict[str, list[tuple[bool, float, float]]] = {}
    for number, (name, image) in enumerate(images.items()):
        rng = np.random.default_rng([13, number])
        grey = np.rint(image.mean(axis=-1, keepdims=True))
        for case, right, kernel, given, noise in cases(rng):
            seen, sharp = (one[..., 0] for one in blurred(grey, kernel, noise, rng))
            begin = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", pt.BlurMisfitWarning)
                pt.deblur(seen, given)
            seconds = time.perf_counter() - begin
            refused = any(issubclass(one.category, pt.BlurMisfitWarning) for one in caught)
            mended = pt.deblur(seen[_CROP], given, force=True) if not refused else seen[_CROP]
            gain = decibels(sharp[_CROP], mended) - decibels(sharp[_CROP], seen[_CROP])
            rows.setdefault(case, []).append((refused, gain, seconds if refused else 0.0))
            if refused == right or (not refused and gain < -_HARM):
                say(f"{name}, {case}: {'refused' if refused else f'{gain:+.2f} dB'}")
    for case, row in rows.items():
        refused, gains, seconds = (np.array(column) for column in zip(*row, strict=True))
        counts = [len(row), int(np.sum(refused)), int(np.sum(~refused & (gains < -_HARM)))]
        table.add(case, *counts, f"{np.min(gains):+.2f}", f"{np.max(seconds):.1f}")
    return table


def times(images: dict[str, NDArray], say: Say) -> Table:
    """Seconds and decibels of deblurring and demosaicing colour pictures."""
    table = Table(
        "colour pictures of 0.37 megapixels", ["picture", "task", "seconds", "CPU seconds", "seen dB", "mended dB"]
    )
    bell, line = pt.gaussian_kernel(1.6), pt.motion_kernel(15, 70)
    pt.deblur(np.zeros((64, 64, 3), np.uint8), bell, force=True)  # compile and load what is loaded once
    pt.demosaic(np.zeros((64, 64), np.uint8))
    for number, (name, image) in enumerate(images.items()):
        rng = np.random.default_rng([14, number])
        for task, kernel in (("Gaussian, σ = 1.6", bell), ("motion, 15 px at 70°", line)):
            seen, sharp = blurred(image, kernel, 2, rng)
            mended, spent = _timed(lambda y=seen, k=kernel: pt.deblur(y, k))
            table.add(name, task, *spent, f"{decibels(sharp, seen):.2f}", f"{decibels(sharp, mended):.2f}")
        mosaic = image[..., 1].copy()
        mosaic[::2, ::2], mosaic[1::2, 1::2] = image[::2, ::2, 0], image[1::2, 1::2, 2]
        mended, spent = _timed(lambda y=mosaic: pt.demosaic(y))
        table.add(name, "mosaic", *spent, "", f"{decibels(image, mended):.2f}")
        say(f"{name}: mosaic in {spent[0]} s")
    return table


def _timed(work: Callable[[], NDArray]) -> tuple[NDArray, tuple[str, str]]:
    begin, used = time.perf_counter(), time.process_time()
    answer = work()
    return answer, (f"{time.perf_counter() - begin:.2f}", f"{time.process_time() - used:.2f}")


def main() -> None:
    works = {"estimates": estimates, "misfits": misfits, "times": times}
    options = parser("benchmarks.blurs", __doc__, quick=None)
    options.add_argument("--photos", type=Path, required=True, help="folder of photographs")
    options.add_argument("--most", type=int, default=10, help="photographs at most")
    options.add_argument("--only", nargs="+", choices=list(works), default=list(works))
    arguments = options.parse_args()
    context = Context.of(arguments)
    images = pictures(arguments.photos, arguments.most)
    context.write("blurs", [works[name](images, context.say) for name in arguments.only])


if __name__ == "__main__":
    main()
