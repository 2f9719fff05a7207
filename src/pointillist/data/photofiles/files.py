"""Reading and writing of photographs: pixels upright and in their own type, with everything that a format can hold.

Pillow decodes most formats; TIFF and JPEG have modules of their own, camera raw and HEIC need further packages. Pillow knows
PNG of 16 bits in colour with 8 bits only: such samples are imagecodecs', and the chunks about colour, size and text are put
into the file that it makes.
"""

from __future__ import annotations

import io
import logging
import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

from pointillist.data.damage import damage_named
from pointillist.data.photofiles import jpeg, tiff
from pointillist.data.photofiles.photograph import (
    HEIF_SUFFIXES,
    RAW_SUFFIXES,
    Format,
    Metadata,
    Photograph,
    check_format,
)
from pointillist.data.samples import map_npy, upright
from pointillist.errors import UnreadableFileError
from pointillist.reprs import shown
from pointillist.storage import atomic_path, check_regular
from pointillist.validation import as_path

logger = logging.getLogger(__name__)

_PROGRAMS = ("EPS", "WMF")
"""Formats that Pillow hands to another program, or to the system, to be drawn."""
_WITH_ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")
_JPEG_PIXELS = 512
"""Pixels that a byte of a JPEG file can stand for: a block of 64 takes a bit at least."""
_JPEG_SCANS = 500
"""Scans of a JPEG file that are decoded; progressive files have some ten."""
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_CHUNKS = (b"gAMA", b"cHRM", b"sRGB", b"cICP", b"mDCV", b"cLLI", b"tEXt", b"zTXt", b"iTXt")
"""Chunks that are written again as they are: those about colour and those with text."""
_PNG_XMP = b"XML:com.adobe.xmp\0"
# Runs of equal bytes alone are looked for, after the best of all filters: for photographs as small as the usual settings
# make them, in a sixth of the time.
_FAST = {"level": 1, "strategy": 3, "filter": 0xF8}
_WORDS = {"exif": "EXIF", "icc": "the colour profile", "dpi": "the resolution", "xmp": "XMP", "alpha": "transparency"}


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
        array = map_npy(path)
        with damage_named(f"{path} as an image"):
            samples = array * np.uint8(255) if array.dtype == np.bool_ else array.astype(array.dtype.newbyteorder("="))
            if samples.ndim == 3 and samples.shape[-1] > 4:
                raise ValueError(f"it has shape {array.shape}: one picture has (height, width) or (height, width, 3)")
            pixels, alpha, _ = tiff.split(samples)
            return Photograph(pixels, alpha, Metadata(format="NPY"))
    with _opened(path) as stream:
        if suffix in RAW_SUFFIXES:
            return _read_raw(path, stream)
        return _read_heif(path) if suffix in HEIF_SUFFIXES else _read_image(stream)


