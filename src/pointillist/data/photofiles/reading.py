"""Reading of photographs: what decoders give, upright and in its own type, with the metadata of the file.

Pillow decodes most formats; TIFF and PNG of 16 bits have modules of their own, camera raw and HEIC need further packages.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

from pointillist.data.damage import damage_named
from pointillist.data.photofiles import exif, png, tiff
from pointillist.data.photofiles.formats import HEIF_SUFFIXES, RAW_SUFFIXES
from pointillist.data.photofiles.photograph import JpegOrigin, Metadata, Photograph
from pointillist.data.samples import map_npy, upright
from pointillist.errors import UnreadableFileError
from pointillist.storage import check_regular
from pointillist.validation import as_path

_PROGRAMS = ("EPS", "WMF")
"""Formats that Pillow hands to another program, or to the system, to be drawn."""
_WITH_ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")
_JPEG_PIXELS = 512
"""Pixels that a byte of a JPEG file can stand for: a block of 64 takes a bit at least."""
_JPEG_SCANS = 500
"""Scans of a JPEG file that are decoded; progressive files have some ten."""


def read_photograph(path: str | os.PathLike[str]) -> Photograph:
    """Read a photograph as it is: its pixels in their own type, upright, with all that its file says about them.

    PNG, JPEG, TIFF, WebP, BMP, GIF and whatever else Pillow reads, of 8 and 16 bits and floating point, and ``.npy``
    arrays; with the extra ``raw`` the files of cameras, with ``heif`` HEIC and AVIF. Colours are not converted, except
    from CMYK and other spaces that are not grey or RGB.

    Parameters
    ----------
    path : str or path
        The file. An image of more than 179 megapixels (twice ``PIL.Image.MAX_IMAGE_PIXELS``) is refused, unread.

    Returns
    -------
    Photograph

    Examples
    --------
    >>> import pointillist as pt
    >>> from PIL import Image
    >>> Image.new("RGB", (40, 30), "white").save("white.png", dpi=(300, 300))
    >>> photo = pt.read_photograph("white.png")
    >>> photo.pixels.shape, photo.pixels.dtype.name, round(photo.metadata.dpi[0])
    ((30, 40, 3), 'uint8', 300)

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    UnreadableFileError
        If the file is empty, truncated or no photograph, or needs an extra that is not installed.
    """
    path = as_path(path)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        array = _load_array(path)
        bits = array.dtype == np.bool_
        samples = np.array(array, np.uint8) * np.uint8(255) if bits else np.array(array, array.dtype.newbyteorder("="))
        pixels, alpha, _ = tiff.split(samples)
        return Photograph(pixels, alpha, Metadata(format="NPY"))
    with _opened(path) as stream:
        if suffix in RAW_SUFFIXES:
            return _read_raw(path)
        return _read_heif(path) if suffix in HEIF_SUFFIXES else _read_image(stream)


def photograph_size(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Height and width of what `read_photograph` would return, from the head of the file alone; raises as that does."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        height, width, *_ = _load_array(path).shape
        return height, width
    with _opened(path) as stream:
        if suffix in RAW_SUFFIXES:
            with _package("rawpy", "raw", path, "camera raw files").imread(str(path)) as raw:
                size = raw.sizes
                return (size.width, size.height) if size.flip in (5, 6) else (size.height, size.width)
        if suffix in HEIF_SUFFIXES:
            width, height = _package("pillow_heif", "heif", path, "HEIC files").open_heif(path).size
            return height, width
        if _head(stream)[:4] in tiff.MAGIC:
            return tiff.size(stream)
        with Image.open(stream) as image:
            turned = image.getexif().get(exif.ORIENTATION, 1) >= 5
            return image.size if turned else (image.height, image.width)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """An image file, open; whatever goes wrong while it is read becomes an `UnreadableFileError` with its name."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: use load_images to read what is in it")
    check_regular(path, "image file")
    with path.open("rb") as stream, damage_named(f"{path} as an image"):
        size, most = os.fstat(stream.fileno()).st_size, Image.MAX_IMAGE_PIXELS
        # TIFF files say themselves what they claim; others with so many bytes would be too large without compression.
        if most and size > 16 * most and _head(stream)[:4] not in tiff.MAGIC:
            raise ValueError(f"it has {size:,} bytes, more than an image with as many pixels as are decoded")
        try:
            yield stream
        except Image.UnidentifiedImageError:
            raise ValueError("its content is in no known image format") from None
        except Image.DecompressionBombError:
            raise ValueError(
                f"it has too many pixels, the limit is {2 * (most or 0) / 1e6:.3g} megapixels; "
                "crop or shrink it, or set PIL.Image.MAX_IMAGE_PIXELS to half of what you allow"
            ) from None


