"""The channels that a model was fitted on, without the recording: names, types, positions, and how they are scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.mne.recordings import mne_package
from pointillist.storage.schema import either, list_of, number, record, text, whole

_FACTS = ("kind", "coil_type", "unit", "coord_frame")
"""What MNE's description of a channel needs besides name and position, so that topographies can be drawn: integers."""
_LOC = 12
"""Numbers of a channel's position and orientation in MNE's description."""


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


def sensors_of(info: Any, names: list[str], deviation: NDArray, noise_cov: Any = None) -> Sensors:
    """Describe channels, and choose how they are scaled.

    Parameters
    ----------
    info : mne.Info
    names : list of str
    deviation : (n_channels,) array
        Standard deviation of each channel. Those of one type are divided by the root of their mean square.
    noise_cov : mne.Covariance, optional
        Whitens the channels instead.
    """
    mne = mne_package()
    chosen = mne.pick_info(info, [info["ch_names"].index(name) for name in names])
    types = list(chosen.get_channel_types())
    if noise_cov is None:
        whitener = 1 / type_deviations(deviation, types)
        colorer = 1 / whitener
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


def type_deviations(deviation: NDArray, types: list[str]) -> NDArray:
    """For each channel the root mean square of the deviations of all channels of its type."""
    scales = np.empty(len(types))
    for kind in set(types):
        members = np.array([one == kind for one in types])
        scales[members] = np.sqrt(np.mean(deviation[members] ** 2))
        if not scales[members][0] > 0:
            raise ValueError(f"all channels of type {kind} are flat: leave them out by picks")
    return scales


_ROW = either("a number or a list of numbers", number(), list_of(number()))
_SCHEMA = record(
    {
        "names": list_of(text),
        "types": list_of(text),
        "sfreq": number(0),
        "facts": list_of(list_of(whole(-(2**31)))),
        "positions": list_of(list_of(number())),
        "whitener": list_of(
            lambda value, name: (list_of(number()) if isinstance(value, list) else number())(value, name)
        ),
        "colorer": list_of(
            lambda value, name: (list_of(number()) if isinstance(value, list) else number())(value, name)
        ),
    }
)


def pack_sensors(sensors: Sensors) -> dict[str, Any]:
    """Sensors as JSON values."""
    return {
        "names": sensors.names,
        "types": sensors.types,
        "sfreq": sensors.sfreq,
        "facts": sensors.facts,
        "positions": sensors.positions,
        "whitener": sensors.whitener,
        "colorer": sensors.colorer,
    }


def unpack_sensors(packed: Mapping[str, Any], channels: int) -> Sensors:
    """Sensors from what `pack_sensors` gave, or a ValueError that names the entry which is wrong."""
    _SCHEMA(packed, "sensors")
    arrays = {name: _numbers(packed[name], name) for name in ("facts", "positions", "whitener", "colorer")}
    square: list[tuple[int, ...]] = [(channels,), (channels, channels)]
    shapes: dict[str, list[tuple[int, ...]]] = {
        "facts": [(channels, len(_FACTS))],
        "positions": [(channels, _LOC)],
        "whitener": square,
        "colorer": square,
    }
    for name, array in arrays.items():
        if array.shape not in shapes[name]:
            raise ValueError(f"sensors.{name} has shape {array.shape}, for {channels} channels")
    if not len(packed["names"]) == len(packed["types"]) == channels or len(set(packed["names"])) != channels:
        raise ValueError(f"sensors must have a name and a type for each of the {channels} channels")
    facts = arrays.pop("facts").astype(np.int64)
    return Sensors(packed["names"], packed["types"], packed["sfreq"], facts, **arrays)


def _numbers(value: list[Any], name: str) -> NDArray:
    lengths = {len(row) if isinstance(row, list) else -1 for row in value}
    if len(lengths) > 1:
        raise ValueError(f"sensors.{name} has rows of different lengths")
    return np.array(value, np.float64)
