"""Learning from a recording: its windows as a source of signals, first filters, the penalty, and the certificate."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.low_rank import split_channels
from pointillist.learners import FilterUpdate, OnlineCSC
from pointillist.mne.recordings import Windows
from pointillist.mne.sensors import Sensors
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


class WindowSource:
    """Windows of a recording as `OnlineCSC` reads them: whitened, float32, NaN where an annotation calls them bad.

    Parameters
    ----------
    windows : Windows
    sensors : Sensors
    mean : (n_channels,) array
        Subtracted from the channels.
    """

    exact = True

    def __init__(self, windows: Windows, sensors: Sensors, mean: NDArray) -> None:
        self._windows, self._sensors, self._mean = windows, sensors, mean
        self._lock = threading.Lock()  # MNE's readers are not made for several threads

    def __len__(self) -> int:
        return len(self._windows)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        """Window `index`, (channels, samples); all passes are alike, whatever `epoch` is."""
        with self._lock:
            data = self._windows.read(index)
        return self._sensors.whiten(data, self._mean)

    def name(self, index: int, epoch: int = 0) -> str:
        """What messages call window `index`."""
        first, last = self._windows.places[index]
        return f"window {index} of the recording, places {first} to {last}"

    def describe(self) -> dict[str, Any]:
        """The identity of the windows."""
        return {"kind": "mne", "channels": self._windows.names, "places": [list(one) for one in self._windows.places]}


def first_filters(
    source: WindowSource,
    n_filters: int,
    n_times: int,
    *,
    rank: int | None,
    nonnegative: bool,
    n_jobs: int | None,
    seed: int,
) -> NDArray:
    """Choose patches of some windows as first filters, one after the other.

    Each is the patch with the most energy in what the filters before leave unexplained. Lively patches alone would all be
    shifted copies of the largest waveform.

    Parameters
    ----------
    source : WindowSource
    n_filters, n_times : int
        How many filters, and samples of each.
    rank : int or None
        The largest rank of a filter over its channels; None leaves patches as they are.
    nonnegative : bool
        Whether codes must be ≥ 0.
    n_jobs : int or None
        Threads; the filters do not depend on it.
    seed : int
        Which windows are looked at, where there are many.

    Returns
    -------
    (n_filters, channels, n_times) float32 array, of norm one
    """
    chosen = np.sort(generator(seed, 0, 2).permutation(len(source))[:_LOOKED_AT])
    windows = [source.read(int(i)) for i in chosen]
    weights = [(~np.isnan(one)).astype(np.float32) for one in windows]
    setting: dict[str, Any] = {"boundary": BOUNDARY, "channels": True, "nonnegative": nonnegative, "weights": weights}
    filters: list[NDArray] = []
    left = [np.nan_to_num(one) for one in windows]
    for k in range(n_filters):
        patch = _most_energy(left, n_times)
        if rank is not None:
            patterns, shapes = split_channels(patch[None], rank)
            patch = patterns[0].T @ shapes[0]
        # A patch may be all zero, where there is nothing left.
        patch = patch + np.finfo(np.float32).eps * generator(seed, 0, 3, k).standard_normal(patch.shape)
        filters.append((patch / np.linalg.norm(patch)).astype(np.float32))
        bank = np.stack(filters)
        penalty = _FIRST_PENALTY * float(np.max(max_penalty(windows, bank, **setting)))
        if k + 1 < n_filters:
            left = encode(windows, bank, penalty, tol=_GAP, n_jobs=n_jobs, **setting).residuals
    return np.stack(filters)


def _most_energy(signals: list[NDArray], n_times: int) -> NDArray:
    """The patch (channels, n_times) with the most energy."""
    energies = [np.convolve(np.sum(one**2, axis=0), np.ones(n_times), "valid") for one in signals]
    i = int(np.argmax([np.max(one) for one in energies]))
    begin = int(np.argmax(energies[i]))
    return signals[i][:, begin : begin + n_times].astype(np.float64)


def largest_penalty(source: WindowSource, filters: NDArray, *, nonnegative: bool) -> float:
    """λ_max of the windows for given filters: the smallest penalty with which no window has any code."""
    largest = 0.0
    for begin in range(0, len(source), BATCH):
        data = [source.read(i) for i in range(begin, min(begin + BATCH, len(source)))]
        seen = [(~np.isnan(one)).astype(np.float32) for one in data]
        found = max_penalty(data, filters, weights=seen, boundary=BOUNDARY, channels=True, nonnegative=nonnegative)
        largest = max(largest, float(found.max()))
    return largest


def learn(settings: Any, source: WindowSource, n_times: int) -> OnlineCSC:
    """Learn filters of `n_times` samples from windows; `settings` has the parameters of `CSC` as attributes."""
    seed = seed_from(settings.random_state)
    begin = first_filters(
        source,
        settings.n_filters,
        n_times,
        rank=settings.rank,
        nonnegative=settings.nonnegative,
        n_jobs=settings.n_jobs,
        seed=seed,
    )
    penalty = settings.penalty * largest_penalty(source, begin, nonnegative=settings.nonnegative)
    model = OnlineCSC(
        settings.n_filters,
        n_times,
        penalty,
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


def certify(model: OnlineCSC, source: WindowSource) -> tuple[float, float]:
    """Code all windows with the learned filters: their objective in all, and the largest relative duality gap of one."""
    objective, gap = 0.0, 0.0
    for begin in range(0, len(source), BATCH):
        result = model.encode([source.read(i) for i in range(begin, min(begin + BATCH, len(source)))])
        objective += float(np.sum(result.objective))
        gap = max(gap, float(np.max(result.gap)))
    return objective, gap
