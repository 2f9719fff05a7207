"""Learning from a recording: first filters, the penalty, the certificate; waveforms and activations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.dictionary.constraints import split_channels
from pointillist.learners import FilterUpdate, OnlineCSC
from pointillist.mne.recordings import Sensors, Windows
from pointillist.problem import signal_shape
from pointillist.sampling import generator, seed_from
from pointillist.solvers.encoding import encode, max_penalty

BOUNDARY = "full"
"""Codes lie wherever a filter touches a window, because a waveform may begin before the window does."""
BATCH = 8
"""Windows of a step of learning, and windows that are looked at together elsewhere."""
_GAP = 0.1
"""Relative duality gap of codes while learning; a ridge, as learners have by habit, would blur waveforms that are rare."""
_LOOKED_AT = 64
"""Windows that first filters are drawn from."""
_FIRST_PENALTY = 0.1
"""Share of λ_max that windows are coded with while first filters are chosen."""


def first_filters(settings: Any, source: Windows, n_times: int, seed: int) -> NDArray:
    """Choose patches of some windows as first filters (n_filters, channels, n_times), one after the other.

    Each is the patch with the most energy in what the filters before leave unexplained. Lively patches alone would all be
    shifted copies of the largest waveform.
    """
    chosen = np.sort(generator(seed, 0, 2).permutation(len(source))[:_LOOKED_AT])
    windows = [source.read(int(i)) for i in chosen]
    setting: dict[str, Any] = {"boundary": BOUNDARY, "channels": True, "nonnegative": settings.nonnegative}
    filters: list[NDArray] = []
    left = [np.nan_to_num(one) for one in windows]
    for k in range(settings.n_filters):
        energies = [np.convolve(np.sum(one**2, axis=0), np.ones(n_times), "valid") for one in left]
        i = int(np.argmax([np.max(one) for one in energies]))
        begin = int(np.argmax(energies[i]))
        patch = left[i][:, begin : begin + n_times].astype(np.float64)
        if settings.rank is not None:
            patterns, shapes = split_channels(patch[None], settings.rank)
            patch = patterns[0].T @ shapes[0]
        # A patch may be all zero, where there is nothing left.
        patch = patch + np.finfo(np.float32).eps * generator(seed, 0, 3, k).standard_normal(patch.shape)
        filters.append((patch / np.linalg.norm(patch)).astype(np.float32))
        bank = np.stack(filters)
        penalty = _FIRST_PENALTY * float(np.max(max_penalty(windows, bank, **setting)))
        if k + 1 < settings.n_filters:
            left = encode(windows, bank, penalty, tol=_GAP, n_jobs=settings.n_jobs, **setting).residuals
    return np.stack(filters)


def _batches(source: Windows) -> Iterator[list[NDArray]]:
    """The windows, a few at a time."""
    for begin in range(0, len(source), BATCH):
        yield [source.read(i) for i in range(begin, min(begin + BATCH, len(source)))]


def learn(settings: Any, source: Windows, n_times: int) -> OnlineCSC:
    """Learn filters of `n_times` samples from windows; `settings` has the parameters of `CSC` as attributes."""
    seed = seed_from(settings.random_state)
    begin = first_filters(settings, source, n_times, seed)
    largest = 0.0  # the smallest penalty with which no window has any code
    for data in _batches(source):
        alone = max_penalty(data, begin, boundary=BOUNDARY, channels=True, nonnegative=settings.nonnegative)
        largest = max(largest, float(alone.max()))
    model = OnlineCSC(
        settings.n_filters,
        n_times,
        settings.penalty * largest,
        boundary=BOUNDARY,
        channels=True,
        nonnegative=settings.nonnegative,
        learning=_GAP,
        rank=settings.rank,
        robust=settings.robust,
        update=FilterUpdate(init=begin),
        batch_size=BATCH,
        n_epochs=settings.n_passes,
        tol=settings.tol,
        n_jobs=settings.n_jobs,
        device=settings.device,
        random_state=seed,
    )
    return model.fit(source)


def certify(model: OnlineCSC, source: Windows) -> tuple[float, float]:
    """Code all windows with the learned filters: their objective in all, and the largest relative duality gap of one."""
    objective, gap = 0.0, 0.0
    for data in _batches(source):
        result = model.encode(data)
        objective += float(np.sum(result.objective))
        gap = max(gap, float(np.max(result.gap)))
    return objective, gap


class Waveforms(NamedTuple):
    """The leading term pattern ⊗ shape of each filter."""

    patterns: NDArray  # (n_filters, n_channels), in the channels' own units when a code of one has its peak
    shapes: NDArray  # (n_filters, n_times), whose largest absolute sample is 1
    peaks: NDArray  # (n_filters,) int, which sample that is


def waveforms_of(filters: NDArray, sensors: Sensors) -> Waveforms:
    """Split filters (n_filters, channels, n_times) of whitened data into patterns in physical units and shapes."""
    patterns, shapes = (one[:, 0].astype(np.float64) for one in split_channels(filters, 1))
    peaks = np.argmax(np.abs(shapes), axis=1)
    heights = np.take_along_axis(np.abs(shapes), peaks[:, None], axis=1)
    heights[heights == 0] = 1  # a filter that was never used is zero
    physical = sensors.physical((patterns * heights).T).T
    return Waveforms(physical, shapes / heights, peaks)


class Activations(NamedTuple):
    """The activations of all filters in one signal, ordered by time."""

    samples: NDArray  # (n,) int, where the waveform has its peak
    filters: NDArray  # (n,) int
    amplitudes: NDArray  # (n,) float64
    n_times: int  # samples of the signal

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
                if sizes[i] >= threshold * sizes.max() and not taken[sample]:
                    kept[own[i]] = True
                    taken[max(sample - separation + 1, 0) : sample + max(separation, 1)] = True
        return Activations(self.samples[kept], self.filters[kept], self.amplitudes[kept], self.n_times)


def activations(codes: SparseCodes, n_times: int, peaks: NDArray) -> list[Activations]:
    """Activations of each signal; filters have `n_times` samples, and their peaks at the samples `peaks`."""
    events, found = codes.events(), []
    # With this boundary the code at position 0 has only the last sample of its filter inside of the signal.
    samples = events["sample"] - (n_times - 1) + peaks[events["filter"]]
    for i, grid in enumerate(codes.grids):
        (length,) = signal_shape(grid, (n_times,), BOUNDARY)
        # An activation whose peak lies outside belongs to no sample.
        own = np.flatnonzero((events["signal"] == i) & (samples >= 0) & (samples < length))
        own = own[np.lexsort((events["filter"][own], samples[own]))]
        found.append(Activations(samples[own], events["filter"][own], events["amplitude"][own].astype(float), length))
    return found
