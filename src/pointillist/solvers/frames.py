"""Coordinate descent around a circle: the circle is turned until codes at its seam lie inside.

A code whose filter wraps around would have to change two parts of a padded residual at once. In a *frame*, where the signal
is turned so that the code lies inside, it changes one. Filters up to half as long as the signal need two turns an axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pointillist.model.geometry import Geometry


@dataclass(frozen=True, eq=False)
class Frame:
    """Codes that lie inside once the signal is turned by `shift`."""

    geometry: Geometry
    shift: tuple[int, ...]
    members: NDArray  # indices into the codes that were parted
    codes: NDArray  # of the members, at their places in the turned signal

    def turn(self, signal: NDArray) -> NDArray:
        """A signal (channels, *space) laid out flat and padded in this frame."""
        return self.geometry.spread(np.roll(signal, self.shift, self._axes))

    def turn_back(self, flat: NDArray) -> NDArray:
        """The signal of a flat padded one; what members changed of it lies inside."""
        back = tuple(-s for s in self.shift)
        return np.roll(self.geometry.inside(flat), back, self._axes)

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(1, len(self.shift) + 1))


def part(geometry: Geometry, codes: NDArray) -> list[Frame]:
    """The frames that have codes, with these, in the order of the codes."""
    filters, positions = np.divmod(codes, geometry.n_positions)
    places = np.stack(np.unravel_index(positions, geometry.grid))
    lengths = np.array(geometry.signal)[:, None]
    starts = (places - np.array(geometry.offset)[:, None]) % lengths
    rooms = lengths - np.array(geometry.filter)[:, None] + 1  # starts that lie inside of one frame
    turns = starts // rooms
    shifts, number = np.unique(-turns * rooms, axis=1, return_inverse=True)
    frames = []
    for n, shift in enumerate(shifts.T):
        members = np.flatnonzero(number.ravel() == n)
        moved = (places[:, members] + shift[:, None]) % lengths
        turned = filters[members] * geometry.n_positions + np.ravel_multi_index(tuple(moved), geometry.grid)
        frames.append(Frame(geometry, tuple(shift.tolist()), members, turned))
    return frames
