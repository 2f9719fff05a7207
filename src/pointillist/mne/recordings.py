"""Recordings of MNE: channels and how they are scaled, samples, windows, and a first look at all of them.

Data are in physical units (volt, tesla, …) and in float64. Samples that an annotation calls bad are NaN.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.reprs import shown
from pointillist.storage.schema import anything, number, text, whole
from pointillist.validation import is_number

Instance = Any
"""A Raw or an Epochs of MNE."""
_FACTS = ("kind", "coil_type", "unit", "coord_frame")
"""Entries of MNE's description of a channel besides name and position, so that topographies can be drawn: integers."""
FORM = {
    "names": [text],
    "types": [text],
    "sfreq": number(1e-6),
    "facts": [[whole(-(2**63))]],
    "positions": [[number()]],
    "whitener": [anything],
    "colorer": [anything],
}
"""The fields of `Sensors` in a file."""


def mne_package() -> Any:
    """The package MNE, or an error that says how to install it."""
    try:
        import mne
    except ImportError as error:
        raise ImportError("pointillist.mne needs MNE: pip install 'pointillist[mne]'") from error
    return mne


def is_raw(inst: Instance) -> bool:
    """True if an object of MNE is a Raw rather than an Epochs; anything else is an error."""
    mne = mne_package()
    if isinstance(inst, mne.io.BaseRaw):
        return True
    if isinstance(inst, mne.BaseEpochs):
        return False
    raise TypeError(f"inst must be a Raw or an Epochs of MNE, got {type(inst).__name__}")


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
    found = [0, inst.n_times]
    for i, (name, value) in enumerate((("start", start), ("stop", stop))):
        if value is None:
            continue
        if not is_number(value) or value < 0:
            raise ValueError(f"{name} must be None, a sample (an integer) or seconds (a float), got {shown(value)}")
        found[i] = int(value) if isinstance(value, Integral) else round(float(value) * inst.info["sfreq"])
    first, last = found[0], min(found[1], inst.n_times)
    if not 0 <= first < last:
        raise ValueError(
            f"start={start} and stop={stop} hold no samples of a Raw with {inst.n_times}: give start < stop"
        )
    return first, last


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
class Sensors:
    """Channels, and the two matrices that take them to comparable units and back.

    Attributes
    ----------
    names, types : list of str
        One for each channel.
    sfreq : float
        Samples in a second.
    facts : (n_channels, 4) int array
        MNE's constants of each channel: kind, coil type, unit, coordinate frame.
    positions : (n_channels, 12) array
        MNE's ``loc`` of each channel, zero where it was NaN.
    whitener, colorer : (n_channels,) or (n_channels, n_channels) arrays
        What scales data before they are coded, and its inverse: factors, or matrices of a noise covariance.
    """

    names: list[str]
    types: list[str]
    sfreq: float
    facts: NDArray
    positions: NDArray
    whitener: NDArray
    colorer: NDArray

    def whiten(self, data: NDArray, mean: NDArray) -> NDArray:
        """Data (channels, samples) in units that all channels share, without their means; float32."""
        centred = data - mean[:, None]
        scaled = self.whitener[:, None] * centred if self.whitener.ndim == 1 else self.whitener @ centred
        return np.ascontiguousarray(scaled, np.float32)

    def physical(self, filters: NDArray) -> NDArray:
        """Filters or patterns (..., channels, n) in the channels' own units, in float64."""
        plain = np.asarray(filters, np.float64)
        return self.colorer[:, None] * plain if self.colorer.ndim == 1 else self.colorer @ plain

    def info(self) -> Any:
        """An Info of MNE with these channels and their positions."""
        info = mne_package().create_info(self.names, self.sfreq, self.types)
        for channel, facts, position in zip(info["chs"], self.facts, self.positions, strict=True):
            for name, value in zip(_FACTS, facts.tolist(), strict=True):
                channel[name] = value
            channel["loc"] = np.where(position.any(), position, np.nan)
        return info

    @classmethod
    def unpacked(cls, packed: dict[str, Any], channels: int) -> Sensors:
        """Sensors of so many channels from values of the form `FORM`; ValueError where they are those of others."""
        arrays = {name: np.array(packed[name]) for name in ("facts", "positions", "whitener", "colorer")}
        sizes = {"facts": [(channels, len(_FACTS))], "positions": [(channels, 12)]}
        for name, array in arrays.items():
            fits = array.shape in sizes.get(name, [(channels,), (channels, channels)])
            if not fits or array.dtype.kind not in "if":
                raise ValueError(f"sensors.{name} are no numbers for {channels} channels")
        if not len(packed["names"]) == len(packed["types"]) == len(set(packed["names"])) == channels:
            raise ValueError(f"sensors must have a name and a type for each of the {channels} channels")
        return cls(**packed | arrays)


