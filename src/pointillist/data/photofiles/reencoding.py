"""JPEG files encoded again by Pillow, as near to their source as that can be without its coefficients.

The source's tables and subsampling are kept. Decoders interpolate coarser chroma, and encoding what they give would blur it
once more; so that interpolation is undone for all samples without a changed pixel.
"""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, JpegImagePlugin
from scipy.linalg import solve_banded

_CELLS = {0: (1, 1), 1: (1, 2), 2: (2, 2)}  # pixels of a chroma sample, downwards and across, as Pillow numbers them


def options_of(image: Any) -> dict[str, Any]:
    """What Pillow needs to encode as an open JPEG file was: its tables, subsampling and order."""
    sampling = JpegImagePlugin.get_sampling(image)
    tables = list(image.quantization.values())
    if image.mode == "RGB" and len(tables) == 1:
        tables *= 2
    return {
        "qtables": tables[:2],
        "subsampling": sampling if sampling >= 0 else 0,
        "progressive": bool(image.info.get("progressive")),
        "keep_rgb": image.info.get("adobe_transform") == 0,
    }


def encode(image: Image.Image, dpi: tuple[float, float] | None, options: dict[str, Any]) -> bytes:
    """A JPEG stream of an image of mode L, RGB or YCbCr."""
    buffer = io.BytesIO()
    more: dict[str, Any] = {} if dpi is None else {"dpi": dpi}
    image.save(buffer, "JPEG", optimize=True, **options, **more)
    return buffer.getvalue()


def luminance_and_chroma(data: bytes, pixels: NDArray[np.uint8], changed: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Planes (height, width, 3) that, encoded with the source's subsampling, give its own samples where nothing changed.

    Parameters
    ----------
    data : bytes
        The source, a file of luminance and chroma.
    pixels : (height, width, 3) uint8 array
        Red, green and blue as they are now, in the source's orientation.
    changed : (height, width) bool array
        Where they are not those of the source.
    """
    with Image.open(io.BytesIO(data)) as image:
        image.draft("YCbCr", image.size)
        cell = _CELLS[max(JpegImagePlugin.get_sampling(image), 0)]
        planes = np.array(image.convert("YCbCr"))
    fresh = np.asarray(Image.fromarray(pixels).convert("YCbCr"))
    np.copyto(planes[..., 0], fresh[..., 0], where=changed)
    other = _repeated(_any_in(changed, cell), cell, changed.shape)
    for channel in (1, 2):
        coarse = planes[..., channel].astype(np.float32)
        for axis in (0, 1):
            coarse = _samples(coarse, axis) if cell[axis] == 2 else coarse
        own = np.clip(np.rint(coarse), 0, 255).astype(np.uint8)
        planes[..., channel] = np.where(other, fresh[..., channel], _repeated(own, cell, changed.shape))
    return planes


def _samples(plane: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """The samples, half as many, from which decoders interpolate this plane: 3/4 of the nearer and 1/4 of the farther.

    The mean of a pair is 3/4 of its sample and 1/8 of either neighbour; at borders the sample itself stands for one.
    """
    lines = np.moveaxis(plane, axis, 0)
    n = len(lines)
    if n < 3:
        return plane[tuple(slice(None, None, 2) if i == axis else slice(None) for i in (0, 1))]
    if n % 2:  # the last pair was cut in two
        lines = np.concatenate([lines, lines[-1:]])
    means = 0.5 * (lines[::2] + lines[1::2])
    bands = np.full((3, len(means)), 1 / 8, np.float32)
    bands[1] = 3 / 4
    bands[1, 0] = bands[1, -1] = 7 / 8
    if n % 2:
        bands[1, -1], bands[2, -2] = 3 / 4, 1 / 4
    return np.moveaxis(solve_banded((1, 1), bands, means, check_finite=False), 0, axis)


def _any_in(mask: NDArray[np.bool_], cell: tuple[int, int]) -> NDArray[np.bool_]:
    for axis in (0, 1):
        if cell[axis] > 1:
            mask = np.logical_or.reduceat(mask, np.arange(0, mask.shape[axis], cell[axis]), axis=axis)
    return mask


def _repeated(samples: NDArray, cell: tuple[int, int], shape: tuple[int, ...]) -> NDArray:
    """Each sample in all pixels of its cell."""
    return samples.repeat(cell[0], axis=0).repeat(cell[1], axis=1)[: shape[0], : shape[1]]
