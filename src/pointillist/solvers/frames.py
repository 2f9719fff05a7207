"""Coordinate descent around a circle: the circle is turned until codes at its seam lie inside.

A code whose filter wraps around would have to change two ends of a padded residual at once. In a *frame*, where the signal
is turned so that the code lies inside, it changes one. Filters up to half as long as the signal need two turns an axis.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from pointillist.model.geometry import Geometry


@dataclass(frozen=True, eq=False)
class Frame:
    """Codes that lie inside once the signal is turned by `shift`."""

    geometry: Geometry
    shift: tuple[int, ...]
    members: NDArray  # indices into the codes given
    codes: NDArray  # of the members, at their places in the turned signal

    def turn(self, signal: NDArray) -> NDArray:
        """A signal (channels, *space) laid out flat and padded in this frame."""
        there, _ = _moves(self.geometry, self.shift)
        flat = np.zeros(self.geometry.padded_length, signal.dtype)
        np.take(signal.reshape(-1), there, out=flat[: len(there)], mode="clip")
        return flat

    def turn_back(self, flat: NDArray) -> NDArray:
        """The signal of a flat padded one; what members changed of it lies inside."""
        _, back = _moves(self.geometry, self.shift)
        return np.take(flat, back, mode="clip")


@lru_cache(maxsize=64)
def _moves(geometry: Geometry, shift: tuple[int, ...]) -> tuple[NDArray, NDArray]:
    """Which sample of the signal comes where in a frame, and back: a sweep is too short for rolling and padding."""
    axes = tuple(range(1, len(shift) + 1))
    samples = np.arange(geometry.channels * prod(geometry.signal)).reshape(geometry.channels, *geometry.signal)
    there = geometry.spread(np.roll(samples, shift, axes))[: geometry.channels * prod(geometry.padded)]
    inside = geometry.inside(np.arange(geometry.padded_length))
    return there, np.roll(inside, tuple(-s for s in shift), axes)


def frames_of(geometry: Geometry, codes: NDArray) -> list[Frame]:
    """The frames that have codes, with these, in the order of the codes."""
    filters, positions = np.divmod(codes, geometry.n_positions)
    places = np.stack(np.unravel_index(positions, geometry.grid))
    lengths = np.array(geometry.signal)[:, None]
    starts = (places - np.array(geometry.offset)[:, None]) % lengths
    rooms = lengths - np.array(geometry.filter)[:, None] + 1  # starts that lie inside of one frame
    counts = tuple((-(-lengths // rooms)).ravel().tolist())
    number = np.ravel_multi_index(tuple(starts // rooms), counts)
    frames = []
    for n in np.flatnonzero(np.bincount(number, minlength=prod(counts))):
        members = np.flatnonzero(number == n)
        shift = -np.array(np.unravel_index(n, counts))[:, None] * rooms
        moved = (places[:, members] + shift) % lengths
        turned = filters[members] * geometry.n_positions + np.ravel_multi_index(tuple(moved), geometry.grid)
        frames.append(Frame(geometry, tuple(shift.ravel().tolist()), members, turned))
    return frames
