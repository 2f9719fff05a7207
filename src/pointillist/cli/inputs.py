"""Signals from files, prepared for learning or coding.

Reading and normalising themselves belong to the data layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pointillist.cli.paths import found_files
from pointillist.data.damage import OnError, read_each
from pointillist.data.normalise import contrast_normalise
from pointillist.data.sources import CropSource, KeptSource, NormalisedSource, Source, Stream, open_source
from pointillist.data.sources.base import StoredSource
from pointillist.data.sources.derived import DEFAULT_CACHE
from pointillist.data.sources.opening import SIGNAL_SUFFIXES
from pointillist.errors import UnusableSignalError
from pointillist.large import LARGE, scratch
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.validation import why_unusable


@dataclass(frozen=True)
class Wanted:
    """Which signals to read, and how to prepare them.

    Attributes
    ----------
    paths : files, folders, patterns and arrays in files; see `open_source`
    ndim : int
        Axes of a signal.
    normalise : {"contrast", "none"}
    on_error : {"raise", "skip"}
        What to do about files that cannot be read, and signals that are useless.
    crops : int or None
        Random crops in a pass, instead of the signals themselves.
    crop_size : tuple of int
    seed : int
        Decides where the crops are cut.
    layout : {"first", "last"} or None
        Where the channels of an array's signals lie, before the other axes or after them; None where there are none.
    recursive : bool or None
        Whether files in subfolders are read; None does not read them, but says how many there are.
    """

    paths: Sequence[Path]
    ndim: int
    normalise: str
    on_error: OnError
    crops: int | None = None
    crop_size: tuple[int, ...] = ()
    seed: int = 0
    layout: str | None = None
    recursive: bool | None = None

    @property
    def channel_axis(self) -> int | None:
        """The layout as the number of an axis."""
        return None if self.layout is None else _AXES[self.layout]

    @cached_property
    def files(self) -> list[str]:
        """The files that the paths stand for, found once."""
        return [file for found in found_files(self.paths, SIGNAL_SUFFIXES, self.recursive) for file in found.files]

    def open(self) -> StoredSource:
        """The source of the signals as they are stored."""
        return self._open(grey=True)

    def photographs(self) -> Source | None:
        """The pictures as people see them, in colour, under the numbers of the signals; None for other signals.

        Crops are cut from what is learned from, because whether one is constant decides where the next are cut.
        """
        if self.ndim != 2 or self.normalise == "none":
            return None
        if self.crops is not None:
            return CropSource(self._open(grey=True), self.crops, self.crop_size, seed=self.seed)
        return self._open(grey=False)

    def _open(self, grey: bool) -> StoredSource:
        return open_source(
            self.files, ndim=self.ndim, grey=grey, channel_axis=self.channel_axis, on_error=self.on_error
        )


_AXES = {"first": 0, "last": -1}


def open_inputs(wanted: Wanted, cache: int = DEFAULT_CACHE) -> Source:
    """The source of the signals, prepared; nothing is read yet."""
    stored = wanted.open()
    source: Source = stored
    if wanted.crops is not None:
        source = CropSource(stored, wanted.crops, wanted.crop_size, seed=wanted.seed, cache=cache)
    if wanted.normalise == "contrast":
        source = NormalisedSource(source, wanted.ndim)
    return source if wanted.crops is not None else KeptSource(source, cache)


def read_all(source: Source, wanted: Wanted, least: Sequence[int]) -> tuple[list[NDArray], dict[str, int]]:
    """All usable signals of a source in memory, in order, and why others are not among them."""
    stream = Stream(source, shuffle=False, least=lambda signal: least, on_error=wanted.on_error)
    signals = [signal for batch in stream for signal in batch]
    if not signals:
        raise ValueError(f"none of the {len(source)} signals can be used; the first: {next(iter(stream.skipped))}")
    return signals, dict(stream.skipped)


class SignalReader:
    """Reads signals that can be coded, prepared; large ones are left in files.

    A constant signal has codes too, unless its contrast is to be normalised.

    Parameters
    ----------
    wanted : Wanted
    least : sequence of int
        Size of the filters; a signal must not be smaller.
    gaps : bool
        Whether NaN may mark samples that were not seen, of signals that are taken as they are and not left in files.
    """

    def __init__(self, wanted: Wanted, least: Sequence[int], *, gaps: bool = False) -> None:
        self.wanted, self.least, self.gaps = wanted, least, gaps
        self.source = wanted.open()

    def __len__(self) -> int:
        return len(self.source)

    def name(self, index: int) -> str:
        """Return what signal `index` is called."""
        return self.source.name(index)

    def read(self, index: int) -> NDArray:
        """Return signal `index`; raises `UnreadableFileError` or its kind `UnusableSignalError` where there is none."""
        plain = self.wanted.normalise == "none"
        signal = self.source.mapped(index)
        reason = why_unusable(signal, self.least, gaps=self.gaps and plain and signal.size < LARGE, constant=plain)
        if reason is not None:
            raise UnusableSignalError(f"{self.name(index)} {reason}{_turned(signal, self.least, self.wanted)}")
        return signal if plain else _normalised(signal, self.wanted)


def read_to_encode(wanted: Wanted, least: Sequence[int]) -> tuple[list[str], list[NDArray]]:
    """Names and signals of all that can be coded by filters of that size, as `SignalReader` reads them."""
    reader = SignalReader(wanted, least, gaps=True)
    named = read_each(range(len(reader)), lambda index: (reader.name(index), reader.read(index)), wanted.on_error)
    names, signals = zip(*named, strict=True)
    return list(names), list(signals)


def _turned(signal: NDArray, least: Sequence[int], wanted: Wanted) -> str:
    """The advice that the channels may lie elsewhere, for a signal that is too short but has many channels."""
    if wanted.layout is None or wanted.ndim != 1 or not signal.shape[1] < least[0] <= signal.shape[0]:
        return ""
    other = next(one for one in _AXES if one != wanted.layout)
    return f"; if its channels lie {other}, say --channels {other}"


def _normalised(signal: NDArray, wanted: Wanted) -> NDArray:
    if wanted.layout is None:
        return contrast_normalise(signal, ndim=wanted.ndim)
    out = scratch(signal, signal.shape, signal.dtype)
    for channel, samples in zip(out, signal, strict=True):
        channel[...] = contrast_normalise(samples, ndim=wanted.ndim)
    return out


def layout_of(model: BatchCSC | OnlineCSC, path: Path, given: str | None) -> str | None:
    """Where the channels of signals lie that a model is to code: as is given, or else as those did that it learned from.

    `path` is the model's file, for messages.
    """
    if not model.channels:
        if given is not None:
            raise ValueError(f"{path} was learned from signals without channels: leave --channels out")
        return None
    layout = given or model.preprocessing_.get("channels")
    if layout not in _AXES:
        raise ValueError(f"{path} was learned from signals with channels: say --channels first, or last")
    return str(layout)


def normalisation(preprocessing: dict[str, Any]) -> str:
    """How a model's training signals were prepared; a model that records nothing took them as they were."""
    name = str(preprocessing.get("normalise", "none"))
    if name not in ("contrast", "none"):
        raise ValueError(f"the model's signals were prepared by {name!r}, which this version cannot do: upgrade it")
    return name
