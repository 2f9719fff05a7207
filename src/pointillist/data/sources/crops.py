"""Random crops: crop i of pass e is a function of (seed, e, i) alone, so that anybody can cut it again."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from numpy.random import Generator
from numpy.typing import NDArray

from pointillist.data.sources.base import StoredSource, box, check_stored
from pointillist.data.sources.cache import DEFAULT_CACHE, Cache
from pointillist.errors import UnreadableFileError, UnusableSignalError
from pointillist.reprs import shown, sizes
from pointillist.sampling import generator
from pointillist.validation import check_arguments, check_index, is_constant, is_integer

_CROPS = 3  # sets these draws apart from all others of the same seed
_ATTEMPTS = 10


class CropSource(StoredSource):
    """Crops of one size from random places of random signals.

    A crop without contrast is drawn again, up to ten times. Signals smaller than the crop are unusable.

    Parameters
    ----------
    source : StoredSource
        What to cut from; signals of any sizes.
    count : int
        Crops in one pass; every pass has other ones.
    size : tuple of int
        Shape of a crop along the spatial axes.
    seed : int
    cache : int
        Bytes of decoded signals to keep, for sources that cannot read a part of one.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> images = np.random.default_rng(0).standard_normal((3, 200, 300))
    >>> crops = pt.sources.CropSource(pt.sources.ArraySource(images), count=50, size=(64, 64))
    >>> len(crops), crops.read(0).shape
    (50, (64, 64))
    """

    def __init__(
        self, source: StoredSource, count: int, size: tuple[int, ...], *, seed: int = 0, cache: int = DEFAULT_CACHE
    ) -> None:
        check_arguments(count=count, seed=seed, cache=cache)
        check_stored(source)
        if not isinstance(size, tuple | list) or not size or not all(is_integer(n) and n > 0 for n in size):
            raise ValueError(f"size must be a tuple of positive integers, got {shown(size)}")
        self.source, self.count, self.size, self.seed = source, count, tuple(size), seed
        self.cache = Cache(cache)

    def __repr__(self) -> str:
        return f"CropSource({self.count} crops of {sizes(self.size)} from {self.source!r})"

    def __len__(self) -> int:
        return self.count

    def read(self, index: int, epoch: int = 0) -> NDArray:
        rng = self._generator(index, epoch)
        which = int(rng.integers(len(self.source)))
        signal = None if self.source.windowed else self.cache.get(which, lambda: self.source.read(which))
        shape = self.source.shape(which) if signal is None else signal.shape
        room = [length - side for length, side in zip(shape[-len(self.size) :], self.size, strict=True)]
        if min(room) < 0:
            raise UnusableSignalError(f"{self.source.name(which)} is smaller than a crop, {shape}: take smaller crops")
        for _ in range(_ATTEMPTS):
            corner = [int(rng.integers(free + 1)) for free in room]
            crop = self.source.window(which, corner, self.size) if signal is None else signal[box(corner, self.size)]
            if not is_constant(crop):
                return crop.copy()  # a view would keep the whole signal in memory
        raise UnusableSignalError(f"{self.source.name(which)} is constant wherever a crop was tried: leave it out")

    def _generator(self, index: int, epoch: int) -> Generator:
        check_index(index, len(self))
        check_arguments(epoch=epoch)
        return generator(self.seed, _CROPS, epoch, index % len(self))

    def shape(self, index: int) -> tuple[int, ...]:
        check_index(index, len(self))
        return (*self._channels, *self.size)

    @cached_property
    def _channels(self) -> tuple[int, ...]:
        """The axes before the spatial ones, of the first signal whose shape can be read."""
        first = ""
        for which in range(len(self.source)):
            try:
                return self.source.shape(which)[: -len(self.size)]
            except UnreadableFileError as error:
                first = first or f"; the first: {error}"
        raise UnusableSignalError(f"none of the {len(self.source)} signals to cut from can be read{first}")

    def name(self, index: int, epoch: int = 0) -> str:
        which = int(self._generator(index, epoch).integers(len(self.source)))
        return f"crop {index} of {self.source.name(which)}"

    def describe(self) -> dict[str, Any]:
        settings = {"kind": "crops", "signals": self.count, "size": list(self.size), "seed": self.seed}
        return {**settings, "of": self.source.describe()}
