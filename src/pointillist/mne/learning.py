"""Learning from a recording: its windows as a source of signals, first filters, the penalty, and the certificate."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.learners import FilterUpdate, OnlineCSC
from pointillist.mne.recordings import Windows
from pointillist.mne.sensors import Sensors
from pointillist.mne.waveforms import leading_term
from pointillist.model.sampling import generator, seed_from
from pointillist.solvers.encoding import max_penalty

BOUNDARY = "full"
"""Codes lie wherever a filter touches a window, because a waveform may begin before the window does."""
BATCH = 8
"""Windows of a step of learning, and windows that are looked at together elsewhere."""
_GAP = 0.1
"""Relative duality gap of codes while learning; a ridge, as learners have by habit, would blur waveforms that are rare."""
_LOOKED_AT = 64
"""Windows that first filters are drawn from."""
_CANDIDATES = 8
"""Patches from which a first filter is chosen."""


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


def first_filters(source: WindowSource, n_filters: int, n_times: int, *, rank: int | None, seed: int) -> NDArray:
    """Choose lively patches of the windows that differ from each other as first filters.

    Each is the patch with the most energy that no shift of a filter chosen before explains.

    Returns
    -------
    (n_filters, channels, n_times) float32 array, of norm one
    """
    rng = generator(seed, 0, 2)
    chosen = rng.permutation(len(source))[:_LOOKED_AT]
    windows = [np.nan_to_num(source.read(int(i))) for i in np.sort(chosen)]
    drawn = _lively_patches(windows, n_times, _CANDIDATES * n_filters, rng)
    patterns, shapes = leading_term(drawn)
    energies = np.sum(shapes**2, axis=1)
    unit = shapes / np.sqrt(np.maximum(energies, np.finfo(float).tiny))[:, None]
    spectra = np.fft.rfft(unit, 2 * n_times, axis=1)
    explained, best = np.zeros(len(drawn)), []
    for _ in range(n_filters):
        k = int(np.argmax(energies * (1 - explained)))
        best.append(k)
        shifts = np.fft.irfft(spectra * spectra[k].conj(), 2 * n_times, axis=1)
        alike = (patterns @ patterns[k]) ** 2 * np.max(shifts**2, axis=1)
        explained = np.minimum(np.maximum(explained, alike), 1)
        explained[k] = 1
    made = drawn[best] if rank != 1 else patterns[best][:, :, None] * unit[best][:, None]
    noise = 1e-6 * rng.standard_normal(made.shape)  # a patch may be all zero
    norms = np.sqrt(np.sum((made + noise) ** 2, axis=(1, 2), keepdims=True))
    return ((made + noise) / norms).astype(np.float32)


def _lively_patches(windows: list[NDArray], n_times: int, count: int, rng: np.random.Generator) -> NDArray:
    """Patches (count, channels, n_times) from random places of the windows, each moved to the most energy nearby."""
    patches = []
    energies = [np.convolve(np.sum(one**2, axis=0), np.ones(n_times), "valid") for one in windows]
    for i in rng.integers(len(windows), size=count):
        place = int(rng.integers(len(energies[i])))
        low = max(place - n_times // 2, 0)
        begin = low + int(np.argmax(energies[i][low : place + n_times // 2 + 1]))
        patches.append(windows[i][:, begin : begin + n_times])
    return np.stack(patches)


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
    begin = first_filters(source, settings.n_filters, n_times, rank=settings.rank, seed=seed)
    penalty = settings.penalty * largest_penalty(source, begin, nonnegative=settings.nonnegative)
    model = OnlineCSC(
        settings.n_filters,
        n_times,
        penalty,
        boundary=BOUNDARY,
        channels=True,
        nonnegative=settings.nonnegative,
        learning=_GAP,
        update=FilterUpdate(init=begin),
        batch_size=BATCH,
        tol=settings.tol,
        n_jobs=settings.n_jobs,
        device=settings.device,
        random_state=seed,
    )
    return model.fit(source, n_epochs=settings.n_passes)


def certify(model: OnlineCSC, source: WindowSource) -> tuple[float, float]:
    """Code all windows with the learned filters: their objective in all, and the largest relative duality gap of one."""
    objective, gap = 0.0, 0.0
    for begin in range(0, len(source), BATCH):
        result = model.encode([source.read(i) for i in range(begin, min(begin + BATCH, len(source)))])
        objective += float(np.sum(result.objective))
        gap = max(gap, float(np.max(result.gap)))
    return objective, gap
