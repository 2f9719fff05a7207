"""Signals of files on their way to be learned from or coded; reading and normalising belong to the data layer."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pointillist.arrays import LARGE, is_mapped, scratch
from pointillist.data.damage import OnError, read_each
from pointillist.data.normalise import contrast_normalise
from pointillist.data.paths import TABLE_SUFFIXES, Found, PathLike, find_files
from pointillist.data.sources import CropSource, KeptSource, NormalisedSource, Source, Stream, open_source
from pointillist.data.sources.base import StoredSource
from pointillist.data.sources.derived import DEFAULT_CACHE
from pointillist.data.sources.opening import SIGNAL_SUFFIXES
from pointillist.errors import UnreadableFileError, UnusableSignalError
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.validation import why_unusable

log = logging.getLogger(__name__)

_AXES = {"first": 0, "last": -1}
_SAMPLES_ON_DEVICE = 2**26
"""Samples that a GPU is given at a time, at most."""


def found_files(paths: Sequence[PathLike], suffixes: frozenset[str], recursive: bool | None) -> list[Found]:
    """The files that each path of a command stands for."""
    return [find_files(path, suffixes, recursive=recursive, remedy="--recursive") for path in paths]


@dataclass(frozen=True)
class Wanted:
    """Signals to read, and how to prepare them.

    Attributes
    ----------
    paths : files, folders, patterns and arrays in files; see `open_source`
    ndim : int
        Axes of a signal.
    normalise : {"contrast", "none"}
    on_error : {"raise", "skip"}
        What to do about files that cannot be read, and signals that are useless.
    layout : {"first", "last"} or None
        Where the channels of an array's signals lie, before the other axes or after them; None where there are none.
    recursive : bool or None
        Whether files in subfolders are read; None does not read them, but says how many there are.
    crops : int or None
        Random crops in a pass, of `crop_size` and drawn by `seed`, instead of the signals themselves.
    """

    paths: Sequence[Path]
    ndim: int
    normalise: str
    on_error: OnError
    layout: str | None = None
    recursive: bool | None = None
    crops: int | None = None
    crop_size: tuple[int, ...] = ()
    seed: int = 0

    @cached_property
    def files(self) -> list[str]:
        """The files that the paths stand for, found once."""
        return [file for found in found_files(self.paths, SIGNAL_SUFFIXES, self.recursive) for file in found.files]

    def stored(self, *, grey: bool = True) -> StoredSource:
        """The signals as they are stored."""
        axis = None if self.layout is None else _AXES[self.layout]
        return open_source(self.files, ndim=self.ndim, grey=grey, channel_axis=axis, on_error=self.on_error)

    def prepared(self, cache: int = DEFAULT_CACHE) -> Source:
        """The signals as they are learned from; nothing is read yet."""
        source: Source = self.stored()
        if self.crops is not None:
            source = CropSource(self.stored(), self.crops, self.crop_size, seed=self.seed, cache=cache)
        if self.normalise == "contrast":
            source = NormalisedSource(source, self.ndim)
        return source if self.crops is not None else KeptSource(source, cache)

    def photographs(self) -> Source | None:
        """The pictures as people see them, in colour, under the numbers of the signals; None for other signals.

        Crops are cut from what is learned from, because whether one is constant decides where the next are cut.
        """
        if self.ndim != 2 or self.normalise == "none":
            return None
        if self.crops is not None:
            return CropSource(self.stored(), self.crops, self.crop_size, seed=self.seed)
        return self.stored(grey=False)


def read_all(source: Source, wanted: Wanted, least: Sequence[int]) -> tuple[list[NDArray], dict[str, int]]:
    """All usable signals of a source in memory, in order, and why others are not among them."""
    stream = Stream(source, shuffle=False, least=lambda signal: least, on_error=wanted.on_error)
    signals = [signal for batch in stream for signal in batch]
    if not signals:
        raise ValueError(f"none of the {len(source)} signals can be used; the first: {next(iter(stream.skipped))}")
    return signals, dict(stream.skipped)


@dataclass(frozen=True, eq=False)
class Item:
    """A signal that was read: its number in the source, its name, and its samples."""

    number: int
    name: str
    signal: NDArray


class SignalReader:
    """Signals that can be coded by a model's filters, prepared as those that it learned from; large ones stay in files.

    A constant signal has codes too, unless its contrast is to be normalised. NaN marks samples that were not seen, of
    signals that are taken as they are and not left in files.

    Parameters
    ----------
    wanted : Wanted
    least : sequence of int
        Size of the filters; a signal must not be smaller.
    """

    def __init__(self, wanted: Wanted, least: Sequence[int]) -> None:
        self.wanted, self.least = wanted, least
        self.source = wanted.stored()

    def __len__(self) -> int:
        return len(self.source)

    def read(self, index: int) -> Item:
        """Signal `index`; raises `UnreadableFileError` or its kind `UnusableSignalError` where there is none."""
        plain = self.wanted.normalise == "none"
        signal, name = self.source.mapped(index), self.source.name(index)
        reason = why_unusable(signal, self.least, gaps=plain and signal.size < LARGE, constant=plain)
        if reason is not None:
            raise UnusableSignalError(f"{name} {reason}{self._turned(signal)}")
        return Item(index, name, signal if plain else self._normalised(signal))

    def read_all(self) -> tuple[list[str], list[NDArray]]:
        """Names and signals of all that can be coded."""
        items = read_each(range(len(self)), self.read, self.wanted.on_error)
        return [item.name for item in items], [item.signal for item in items]

    def read_ahead(self, first: int, skipped: dict[int, tuple[str, str]], ahead: int) -> Iterator[Item]:
        """Read signals from number `first` on, as many before they are asked for as fit into `ahead` bytes.

        Of small data everything is read before the first signal is yielded, so that what cannot be read stops the work
        before it begins. `skipped` takes name and reason of what is left out, by number.
        """
        waiting: deque[Item] = deque()
        held = 0
        for number in range(first, len(self)):
            try:
                item = self.read(number)
            except UnreadableFileError as error:
                if self.wanted.on_error == "raise":
                    raise
                log.warning("skipped: %s", error)
                skipped[number] = self.source.name(number), str(error)
                continue
            waiting.append(item)
            held += _held(item)
            while waiting and held > ahead:
                held -= _held(waiting[0])
                yield waiting.popleft()
        yield from waiting

    def _turned(self, signal: NDArray) -> str:
        """The advice that the channels may lie elsewhere, for a signal that is too short but has many channels."""
        layout = self.wanted.layout
        if layout is None or self.wanted.ndim != 1 or not signal.shape[1] < self.least[0] <= signal.shape[0]:
            return ""
        other = next(one for one in _AXES if one != layout)
        return f"; if its channels lie {other}, say --channels {other}"

    def _normalised(self, signal: NDArray) -> NDArray:
        if self.wanted.layout is None:
            return contrast_normalise(signal, ndim=self.wanted.ndim)
        out = scratch(signal, signal.shape, signal.dtype)
        for channel, samples in zip(out, signal, strict=True):
            channel[...] = contrast_normalise(samples, ndim=self.wanted.ndim)
        return out


def _held(item: Item) -> int:
    return 0 if is_mapped(item.signal) else item.signal.nbytes


def groups(items: Iterable[Item], most: int, *, on_device: bool = False) -> Iterator[list[Item]]:
    """Lists of at most so many signals that are coded together, large signals each in a list of its own.

    A device is given a limited number of samples, where each signal takes as much as the largest.
    """
    group: list[Item] = []
    for item in items:
        large = item.signal.size >= LARGE
        crowded = on_device and max(one.signal.size for one in [*group, item]) * (len(group) + 1) > _SAMPLES_ON_DEVICE
        if group and (large or crowded):
            yield group
            group = []
        group.append(item)
        if large or len(group) == most:
            yield group
            group = []
    if group:
        yield group


def wanted_by(
    model: BatchCSC | OnlineCSC,
    file: Path,
    paths: Sequence[Path],
    *,
    layout: str | None,
    on_error: OnError,
    recursive: bool | None,
) -> Wanted:
    """Signals that a model of that file is to code, prepared as those were that it learned from."""
    normalise = str(model.preprocessing_.get("normalise", "none"))
    if normalise not in ("contrast", "none"):
        raise ValueError(
            f"the model's signals were prepared by {normalise!r}, which this version cannot do: upgrade it"
        )
    if not model.channels and layout is not None:
        raise ValueError(f"{file} was learned from signals without channels: leave --channels out")
    if model.channels:
        layout = layout or str(model.preprocessing_.get("channels"))
        if layout not in _AXES:
            raise ValueError(f"{file} was learned from signals with channels: say --channels first, or last")
    return Wanted(paths, len(box_of(model)), normalise, on_error, layout, recursive)


def box_of(model: Any) -> tuple[int, ...]:
    """Size of a model's filters."""
    return tuple(model.filters_.shape[1 + model.channels :])


def file_stem(name: str, taken: set[str]) -> str:
    """The name of a signal's file, which `taken` takes up: of ``r.npy[3]`` r-3, of the column ``r.csv::left`` r-left."""
    file, _, entry = name.partition("[")
    path, _, column = name.partition("::")
    if Path(path).suffix.lower() in TABLE_SUFFIXES:
        file, entry = path, re.sub(r"[^\w.-]+", "_", column)
    stem = Path(file).stem + (f"-{entry.rstrip(']')}" if entry else "")
    unique, number = stem, 2
    while unique in taken:
        unique, number = f"{stem}-{number}", number + 1
    taken.add(unique)
    return unique
