"""Pixels as they are seen from how they are stored, by the EXIF and TIFF codes from 1 to 8, and back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_INVERSE = {6: 8, 8: 6}


def upright(pixels: NDArray[Any], code: int) -> NDArray[Any]:
    """Stored pixels (height, width[, channels]) as they shall be seen; a view."""
    # 2 to 4 mirror and turn, 5 to 8 do so after exchanging rows and columns.
    if code >= 5:
        pixels = np.swapaxes(pixels, 0, 1)
    if code in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if code in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels


def turned_back(pixels: NDArray[Any], code: int) -> NDArray[Any]:
    """Pixels as they are stored, from what `upright` gave; a view."""
    return upright(pixels, _INVERSE.get(code, code))
