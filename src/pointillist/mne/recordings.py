"""What is read of MNE's objects: which channels, which samples, and the windows that a recording is cut into.

Everything here is in physical units (volt, tesla, …) and in float64. Samples that an annotation calls bad are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.reprs import shown
from pointillist.validation import is_number

Instance = Any
"""A Raw or an Epochs of MNE."""


def mne_package() -> Any:
    """The package MNE, or an error that says how to install it."""
    try:
        import mne
    except ImportError as error:
        raise ImportError("pointillist.mne needs MNE: pip install 'pointillist[mne]'") from error
    return mne


def is_raw(inst: Instance) -> bool:
    """Whether an object of MNE is a Raw rather than an Epochs; anything else is an error."""
    mne = mne_package()
    if isinstance(inst, mne.io.BaseRaw):
        return True
    if isinstance(inst, mne.BaseEpochs):
        return False
    raise TypeError(f"inst must be a Raw or an Epochs of MNE, got {type(inst).__name__}")


def check_raw(inst: Instance, method: str) -> None:
    """Raise unless an object is a Raw, for a method that needs one continuous recording."""
    if not is_raw(inst):
        raise TypeError(f"{method} needs a Raw, since epochs have no time of their own, got {type(inst).__name__}")


def picked_names(inst: Instance, picks: Any) -> list[str]:
    """Names of the channels that `picks` means, as MNE understands it; None is all data channels that are not bad."""
    mne = mne_package()
    empty = mne.EvokedArray(np.zeros((len(inst.ch_names), 1)), inst.info)
    try:
        chosen = empty.pick("data", exclude="bads") if picks is None else empty.pick(picks)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ValueError(f"picks={shown(picks)} names no channels of inst: {error}") from error
    return list(chosen.ch_names)


def sample_range(inst: Instance, start: float | None, stop: float | None) -> tuple[int, int]:
    """First sample and the one after the last that `start` and `stop` mean: samples if integers, seconds if floats."""
    if not is_raw(inst):
        if start is not None or stop is not None:
            raise ValueError("start and stop are for Raw: crop the epochs instead, epochs.copy().crop(...)")
        return 0, len(inst.times)
    first = 0 if start is None else _sample(inst, start, "start")
    last = inst.n_times if stop is None else min(_sample(inst, stop, "stop"), inst.n_times)
    if not 0 <= first < last:
        raise ValueError(
            f"start={start} and stop={stop} hold no samples of a Raw with {inst.n_times}: give start < stop"
        )
    return first, last


def _sample(inst: Instance, value: Any, name: str) -> int:
    if not is_number(value) or value < 0:
        raise ValueError(f"{name} must be None, a sample (an integer) or seconds (a float), got {shown(value)}")
    return int(value) if isinstance(value, Integral) else round(float(value) * inst.info["sfreq"])


def check_recording(inst: Instance, names: Sequence[str], sfreq: float) -> None:
    """Raise unless an object is a Raw or an Epochs with all channels of a model, sampled as often."""
    is_raw(inst)
    missing = [name for name in names if name not in inst.ch_names]
    if missing:
        raise ValueError(
            f"inst lacks {len(missing)} channels of the fit, {shown(missing)}: give a recording that has them"
        )
    if not np.isclose(inst.info["sfreq"], sfreq, rtol=1e-6):
        raise ValueError(
            f"inst is sampled at {inst.info['sfreq']:g} Hz, the fit was at {sfreq:g} Hz: inst.resample({sfreq:g}) first"
        )


@dataclass(frozen=True)
class Windows:
    """Windows of a Raw, or the epochs of an Epochs, read one at a time.

    Attributes
    ----------
    inst : Raw or Epochs
    names : list of str
        Channels, in this order.
    places : tuple of (int, int)
        First sample of each window of a Raw and the sample after its last; of Epochs the epoch's number and the next.
    by_annotation : bool
        Whether samples that an annotation calls bad are NaN.
    """

    inst: Instance
    names: list[str]
    places: tuple[tuple[int, int], ...]
    by_annotation: bool

    def __len__(self) -> int:
        return len(self.places)

    def read(self, index: int) -> NDArray:
        """Window `index` as (channels, samples), in physical units."""
        first, last = self.places[index]
        if is_raw(self.inst):
            marked = "NaN" if self.by_annotation else None
            return self.inst.get_data(
                picks=self.names, start=first, stop=last, reject_by_annotation=marked, verbose="error"
            )
        one = self.inst[first:last]
        data = one.get_data(picks=self.names, copy=True, verbose="error")[0]
        if self.by_annotation:
            for begin, end in _bad_parts(one):
                data[:, (one.times >= begin) & (one.times < end)] = np.nan
        return data

    @property
    def shortest(self) -> int:
        """Samples of the shortest window."""
        if is_raw(self.inst):
            return min(last - first for first, last in self.places)
        return len(self.inst.times)

    def only(self, kept: Sequence[int]) -> Windows:
        """Some of these windows."""
        return replace(self, places=tuple(self.places[i] for i in kept))


def _bad_parts(epoch: Instance) -> list[tuple[float, float]]:
    """Begin and end, in seconds of the epoch, of what annotations call bad in an Epochs with one epoch."""
    if epoch.annotations is None:
        return []
    noted = epoch.get_annotations_per_epoch()[0]
    return [(onset, onset + lasting) for onset, lasting, words in noted if words.lower().startswith("bad")]


def cut(
    inst: Instance, names: list[str], length: int, *, start: float | None, stop: float | None, by_annotation: bool
) -> Windows:
    """Cut a Raw into windows of `length` samples, the last of which may overlap the one before; epochs stay as they are."""
    first, last = sample_range(inst, start, stop)
    if not is_raw(inst):
        return Windows(inst, names, tuple((i, i + 1) for i in range(len(inst))), by_annotation)
    length = min(length, last - first)
    begins = list(range(first, last - length + 1, length))
    if begins[-1] + length < last:
        begins.append(last - length)
    return Windows(inst, names, tuple((one, one + length) for one in begins), by_annotation)


def whole(inst: Instance, names: list[str], *, start: float | None, stop: float | None, by_annotation: bool) -> Windows:
    """The range of a Raw as one window; epochs stay as they are."""
    first, last = sample_range(inst, start, stop)
    return cut(inst, names, last - first, start=start, stop=stop, by_annotation=by_annotation)
