"""Files that need another package: camera raw through rawpy, HEIC and AVIF through pillow-heif."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pointillist.data.photofiles import exif
from pointillist.data.photofiles.opening import check_pixels
from pointillist.data.photofiles.photograph import Metadata, Photograph
from pointillist.data.photofiles.tiff import split
from pointillist.errors import UnreadableFileError


def read_raw(path: Path) -> Photograph:
    """A camera's raw file, developed with the camera's own white balance to 16-bit colour."""
    rawpy = _package("rawpy", "raw", path, "camera raw files")
    with rawpy.imread(str(path)) as raw:
        check_pixels(raw.sizes.height, raw.sizes.width)
        pixels = raw.postprocess(use_camera_wb=True, output_bps=16)
    return Photograph(
        np.ascontiguousarray(pixels),
        metadata=Metadata(format="RAW", exif=_raw_exif(path)),
        notes=("it is developed with the camera's white balance, to sRGB of 16 bits",),
    )


def raw_size(path: Path) -> tuple[int, int]:
    rawpy = _package("rawpy", "raw", path, "camera raw files")
    with rawpy.imread(str(path)) as raw:
        size = raw.sizes
        return (size.width, size.height) if size.flip in (5, 6) else (size.height, size.width)


def _raw_exif(path: Path) -> bytes | None:
    """EXIF where the raw file is a TIFF structure, as those of most makers are."""
    with path.open("rb") as stream:
        if stream.read(4) not in (b"II*\0", b"MM\0*"):
            return None
        return exif.from_tiff_structure(stream)


def read_heif(path: Path) -> Photograph:
    """A HEIC or AVIF file; more than 8 bits become 16."""
    heif = _package("pillow_heif", "heif", path, "HEIC files")
    image = heif.open_heif(path, convert_hdr_to_8bit=False)
    check_pixels(*image.size)
    info = image.info
    pixels, alpha, notes = split(np.array(image))
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


def heif_size(path: Path) -> tuple[int, int]:
    width, height = _package("pillow_heif", "heif", path, "HEIC files").open_heif(path).size
    return height, width


def _package(name: str, extra: str, path: Path, what: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        package = name.replace("_", "-")
        raise UnreadableFileError(
            f"cannot read {path}: {what} need the package {package}: pip install 'pointillist[{extra}]'"
        ) from None
