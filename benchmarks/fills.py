"""Ways to fill missing pixels, ours and those that people use today, and their scores on the missing pixels alone.

scikit-image's biharmonic fill is called once for all regions that its sparse solver manages; larger ones (random pixels,
lines that cross) are solved in tiles with a margin, which changes next to nothing where holes are narrower than that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage.metrics import structural_similarity
from skimage.restoration import inpaint_biharmonic

from benchmarks.measure import decibels
from pointillist import restore

REGION = 100_000
"""Pixels of the largest region that is solved at once by the biharmonic fill."""
TILE, MARGIN = 160, 40
"""Side and margin of the tiles of larger regions, in pixels."""
RADII = (3, 5)
"""Radii of OpenCV's methods, of which the better one counts."""

Fill = Callable[[NDArray, NDArray], NDArray]
"""From a damaged picture (height, width, 3), uint8, and its mask (height, width) to the mended one."""


@dataclass(frozen=True)
class Score:
    """Quality on the missing pixels, and the seconds that it took."""

    psnr: float
    ssim: float
    seconds: float


def biharmonic(image: NDArray, mask: NDArray) -> NDArray:
    """scikit-image's biharmonic fill, region by region."""
    near = ndimage.binary_dilation(mask, np.ones((5, 5)))
    regions, _ = ndimage.label(near, np.ones((3, 3)))
    sizes = np.bincount(regions[mask], minlength=regions.max() + 1)
    large = mask & (sizes > REGION)[regions]
    answer = image.copy()
    if np.any(mask & ~large):
        answer = _as_bytes(_solved(image, mask & ~large))
    for inner, outer in tiles(mask.shape, TILE, MARGIN):
        if large[inner].any():
            part = _as_bytes(_solved(answer[outer], large[outer]))
            cut = tuple(slice(i.start - o.start, i.stop - o.start) for i, o in zip(inner, outer, strict=True))
            answer[inner] = np.where(large[inner][..., None], part[cut], answer[inner])
    return answer


def _solved(image: NDArray, mask: NDArray) -> NDArray:
    return inpaint_biharmonic(image, mask, channel_axis=-1, split_into_regions=True)


def _as_bytes(picture: NDArray) -> NDArray[np.uint8]:
    return np.clip(np.round(255 * picture), 0, 255).astype(np.uint8)


def ours(image: NDArray, mask: NDArray) -> NDArray:
    """`pointillist.inpaint` as people call it."""
    return restore.inpaint(image, mask)


def _opencv(method: int, radius: float) -> Fill:
    return lambda image, mask: cv2.inpaint(np.ascontiguousarray(image), mask.astype(np.uint8), radius, method)


FILLS: dict[str, list[Fill]] = {
    "pointillist": [ours],
    "biharmonic": [biharmonic],
    "Telea": [_opencv(cv2.INPAINT_TELEA, radius) for radius in RADII],
    "Navier-Stokes": [_opencv(cv2.INPAINT_NS, radius) for radius in RADII],
}
"""Of every method the variants, of which the one nearest to the truth counts."""
OURS, BASELINE = "pointillist", "biharmonic"


def tiles(shape: tuple[int, ...], side: int, margin: int) -> Iterator[tuple[tuple[slice, slice], tuple[slice, slice]]]:
    """Tiles of a picture: their own pixels, and those with a margin, cut at the picture's border."""
    for top in range(0, shape[0], side):
        for left in range(0, shape[1], side):
            inner = slice(top, min(top + side, shape[0])), slice(left, min(left + side, shape[1]))
            rows = slice(max(top - margin, 0), min(inner[0].stop + margin, shape[0]))
            yield inner, (rows, slice(max(left - margin, 0), min(inner[1].stop + margin, shape[1])))


def ssim(truth: NDArray, answer: NDArray, mask: NDArray) -> float:
    """Structural similarity, averaged over the missing pixels; computed where something is missing."""
    total = 0.0
    for inner, outer in tiles(mask.shape, 128, 7):
        if mask[inner].any():
            _, local = structural_similarity(truth[outer], answer[outer], channel_axis=-1, full=True)
            total += float(local.mean(axis=-1)[mask[outer] & _within(inner, outer)].sum())
    return total / np.count_nonzero(mask)


def _within(inner: tuple[slice, slice], outer: tuple[slice, slice]) -> NDArray[np.bool_]:
    """Which pixels of a tile with its margin are its own."""
    own = np.zeros([o.stop - o.start for o in outer], bool)
    own[tuple(slice(i.start - o.start, i.stop - o.start) for i, o in zip(inner, outer, strict=True))] = True
    return own


def painted_over(picture: NDArray, mask: NDArray) -> NDArray:
    """A copy of a picture whose masked pixels are magenta."""
    image = picture.copy()
    image[mask] = (255, 0, 255)
    return image


def mended(method: str, truth: NDArray, mask: NDArray) -> tuple[NDArray, Score]:
    """The answer of a method to a picture whose missing pixels are painted over in magenta, and its score."""
    image = painted_over(truth, mask)
    best: tuple[NDArray, float, float] | None = None
    for fill in FILLS[method]:
        begin = time.perf_counter()
        answer = fill(image, mask)
        spent = time.perf_counter() - begin
        quality = decibels(truth, answer, mask)
        if best is None or quality > best[1]:
            best = answer, quality, spent
    assert best is not None
    return best[0], Score(best[1], ssim(truth, best[0], mask), best[2])


def missing_pixels(method: str, truth: NDArray, mask: NDArray) -> tuple[NDArray, Score]:
    """The missing pixels of `mended` alone, and its score: what a cache remembers."""
    answer, score = mended(method, truth, mask)
    return answer[mask], score
