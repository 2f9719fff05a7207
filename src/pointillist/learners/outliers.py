"""The record of windows that a run carries on: the latest errors, by which windows are judged, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.robust import Robust, Windows, error_limit

_LATEST = 256
"""Errors that are kept, of the latest windows: enough for a median, few enough to follow filters that improve."""
_MOST = 10_000
"""Windows that were left out and are remembered."""


@dataclass
class WindowRecord:
    """The errors of the latest windows, and the windows that were left out when their signals were last judged.

    Attributes
    ----------
    errors : (n,) float64 array
        Oldest first; n is bounded.
    places : (m, 1 + 2 · axes) int64 array
        Number of the signal, first sample along each axis, sample after the last along each axis; m is bounded.
    left : (m,) float64 array
        Errors of the windows in `places`.
    """

    errors: NDArray = field(default_factory=lambda: np.zeros(0))
    places: NDArray = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    left: NDArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, table: NDArray) -> Self:
        """A record of what was left out, from what `table` gave, without the latest errors."""
        places = np.column_stack([table["signal"], table["start"], table["stop"]])
        return cls(places=places, left=table["error"].copy())

    def judge(self, windows: Sequence[Windows], robust: Robust, step: int) -> list[NDArray]:
        """Add the errors of a step, and tell which windows of each signal are outliers; `step` counts those before it."""
        errors = [one.errors for one in windows]
        new = np.concatenate([one.ravel() for one in errors])
        new = new[~np.isnan(new)]
        known = np.concatenate([self.errors, new])[-max(_LATEST, len(new)) :]
        self.errors = known[-_LATEST:]
        limit = error_limit(robust, known, step)
        return [one > limit for one in errors]

    def remember(self, numbers: Sequence[int], windows: Sequence[Windows], outliers: Sequence[NDArray]) -> None:
        """Put the outliers of signals of these numbers in the place of those of earlier judgements of the same signals."""
        places, errors = [], []
        for number, one, chosen in zip(numbers, windows, outliers, strict=True):
            boxes = one.boxes(chosen)
            places.append(np.column_stack([np.full(len(boxes), number), boxes]))
            errors.append(one.errors[chosen])
        fresh = np.concatenate(places).astype(np.int64)
        if self.places.shape[1] == fresh.shape[1]:
            other = ~np.isin(self.places[:, 0], np.asarray(numbers))
            fresh = np.concatenate([self.places[other], fresh])
            errors = [self.left[other], *errors]
        self.places, self.left = fresh[-_MOST:], np.concatenate(errors)[-_MOST:]

    def arrays(self, ndim: int) -> dict[str, NDArray]:
        """The arrays of the record, for storage; `ndim` is the number of axes of the signals."""
        return {"errors": self.errors, "places": self.places.reshape(-1, 1 + 2 * ndim), "left": self.left}

    def table(self, ndim: int) -> NDArray:
        """The windows that were left out, as a structured array, by number of the signal and by place."""
        axes = (ndim,)
        fields = [("signal", np.int64), ("start", np.int64, axes), ("stop", np.int64, axes), ("error", np.float64)]
        table = np.zeros(len(self.places), np.dtype(fields))
        if len(table):
            order = np.lexsort(self.places.T[::-1])
            places = self.places[order]
            table["signal"], table["error"] = places[:, 0], self.left[order]
            table["start"], table["stop"] = places[:, 1 : 1 + ndim], places[:, 1 + ndim :]
        return table
