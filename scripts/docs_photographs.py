"""Draw the four comparisons of the page *Photographs mended* into docs/images; needs the extra `bench`.

The photographs are public-domain and CC0 ones of scikit-image. The damage is that of the benchmark, and each crop is taken
around the place where our own answer is worst, not where it is best.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import skimage.data
from benchmarks.fills import biharmonic, painted_over
from benchmarks.measure import decibels
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.ndimage import uniform_filter

import pointillist as pt
from benchmarks import scars

IMAGES = Path(__file__).parents[1] / "docs" / "images"
CASES = (("rocket", "sky-holes"), ("coffee", "scratches"), ("astronaut", "lines"), ("chelsea", "text"))
SIDE, ZOOM, GAP, HEAD = 110, 2, 6, 18


def worst_place(truth: NDArray, answer: NDArray, mask: NDArray) -> tuple[int, int]:
    """Top and left of the crop with the largest error."""
    errors = np.where(mask, np.sum((truth.astype(float) - answer) ** 2, axis=-1), 0.0)
    row, column = np.unravel_index(np.argmax(uniform_filter(errors, SIDE // 2)), mask.shape)
    return tuple(int(np.clip(i - SIDE // 2, 0, n - SIDE)) for i, n in zip((row, column), mask.shape, strict=True))


def comparison(name: str, kind: str) -> Image.Image:
    """Damaged, ours, biharmonic and truth side by side, with PSNR on the missing pixels of the whole picture."""
    truth = getattr(skimage.data, name)()
    mask = scars.damage(kind, truth.shape[:2], np.random.default_rng(1), truth)
    damaged = painted_over(truth, mask)
    ours, theirs = pt.inpaint(damaged, mask), biharmonic(damaged, mask)
    top, left = worst_place(truth, ours, mask)
    panels = {
        "damaged": damaged,
        f"Pointillist {decibels(truth, ours, mask):.1f} dB": ours,
        f"biharmonic {decibels(truth, theirs, mask):.1f} dB": theirs,
        "truth": truth,
    }
    size = ZOOM * SIDE
    sheet = Image.new("RGB", (len(panels) * (size + GAP) - GAP, size + HEAD), "white")
    pen = ImageDraw.Draw(sheet)
    for i, (title, pixels) in enumerate(panels.items()):
        crop = Image.fromarray(pixels[top : top + SIDE, left : left + SIDE]).resize(
            (size, size), Image.Resampling.NEAREST
        )
        sheet.paste(crop, (i * (size + GAP), HEAD))
        pen.text((i * (size + GAP) + 2, 2), title, fill="black", font_size=13)
    return sheet


def main() -> None:
    for number, (name, kind) in enumerate(CASES, 1):
        comparison(name, kind).save(IMAGES / f"photographs-{number}.webp", quality=90)
        print(f"photographs-{number}.webp: {name}, {kind}")


if __name__ == "__main__":
    main()
