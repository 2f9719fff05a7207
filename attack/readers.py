"""Everything that reads a file, by the kind of the file: functions of the library, and commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

import pointillist as pt
from attack.specimens import COLOUR, SIGNALS, STACK, written_by_runs
from pointillist import load
from pointillist.data.photofiles.files import photograph_size
from pointillist.data.photofiles.photograph import WRITTEN
from pointillist.storage import PartFolder

Read = Callable[[Path], Any]
INSIDE = "group/images"
"""Where the arrays of HDF5 files lie."""


class Helpers(NamedTuple):
    """Well-formed files that commands need beside the strange one."""

    picture: Path
    signals: Path
    pictures: Path
    model: Path
    picture_model: Path

    @classmethod
    def written(cls, folder: Path) -> Helpers:
        """Write them into a folder."""
        made = written_by_runs()
        helpers = cls(*(folder / name for name in ("p.png", "s.npy", "ps.npy", "m.safetensors", "pm.safetensors")))
        Image.fromarray(np.tile(COLOUR, (3, 3, 1))).save(helpers.picture)
        np.save(helpers.signals, SIGNALS)
        np.save(helpers.pictures, STACK)
        helpers.model.write_bytes(made["model"])
        helpers.picture_model.write_bytes(made["picture model"])
        return helpers


def _named(path: Path) -> str:
    return f"{path}::{INSIDE}" if path.suffix == ".h5" else str(path)


def _crop(path: Path) -> Any:
    return pt.sources.CropSource(pt.open_source(_named(path)), count=2, size=(4, 4), seed=0).read(0)


def _series(path: Path) -> Any:
    return pt.load_signals(_named(path), ndim=1, channel_axis=0)


def _columns(path: Path) -> Any:
    return pt.load_signals(path, ndim=1)


def _recording(path: Path) -> Any:
    source = pt.open_source(path, ndim=1, channel_axis=-1)
    return (
        source.read(0),
        repr(source),
        source.describe(),
        pt.sources.CropSource(source, count=2, size=(4,), seed=0).read(0),
    )


def _skipping(path: Path) -> Any:
    source = pt.open_source(path, ndim=3, on_error="skip")
    return source.shape(0), source.read(0)


def _coded(path: Path) -> Any:
    """Load a model and use it; only signals show whether some of its settings fit."""
    model = load(path)
    if model.device != "cpu":
        raise AssertionError(f"the file chose the device {model.device}")
    return model.encode(SIGNALS[:1])


def _used_codes(path: Path) -> Any:
    codes = pt.load_codes(path)
    return codes.usage(), repr(codes), codes.nnz


def _checkpoint(path: Path) -> Any:
    return pt.Checkpoints(path.with_name("strange.safetensors")).peek()


def _parts(path: Path) -> Any:
    return list(PartFolder(path.with_name("strange.safetensors")).read())


_SIGNALS: tuple[Read, ...] = (
    pt.load_signals, _series, _crop, _skipping, pt.load_image, pt.read_photograph, photograph_size,
)  # fmt: skip
READERS: dict[str, tuple[Read, ...]] = {
    "npy": _SIGNALS,
    "table": (_columns, _recording, _skipping, pt.load_signals, pt.sources.TableSource),
    "tiff": (*_SIGNALS, pt.sources.TiffSource),
    "picture": (pt.load_signals, pt.load_image, pt.read_photograph, photograph_size, _crop),
    "hdf5": (*_SIGNALS[:4], pt.sources.Hdf5Source),
    "zarr": (*_SIGNALS[:4], pt.sources.ZarrSource),
    "model": (_coded, pt.load_codes),
    "checkpoint": (_checkpoint, load),
    "codes": (_used_codes, load),
    "part": (_parts, _used_codes),
}
"""Functions that read files of a kind."""

_SMALL = ("--jobs", "1", "-q")
_TINY = ("--filters", "2", "--size", "3", "--epochs", "1", *_SMALL)


def commands(kind: str, path: Path, helpers: Helpers, out: Path) -> list[tuple[str, ...]]:
    """Commands that read a file of a kind; what they write, they write into `out`."""
    strange, named = str(path), _named(path)
    table: dict[str, list[tuple[Any, ...]]] = {
        "signals": [
            ("learn", named, "-o", out / "a", *_TINY, "--max-memory", "1G"),
            ("learn", named, "-o", out / "a", *_TINY, "--on-error", "skip"),
            ("learn", named, "-o", out / "a", *_TINY, "--crops", "2", "--crop-size", "4"),
            ("learn", named, "-o", out / "a", *_TINY, "--plan"),
            ("learn", named, "-o", out / "a", *_TINY, "--channels", "first"),
            ("learn", helpers.pictures, "--validation", named, "-o", out / "a", *_TINY),
            ("encode", helpers.picture_model, named, "-o", out / "a", "--max-memory", "1G", *_SMALL),
            ("encode", helpers.picture_model, named, "-o", out / "a", "--on-error", "skip", "--csv", "-", *_SMALL),
            ("encode", helpers.picture_model, named, "-o", out / "a", "--plan", *_SMALL),
            ("anomalies", named, "--model", helpers.picture_model, "-o", out / "b", *_SMALL),
        ],
        "tables": [
            ("learn", named, "-o", out / "a", *_TINY, "--channels", "last"),
            ("learn", named, "-o", out / "a", *_TINY, "--ndim", "1", "--on-error", "skip"),
            ("encode", helpers.model, named, "-o", out / "a", "--events", "-", *_SMALL),
            ("encode", helpers.model, named, "-o", out / "a", "--max-memory", "1G", *_SMALL),
            ("anomalies", named, "--size", "5", "-o", out / "b", *_SMALL),
        ],
        "pictures": [
            ("denoise", strange, "-o", out / "a.tif", "-q"),
            ("inpaint", strange, "-o", out / "a.tif", "--key", "magenta", "-q"),
            ("inpaint", helpers.picture, "--mask", strange, "-o", out / "a.tif", "-q"),
            ("inpaint", helpers.picture, "--mask", helpers.picture, "--reference", strange, "-o", out / "a.tif", "-q"),
            ("deblur", strange, "--gaussian", "1", "-o", out / "a.tif", "-q"),
            ("deblur", helpers.picture, "--psf", strange, "-o", out / "a.tif", "-q"),
            ("super-resolve", strange, "-o", out / "a.tif", "-q"),
            ("demosaic", strange, "-o", out / "a.tif", "-q"),
            ("denoise", strange, "-o", out / f"a{path.suffix if path.suffix in WRITTEN else '.tif'}", "-q"),
        ],
        "models": [
            ("info", strange),
            ("info", strange, "--json"),
            ("info", path.parent),
            ("show", strange, "-o", out / "a.png"),
            ("encode", strange, helpers.signals, "-o", out / "a", "--max-memory", "1G", *_SMALL),
            ("encode", strange, helpers.picture, "-o", out / "a", *_SMALL),
            ("denoise", helpers.picture, "--filters", strange, "-o", out / "a.tif", "-q"),
            ("anomalies", helpers.signals, "--model", strange, "-o", out / "b", *_SMALL),
        ],
        "checkpoint": [
            ("info", strange),
            ("info", path.parent),
            ("learn", helpers.signals, "-o", path.with_name("strange.safetensors"), "--ndim", "1", *_TINY, "--resume"),
        ],
        "part": [
            ("info", strange),
            (
                "encode",
                helpers.model,
                helpers.signals,
                "-o",
                path.with_name("strange.safetensors"),
                *_SMALL,
                "--resume",
            ),
        ],
    }
    table["codes"] = [*table["part"][:1], ("info", strange, "--json"), ("show", strange, "-o", out / "a.png")]
    groups = {
        "npy": ("signals", "pictures"), "tiff": ("signals", "pictures"), "picture": ("pictures", "signals"),
        "table": ("tables",), "hdf5": ("signals",), "zarr": ("signals",), "model": ("models",),
    }  # fmt: skip
    found = [words for group in groups.get(kind, (kind,)) for words in table[group]]
    return [tuple(map(str, words)) for words in found]