def _load_array(path: Path) -> NDArray[Any]:
    """A mapped array that can be a photograph."""
    array: NDArray[Any] = map_npy(path)
    if array.dtype != np.bool_ and array.dtype.newbyteorder("=") not in (np.uint8, np.uint16, np.float32, np.float64):
        raise UnreadableFileError(
            f"{path} holds {array.dtype} of shape {array.shape}: save uint8, uint16 or float pixels"
        )
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[-1] > 4):
        raise UnreadableFileError(
            f"{path} has shape {array.shape}: one picture has (height, width) or (height, width, 3)"
        )
    return array


def _read_image(stream: BinaryIO) -> Photograph:
    head = _head(stream)
    if head[:4] in tiff.MAGIC:
        photograph = tiff.read(stream)
        if photograph is not None:
            return photograph
        stream.seek(0)
    data = stream.read()
    with Image.open(io.BytesIO(data)) as image:
        if image.format in _PROGRAMS:
            raise ValueError(
                f"it is {image.format} (PostScript or the like), a program that is not run: save it as PNG"
            )
        if image.format in ("JPEG", "MPO"):
            pixels, scans = image.width * image.height, data.count(b"\xff\xda")
            if pixels > _JPEG_PIXELS * len(data):
                raise ValueError(f"it claims {pixels:,} pixels but has {len(data):,} bytes: it is damaged or cut short")
            if scans > _JPEG_SCANS:
                raise ValueError(
                    f"it has {scans:,} scans, {_JPEG_SCANS} are decoded at most: save it again in another way"
                )
        frames = getattr(image, "n_frames", 1)
        notes = (f"only the first of its {frames} frames is read",) if frames > 1 else ()
        if image.format == "PNG" and head[24] == 16:
            samples, alpha, _ = tiff.split(png.decode_deep(data))
            converted: tuple[str, ...] = ()
        else:
            image.load()
            samples, alpha, converted = _samples(image)
        metadata, code = _metadata(image, data, own_colours=not converted)
    if code != 1:
        samples = np.ascontiguousarray(upright(samples, code))
        alpha = None if alpha is None else np.ascontiguousarray(upright(alpha, code))
    return Photograph(samples, alpha, metadata, notes + converted)


def _head(stream: BinaryIO) -> bytes:
    """The first bytes of an open file, which is then read from its start again."""
    head = stream.read(26)
    stream.seek(0)
    if not head:
        raise ValueError("the file is empty")
    return head


def _samples(image: Image.Image) -> tuple[NDArray[Any], NDArray[Any] | None, tuple[str, ...]]:
    """Pixels, alpha and what had to be converted, of an image that Pillow decoded."""
    mode = image.mode
    if mode == "F":
        return np.asarray(image), None, ()
    if mode.startswith("I"):
        wide = np.asarray(image)
        # Mode I: 16 bits widened to 32 in PGM; in TIFF they are real 32-bit samples of unknown range.
        if mode == "I" and (image.format == "TIFF" or wide.min() < 0 or wide.max() > 65535):
            raise ValueError("its integer samples have no known range; save it as uint8, uint16 or float")
        return wide.astype(np.uint16), None, ()
    if mode in _WITH_ALPHA or "transparency" in image.info:
        grey = mode in ("1", "L", "LA", "La")
        samples = np.asarray(image.convert("LA" if grey else "RGBA"))
        pixels, alpha, _ = tiff.split(samples)
        return (_grey_if_equal(pixels) if mode in ("P", "PA") else pixels), alpha, ()
    if mode in ("1", "L"):
        return np.asarray(image.convert("L")), None, ()
    if mode == "P":
        return _grey_if_equal(np.asarray(image.convert("RGB"))), None, ()
    if mode == "RGB":
        return np.asarray(image), None, ()
    return np.asarray(_to_rgb(image)), None, (f"its {mode} colours are converted to sRGB",)


