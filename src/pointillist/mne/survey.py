"""A first look at all windows of a recording: which of them can be learned from, means and deviations of the channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pointillist.mne.recordings import Windows
from pointillist.reprs import shown
from pointillist.validation import is_number


@dataclass(frozen=True)
class Survey:
    """What is known of a recording once it was read.

    Attributes
    ----------
    kept : tuple of int
        Windows that can be learned from.
    dropped : dict from str to int
        Why other windows were left out, and how many.
    mean, deviation : (n_channels,) arrays
        Of the samples of the kept windows that no annotation calls bad, in physical units.
    """

    kept: tuple[int, ...]
    dropped: dict[str, int]
    mean: NDArray
    deviation: NDArray


def survey(
    windows: Windows,
    types: Sequence[str],
    least: int,
    *,
    reject: Mapping[str, float] | None = None,
    flat: Mapping[str, float] | None = None,
) -> Survey:
    """Read all windows once.

    Parameters
    ----------
    windows : Windows
    types : sequence of str
        Type of each channel, such as "eeg".
    least : int
        Samples that a window must have which no annotation calls bad.
    reject, flat : mapping from str to float, optional
        Largest and smallest difference between the largest and the smallest sample of a channel, by channel type.
    """
    largest, smallest = _limits(reject, "reject", types, np.inf), _limits(flat, "flat", types, -np.inf)
    kept, dropped = [], {"bad": 0, "reject": 0, "flat": 0}
    count, sums, squares = 0, np.zeros(len(types)), np.zeros(len(types))
    for i in range(len(windows)):
        data = windows.read(i)
        data = data[:, ~np.isnan(data).any(axis=0)]
        if data.shape[1] < least:
            dropped["bad"] += 1
            continue
        spread = np.ptp(data, axis=1)
        if np.any(spread > largest) or np.any(spread < smallest):
            dropped["reject" if np.any(spread > largest) else "flat"] += 1
            continue
        kept.append(i)
        count += data.shape[1]
        sums += data.sum(axis=1)
        squares += np.sum(data**2, axis=1)
    if not kept:
        raise ValueError(
            f"no window is left to learn from, of {len(windows)}: {dropped['bad']} are bad by annotation or shorter than "
            f"a filter, {dropped['reject']} exceed reject, {dropped['flat']} fall below flat; relax these"
        )
    mean = sums / count
    return Survey(tuple(kept), dropped, mean, np.sqrt(np.maximum(squares / count - mean**2, 0)))


def _limits(given: Mapping[str, float] | None, name: str, types: Sequence[str], default: float) -> NDArray:
    """The limit of each channel."""
    if given is None:
        return np.full(len(types), default)
    if not isinstance(given, Mapping) or not all(is_number(value) and value > 0 for value in given.values()):
        raise ValueError(f'{name} must be None or a dict such as {{"eeg": 150e-6}}, got {shown(given)}')
    unknown = sorted(set(given) - set(types))
    if unknown:
        raise ValueError(f"{name} has the channel types {unknown}, of which none is picked: leave them out")
    return np.array([given.get(kind, default) for kind in types])
