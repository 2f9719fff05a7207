"""Codes as activations: when, which filter, how strong; as time series, as events and as annotations.

An activation stands at the sample at which its waveform has its peak.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.mne.learning import BOUNDARY
from pointillist.problem import signal_shape


@dataclass(frozen=True)
class Activations:
    """The activations of all filters in one signal, ordered by time.

    Attributes
    ----------
    samples, filters : (n,) int arrays
        The sample of the signal where the waveform has its peak, and the number of the filter.
    amplitudes : (n,) float array
    n_times : int
        Samples of the signal.
    """

    samples: NDArray
    filters: NDArray
    amplitudes: NDArray
    n_times: int

    def dense(self, n_filters: int) -> NDArray:
        """Time series (n_filters, n_times), in float64."""
        out = np.zeros((n_filters, self.n_times))
        out[self.filters, self.samples] = self.amplitudes
        return out

    def strongest(self, chosen: list[int], threshold: float, separation: int) -> Activations:
        """The activations that count as events.

        Parameters
        ----------
        chosen : list of int
            Filters.
        threshold : float
            Smallest amplitude, as a share of the largest one of the same filter.
        separation : int
            An activation less than so many samples from a stronger one of its filter is left out.
        """
        kept = np.zeros(len(self.samples), bool)
        for k in chosen:
            own = np.flatnonzero(self.filters == k)
            sizes = np.abs(self.amplitudes[own])
            taken = np.zeros(self.n_times, bool)
            for i in np.argsort(-sizes, kind="stable"):
                sample = self.samples[own[i]]
                if sizes[i] < threshold * sizes.max():
                    break
                if not taken[sample]:
                    kept[own[i]] = True
                    taken[max(sample - separation + 1, 0) : sample + max(separation, 1)] = True
        return Activations(self.samples[kept], self.filters[kept], self.amplitudes[kept], self.n_times)


def activations(codes: SparseCodes, n_times: int, peaks: NDArray) -> list[Activations]:
    """Activations of each signal.

    Parameters
    ----------
    codes : SparseCodes
        One-dimensional, for the boundary that `CSC` learns with.
    n_times : int
        Samples of a filter.
    peaks : (n_filters,) int array
        Which sample of a filter is its peak.
    """
    found = []
    for index, value, grid in zip(codes.indices, codes.values, codes.grids, strict=True):
        (length,) = signal_shape(grid, (n_times,), BOUNDARY)
        filters, positions = np.divmod(np.asarray(index), grid[0])
        # With this boundary the code at position 0 has only the last sample of its filter inside of the signal.
        samples = positions - (n_times - 1) + peaks[filters]
        # An activation whose peak lies outside belongs to no sample.
        inside = (samples >= 0) & (samples < length)
        order = np.lexsort((filters[inside], samples[inside]))
        parts = (samples[inside][order], filters[inside][order], np.asarray(value, np.float64)[inside][order])
        found.append(Activations(*parts, length))
    return found


def only_filters(codes: SparseCodes, chosen: list[int]) -> SparseCodes:
    """The codes of some filters; those of all others are gone."""
    indices, values = [], []
    for index, value, grid in zip(codes.indices, codes.values, codes.grids, strict=True):
        kept = np.isin(np.asarray(index) // grid[0], chosen)
        indices.append(index[kept])
        values.append(value[kept])
    return SparseCodes(indices, values, codes.grids, codes.n_filters)