def _to_rgb(image: Image.Image) -> Image.Image:
    """Colours of another space as sRGB, by the image's own profile where it has one."""
    profile = image.info.get("icc_profile")
    if image.mode == "CMYK" and profile:
        try:
            own = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(image, own, ImageCms.createProfile("sRGB"), outputMode="RGB")
        except ImageCms.PyCMSError:
            converted = None  # the profile is damaged, or one for other colours
        if converted is not None:
            return converted
    return image.convert("RGB")


def _grey_if_equal(pixels: NDArray[Any]) -> NDArray[Any]:
    """Colour that a palette of greys was expanded to, as grey."""
    first = pixels[..., 0]
    same = all(np.array_equal(first, pixels[..., channel]) for channel in (1, 2))
    return np.ascontiguousarray(first) if same else pixels


def _metadata(image: Image.Image, data: bytes, *, own_colours: bool) -> tuple[Metadata, int]:
    """Metadata with an orientation of 1, and the orientation that the file had."""
    info = image.info
    found = exif.without_prefix(info.get("exif"))
    if found is None and len(image.getexif()) > 0:  # written in another way than as bytes
        found = exif.without_prefix(image.getexif().tobytes())
    code = exif.orientation(found)
    form = "JPEG" if image.format in ("JPEG", "MPO") else str(image.format or "")
    xmp = info.get("xmp") or info.get("XML:com.adobe.xmp")
    dpi = info.get("dpi")
    metadata = Metadata(
        format=form,
        exif=None if found is None else exif.with_orientation(found, 1),
        icc=(info.get("icc_profile") or None) if own_colours else None,
        dpi=None if not dpi or not all(dpi) else (float(dpi[0]), float(dpi[1])),
        xmp=xmp.encode() if isinstance(xmp, str) else xmp,
        chunks=tuple(one for one in png.chunks(data) if one[0] in png.KEPT_CHUNKS) if form == "PNG" else (),
        jpeg=JpegOrigin(data, code) if form == "JPEG" and image.mode in ("L", "RGB") else None,
    )
    return metadata, code


def _read_raw(path: Path) -> Photograph:
    """A camera's raw file, developed with the camera's own white balance to 16-bit colour."""
    rawpy = _package("rawpy", "raw", path, "camera raw files")
    with path.open("rb") as stream:  # those of most makers are TIFF structures
        found = exif.from_tiff_structure(stream) if stream.read(4) in exif.MAGIC else None
    with rawpy.imread(str(path)) as raw:
        tiff.check_pixels(raw.sizes.height, raw.sizes.width)
        pixels = raw.postprocess(use_camera_wb=True, output_bps=16)
    return Photograph(
        np.ascontiguousarray(pixels),
        metadata=Metadata(format="RAW", exif=found),
        notes=("it is developed with the camera's white balance, to sRGB of 16 bits",),
    )


def _read_heif(path: Path) -> Photograph:
    """A HEIC or AVIF file; more than 8 bits become 16."""
    heif = _package("pillow_heif", "heif", path, "HEIC files")
    image = heif.open_heif(path, convert_hdr_to_8bit=False)
    tiff.check_pixels(*image.size)
    info = image.info
    pixels, alpha, notes = tiff.split(np.array(image))
    if len(image) > 1:
        notes += (f"only the first of its {len(image)} frames is read",)
    found = exif.without_prefix(info.get("exif"))
    metadata = Metadata(
        format="HEIF",
        exif=None if found is None else exif.with_orientation(found, 1),
        icc=info.get("icc_profile") or None,
        xmp=info.get("xmp") or None,
    )
    return Photograph(pixels, alpha, metadata, notes)


def _package(name: str, extra: str, path: Path, what: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        package = name.replace("_", "-")
        raise UnreadableFileError(
            f"cannot read {path}: {what} need the package {package}: pip install 'pointillist[{extra}]'"
        ) from None
