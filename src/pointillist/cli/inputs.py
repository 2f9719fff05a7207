"""Signals from files, prepared for learning or coding, with the file's name in every complaint.

Reading and normalising themselves belong to the data layer.
"""

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pointillist.data import contrast_normalise, read_signals
from pointillist.data.sources import CropSource, KeptSource, NormalisedSource, Source, Stream, open_source
from pointillist.data.sources.stream import OnUnreadable
from pointillist.model.large import extent

log = logging.getLogger(__name__)

CACHE = 2**28
"""Bytes of signals, or of images to cut from, that are kept in memory unless a limit says less."""


@dataclass(frozen=True)
class Inputs:
    """Prepared signals with where they came from; `skipped` says why others were left out."""

    names: list[str]
    signals: list[NDArray]
    skipped: list[str]


def read_inputs(
    paths: Sequence[Path], *, ndim: int, normalise: str, on_error: str, least: Sequence[int] = (), varied: bool = True
) -> Inputs:
    """Read signals and prepare them one by one.

    Parameters
    ----------
    paths : files and folders
    ndim : int
        Axes of a signal.
    normalise : {"contrast", "none"}
    on_error : {"raise", "skip"}
        What to do about files that cannot be read, and signals that are constant or smaller than the filters.
    least : sequence of int
        The filters' size; a signal must not be smaller.
    varied : bool
        Whether a constant signal is useless.
    """
    loaded = read_signals(paths, ndim=ndim, on_error=cast(Literal["raise", "skip"], on_error))
    inputs = Inputs([], [], list(loaded.skipped))
    for name, signal in zip(loaded.names, loaded.signals, strict=True):
        try:
            prepared = _prepare(name, signal, normalise, least, varied)
        except ValueError as error:
            if on_error == "raise":
                raise
            log.warning("skipped: %s", error)
            inputs.skipped.append(str(error))
            continue
        inputs.names.append(name)
        inputs.signals.append(prepared)
    if not inputs.signals:
        raise ValueError(f"none of the {len(inputs.skipped)} signals can be used; the first: {inputs.skipped[0]}")
    return inputs


@dataclass(frozen=True)
class Wanted:
    """What to learn from.

    Attributes
    ----------
    paths : files, folders, patterns and arrays in files; see `open_source`
    ndim : int
        Axes of a signal.
    normalise : {"contrast", "none"}
    on_unreadable : {"skip", "stop"}
    crops : int or None
        Random crops in a pass, instead of the signals themselves.
    crop_size : tuple of int
    seed : int
        Of the crops.
    """

    paths: Sequence[Path]
    ndim: int
    normalise: str
    on_unreadable: OnUnreadable
    crops: int | None = None
    crop_size: tuple[int, ...] = ()
    seed: int = 0


def open_inputs(wanted: Wanted, cache: int = CACHE) -> Source:
    """The source of the signals, prepared; nothing is read yet."""
    # The source refuses such images itself, by name.
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)
    stored = open_source(wanted.paths, ndim=wanted.ndim, on_unreadable=wanted.on_unreadable)
    source: Source = stored
    if wanted.crops is not None:
        source = CropSource(stored, wanted.crops, wanted.crop_size, seed=wanted.seed, cache=cache)
    if wanted.normalise == "contrast":
        source = NormalisedSource(source, wanted.ndim)
    return source if wanted.crops is not None else KeptSource(source, cache)


def read_all(source: Source, wanted: Wanted, least: Sequence[int]) -> tuple[list[NDArray], dict[str, int]]:
    """All usable signals of a source in memory, in order, and why others are not among them."""
    stream = Stream(source, shuffle=False, least=least, on_unreadable=wanted.on_unreadable)
    signals = [signal for batch in stream for signal in batch]
    if not signals:
        raise ValueError(f"none of the {len(source)} signals can be used; the first: {next(iter(stream.skipped))}")
    return signals, dict(stream.skipped)


def _prepare(name: str, signal: NDArray, normalise: str, least: Sequence[int], varied: bool) -> NDArray:
    if any(samples < size for samples, size in zip(signal.shape, least, strict=False)):
        raise ValueError(f"{name} is {sizes(signal.shape)}, smaller than the filters, {sizes(least)}: use smaller ones")
    low, high = extent(signal[None])
    if not np.isfinite(high - low):
        raise ValueError(f"{name} holds NaN or infinity: replace those samples first")
    # As contrast_normalise sees it: a spread within rounding is no contrast.
    constant = high - low <= 8 * np.finfo(signal.dtype).eps * max(abs(low), abs(high))
    if (varied or normalise == "contrast") and constant:
        raise ValueError(f"{name} is constant, there is nothing in it: leave it out, or use --on-error skip")
    return contrast_normalise(signal, ndim=signal.ndim) if normalise == "contrast" else signal


def sizes(shape: Sequence[int]) -> str:
    """``11×11`` for (11, 11)."""
    return "×".join(str(axis) for axis in shape)


def normalisation(preprocessing: dict[str, Any]) -> str:
    """What a model recorded about its signals; a model that says nothing had them as they were."""
    name = str(preprocessing.get("normalise", "none"))
    if name not in ("contrast", "none"):
        raise ValueError(f"the model's signals were prepared by {name!r}, which this version cannot do: upgrade it")
    return name
