"""Usual values for the arguments of everything public, by their names and annotations, and usual objects for methods.

`NAMED` and `BESIDE` are the one table: a new argument whose name or annotation says what it is needs no entry.
"""

from __future__ import annotations

import copy
import functools
import inspect
import tempfile
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import pointillist as pt
from attack.surface import Target, targets

matplotlib.use("agg")
_RNG = np.random.default_rng(0)
SIGNALS = _RNG.standard_normal((2, 30))
FILTERS = _RNG.standard_normal((3, 5)) / 3
IMAGE = _RNG.random((16, 18))
BANK = _RNG.standard_normal((3, 5, 5)) / 5
MASK = _RNG.random(IMAGE.shape) < 0.2
COLOURED = np.stack([IMAGE] * 3, -1)

NAMED: dict[str, Any] = {
    "signals": SIGNALS, "X": SIGNALS, "signal": SIGNALS[0], "iterable": [SIGNALS], "filters": FILTERS, "truth": FILTERS,
    "image": IMAGE, "images": IMAGE, "mosaic": IMAGE, "pictures": IMAGE, "reference": IMAGE, "estimate": IMAGE + 0.1,
    "mask": MASK, "psf": np.ones((3, 3)) / 9, "pixels": (255 * COLOURED).astype(np.uint8), "penalty": 0.5, "sigma": 0.1,
    "length": 3.0, "angle": 20.0, "colour": "magenta", "n_filters": 3, "filter_size": 5, "n_jobs": 1, "random_state": 0,
    "count": 2, "size": (4, 4), "corner": (0, 0), "index": 0, "top": 0, "left": 0, "height": 4, "width": 4,
    "max_iter": 5, "factor": 2, "resume": False, "dense": np.eye(3, 8)[None], "show": False,
    "models": [{"iteration": 1, "seconds": 0.5, "objective": 3.0}],
}  # fmt: skip
"""A usual value for every name that has no default, and for some whose default takes long."""
ALWAYS = {"n_jobs", "random_state", "show"}
"""Names that are given even where they have a default."""
ANNOTATED: dict[str, Any] = {"bool": False, "int": 2, "float": 0.5, "str": "usual"}
_LEARNER = {"n_filters": 3, "filter_size": 5, "penalty": 0.5}
_PICTURES = {"filters": BANK, "penalty": 0.05}
BESIDE: dict[str, dict[str, Any]] = {
    "inpaint": _PICTURES, "denoise": _PICTURES, "deblur": _PICTURES, "super_resolve": _PICTURES,
    "demosaic": {"filters": np.stack([BANK] * 3, 1), "penalty": 0.05},
    "find_marks": {"image": COLOURED, "colour": "magenta"}, "mark_damage": {"image": COLOURED},
    "find_damage": {"kind": "dust"}, "estimate_blur": {"image": _RNG.random((64, 64))},
    "penalty_path": {"n": 2}, "penalty_path penalties": {"n": None}, "split_channels": {"filters": BANK},
    "BatchCSC": {**_LEARNER, "max_iter": 1}, "OnlineCSC": _LEARNER,
    "learn_windows": {"n_windows": 5}, "ArraySource": {"signals": IMAGE[None]},
    "certify": {"signals": list(SIGNALS[:, None])},
    "mne.CSC": {"n_filters": 2, "duration": 0.1, "n_passes": 1}, "photographs": {"split": "test"},
    "TableSource.window": {"corner": (2,), "size": (4,)},
}  # fmt: skip
"""Usual values where a target wants others, or wants others while one of its arguments is changed."""
FILES = {
    "load_image": "picture.png", "load_images": "picture.png", "load_signals": "picture.png", "open_source": "picture.png",
    "ImageSource": "picture.png", "read_photograph": "picture.png", "NpySource": "signals.npy", "ZarrSource": "signals.zarr",
    "TiffSource": "signals.tif", "TableSource": "signals.csv", "Hdf5Source": "signals.h5", "load": "model.safetensors",
    "load_codes": "codes.safetensors", "mne.read_csc": "recorded.safetensors",
}  # fmt: skip
"""The file that a target reads; others write a new one."""
PATHS = {"path", "paths", "files", "fname"}


def usual(target: Target, changed: str = "") -> dict[str, Any]:
    """Usual arguments of a target, by name, each a copy; `changed` is the one that is about to be replaced."""
    if target.name == "plot_codes":
        return {"codes": codes()[0], "signal": SIGNALS[0].copy(), "ax": Figure().subplots()}
    beside = {**BESIDE.get(target.name, {}), **BESIDE.get(f"{target.name} {changed}", {})}
    given = {}
    for word, parameter in target.parameters.items():
        if word in beside:
            given[word] = beside[word]
        elif parameter.default is Parameter.empty or word in ALWAYS:
            given[word] = _value(target, word, parameter)
        elif word == "ax":
            given[word] = Figure().subplots()
    return {word: _own(value) for word, value in given.items()}


def typical(target: Target, word: str) -> Any:
    """A value that is usual for an argument which may be left out."""
    parameter = target.parameters[word]
    given = usual(target, word)
    if word in given:
        return given[word]
    try:
        found = _own(_value(target, word, parameter))
    except KeyError:
        found = parameter.default
    return found if parameter.default in (None, Parameter.empty) or isinstance(found, np.ndarray) else parameter.default


