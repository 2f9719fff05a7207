"""A fitted `CSC` as a file: the model file of its learner, with the channels and settings among the metadata."""

from __future__ import annotations

import os
from typing import Any

from pointillist.errors import ModelFileError
from pointillist.learners import OnlineCSC
from pointillist.learners.persistence import load, save
from pointillist.mne.sensors import Sensors, pack_sensors, unpack_sensors
from pointillist.storage.schema import list_of, mapping, mapping_of, number, record, whole
from pointillist.validation import as_path

_SCHEMA = record(
    {
        "settings": record({"duration": number(0), "penalty": number(0), "n_passes": whole(1)}),
        "sensors": mapping,
        "exclude": list_of(whole(0)),
        "dropped": mapping_of(whole(0)),
        "objective": number(),
        "gap": number(),
    }
)


def save_csc(csc: Any, fname: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Write a fitted `CSC`."""
    if as_path(fname, "fname").exists() and not overwrite:
        raise FileExistsError(f"{fname} exists: give overwrite=True to replace it")
    facts = {
        "settings": {name: getattr(csc, name) for name in ("duration", "penalty", "n_passes")},
        "sensors": pack_sensors(csc.sensors_),
        "exclude": [int(k) for k in csc.exclude],
        "dropped": csc.dropped_,
        "objective": csc.objective_,
        "gap": csc.gap_,
    }
    save(csc.model_, fname, preprocessing={"mne": facts})


def load_parts(fname: str | os.PathLike[str]) -> tuple[OnlineCSC, Sensors, dict[str, Any]]:
    """The learner, the channels and the other facts of a file that `save_csc` wrote."""
    model = load(as_path(fname, "fname"))
    facts = getattr(model, "preprocessing_", {}).get("mne")
    if not isinstance(model, OnlineCSC) or facts is None:
        raise ModelFileError(f"{fname} is a model, but not of a CSC: read it by pointillist.load")
    try:
        _SCHEMA(facts, "mne")
        if not model.channels or model.filters_.ndim != 3:
            raise ValueError(f"filters must be (n_filters, channels, n_times), got {model.filters_.shape}")
        if any(k >= len(model.filters_) for k in facts["exclude"]):
            raise ValueError(f"exclude names a filter that is not among the {len(model.filters_)}")
        sensors = unpack_sensors(facts["sensors"], model.filters_.shape[1])
    except ValueError as error:
        raise ModelFileError(f"{fname} is a damaged file of a CSC: {error}") from error
    return model, sensors, facts
