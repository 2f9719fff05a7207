"""Learned filters as what a person looks at: a pattern over the channels in their own units, and a shape in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.low_rank import split_channels
from pointillist.mne.sensors import Sensors


@dataclass(frozen=True)
class Waveforms:
    """The leading term pattern ⊗ shape of each filter.

    Attributes
    ----------
    patterns : (n_filters, n_channels) array
        What the channels show, in their own units, when a code of one has its peak.
    shapes : (n_filters, n_times) array
        Courses in time, whose largest absolute sample is 1.
    peaks : (n_filters,) int array
        Which sample that is.
    """

    patterns: NDArray
    shapes: NDArray
    peaks: NDArray


def waveforms_of(filters: NDArray, sensors: Sensors) -> Waveforms:
    """Split filters (n_filters, channels, n_times) of whitened data into patterns in physical units and shapes."""
    patterns, shapes = (one[:, 0].astype(np.float64) for one in split_channels(filters, 1))
    peaks = np.argmax(np.abs(shapes), axis=1)
    heights = np.take_along_axis(np.abs(shapes), peaks[:, None], axis=1)
    heights[heights == 0] = 1  # a filter that was never used is zero
    physical = sensors.physical((patterns * heights).T).T
    return Waveforms(physical, shapes / heights, peaks)
