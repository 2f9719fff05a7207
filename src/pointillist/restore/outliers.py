"""Samples that are wrong rather than noisy: impulses at the ends of the range, outliers of any value, specks of dust.

They are only found here, large pictures tile by tile; `denoise` fills them in.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.ndimage
from numpy.typing import NDArray

from pointillist.restore.engine import NO_BLUR, Damaged, Settings, code, separate, synthesise
from pointillist.restore.large import SIDE, is_large
from pointillist.restore.pictures import Canvas, Picture
from pointillist.restore.tiling import Box, inside, run_all, tiles, widened

_OUTLIER = 0.1  # of full scale: smaller deviations are taken for detail or noise
_IMPULSE = 0.03  # the same for samples that are suspect already
_PRICE = 0.1
_PASSES = 2
_WINDOW = 5
_SOLID = 0.8  # share of a window that lies at one end of the range in white skies and black shadows
_CONTEXT = 32  # pixels around a tile that are coded with it

Finder = Callable[[Picture, Settings], NDArray]
"""A function that takes a picture, or a tile of it, and returns which samples (channels, height, width) are odd."""


def find_impulses(canvas: Canvas, filters: NDArray, settings: Settings) -> NDArray:
    """Samples at either end of the picture's range that their neighbours do not predict, (channels, height, width).

    Inside areas that lie at one end, as white skies do, nothing is suspect.
    """
    low, high = canvas.extremes()
    ends = low / canvas.scale, high / canvas.scale
    if not all(np.any((plane > low) & (plane < high)) for plane in canvas.planes):
        return ((canvas.planes <= low) | (canvas.planes >= high)) & ~canvas.missing
    return _by_tiles(canvas, lambda tile, own: _impulses(tile, ends, filters, own), settings)


def find_outliers(canvas: Canvas, filters: NDArray, settings: Settings) -> NDArray:
    """Samples of any value that their neighbours do not predict, and specks of dust, (channels, height, width)."""
    from pointillist import find_damage  # of `retouch`, which stands on this package

    odd = _by_tiles(canvas, lambda tile, own: _outliers(tile, filters, own), settings)
    pixels = np.moveaxis(canvas.planes, 0, -1)
    odd |= find_damage(pixels, "dust", data_range=canvas.scale, n_jobs=settings.n_jobs)
    return odd & ~canvas.missing


def _by_tiles(canvas: Canvas, find: Finder, settings: Settings) -> NDArray:
    """Odd samples of a picture, found tile by tile with some context if it is large."""
    odd = np.zeros(canvas.planes.shape, bool)
    jobs = settings.n_jobs
    boxes = tiles(canvas.shape, SIDE if is_large(canvas.shape) else max(canvas.shape))
    own = replace(settings, n_jobs=jobs if len(boxes) == 1 else 1, progress=None)

    def work(tile: Box) -> None:
        outer = widened(tile, _CONTEXT, canvas.shape)
        odd[(slice(None), *tile)] = find(canvas.picture(outer), own)[(slice(None), *inside(tile, outer))]

    run_all(work, boxes, jobs, settings.progress)
    return odd


def _impulses(picture: Picture, ends: tuple[float, float], filters: NDArray, settings: Settings) -> NDArray:
    seen = picture.weights > 0
    suspect = np.zeros(seen.shape, bool)
    for at_end in (seen & (picture.planes <= ends[0]), seen & (picture.planes >= ends[1])):
        alike = scipy.ndimage.uniform_filter(at_end.astype(np.float32), (0, _WINDOW, _WINDOW))
        suspect |= at_end & (alike < _SOLID)
    good = picture.weights * ~suspect
    if not np.all(np.any(good > 0, axis=(1, 2))):
        return suspect
    return suspect & (np.abs(picture.planes - _fit(picture, good, filters, None, settings)) > _IMPULSE)


def _outliers(picture: Picture, filters: NDArray, settings: Settings) -> NDArray:
    """Samples that a filter of one pixel explains at a smaller price than the filters of the dictionary.

    That filter makes a Huber loss of the squared one. What was found is left out of the next pass, which shows outliers
    that others had hidden and brings back what was only detail. Specks of dust are too large for it and are found by
    their shape.
    """
    odd = np.zeros(picture.planes.shape, bool)
    for _ in range(_PASSES):
        good = picture.weights * ~odd
        if not np.all(np.any(good > 0, axis=(1, 2))):
            break
        fit = _fit(picture, good, filters, _OUTLIER, settings)
        odd = (picture.weights > 0) & (np.abs(picture.planes - fit) > _OUTLIER)
    return odd


def _fit(picture: Picture, weights: NDArray, filters: NDArray, spike: float | None, settings: Settings) -> NDArray:
    """Planes as the filters explain them, plane by plane; samples that a spike at this price explains better are ignored."""
    bank = filters if filters.shape[1] == 1 else filters.mean(axis=1, keepdims=True)
    prices = np.full(len(bank), _PRICE)
    if spike is not None:
        point = np.zeros((1, *bank.shape[1:]), bank.dtype)
        point[(0, 0, *((f - 1) // 2 for f in bank.shape[2:]))] = 1
        bank, prices = np.concatenate([bank, point]), np.append(prices, spike)
    plain = bank if spike is None else np.concatenate([bank[:-1], np.zeros_like(point)])
    settings = replace(settings, boundary="same", debias=False)
    planes = []
    for plane, weight in zip(picture.planes, weights, strict=True):
        seen = Damaged([plane[None]], [weight[None]])
        trusted = seen if spike is None else Damaged([plane[None]], [_near_median(plane, weight)[None]])
        smooth = separate(trusted, settings)
        codes = code(seen, smooth, bank, prices, settings).codes
        detail = synthesise(codes, plain, [(1, *plane.shape)], NO_BLUR, "same")[0]
        planes.append((smooth[0].sharp + detail)[0])
    return np.stack(planes)


def _near_median(plane: NDArray, weights: NDArray) -> NDArray:
    """Weights without the pixels far from the median of their neighbours, where the smooth part is concerned."""
    middle = scipy.ndimage.median_filter(np.where(weights > 0, plane, np.median(plane[weights > 0])), _WINDOW)
    near = weights * (np.abs(plane - middle) <= 2 * _OUTLIER)
    return near if np.any(near) else weights
