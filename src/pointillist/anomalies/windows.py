"""Long series made ready for scores: their baseline taken away, and filters of an event's length learned from windows."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from pointillist.anomalies.scoring import running_median
from pointillist.learners.estimators import OnlineCSC
from pointillist.reprs import shown
from pointillist.sampling import generator, seed_from
from pointillist.validation import Signals, check_arguments, checked_signals, is_constant, is_number

_WINDOWS = 6  # sets these draws apart from all others of the same seed
_LENGTHS = 6
"""Length of a window in filter lengths: several events, so that few of them are cut."""
_PRICE = 0.2
"""The penalty, beside the norm of a typical stretch of a filter's length."""
_EPOCHS, _BATCH = 2, 10
_GAP = 1e-2
"""The relative duality gap of codes: scores gain nothing by codes that are nearer to the optimum."""


def remove_baseline(signals: Signals, filter_size: int, *, channels: bool = False) -> list[NDArray]:
    """Take the baseline of series away: the median of what lies within a length on either side.

    Parameters
    ----------
    signals : (n_signals, [channels,] length) array or list of arrays
        NaN marks samples that were not seen, and stays.
    filter_size : int
        Samples of the filters to come: about those from one event to the next, in a recording of heartbeats those of a beat.
    channels : bool
        Whether the axis after the first holds channels.

    Returns
    -------
    list of ([channels,] length) arrays

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> series = 5.0 + np.eye(1, 60, 30)[0]
    >>> flat = pt.remove_baseline(series[None], 10)[0]
    >>> float(flat[0]), float(flat[30])
    (0.0, 1.0)
    """
    check_arguments(channels=channels)
    length = _checked_size(filter_size)
    arrays = _checked_series(signals, length, channels)
    flat = [np.stack([_flattened(one, length) for one in array]) for array in arrays]
    return flat if channels else [array[0] for array in flat]


def _checked_size(filter_size: int) -> int:
    if not (is_number(filter_size) and isinstance(filter_size, Integral) and filter_size >= 2):
        raise ValueError(f"filter_size must be an integer, at least 2, got {shown(filter_size)}")
    return int(filter_size)


def _checked_series(signals: Signals, length: int, channels: bool) -> list[NDArray]:
    """Series (channels, samples) without infinite samples, none shorter than a filter."""
    arrays = checked_signals(signals, 1, channels=channels)
    for i, array in enumerate(arrays):
        if np.isinf(array).any():
            raise ValueError(f"signals[{i}] holds infinite samples; write NaN in their place if they were not seen")
    for i, array in enumerate(arrays):
        if array.shape[-1] < length:
            raise ValueError(
                f"signals[{i}] has {array.shape[-1]} samples, fewer than filter_size, {shown(length)}: use a smaller one"
            )
    return arrays


def _flattened(series: NDArray, length: int) -> NDArray:
    step = max(length // 16, 1)
    gaps = np.isnan(series)
    filled = np.where(gaps, np.median(series[~gaps]) if not gaps.all() else 0, series)
    baseline = running_median(filled.astype(np.float64), step, 2 * (length // step) + 1)
    return (series - baseline).astype(series.dtype)


def learn_windows(
    signals: Signals,
    filter_size: int,
    *,
    n_filters: int = 4,
    n_windows: int = 400,
    penalty: float | None = None,
    channels: bool = False,
    nonnegative: bool = True,
    n_jobs: int | None = -1,
    random_state: int | np.random.Generator | None = None,
) -> OnlineCSC:
    """Learn a few filters of an event's length from windows of long series, for `anomaly_score` of the same series.

    The windows are drawn at random and have six times the length of a filter. A series may hold anomalies: filters describe
    what happens often.

    Parameters
    ----------
    signals : (n_signals, [channels,] length) array or list of arrays
        Without their baseline; see `remove_baseline`. NaN marks samples that were not seen.
    filter_size : int
        Samples of a filter: about those from one event to the next, in a recording of heartbeats those of a beat.
    n_filters : int
        Number of filters; two to eight give much the same scores.
    n_windows : int
        Number of windows to learn from.
    penalty : float or None
        The price of a code. None is a fifth of the norm that stretches of a filter's length typically have.
    channels : bool
        Whether the axis after the first holds channels. A channel counts as much as its energy: bring channels of different
        units to one scale before.
    nonnegative : bool
        Whether codes have no sign. With signs, an event that is upside down is explained by the same filter.
    n_jobs : int or None
        Threads, as joblib counts them: -1 is all cores. The filters do not depend on it.
    random_state : int, numpy Generator or None
        Seed of the windows, of the first filters and of the order in which windows are seen.

    Returns
    -------
    OnlineCSC
        Fitted.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> series = np.tile(np.hanning(40) ** 8, 50)
    >>> model = pt.learn_windows(series[None], 40, n_filters=2, n_windows=20, random_state=0)
    >>> model.filters_.shape
    (2, 40)
    """
    check_arguments(n_filters=n_filters, n_windows=n_windows, channels=channels, nonnegative=nonnegative)
    length = _checked_size(filter_size)
    arrays = _checked_series(signals, length, channels)
    seed = seed_from(random_state)
    windows = _draw(arrays, length, int(n_windows), seed)
    model = OnlineCSC(
        n_filters,
        length,
        _price(arrays, length) if penalty is None else penalty,
        boundary="full",
        channels=channels,
        nonnegative=nonnegative,
        batch_size=_BATCH,
        n_epochs=_EPOCHS,
        tol=_GAP,
        n_jobs=n_jobs,
        random_state=seed,
    )
    return model.fit(windows if channels else [window[0] for window in windows])


def _draw(arrays: list[NDArray], length: int, count: int, seed: int) -> list[NDArray]:
    """Windows (channels, samples) from random places, in which something happens."""
    rng = generator(seed, _WINDOWS)
    width = [min(_LENGTHS * length, array.shape[-1]) for array in arrays]
    room = np.array([array.shape[-1] - side + 1 for array, side in zip(arrays, width, strict=True)], np.float64)
    windows = []
    for which in rng.choice(len(arrays), count, p=room / room.sum()):
        first = int(rng.integers(int(room[which])))
        window = arrays[which][:, first : first + width[which]]
        if not is_constant(window):
            windows.append(window)
    if not windows:
        raise ValueError("signals are constant, or NaN, wherever a window was drawn: nothing can be learned from them")
    return windows


def _price(arrays: list[NDArray], length: int) -> float:
    """A fifth of the median norm of the stretches of a filter's length."""
    norms = []
    for array in arrays:
        energy = np.sum(np.square(np.nan_to_num(array).astype(np.float64)), axis=0)
        norms.append(np.sqrt(np.maximum(length * uniform_filter1d(energy, length, mode="nearest"), 0)))
    pooled = np.concatenate(norms)
    typical = float(np.median(pooled)) or float(np.max(pooled))
    return _PRICE * typical
