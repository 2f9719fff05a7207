"""Pictures as people have them: files in, pixels in their own type and scale with what is missing, and back.

Decoding belongs to the data layer; here is what restoration needs beside it: the samples' own type, transparency, and a
file that keeps both.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image, ImageOps
from scipy.ndimage import binary_dilation

from pointillist.data import UnreadableFileError, load_image
from pointillist.report.style import save_image
from pointillist.storage import atomic_path

log = logging.getLogger(__name__)

KEYS = ("#ff00ff", "#00ff00", "#ff0000", "#00ffff", "#0000ff", "#ffff00")
"""Colours that mark missing pixels by themselves: fully saturated, so that photographs hardly contain them exactly."""

LEAST_MARKED = 0.001
"""Part of the pixels that must have such a colour."""

_TIFF = (".tif", ".tiff")
_TINTED, _TINTED_BESIDE = (
    0.5,
    0.25,
)  # towards a key's colour, for a pixel to look like a mixture, anywhere and beside it


@dataclass(frozen=True)
class Picture:
    """Pixels (H, W) or (H, W, 3) in their own type; `transparent` (H, W) says which had no opacity at all."""

    pixels: NDArray[Any]
    transparent: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()

    @property
    def peak(self) -> float:
        """The largest value of the type; floating point is taken to end at 1."""
        return float(np.iinfo(self.pixels.dtype).max) if self.pixels.dtype.kind == "u" else 1.0

    @property
    def shape(self) -> tuple[int, int]:
        return self.pixels.shape[0], self.pixels.shape[1]


def read_picture(path: Path) -> Picture:
    """Read a picture without changing its type: uint8, uint16 or floating point.

    Grey that is stored as colour comes back as grey. 1-bit, palette and CMYK files become 8-bit grey or colour.
    """
    if path.suffix.lower() == ".npy":
        return _read_array(path)
    samples = load_image(path, grey=False)
    kind, transparent, notes = _properties(path)
    scale = 1.0 if kind.kind == "f" else float(np.iinfo(kind).max)
    pixels = np.moveaxis(samples, 0, -1)
    pixels = pixels.astype(kind) if kind.kind == "f" else np.round(pixels * np.float64(scale)).astype(kind)
    return Picture(_grey_if_equal(pixels), transparent, notes)


def _read_array(path: Path) -> Picture:
    if not path.exists():
        raise FileNotFoundError(f"no such image file: {path}")
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        reason = " ".join(str(error).split())
        raise UnreadableFileError(f"cannot read {path} as a .npy array: {reason}") from error
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * np.uint8(255)
    if array.dtype.newbyteorder("=") not in (np.uint8, np.uint16, np.float32, np.float64) or array.size == 0:
        raise UnreadableFileError(
            f"{path} holds {array.dtype} of shape {array.shape}: save uint8, uint16 or float pixels"
        )
    array = array.astype(array.dtype.newbyteorder("="))
    if array.ndim == 3 and array.shape[-1] in (2, 4):
        return Picture(_grey_if_equal(array[..., :-1]), array[..., -1] == 0)
    if array.ndim == 2 or (array.ndim == 3 and array.shape[-1] in (1, 3)):
        return Picture(_grey_if_equal(array if array.ndim == 3 else array[..., None]))
    raise UnreadableFileError(f"{path} has shape {array.shape}: one picture has (height, width) or (height, width, 3)")


def _grey_if_equal(pixels: NDArray[Any]) -> NDArray[Any]:
    first = pixels[..., 0]
    same = all(
        np.array_equal(first, pixels[..., c], equal_nan=first.dtype.kind == "f") for c in range(pixels.shape[-1])
    )
    return np.ascontiguousarray(first) if same else np.ascontiguousarray(pixels)


def _properties(path: Path) -> tuple[np.dtype[Any], NDArray[np.bool_] | None, tuple[str, ...]]:
    """Sample type, transparent pixels and notes of a file that was just decoded."""
    kind, frames = _deep_tiff(path) if path.suffix.lower() in _TIFF else (None, 1)
    transparent = None
    if kind is None:
        with Image.open(path) as image:
            frames = getattr(image, "n_frames", 1)
            kind = np.dtype(np.float32 if image.mode == "F" else np.uint16 if image.mode.startswith("I") else np.uint8)
            if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
                opacity = ImageOps.exif_transpose(image).convert("RGBA").getchannel("A")
                transparent = np.asarray(opacity) == 0
    notes = (f"only the first of its {frames} frames is read",) if frames > 1 else ()
    return kind, transparent, notes


def _deep_tiff(path: Path) -> tuple[np.dtype[Any] | None, int]:
    """Type of the samples where they have more than 8 bits, and the number of pages."""
    try:
        with tifffile.TiffFile(path) as tiff:
            kind, pages = tiff.pages.first.dtype, len(tiff.pages)
    except (tifffile.TiffFileError, ValueError):
        return None, 1  # another format under this name: Pillow decoded it
    if kind is None or kind.itemsize == 1 or kind.kind not in "uf":
        return None, pages
    return np.dtype(np.uint16 if kind.kind == "u" else np.float32), pages


def read_mask(path: Path, picture: Picture, name: Path) -> NDArray[np.bool_]:
    """A mask image as booleans: what is white, or brighter than half, is missing."""
    mask = read_picture(path)
    if mask.shape != picture.shape:
        rows, columns = mask.shape
        raise ValueError(
            f"--mask {path} has {columns}×{rows} pixels, {name} {picture.shape[1]}×{picture.shape[0]}: they must agree"
        )
    bright = mask.pixels.astype(np.float64) / mask.peak
    return (bright if bright.ndim == 2 else bright.mean(axis=-1)) >= 0.5


def parse_key(text: str) -> tuple[int, int, int]:
    """``#ff00ff`` as three numbers."""
    digits = text.removeprefix("#")
    try:
        value = bytes.fromhex(digits)
    except ValueError:
        value = b""
    if len(value) != 3:
        raise ValueError(f'--key {text!r} is not a colour: write six hexadecimal digits, as in "#ff00ff"')
    return value[0], value[1], value[2]


