"""Geometry of codes: their positions, and the samples that a filter at a position covers.

A code at grid position g adds its filter to the samples g … g + size − 1 of a *padded* signal. The boundary says
which part of the padded signal is the signal itself:

- ``valid``: no filter leaves the signal; the grid is smaller than the signal.
- ``same``: codes sit on the signal's own grid, filters are clipped at the border.
- ``full``: every position whose filter touches the signal.
- ``circular``: codes on the signal's own grid, filters wrap around.

The centre of a filter of size s is sample (s − 1) // 2, so for ``same`` and ``circular`` a code at i puts that sample
on signal sample i (as `scipy.signal.convolve(..., mode="same")` does). Sampling, penalties and solvers live elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.layout import SPARE_SAMPLES
from pointillist.model.arguments import check_arguments


@dataclass(frozen=True)
class Geometry:
    """Shapes that follow from a signal's shape, a filter size and a boundary.

    Parameters
    ----------
    signal : tuple of int
        Spatial shape of one signal.
    filter : tuple of int
        Spatial shape of the (largest) filter.
    channels : int
        Channels that share one set of codes; 1 for plain signals.
    boundary : {"valid", "same", "full", "circular"}
    """

    signal: tuple[int, ...]
    filter: tuple[int, ...]
    channels: int = 1
    boundary: str = "same"

    def __post_init__(self) -> None:
        check_arguments(boundary=self.boundary)
        if len(self.signal) != len(self.filter):
            raise ValueError(
                f"signals have {len(self.signal)} dimensions and filters {len(self.filter)}; they must agree "
                "(channels=True says that the axis after the first holds channels)"
            )
        if any(f > s for f, s in zip(self.filter, self.signal, strict=True)):
            raise ValueError(
                f"filters, of filter_size {self.filter}, are larger than the signals, {self.signal}; use smaller filters"
            )

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """Shape of the positions that a filter's codes can take."""
        change = {"valid": -1, "same": 0, "full": 1, "circular": 0}[self.boundary]
        return tuple(s + change * (f - 1) for s, f in zip(self.signal, self.filter, strict=True))

    @cached_property
    def padded(self) -> tuple[int, ...]:
        """Shape of the padded signal: every filter at every grid position fits in."""
        return tuple(g + f - 1 for g, f in zip(self.grid, self.filter, strict=True))

    @cached_property
    def offset(self) -> tuple[int, ...]:
        """Where the signal's first sample lies in the padded signal."""
        if self.boundary == "valid":
            return (0,) * len(self.signal)
        if self.boundary == "full":
            return tuple(f - 1 for f in self.filter)
        return tuple((f - 1) // 2 for f in self.filter)

    @cached_property
    def n_positions(self) -> int:
        return prod(self.grid)

    @cached_property
    def padded_length(self) -> int:
        """Samples of one flat padded signal with all its channels and its spare end."""
        return self.channels * prod(self.padded) + SPARE_SAMPLES

    def spread(self, signal: NDArray) -> NDArray:
        """Lay a signal (channels, *signal) into a flat padded one: zeros around it, or itself when circular."""
        flat = np.zeros(self.padded_length, signal.dtype)
        box = self._box(flat)
        if self.boundary == "circular":
            margins = [(o, f - 1 - o) for o, f in zip(self.offset, self.filter, strict=True)]
            box[...] = np.pad(signal, [(0, 0), *margins], mode="wrap")
        else:
            box[self._inside] = signal
        return flat

    def inside(self, flat: NDArray) -> NDArray:
        """The part of a flat padded signal that is the signal itself, a copy."""
        return self._box(flat)[self._inside].copy()

    def gather(self, flat: NDArray) -> NDArray:
        """The adjoint of `spread`: cut the signal out of a flat padded one, or fold it when circular."""
        if self.boundary != "circular":
            return self.inside(flat)
        folded = self._box(flat)
        for axis, (o, n, f) in enumerate(zip(self.offset, self.signal, self.filter, strict=True), start=1):
            along = np.moveaxis(folded, axis, 0)
            middle = along[o : o + n].copy()
            middle[n - o :] += along[:o]
            middle[: f - 1 - o] += along[o + n :]
            folded = np.moveaxis(middle, 0, axis)
        return np.ascontiguousarray(folded)

    @cached_property
    def _inside(self) -> tuple[slice, ...]:
        spans = (slice(o, o + s) for o, s in zip(self.offset, self.signal, strict=True))
        return (slice(None), *spans)

    def _box(self, flat: NDArray) -> NDArray:
        return flat[: self.channels * prod(self.padded)].reshape(self.channels, *self.padded)


def sizes(shape: Sequence[int]) -> str:
    """Write a size such as (11, 11) as ``11×11``."""
    return "×".join(str(axis) for axis in shape)


def filters_in_words(shape: Sequence[int], channels: bool, noun: str = "") -> str:
    """Say how many filters there are and of which size, as ``8 of 96 in 64 channels``; `noun` follows the number."""
    size = sizes(shape[1 + channels :])
    return f"{shape[0]} {noun}of {size}" + (f" in {shape[1]} channels" if channels else "")
