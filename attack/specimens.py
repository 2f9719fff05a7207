"""Well-formed files of every kind that the package reads, small, from which mutated ones are made.

A specimen is a mapping from names to bytes: of a single file the name is empty, a store has one entry for each of its files.
"""

from __future__ import annotations

import functools
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image

import pointillist as pt
from pointillist.cli.app import run
from pointillist.storage import read_arrays

Files = dict[str, bytes]

PICTURE = np.random.default_rng(0).integers(0, 256, (12, 14), dtype=np.uint8)
COLOUR = np.random.default_rng(2).integers(0, 256, (12, 14, 3), dtype=np.uint8)
STACK = np.random.default_rng(1).random((3, 8, 9)).astype(np.float32)
SIGNALS = np.random.default_rng(0).standard_normal((3, 60)).astype(np.float32)
ZARR_2: dict[str, Any] = {
    "zarr_format": 2, "shape": [3, 8, 9], "chunks": [1, 8, 9], "dtype": "<f4", "compressor": {"id": "zlib", "level": 1},
    "filters": None, "fill_value": 0, "order": "C",
}  # fmt: skip
ZARR_3: dict[str, Any] = {
    "zarr_format": 3, "node_type": "array", "shape": [3, 8, 9], "data_type": "float32", "fill_value": 0, "attributes": {},
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 8, 9]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [
        {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}},
    ],
}  # fmt: skip

_ROWS = [[f"{value:.4f}" for value in row] for row in SIGNALS.T]
TABLES = (
    "\n".join(",".join(row) for row in _ROWS),
    "\n".join(["time,a,b,c", *(f"{i / 250:.3f},{','.join(row)}" for i, row in enumerate(_ROWS))]),
    "\ufeff# by hand\nleft;right\n" + "\n".join(";".join(row[:2]).replace(".", ",") for row in _ROWS),
    "a\tb\n" + "\n".join(f"{row[0]}\t{row[1] if i % 7 else ''}" for i, row in enumerate(_ROWS)),
)
"""Tables in text: plain; with times; with decimal commas; with gaps."""


class Specimen(NamedTuple):
    """A well-formed file or store."""

    kind: str
    """What it is read as: picture, npy, table, tiff, hdf5, zarr, model, checkpoint, codes or part."""
    suffix: str
    files: Files


def npy(array: NDArray[Any] = STACK) -> bytes:
    """An array as ``.npy``."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def tiff(array: NDArray[Any] = STACK, photometric: str = "minisblack", **how: Any) -> bytes:
    """An array as TIFF, a page for each picture in it."""
    stream = io.BytesIO()
    tifffile.imwrite(stream, array, photometric=photometric, **how)
    return stream.getvalue()


def image(form: str, array: NDArray[Any] = PICTURE, mode: str | None = None, **how: Any) -> bytes:
    """A picture in one of Pillow's formats."""
    stream, picture = io.BytesIO(), Image.fromarray(array)
    (picture if mode is None else picture.convert(mode)).save(stream, form, **how)
    return stream.getvalue()


def turned() -> Image.Exif:
    """EXIF that says that the picture lies on its side."""
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "a picture"
    return exif


def hdf5(**how: Any) -> bytes:
    """A stack in an HDF5 file, with a link to it."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.create_dataset("group/images", data=STACK, **how)
        file["link"] = h5py.SoftLink("/group/images")
    return stream.getvalue()


def zarr_store(form: int) -> Files:
    """A stack as the files of a zarr store."""
    import gzip
    import zlib

    if form == 2:
        chunks = {f"{i}.0.0": zlib.compress(STACK[i].tobytes()) for i in range(len(STACK))}
        return {".zarray": json.dumps(ZARR_2).encode(), **chunks}
    chunks = {f"c/{i}/0/0": gzip.compress(STACK[i].tobytes(), mtime=0) for i in range(len(STACK))}
    return {"zarr.json": json.dumps(ZARR_3).encode(), **chunks}


def zipped(files: Files) -> bytes:
    """Files as a zip file, as zarr reads it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


