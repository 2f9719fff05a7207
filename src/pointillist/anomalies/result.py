"""The answer of `anomaly_score`: scores, what they are made of, a threshold, and the events above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from pointillist.reprs import ShortRepr, shown
from pointillist.validation import is_number


@dataclass(frozen=True, repr=False)
class AnomalyScore(ShortRepr):
    """How strange every sample of signals is, in nats, and what stands out.

    Attributes
    ----------
    scores : list of arrays (*space)
        One for each signal, without channels: the sum of the parts. Larger is stranger; samples that were not seen have 0.
    parts : dict from str to list of arrays
        What each score is made of: "residual", "amplitude", "rarity" and, for series, "rhythm".
    threshold : float
        The score that samples of normal signals exceed at the rate that was asked for; see `anomaly_score`.
    extent : tuple of int
        Size of the filters. Samples above the threshold that lie nearer to each other than half of it are one event.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> score = np.zeros(100)
    >>> score[40:44] = [3.0, 9.0, 8.0, 2.5]
    >>> found = pt.AnomalyScore([score], {"residual": [score]}, threshold=2.0, extent=(10,)).events()
    >>> [found[name][0].item() for name in ("signal", "start", "stop", "peak", "score", "cause")]
    [0, 40, 44, 41, 9.0, 'residual']
    """

    scores: list[NDArray]
    parts: dict[str, list[NDArray]]
    threshold: float
    extent: tuple[int, ...]

    def events(self, *, threshold: float | None = None) -> NDArray:
        """Stretches, or boxes, of samples above the threshold, ordered by signal and place.

        Parameters
        ----------
        threshold : float or None
            Another threshold than the attribute's.

        Returns
        -------
        structured array
            ``signal``, ``start``, ``stop`` (behind the last sample), ``peak`` (where the score is largest), ``score``
            (there) and ``cause`` (the part that contributes most there). For series, places are integers; for images and
            volumes they have one entry for each axis.
        """
        level = self.threshold if threshold is None else threshold
        if not is_number(level):
            raise ValueError(f"threshold must be a finite number, got {shown(threshold)}")
        axes = len(self.extent)
        place = (np.int64,) if axes == 1 else (np.int64, (axes,))
        kinds = [("signal", np.int64), *((name, *place) for name in ("start", "stop", "peak"))]
        kinds += [("score", np.float64), ("cause", "U16")]
        rows = [row for i in range(len(self.scores)) for row in self._events_of(i, level)]
        return np.array(rows, np.dtype(kinds))

    def _events_of(self, i: int, threshold: float) -> list[tuple]:
        score = self.scores[i]
        above = score > threshold
        reach = [max(side // 4, 1) for side in self.extent]
        near = ndimage.maximum_filter(above, [2 * side + 1 for side in reach], mode="constant")
        groups = ndimage.label(near)[0] * above
        found = []
        for number, box in enumerate(ndimage.find_objects(groups), start=1):
            if box is None:
                continue
            inside = np.where(groups[box] == number, score[box], -np.inf)
            offset = np.unravel_index(int(np.argmax(inside)), inside.shape)
            peak = tuple(int(side.start + step) for side, step in zip(box, offset, strict=True))
            cause = max(self.parts, key=lambda name: self.parts[name][i][peak])
            corners = [side.start for side in box], [side.stop for side in box], list(peak)
            found.append((i, *map(_place, corners), float(score[peak]), cause))
        return sorted(found, key=lambda row: row[1])


def _place(corner: Sequence[int]) -> int | tuple[int, ...]:
    return corner[0] if len(corner) == 1 else tuple(corner)


def bulk_threshold(scores: Sequence[NDArray], false_alarms: float) -> float:
    """The score above which a share `false_alarms` of normal samples lies, by the bulk of all samples.

    A surprise in nats has an exponential tail. It is laid through the median and the upper quartile and prolonged, so that
    anomalies move it little, as long as they are well under a quarter of the samples.
    """
    middle, upper = np.quantile(np.concatenate([score.ravel() for score in scores]), [0.5, 0.75])
    return float(middle + (upper - middle) * np.log(0.5 / false_alarms) / np.log(2))