def sensors_of(info: Any, names: list[str], deviation: NDArray, noise_cov: Any = None) -> Sensors:
    """Describe channels: those of one type are divided by the root of their mean squared `deviation`, or whitened."""
    mne = mne_package()
    chosen = mne.pick_info(info, [info["ch_names"].index(name) for name in names])
    types = list(chosen.get_channel_types())
    if noise_cov is None:
        colorer = np.empty(len(types))
        for kind in set(types):
            members = np.array([one == kind for one in types])
            colorer[members] = np.sqrt(np.mean(deviation[members] ** 2))
            if not colorer[members][0] > 0:
                raise ValueError(f"all channels of type {kind} are flat: leave them out by picks")
        whitener = 1 / colorer
    elif not isinstance(noise_cov, mne.Covariance):
        raise TypeError(f"noise_cov must be None or a Covariance of MNE, got {type(noise_cov).__name__}")
    else:
        whitener, _, colorer = mne.cov.compute_whitener(
            noise_cov, chosen, picks="all", return_colorer=True, verbose="error"
        )
    return Sensors(
        names,
        types,
        float(chosen["sfreq"]),
        np.array([[int(channel[name]) for name in _FACTS] for channel in chosen["chs"]], np.int64),
        np.nan_to_num(np.array([channel["loc"] for channel in chosen["chs"]], np.float64)),
        whitener,
        colorer,
    )


@dataclass(frozen=True)
class Windows:
    """Windows of a Raw, or the epochs of an Epochs, read one at a time; `OnlineCSC` learns from them as from any source.

    Attributes
    ----------
    inst : Raw or Epochs
    names : list of str
        Channels, in this order.
    places : tuple of (int, int)
        First sample of each window of a Raw and the sample after its last; of Epochs the epoch's number and the next.
    by_annotation : bool
        Whether samples that an annotation calls bad are NaN.
    sensors, mean : Sensors and (n_channels,) array, optional
        What whitens the windows that are read, after the mean of each channel is subtracted.
    """

    inst: Instance
    names: list[str]
    places: tuple[tuple[int, int], ...]
    by_annotation: bool
    sensors: Sensors | None = None
    mean: Any = None
    exact: ClassVar[bool] = True
    _lock: ClassVar[Any] = threading.Lock()  # MNE's readers are not made for several threads

    def __len__(self) -> int:
        return len(self.places)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        """Window `index` as (channels, samples), in physical units or whitened; every pass `epoch` is alike."""
        with self._lock:
            data = self._physical(*self.places[index])
        return data if self.sensors is None else self.sensors.whiten(data, self.mean)

    def _physical(self, first: int, last: int) -> NDArray:
        if is_raw(self.inst):
            marked = "NaN" if self.by_annotation else None
            return self.inst.get_data(
                picks=self.names, start=first, stop=last, reject_by_annotation=marked, verbose="error"
            )
        one = self.inst[first:last]
        data = one.get_data(picks=self.names, copy=True, verbose="error")[0]
        if self.by_annotation and one.annotations is not None:
            for onset, lasting, words in one.get_annotations_per_epoch()[0]:
                if words.lower().startswith("bad"):
                    data[:, (one.times >= onset) & (one.times < onset + lasting)] = np.nan
        return data

    def name(self, index: int, epoch: int = 0) -> str:
        """Name of window `index` in messages."""
        first, last = self.places[index]
        return f"window {index} of the recording, places {first} to {last}"

    def describe(self) -> dict[str, Any]:
        """The identity of the windows."""
        return {"kind": "mne", "channels": self.names, "places": [list(one) for one in self.places]}

    @property
    def shortest(self) -> int:
        """Samples of the shortest window."""
        if is_raw(self.inst):
            return min(last - first for first, last in self.places)
        return len(self.inst.times)

    def write(self, data: Sequence[NDArray]) -> None:
        """Put data (channels, samples) of each window in the place of what is there."""
        rows = [self.inst.ch_names.index(name) for name in self.names]
        if is_raw(self.inst):
            for (first, last), one in zip(self.places, data, strict=True):
                self.inst[rows, first:last] = one
        else:
            self.inst.apply_function(lambda old: np.stack(data), picks=rows, channel_wise=False, verbose="error")