def _value(target: Target, word: str, parameter: Parameter) -> Any:
    written = parameter.annotation
    annotation = written if isinstance(written, str) else inspect.formatannotation(written)
    if word in PATHS:
        kept = FILES.get(target.name)
        path: Any = Path("new.png" if target.name == "write_photograph" else "new.safetensors")
        path = path if kept is None else folder() / kept
        return [path] if word == "files" else path
    for kind, make in _OBJECTS.items():
        if kind in annotation or kind == word:
            return make()
    if word in NAMED:
        return NAMED[word]
    if word == "weights" or word == "validation":
        return np.ones_like(SIGNALS)
    return ANNOTATED[annotation.partition(" ")[0]]


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else list(value) if isinstance(value, list) else value


@functools.cache
def folder() -> Path:
    """A folder with the files that targets read, made once in a process and removed with it."""
    made = tempfile.TemporaryDirectory(prefix="attack-usual-")
    _KEPT.append(made)
    path = Path(made.name)
    Image.fromarray((255 * COLOURED).astype(np.uint8)).save(path / "picture.png")
    np.save(path / "signals.npy", IMAGE[None])
    np.savetxt(path / "signals.csv", IMAGE, delimiter=",")
    import h5py
    import tifffile
    import zarr

    tifffile.imwrite(path / "signals.tif", IMAGE[None])
    stack: Any = IMAGE[None]
    zarr.save(str(path / "signals.zarr"), stack)
    with h5py.File(path / "signals.h5", "w") as file:
        file["signals"] = IMAGE[None]
    pt.save(model(), path / "model.safetensors")
    pt.save_codes(codes(), path / "codes.safetensors")
    if any(target.name == "mne.read_csc" for target in targets()):
        fitted(_class("mne.CSC")).save(path / "recorded.safetensors")
    return path


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def codes() -> pt.SparseCodes:
    return pt.encode(SIGNALS, FILTERS, 0.5, n_jobs=1).codes


@functools.cache
def model() -> pt.BatchCSC:
    return pt.BatchCSC(3, 5, 0.5, max_iter=1, n_jobs=1, random_state=0).fit(SIGNALS)


@functools.cache
def recording() -> Any:
    """Four seconds of a simulated electroencephalogram."""
    import mne

    info = mne.create_info(["Fz", "Cz", "Pz"], 100.0, "eeg")
    info.set_montage("biosemi64")
    noise = 1e-6 * np.random.default_rng(0).standard_normal((3, 600))
    return mne.io.RawArray(noise, info, verbose="error").filter(1, None, verbose="error")


def _problem() -> pt.Problem:
    from pointillist.problem import Geometry

    geometry = Geometry(SIGNALS.shape[1:], (5,), 1, "same")
    return pt.Problem(filters=FILTERS[:, None], geometry=geometry, penalty=np.ones((3, 1)) / 2)


_OBJECTS: dict[str, Callable[[], Any]] = {
    "Sequence[SparseCodes]": lambda: [codes(), codes()],
    "SparseCodes": lambda: codes()[:],
    "indices": lambda: list(codes().indices),
    "values": lambda: list(codes().values),
    "grids": lambda: list(codes().grids),
    "Instance": lambda: recording().copy(),
    "Sequence[StoredSource]": lambda: [pt.sources.ArraySource(IMAGE[None])],
    "StoredSource": lambda: pt.sources.ArraySource(IMAGE[None]),
    "source": lambda: pt.sources.ArraySource(IMAGE[None]),
    "BatchCSC | OnlineCSC": lambda: copy.deepcopy(model()),
    "ConvolutionalLearner": lambda: copy.deepcopy(model()),
    "model": lambda: copy.deepcopy(model()),
    "Problem": _problem,
    "Photograph": lambda: pt.Photograph((255 * COLOURED).astype(np.uint8)),
}
"""Objects of the package and of MNE, by what an annotation holds or by the whole name of an argument."""


def instance(target: Target) -> Any:
    """A usual object that a method is called on, each time another; learners are fitted."""
    owner = target.owner
    if owner is None:
        return None
    if owner in _GIVEN:
        return _GIVEN[owner]()
    return copy.deepcopy(fitted(owner)) if hasattr(owner, "fit") else made(owner)


_GIVEN: dict[type, Callable[[], Any]] = {
    pt.AnomalyScore: lambda: pt.anomaly_score(SIGNALS, model()),
    pt.SparseCodes: lambda: codes()[:],
}


@functools.cache
def fitted(owner: type) -> Any:
    return used(made(owner))


def made(owner: type) -> Any:
    """An object of a public class with usual arguments."""
    constructor = next((one for one in targets() if one.function is owner), None)
    return owner() if constructor is None else owner(**usual(constructor))


def used(value: Any) -> Any:
    """What a constructor made, after what it is made for was done with it once."""
    if hasattr(value, "fit"):
        fit = next(one for one in targets() if one.owner is type(value) and one.method == "fit")
        return value.fit(**usual(fit))
    if hasattr(value, "read") and len(value):
        return value.read(0)
    return value


def _class(name: str) -> Any:
    return next(one.function for one in targets() if one.name == name)