def coloured(picture: Picture, key: tuple[int, int, int], fuzz: float = 0.0) -> NDArray[np.bool_]:
    """Which pixels have this colour, or nearly so.

    Of a pure colour such as magenta these are mixtures with at least 1 − `fuzz` of it, so that grey never is; of others
    all that differ by at most `fuzz` of the full scale in every channel.
    """
    if fuzz > 0 and (tint := _tint(picture, key)) is not None:
        return tint >= 1 - fuzz
    pixels = picture.pixels if picture.pixels.ndim == 3 else np.stack([picture.pixels] * 3, axis=-1)
    wanted = np.array(key, np.float64) / 255 * picture.peak
    return np.all(np.abs(pixels - wanted) <= max(fuzz, 1e-6) * picture.peak, axis=-1)


def _tint(picture: Picture, key: tuple[int, int, int]) -> NDArray[np.float64] | None:
    """How much of a pure colour each pixel has: one for itself, at most zero for grey; None if the colour is not pure."""
    lit, dark = np.array(key) == 255, np.array(key) == 0
    if not np.all(lit | dark) or lit.all() or dark.all():
        return None
    if picture.pixels.ndim == 2:
        return np.zeros(picture.shape)
    levels = picture.pixels.astype(np.float64) / picture.peak
    tint: NDArray[np.float64] = levels[..., lit].min(axis=-1) - levels[..., dark].max(axis=-1)
    return tint


def find_marked(picture: Picture, name: Path) -> tuple[NDArray[np.bool_], str]:
    """The missing pixels that a picture marks by itself, and by what; raises when it marks none."""
    if picture.transparent is not None and picture.transparent.any():
        return picture.transparent, "transparent"
    holes = ~np.isfinite(picture.pixels)
    if holes.any():
        return holes if holes.ndim == 2 else holes.any(axis=-1), "NaN"
    found = {}
    if picture.pixels.ndim == 3 and picture.pixels.dtype.kind == "u":
        found = {key: marks for key in KEYS if np.mean(marks := coloured(picture, parse_key(key))) > LEAST_MARKED}
    if len(found) == 1:
        key, marks = next(iter(found.items()))
        return marks, key
    if found:
        raise ValueError(f"{name} has pixels of {' and '.join(found)}: say by --key which of them are missing")
    raise ValueError(
        f"{name} marks no pixels as missing: give --mask, or --key COLOUR, or make them transparent or {KEYS[0]} "
        "(in a PNG; JPEG blurs colours)"
    )


def grown(missing: NDArray[np.bool_], pixels: int) -> NDArray[np.bool_]:
    """Missing pixels and those at most so many rows and columns away."""
    if pixels == 0:
        return missing
    grown: NDArray[np.bool_] = binary_dilation(missing, np.ones((3, 3), bool), iterations=pixels)
    return grown


def fringes(picture: Picture, missing: NDArray[np.bool_], key: tuple[int, int, int]) -> int:
    """How many other pixels look like a mixture with the colour of the missing ones, as soft brushes and text leave it."""
    tint = _tint(picture, key)
    if tint is None:
        return 0
    return int(np.sum((tint > np.where(grown(missing, 2), _TINTED_BESIDE, _TINTED)) & ~missing))


def plain_beside(picture: Picture, missing: NDArray[np.bool_]) -> Picture:
    """The picture as grey where all that was seen is grey, so that coloured marks do not make it a colour picture."""
    pixels = picture.pixels
    if pixels.ndim == 2:
        return picture
    seen = pixels[~missing]
    if len(seen) == 0 or not (np.array_equal(seen[:, 0], seen[:, 1]) and np.array_equal(seen[:, 0], seen[:, 2])):
        return picture
    return replace(picture, pixels=np.ascontiguousarray(pixels[..., 0]))


def check_format(path: Path, pixels: NDArray[Any] | None = None) -> None:
    """Raise now if pixels of this kind cannot be written under that name."""
    suffix = path.suffix.lower()
    if suffix == ".npy" or suffix in _TIFF:
        return
    if Image.registered_extensions().get(suffix) not in Image.SAVE:
        raise ValueError(f"cannot write {path}: {suffix or 'no suffix'} is no image format; end it in .png")
    if (
        pixels is None
        or pixels.dtype == np.uint8
        or (pixels.dtype == np.uint16 and pixels.ndim == 2 and suffix == ".png")
    ):
        return
    raise ValueError(f"cannot write {path}: {pixels.dtype} samples keep their precision only in .tif or .npy")


def write_picture(pixels: NDArray[Any], path: Path) -> None:
    """Write pixels of any of the types that `read_picture` gives, completely or not at all."""
    check_format(path, pixels)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        with atomic_path(path) as temporary, temporary.open("wb") as stream:
            np.save(stream, pixels)
    elif suffix in _TIFF:
        with atomic_path(path) as temporary:
            tifffile.imwrite(temporary, pixels, photometric="minisblack" if pixels.ndim == 2 else "rgb")
    else:
        save_image(pixels, path)


def default_suffix(path: Path, pixels: NDArray[Any]) -> str:
    """The suffix of an answer to a file: PNG for 8 bits, otherwise what keeps the samples."""
    suffix = path.suffix.lower()
    if suffix == ".npy" or suffix in _TIFF:
        return suffix
    return ".png" if pixels.dtype == np.uint8 or (pixels.dtype == np.uint16 and pixels.ndim == 2) else ".tif"