def cut(
    inst: Instance,
    names: list[str],
    length: float = np.inf,
    *,
    start: float | None,
    stop: float | None,
    by_annotation: bool,
) -> Windows:
    """Cut a Raw into windows of `length` samples, the last of which may overlap the one before; epochs stay as they are."""
    first, last = sample_range(inst, start, stop)
    if not is_raw(inst):
        return Windows(inst, names, tuple((i, i + 1) for i in range(len(inst))), by_annotation)
    side = int(min(length, last - first))
    begins = [*range(first, last - side, side), last - side]
    return Windows(inst, names, tuple((one, one + side) for one in begins), by_annotation)


class Survey(NamedTuple):
    """A recording once it was read: windows to learn from, reasons of the others, means and deviations of the channels."""

    kept: tuple[int, ...]
    dropped: dict[str, int]
    mean: NDArray  # of samples of the kept windows that no annotation calls bad
    deviation: NDArray


def survey(
    windows: Windows,
    types: Sequence[str],
    least: int,
    *,
    reject: Mapping[str, float] | None = None,
    flat: Mapping[str, float] | None = None,
) -> Survey:
    """Read all windows once; `least` is how many samples a window must have that no annotation calls bad.

    `reject` and `flat` are the largest and smallest peak-to-peak differences of a channel, by channel type.
    """
    largest, smallest = _limits(reject, "reject", types, np.inf), _limits(flat, "flat", types, -np.inf)
    kept, dropped = [], {"bad": 0, "reject": 0, "flat": 0}
    count, sums, squares = 0, np.zeros(len(types)), np.zeros(len(types))
    for i in range(len(windows)):
        data = windows.read(i)
        data = data[:, ~np.isnan(data).any(axis=0)]
        if data.shape[1] < least:
            dropped["bad"] += 1
            continue
        spread = np.ptp(data, axis=1)
        if np.any(spread > largest) or np.any(spread < smallest):
            dropped["reject" if np.any(spread > largest) else "flat"] += 1
            continue
        kept.append(i)
        count += data.shape[1]
        sums += data.sum(axis=1)
        squares += np.sum(data**2, axis=1)
    if not kept:
        raise ValueError(
            f"no window is left to learn from, of {len(windows)}: {dropped['bad']} are bad by annotation or shorter than "
            f"a filter, {dropped['reject']} exceed reject, {dropped['flat']} fall below flat; relax these"
        )
    mean = sums / count
    return Survey(tuple(kept), dropped, mean, np.sqrt(np.maximum(squares / count - mean**2, 0)))


def _limits(given: Mapping[str, float] | None, name: str, types: Sequence[str], default: float) -> NDArray:
    """The limit of each channel."""
    if given is None:
        return np.full(len(types), default)
    if not isinstance(given, Mapping) or not all(is_number(value) and value > 0 for value in given.values()):
        raise ValueError(f'{name} must be None or a dict such as {{"eeg": 150e-6}}, got {shown(given)}')
    unknown = sorted(set(given) - set(types))
    if unknown:
        raise ValueError(f"{name} has the channel types {unknown}, of which none is picked: leave them out")
    return np.array([given.get(kind, default) for kind in types])