TIFFS: dict[str, Callable[[], bytes]] = {
    "tiff": tiff,
    "deflated tiff": lambda: tiff(compression="zlib", predictor=3),
    "imagej tiff": lambda: tiff(imagej=True),
    "one-page tiff": lambda: tiff(PICTURE, tile=(16, 16), description="a picture", resolution=(300, 300)),
    "big tiff": lambda: tiff(STACK, bigtiff=True, metadata=None),
    "colour tiff": lambda: tiff(
        COLOUR.astype(np.uint16), "rgb", compression="lzw", extratags=[(700, 1, 4, b"<x/>", True)]
    ),
}
PICTURES: dict[str, Callable[[], bytes]] = {
    "png": lambda: image("PNG", dpi=(300, 300), exif=turned()),
    "colour png": lambda: image("PNG", COLOUR, "P", transparency=3),
    "deep png": lambda: image("PNG", PICTURE.astype(np.uint16) * 257),
    "jpg": lambda: image("JPEG", exif=turned()),
    "colour jpg": lambda: image("JPEG", COLOUR, progressive=True, comment=b"words"),
    "cmyk jpg": lambda: image("JPEG", COLOUR, "CMYK"),
    "gif": lambda: image("GIF", COLOUR, "P"),
    "bmp": lambda: image("BMP", COLOUR),
    "webp": lambda: image("WEBP", COLOUR, exif=turned()),
    "pgm": lambda: image("PPM"),
    "ppm": lambda: image("PPM", COLOUR),
    "pbm": lambda: image("PPM", PICTURE, "1"),
}


def specimens_of_files() -> Iterator[Specimen]:
    """Pictures, arrays and containers."""
    arrays = (STACK, PICTURE, STACK[0].astype(np.float64), np.asfortranarray(STACK[0]), COLOUR, STACK.astype(">u2"))
    for array in arrays:
        yield Specimen("npy", ".npy", {"": npy(array)})
    for lines in TABLES:
        yield Specimen("table", ".csv", {"": lines.encode()})
    for make in TIFFS.values():
        yield Specimen("tiff", ".tif", {"": make()})
    yield Specimen("picture", ".dng", {"": TIFFS["colour tiff"]()})
    for name, make in PICTURES.items():
        yield Specimen("picture", f".{name.split()[-1]}", {"": make()})
    if find_spec("pillow_heif") is not None:
        yield Specimen("picture", ".heic", {"": _heif()})
    if find_spec("h5py") is not None:
        yield Specimen("hdf5", ".h5", {"": hdf5(chunks=(1, 8, 9), compression="gzip")})
        yield Specimen("hdf5", ".h5", {"": hdf5(chunks=(1, 4, 4), shuffle=True, fletcher32=True)})
        yield Specimen("hdf5", ".h5", {"": hdf5()})
    for form in (2, 3):
        yield Specimen("zarr", ".zarr", zarr_store(form))
        yield Specimen("zarr", ".zip", {"": zipped(zarr_store(form))})


def _heif() -> bytes:
    import pillow_heif

    stream = io.BytesIO()
    pillow_heif.from_pillow(Image.fromarray(np.tile(COLOUR, (6, 6, 1)))).save(stream, format="HEIF")
    return stream.getvalue()


@functools.cache
def written_by_runs() -> dict[str, bytes]:
    """A model, a checkpoint, codes and a part, as runs write them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        update = pt.FilterUpdate(init=np.ones((3, 5)))
        model = pt.OnlineCSC(
            [2, 1], [3, 5], [0.5, 0.6, 0.7], solver=pt.solvers.CoordinateDescent(), update=update, n_epochs=1, n_jobs=1
        )
        model.set_params(random_state=0).fit(SIGNALS, checkpoint=pt.Checkpoints(folder / "m", every=1, keep=True))
        about = {"data": {"signals": 3, "paths": ["a"]}}
        pt.save(model, folder / "m", preprocessing={"normalise": "none"}, extra=about)
        pt.save_codes(model.transform(SIGNALS), folder / "c")
        np.save(folder / "signals.npy", np.tile(STACK, (1, 2, 2)))
        small = ("--filters", "2", "--size", "3", "--jobs", "1", "--epochs", "1", "-q")
        run(["learn", str(folder / "signals.npy"), "-o", str(folder / "p"), *small])
        found = {
            "model": folder / "m",
            "checkpoint": next(folder.glob("m.checkpoint-*3.safetensors")),
            "codes": folder / "c",
            "picture model": folder / "p",
        }
        return {name: path.read_bytes() for name, path in found.items()}


@functools.cache
def contents_of(content: bytes, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Metadata and arrays of a file of ours."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.safetensors"
        path.write_bytes(content)
        read = read_arrays(path, kind)
    return read.metadata, read.arrays
