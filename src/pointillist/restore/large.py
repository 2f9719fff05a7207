"""Images opened for restoration: small ones whole, large ones tile by tile, with tiles that overlap and fade together.

What holds for a whole large picture (the strength of its noise, the penalty) is found on a montage of crops first, so that
all tiles are treated alike. Memory is that of the picture, the answer and a few tiles.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.restore.details import Details, joined_details
from pointillist.restore.engine import Settings
from pointillist.restore.pictures import Canvas, ChannelAxis, Picture, open_canvas
from pointillist.restore.tiling import Box, in_turn, inside, tiles, widened

LARGE = 2**21
"""Pixels from which on a picture is restored tile by tile."""

SIDE = 512
"""Side of a tile of the answer, in pixels."""

_SMALLEST = 64  # side of a tile at least; over it tiles fade in and out
_FADE = 16  # pixels beyond a tile over which it fades out
_CROPS = 4  # crops along each side of a montage
_CROP = 256

Work = Callable[[Picture, Settings], tuple[NDArray, Details]]
"""A function that restores a picture with some settings, and returns it with its details."""


@dataclass(frozen=True, eq=False)
class Subject:
    """An image to be restored.

    Attributes
    ----------
    canvas : Canvas
        The image.
    sample : Picture
        All of it, or for large ones a montage: crops from all over it side by side, a small picture with the same noise
        and contrasts.
    tiled : bool
        Whether the image is large, and restored tile by tile.
    """

    canvas: Canvas
    sample: Picture
    tiled: bool

    def restored(
        self, work: Work, settings: Settings, *, margin: int, factor: int = 1, channels: int | None = None
    ) -> tuple[NDArray, Details]:
        """The restored image: all of it at once, or all tiles, each with a margin, put together.

        `factor` is how many times larger the answer is; `channels` how many it has where that is not as in the image.
        """
        if not self.tiled:
            return work(self.sample, settings)
        canvas = replace(self.canvas, axis=None if self.canvas.axis is None else 2)
        if channels is None and canvas.axis is not None:
            channels = len(canvas.planes) + (canvas.alpha is not None)
        total = np.zeros((factor * canvas.shape[0], factor * canvas.shape[1], *([channels] if channels else [])), "f")
        boxes = tiles(canvas.shape, _side(factor))
        own = replace(settings, n_jobs=settings.n_jobs if len(boxes) == 1 else 1, progress=None)

        def restore_tile(tile: Box) -> tuple[Box, NDArray, Details]:
            outer, faded = widened(tile, margin + _FADE, canvas.shape), widened(tile, _FADE, canvas.shape)
            image, details = work(canvas.picture(outer), own)
            cut = image[_scaled(inside(faded, outer), factor)].astype(np.float32)
            weights = _weights(tile, faded, canvas.shape, factor)
            return _scaled(faded, factor), cut * weights.reshape(*weights.shape, *[1] * (cut.ndim - 2)), details

        found = []
        for box, weighted, details in in_turn(restore_tile, boxes, settings.n_jobs, settings.progress):
            total[box] += weighted
            found.append(details)
        dtype = canvas.planes.dtype
        if dtype.kind == "u":
            np.rint(total, out=total)
            np.clip(total, 0, np.iinfo(dtype).max, out=total)
        image = total.astype(dtype)
        return image if self.canvas.axis is None else np.moveaxis(image, -1, self.canvas.axis), joined_details(found)


def open_subject(
    image: ArrayLike,
    channel_axis: ChannelAxis,
    data_range: float | None,
    *,
    factor: int = 1,
    period: int = 1,
    name: str = "image",
) -> Subject:
    """Check an image, and find out whether it is large: it, or the answer that is `factor` times as high and wide.

    Images with holes as large as a tile are restored whole, since nothing was seen there to restore the tile from. Crops of
    a montage begin at multiples of `period` rows and columns.
    """
    canvas = open_canvas(image, channel_axis=channel_axis, data_range=data_range, name=name)
    if not is_large(canvas.shape, factor) or _with_hole(canvas.missing, _side(factor)):
        return Subject(canvas, canvas.picture(), False)
    tops, lefts = (np.linspace(0, n - min(_CROP, n), _CROPS).astype(int) // period * period for n in canvas.shape)

    def montage(planes: NDArray) -> NDArray:
        strips = [np.concatenate([planes[:, t : t + _CROP, s : s + _CROP] for s in lefts], axis=2) for t in tops]
        return np.concatenate(strips, axis=1)

    crops = replace(canvas, planes=montage(canvas.planes), missing=montage(canvas.missing), alpha=None)
    return Subject(canvas, crops.picture(), True)


def is_large(shape: tuple[int, int], factor: int = 1) -> bool:
    """Whether a picture, enlarged so many times, is to be restored tile by tile."""
    return shape[0] * shape[1] * factor**2 >= LARGE


def _side(factor: int) -> int:
    """Side of a tile of a picture that is enlarged so many times."""
    return max(SIDE // factor, _SMALLEST)


def _with_hole(missing: NDArray, side: int) -> bool:
    """Whether a channel of a tile has no seen sample."""
    if not np.any(missing):
        return False
    return any(np.any(np.all(missing[(slice(None), *box)], axis=(1, 2))) for box in tiles(missing.shape[1:], side))


def _scaled(box: Box, factor: int) -> Box:
    rows, columns = (slice(factor * ends.start, factor * ends.stop) for ends in box)
    return rows, columns


def _weights(tile: Box, faded: Box, shape: tuple[int, int], factor: int) -> NDArray:
    """How much a tile counts at each pixel: rising from zero at inner borders, one elsewhere, in sum one over all tiles."""
    lines = []
    for ends, wide, n in zip(tile, faded, shape, strict=True):
        middles = (np.arange(factor * wide.start, factor * wide.stop) + 0.5) / factor
        rising = np.ones(len(middles)) if ends.start == 0 else (middles - ends.start + _FADE) / (2 * _FADE)
        falling = np.ones(len(middles)) if ends.stop == n else (ends.stop + _FADE - middles) / (2 * _FADE)
        lines.append(np.clip(np.minimum(rising, falling), 0, 1))
    return np.outer(lines[0], lines[1]).astype(np.float32)
