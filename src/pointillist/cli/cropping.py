"""Crops of pictures to try settings on: given by ``--crop``, or chosen for ``--preview``."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PREVIEW_SIDE = 512
_STEP = 32  # pixels by which the windows for a preview are moved


@dataclass(frozen=True)
class Crop:
    """A rectangle of a picture, in pixels from its upper left corner."""

    left: int
    top: int
    width: int
    height: int

    def of(self, array: NDArray[Any], factor: int = 1) -> NDArray[Any]:
        """Cut this rectangle out of an array (height, width, ...) that is `factor` times as large as the picture."""
        rows = slice(factor * self.top, factor * (self.top + self.height))
        columns = slice(factor * self.left, factor * (self.left + self.width))
        return np.ascontiguousarray(array[rows, columns])

    def fits(self, shape: tuple[int, int]) -> bool:
        return self.top + self.height <= shape[0] and self.left + self.width <= shape[1]

    def __str__(self) -> str:
        return f"{self.left},{self.top},{self.width},{self.height}"


def parse_crop(text: str) -> Crop:
    """Read ``100,50,400,300``: 400 pixels wide and 300 high, 100 from the left and 50 from the top."""
    try:
        left, top, width, height = (int(number) for number in text.split(","))
    except ValueError:
        left = top = width = height = -1
    if min(left, top) < 0 or min(width, height) < 1:
        raise ValueError(
            f"--crop {text!r} is not X,Y,W,H: write 100,50,400,300 for 400×300 pixels from column 100, row 50"
        )
    return Crop(left, top, width, height)


def preview_crop(shape: tuple[int, int], missing: NDArray[np.bool_] | None) -> Crop:
    """The middle of a picture, or the window of it with the most missing pixels."""
    height, width = min(PREVIEW_SIDE, shape[0]), min(PREVIEW_SIDE, shape[1])
    top, left = (shape[0] - height) // 2, (shape[1] - width) // 2
    if missing is not None and missing.any():
        top, left = _most_damaged(missing, height, width)
    return Crop(left, top, width, height)


def _most_damaged(missing: NDArray[np.bool_], height: int, width: int) -> tuple[int, int]:
    """Top and left of the window with the most missing pixels, among windows that begin at multiples of a step."""
    rows, columns = (np.arange(0, length, _STEP) for length in missing.shape)
    sums = np.add.reduceat(np.add.reduceat(missing, rows, axis=0, dtype=np.int64), columns, axis=1)
    whole = np.pad(sums.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    down, across = (max(1, min(side // _STEP, count)) for side, count in zip((height, width), sums.shape, strict=True))
    totals = whole[down:, across:] - whole[:-down, across:] - whole[down:, :-across] + whole[:-down, :-across]
    row, column = np.unravel_index(np.argmax(totals), totals.shape)
    return min(int(row) * _STEP, missing.shape[0] - height), min(int(column) * _STEP, missing.shape[1] - width)
