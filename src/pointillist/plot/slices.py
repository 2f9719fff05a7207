"""What of a signal can be looked at as one picture: a slice of a volume, a channel of several that are no colours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pointillist.validation import check_arguments


@dataclass(frozen=True)
class Cut:
    """Which part of a signal is shown as a picture.

    Attributes
    ----------
    axes : int
        Axes of the signal but for channels: 2 for pictures, 3 for volumes.
    channel : int or None
        The channel that is shown; None where there are none, or where three are shown as colour.
    depth : int or None
        The slice that is shown, None for pictures.
    words : str
        What is shown, where it is not everything: ``slice 4 of 0 to 9``.
    """

    axes: int
    channel: int | None
    depth: int | None
    words: str

    def of(self, signal: NDArray) -> NDArray:
        """The picture, (H, W), or (3, H, W) in colour, of a signal ([channels,] [depth,] H, W)."""
        if self.depth is not None:
            signal = signal[..., self.depth, :, :]
        return signal if self.channel is None else signal[self.channel]


def cut_of(signal: NDArray, axes: int, depth: int | None = None) -> Cut:
    """Choose what is shown of a signal that has so many axes beside channels: the middle, unless `depth` says otherwise.

    Parameters
    ----------
    signal : array ([channels,] *space)
    axes : {2, 3}
    depth : int, optional
        The slice of a volume.
    """
    check_arguments(depth=depth)
    if axes not in (2, 3) or signal.ndim not in (axes, axes + 1):
        raise ValueError(f"signal must be a picture or a volume, perhaps with channels first, got shape {signal.shape}")
    if depth is not None and axes != 3:
        raise ValueError("depth is for volumes, and signal is a picture: leave it out")
    words, channel = [], None
    if signal.ndim > axes and len(signal) != 3:
        channel = len(signal) // 2
        words += [f"channel {channel} of 0 to {len(signal) - 1}"] if len(signal) > 1 else []
    if axes == 3:
        last = signal.shape[-3] - 1
        if depth is not None and depth > last:
            raise ValueError(f"depth must be the number of a slice, from 0 to {last}, got {depth}")
        depth = signal.shape[-3] // 2 if depth is None else int(depth)
        words.append(f"slice {depth} of 0 to {last}")
    return Cut(axes, channel, depth, ", ".join(words))


def as_pixels(picture: NDArray, low: float, high: float) -> NDArray:
    """A picture as matplotlib takes it: (H, W) as it is, (3, H, W) as (H, W, 3) with `low` at 0 and `high` at 1."""
    if picture.ndim == 2:
        return picture
    return np.moveaxis(np.clip((picture - low) / max(high - low, 1e-12), 0, 1), 0, -1)