def photograph_size(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Height and width of what `read_photograph` would return, from the head of the file alone; raises as that does."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        height, width = np.atleast_2d(map_npy(path)).shape[:2]
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
            turned = image.getexif().get(tiff.ORIENTATION, 1) >= 5
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


def _read_image(stream: BinaryIO) -> Photograph:
    if _head(stream)[:4] in tiff.MAGIC:
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
        if image.format == "PNG" and data[24] == 16:
            import imagecodecs  # large, and only for such files and for writing

            samples, alpha, converted = tiff.split(np.asarray(imagecodecs.png_decode(data)))
        else:
            image.load()
            samples, alpha, converted = _samples(image)
        metadata = _metadata(image, data, own_colours=not converted)
    samples = np.ascontiguousarray(upright(samples, metadata.orientation))
    alpha = None if alpha is None else np.ascontiguousarray(upright(alpha, metadata.orientation))
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
    see_through = mode in _WITH_ALPHA or "transparency" in image.info
    if not see_through and mode not in ("1", "L", "P", "RGB"):
        return np.asarray(_to_rgb(image)), None, (f"its {mode} colours are converted to sRGB",)
    kind = "L" if mode in ("1", "L", "LA", "La") else "RGB"
    samples = np.asarray(image.convert(kind + "A" * see_through))
    if mode in ("P", "PA") and np.all(samples[..., :1] == samples[..., :3]):  # a palette of greys
        samples = samples[..., 2:] if see_through else samples[..., 0]
    return tiff.split(samples)


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


def _metadata(image: Image.Image, data: bytes, *, own_colours: bool) -> Metadata:
    """Metadata of a file that Pillow has opened."""
    info = image.info
    exif, orientation = tiff.turned_exif(info.get("exif"))
    if exif is None and len(image.getexif()) > 0:  # written in another way than as bytes
        exif, orientation = tiff.turned_exif(image.getexif().tobytes())
    form = "JPEG" if image.format in ("JPEG", "MPO") else str(image.format or "")
    xmp = info.get("xmp") or info.get("XML:com.adobe.xmp")
    dpi = info.get("dpi")
    return Metadata(
        format=form,
        exif=exif,
        icc=(info.get("icc_profile") or None) if own_colours else None,
        dpi=None if not dpi or not all(dpi) else (float(dpi[0]), float(dpi[1])),
        xmp=xmp.encode() if isinstance(xmp, str) else xmp,
        chunks=tuple(one for one in _png_chunks(data) if one[0] in _PNG_CHUNKS) if form == "PNG" else (),
        jpeg=data if form == "JPEG" and image.mode in ("L", "RGB") else None,
        orientation=orientation,
    )


def _read_raw(path: Path, stream: BinaryIO) -> Photograph:
    """A camera's raw file, developed with the camera's own white balance to 16-bit colour."""
    rawpy = _package("rawpy", "raw", path, "camera raw files")
    # Those of most makers are TIFF structures.
    exif = tiff.exif_of_structure(stream) if _head(stream)[:4] in tiff.MAGIC[:2] else None
    with rawpy.imread(str(path)) as raw:
        tiff.check_pixels(raw.sizes.height, raw.sizes.width)
        pixels = raw.postprocess(use_camera_wb=True, output_bps=16)
    return Photograph(
        np.ascontiguousarray(pixels),
        metadata=Metadata(format="RAW", exif=exif),
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
    exif, _ = tiff.turned_exif(info.get("exif"))
    metadata = Metadata(format="HEIF", exif=exif, icc=info.get("icc_profile") or None, xmp=info.get("xmp") or None)
    return Photograph(pixels, alpha, metadata, notes)


def _package(name: str, extra: str, path: Path, what: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        package = name.replace("_", "-")
        raise UnreadableFileError(
            f"cannot read {path}: {what} need the package {package}: pip install 'pointillist[{extra}]'"
        ) from None


def write_photograph(photograph: Photograph, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a photograph with its metadata in the format that the name asks for, completely or not at all.

    Pixels, alpha, EXIF, colour profile, resolution and XMP survive wherever the format can hold them. PNG, TIFF, WebP, BMP
    and ``.npy`` keep every pixel. A photograph that came from a JPEG file and becomes one again keeps that file's tables and
    subsampling and, where jpeglib is installed, the coefficients of all blocks that were not changed; without it, pixels of
    these blocks differ a little, most by no more than two levels, and are stored upright. Other photographs become JPEG
    of quality 95 without subsampling. TIFF keeps the compression that it had.

    Parameters
    ----------
    photograph : Photograph
    path : str or path
        Ends in .png, .jpg, .jpeg, .tif, .tiff, .webp, .bmp or .npy.

    Returns
    -------
    tuple of str
        What the format could not hold; the log has these lines too, as warnings.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> photo = pt.Photograph(np.zeros((30, 40, 3), np.uint16), alpha=np.full((30, 40), 65535, np.uint16))
    >>> pt.write_photograph(photo, "deep.png")
    ()
    >>> pt.read_photograph("deep.png").pixels.dtype.name
    'uint16'

    Raises
    ------
    ValueError
        If the name asks for no known format, or for one that cannot hold samples of this type.
    OSError
        If the file cannot be written.
    """
    path = as_path(path)
    if not isinstance(photograph, Photograph):
        raise TypeError(f"photograph must be a Photograph, got {shown(photograph)}")
    form = check_format(path, photograph.pixels.dtype)
    kept, notes = _fitted(photograph, form)
    with atomic_path(path) as temporary:
        notes += _write(kept, temporary, form)
    for note in notes:
        logger.warning("%s: %s", path, note)
    return notes


def _fitted(photograph: Photograph, form: Format) -> tuple[Photograph, tuple[str, ...]]:
    """The photograph without what a format cannot hold, and the words for what is missing then."""
    metadata, notes = photograph.metadata, []
    # A profile's head names its own colours. Grey files with a profile for colour are common and stay as they are.
    own = b"" if metadata.icc is None else metadata.icc[16:20]
    if len(own) == 4 and own != b"RGB " and not (own == b"GRAY" and photograph.pixels.ndim == 2):
        metadata = replace(metadata, icc=None)
        notes.append("the colour profile is for other colours than these pixels have: left out")
    there = vars(metadata) | {"alpha": photograph.alpha}
    missing = [word for name, word in _WORDS.items() if there[name] is not None and name not in form.holds]
    if missing:
        name = "a .npy array" if form.name == "NPY" else form.name
        notes.append(f"{name} cannot hold {' and '.join(missing)}: left out")
    for name in ("exif", "xmp"):
        if form.name == "JPEG" and len(there[name] or b"") > jpeg.LONGEST:
            left_out: dict[str, Any] = {name: None}
            metadata = replace(metadata, **left_out)
            notes.append(f"{_WORDS[name]} is too long for JPEG: left out")
    if metadata.xmp is not None and (metadata.jpeg is None or form.name != "JPEG"):
        upright_xmp = re.sub(rb"(<?tiff:Orientation(?:\s*=\s*[\"']|>\s*))[2-8]", rb"\g<1>1", metadata.xmp)
        metadata = replace(metadata, xmp=upright_xmp)
    alpha = photograph.alpha if "alpha" in form.holds else None
    return replace(photograph, alpha=alpha, metadata=metadata), tuple(notes)


def _write(photograph: Photograph, path: Path, form: Format) -> tuple[str, ...]:
    metadata, pixels, alpha = photograph.metadata, photograph.pixels, photograph.alpha
    if form.name == "TIFF":
        return tiff.write(photograph, path)
    if form.name == "JPEG":
        content, notes = jpeg.encode(pixels, metadata)
        path.write_bytes(content)
        return notes
    samples = pixels if alpha is None else np.dstack([pixels, alpha])
    if form.name == "PNG":
        path.write_bytes(_encode_png(samples, metadata))
    elif form.name == "NPY":
        with path.open("wb") as stream:
            np.save(stream, samples)
    else:
        image = Image.fromarray(pixels)
        if alpha is not None:
            image = image.convert("RGB")
            image.putalpha(Image.fromarray(alpha))
        # WebP without loss; quality is effort then, and more of it takes eight times as long for one percent.
        options: dict[str, Any] = {"lossless": True, "quality": 0, "method": 0, "exact": True}
        given = {"exif": metadata.exif, "icc_profile": metadata.icc, "xmp": metadata.xmp, "dpi": metadata.dpi}
        image.save(path, form.name, **options, **{name: value for name, value in given.items() if value})
    return ()


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and contents of the chunks of a PNG file, up to where it is cut short."""
    at = len(_PNG_SIGNATURE)
    while at + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        yield name, b"" if name == b"IDAT" else data[at + 8 : at + 8 + length]
        at += 12 + length


def _encode_png(samples: NDArray[Any], metadata: Metadata) -> bytes:
    """A PNG file of samples (height, width[, 2, 3 or 4 channels]) of 8 or 16 bits."""
    import imagecodecs

    texts = [one for one in metadata.chunks if one[0] == b"iTXt" and not one[1].startswith(_PNG_XMP)]
    chunks = [one for one in metadata.chunks if one[0] != b"iTXt" and not (metadata.icc and one[0] == b"sRGB")]
    if metadata.icc is not None:
        chunks.append((b"iCCP", b"ICC profile\0\0" + zlib.compress(metadata.icc)))
    if metadata.dpi is not None:
        across, down = (round(value / 0.0254) for value in metadata.dpi)  # in a metre
        chunks.append((b"pHYs", struct.pack(">IIB", across, down, 1)))
    if metadata.exif is not None:
        chunks.append((b"eXIf", metadata.exif))
    if metadata.xmp is not None:
        texts.append((b"iTXt", _PNG_XMP + bytes(4) + metadata.xmp))
    said = [
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks + texts
    ]
    plain = imagecodecs.png_encode(np.ascontiguousarray(samples), **_FAST)
    header = len(_PNG_SIGNATURE) + 12 + 13
    return b"".join((plain[:header], *said, plain[header:]))
