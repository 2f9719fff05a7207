"""Signals of files on their way to be learned from or coded; reading and normalising belong to the data layer."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from pointillist.arrays import LARGE, is_mapped, scratch
from pointillist.data.damage import OnError
from pointillist.data.normalise import contrast_normalise
from pointillist.data.paths import Found, PathLike, find_files
from pointillist.data.sources import SIGNAL_SUFFIXES, CropSource, KeptSource, NormalisedSource, Source, open_source
from pointillist.data.sources.base import DEFAULT_CACHE, StoredSource
from pointillist.errors import UnreadableFileError, UnusableSignalError
from pointillist.validation import why_unusable

log = logging.getLogger(__name__)

_AXES = {"first": 0, "last": -1}


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
        stored = self.stored()
        source: Source = stored
        if self.crops is not None:
            source = CropSource(stored, self.crops, self.crop_size, seed=self.seed, cache=cache)
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


class Item(NamedTuple):
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

    def read(self, index: int) -> Item:
        """Signal `index`; raises `UnreadableFileError` or its kind `UnusableSignalError` where there is none."""
        wanted, signal, name = self.wanted, self.source.mapped(index), self.source.name(index)
        plain = wanted.normalise == "none"
        reason = why_unusable(signal, self.least, gaps=plain and signal.size < LARGE, constant=plain)
        if reason is not None:
            if wanted.layout is not None and wanted.ndim == 1 and signal.shape[1] < self.least[0] <= len(signal):
                other = "last" if wanted.layout == "first" else "first"
                reason += f"; if its channels lie {other}, say --channels {other}"
            raise UnusableSignalError(f"{name} {reason}")
        if plain:
            return Item(index, name, signal)
        if wanted.layout is None:
            return Item(index, name, contrast_normalise(signal, ndim=wanted.ndim))
        out = scratch(signal, signal.shape, signal.dtype)
        for channel, samples in zip(out, signal, strict=True):
            channel[...] = contrast_normalise(samples, ndim=wanted.ndim)
        return Item(index, name, out)

    def read_all(self) -> tuple[list[str], list[NDArray]]:
        """Names and signals of all that can be coded."""
        items = list(self.read_ahead(0, {}, inf))
        return [item.name for item in items], [item.signal for item in items]

    def read_ahead(self, first: int, skipped: dict[int, tuple[str, str]], ahead: float) -> Iterator[Item]:
        """Read signals from number `first` on, as many before they are asked for as fit into `ahead` bytes.

        Of small data everything is read before the first signal is yielded, so that what cannot be read stops the work
        before it begins. `skipped` takes name and reason of what is left out, by number; it is an error to leave out all.
        """
        waiting: deque[tuple[Item, int]] = deque()
        held = 0
        for number in range(first, len(self.source)):
            try:
                item = self.read(number)
            except UnreadableFileError as error:
                if self.wanted.on_error == "raise":
                    raise
                log.warning("skipped: %s", error)
                skipped[number] = self.source.name(number), str(error)
                continue
            size = 0 if is_mapped(item.signal) else item.signal.nbytes
            waiting.append((item, size))
            held += size
            while waiting and held > ahead:
                item, size = waiting.popleft()
                held -= size
                yield item
        if len(skipped) == len(self.source):
            reason = next(iter(skipped.values()))[1]
            raise ValueError(f"none of the {len(skipped)} signals can be used; the first: {reason}")
        yield from (item for item, _ in waiting)

    def groups(
        self, first: int, skipped: dict[int, tuple[str, str]], ahead: int, most: int, samples: float
    ) -> Iterator[list[Item]]:
        """Lists of at most `most` signals that are coded together, each as `read_ahead` yields them.

        A large signal has a list of its own. A list has at most so many `samples`, where each signal counts as the largest.
        """
        group: list[Item] = []
        for item in self.read_ahead(first, skipped, ahead):
            large = item.signal.size >= LARGE
            widest = max(one.signal.size for one in [*group, item])
            if group and (large or len(group) == most or widest * (len(group) + 1) > samples):
                yield group
                group = []
            group.append(item)
            if large:
                yield group
                group = []
        if group:
            yield group


def reader_for(model: Any, file: Path, paths: Sequence[Path], layout: str | None, **how: Any) -> SignalReader:
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
    box = model.filters_.shape[1 + model.channels :]
    return SignalReader(Wanted(paths, len(box), normalise, layout=layout, **how), box)


def file_stem(name: str, taken: set[str]) -> str:
    """The name of a signal's file, which `taken` takes up: of ``r.npy[3]`` r-3, of the column ``r.csv::left`` r-left."""
    file, *inside = re.split(r"::|\[", name, maxsplit=1)
    stem = "-".join([Path(file).stem, *(re.sub(r"[^\w.-]+", "_", one.rstrip("]")) for one in inside)])
    unique, number = stem, 2
    while unique in taken:
        unique, number = f"{stem}-{number}", number + 1
    taken.add(unique)
    return unique
