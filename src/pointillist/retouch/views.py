"""Views of a photograph or of a mask as small images for the page; never larger than a screen can show."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pointillist.data.photofiles import Photograph

_MOST_PIXELS = 12_000_000
_AMPLIFIED = 4
"""A found pixel that is one of four on the screen is shown in full, so that thin scratches do not fade away."""


@dataclass(frozen=True)
class View:
    """A box of the photograph, in its pixels, and how many pixels of the screen one of them gets (at most one)."""

    x: int
    y: int
    width: int
    height: int
    scale: float

    def __post_init__(self) -> None:
        if self.x < 0 or self.y < 0 or self.width < 1 or self.height < 1:
            raise ValueError("the view must begin inside the photograph and hold at least one pixel")
        if not 0 < self.scale <= 1:
            raise ValueError("scale must lie in (0, 1]")

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """The view that a query asks for, such as ``x=0&y=0&w=640&h=480&scale=0.5``."""
        try:
            x, y, width, height = (int(given[name]) for name in "xywh")
            scale = float(given["scale"])
        except (KeyError, ValueError):
            raise ValueError("a view needs whole numbers x, y, w and h, and a scale") from None
        return cls(x, y, width, height, scale)

    def of(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """Cut this box out of an array of the photograph's size, as far as that goes."""
        cut = pixels[self.y : self.y + self.height, self.x : self.x + self.width]
        if cut.size == 0:
            raise ValueError("the view lies outside the photograph")
        return cut

    def size(self, cut: NDArray[Any]) -> tuple[int, int]:
        """Width and height of the image to send."""
        height, width = (max(1, round(self.scale * side)) for side in cut.shape[:2])
        if width * height > _MOST_PIXELS:
            raise ValueError("the view is larger than a screen: ask for a smaller scale")
        return width, height


def picture_view(photograph: Photograph, view: View) -> tuple[bytes, str]:
    """An image of a view and its media type: PNG where pixels are shown one by one or see-through, JPEG otherwise."""
    alpha, profile = photograph.alpha, photograph.metadata.icc
    cut = _eight_bits(view.of(photograph.pixels), photograph.peak)
    size = view.size(cut)
    image = Image.fromarray(cut)
    if alpha is not None:
        image.putalpha(Image.fromarray(_eight_bits(view.of(alpha), photograph.peak)))
    if image.size != size:
        image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
    exact = view.scale == 1 or alpha is not None
    stream = BytesIO()
    if exact:
        image.save(stream, "PNG", compress_level=1, icc_profile=profile)
    else:
        image.save(stream, "JPEG", quality=92, subsampling=0, icc_profile=profile)
    return stream.getvalue(), "image/png" if exact else "image/jpeg"


def mask_view(mask: NDArray[np.bool_], view: View) -> tuple[bytes, str]:
    """A PNG that is opaque where the mask is true."""
    cut = view.of(mask)
    size = view.size(cut)
    image = Image.fromarray(cut.astype(np.uint8) * 255)
    if image.size != size:
        shown = np.asarray(image.resize(size, Image.Resampling.BOX), np.uint16)
        image = Image.fromarray(np.minimum(shown * _AMPLIFIED, 255).astype(np.uint8))
    stream = BytesIO()
    Image.merge("LA", (image, image)).save(stream, "PNG", compress_level=1)
    return stream.getvalue(), "image/png"


def _eight_bits(pixels: NDArray[Any], peak: float) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint8:
        return np.ascontiguousarray(pixels)
    shown = np.nan_to_num(pixels.astype(np.float32) * np.float32(255 / peak))
    return np.clip(np.rint(shown), 0, 255).astype(np.uint8)
