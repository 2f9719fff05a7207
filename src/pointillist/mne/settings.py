"""Checks of what is passed to `CSC`; errors name the argument and say what it should be."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pointillist.dictionary.robust import Robust
from pointillist.mne.recordings import Instance, is_raw
from pointillist.reprs import shown
from pointillist.validation import as_numbers, check_arguments, is_integer, is_number

_LONGEST = 1e9
"""Seconds that events may lie apart."""
_HIGHPASS = 0.5
"""Hertz. Drifts below are as long as a filter or longer, and often larger than what is looked for."""


def check_settings(given: Any) -> None:
    """Check the parameters of a `CSC`."""
    for name in ("n_filters", "n_passes", *(() if given.rank is None else ("rank",))):
        value = getattr(given, name)
        if not is_integer(value) or not 1 <= value < 2**31:
            raise ValueError(f"{name} must be a positive integer{' or None' * (name == 'rank')}, got {shown(value)}")
    check_arguments(nonnegative=given.nonnegative, tol=given.tol)
    if given.robust is not None and not isinstance(given.robust, Robust):
        raise ValueError(f"robust must be None or a pointillist.Robust, got {shown(given.robust)}")
    if not is_number(given.duration) or given.duration <= 0:
        raise ValueError(f"duration must be a positive number of seconds, got {shown(given.duration)}")
    if not is_number(given.penalty) or not 0 < given.penalty < 1:
        raise ValueError(f"penalty must be a share of λ_max in (0, 1), got {shown(given.penalty)}")


def check_flags(**given: Any) -> None:
    """Refuse what is neither True nor False."""
    for name, value in given.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {shown(value)}")


def check_event_settings(threshold: Any, separation: Any) -> None:
    """Check what says which activations are events."""
    if not is_number(threshold) or not 0 <= float(threshold) <= 1:
        raise ValueError(f"threshold must be a share of the largest amplitude, from 0 to 1, got {shown(threshold)}")
    if separation is not None and (not is_number(separation) or not 0 <= float(separation) <= _LONGEST):
        raise ValueError(f"separation must be None or seconds, from 0 to {_LONGEST:g}, got {shown(separation)}")


def chosen_filters(given: Sequence[int] | int | None, n_filters: int, name: str) -> list[int]:
    """Numbers of filters that were asked for, ascending; None is all of them. Errors call the argument by `name`."""
    if given is None:
        return list(range(n_filters))
    wrong = ValueError(f"{name} must be None, a number of a filter or a list of these, got {shown(given)}")
    try:
        chosen = np.atleast_1d(as_numbers(given, name))
    except (TypeError, ValueError) as error:
        raise wrong from error
    if chosen.size == 0:
        return []
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise wrong
    if chosen.min() < 0 or chosen.max() >= n_filters:
        raise ValueError(f"{name} must hold numbers of filters from 0 to {n_filters - 1}, got {shown(given)}")
    return sorted({int(k) for k in chosen})


def window_samples(inst: Instance, tstep: float | None, duration: float) -> int:
    """Samples of the windows that a Raw is cut into; warns of a recording with drifts."""
    raw = is_raw(inst)
    if tstep is not None and not raw:
        raise ValueError("tstep is for Raw: epochs are learned from as they are, leave it out")
    if tstep is not None and (not is_number(tstep) or tstep < duration):
        raise ValueError(
            f"tstep must be None or seconds, at least the duration of a filter, {duration:g}, got {shown(tstep)}"
        )
    if inst.info["highpass"] < _HIGHPASS:
        warnings.warn(
            f"inst is high-pass filtered at {inst.info['highpass']:g} Hz only: drifts would be learned, not waveforms; "
            "inst.filter(1.0, None) first",
            RuntimeWarning,
            stacklevel=3,
        )
    return round((max(4 * duration, 2.0) if tstep is None else float(tstep)) * inst.info["sfreq"])


def filter_samples(inst: Instance, duration: float, available: int) -> int:
    """Samples of a filter, of which a window has `available`."""
    n_times = round(duration * inst.info["sfreq"])
    if not 2 <= n_times <= available:
        raise ValueError(
            f"duration={duration:g} is {n_times} samples at {inst.info['sfreq']:g} Hz: it must be 2 at least, and at most "
            f"the {available} of a window or an epoch, which start, stop and tstep cut"
        )
    return n_times
