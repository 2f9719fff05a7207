"""Answers as objects of MNE: Raw and Epochs of activations, events, annotations, and data written back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.mne.activations import Activations
from pointillist.mne.recordings import Instance, Windows, is_raw, mne_package
from pointillist.mne.waveforms import Waveforms


def filter_names(n_filters: int) -> list[str]:
    """What the filters are called as channels, events and annotations."""
    return [f"CSC{k:03d}" for k in range(n_filters)]


def as_sources(inst: Instance, found: Sequence[Activations], names: list[str], first: int) -> Instance:
    """Time series of activations, as a Raw or an Epochs like `inst`; `first` is the sample of a Raw that they begin with."""
    mne = mne_package()
    info = mne.create_info(names, inst.info["sfreq"], "misc")
    dense = np.stack([one.dense(len(names)) for one in found])
    if is_raw(inst):
        made = mne.io.RawArray(dense[0], info, first_samp=inst.first_samp + first, verbose="error")
        made.set_meas_date(inst.info["meas_date"])
        return made.set_annotations(_annotations_for(made, inst.annotations), verbose="error")
    made = mne.EpochsArray(
        dense,
        info,
        events=inst.events,
        tmin=inst.tmin,
        event_id=inst.event_id,
        metadata=inst.metadata,
        selection=inst.selection,
        drop_log=inst.drop_log,
        verbose="error",
    )
    return made


def _annotations_for(made: Instance, annotations: Any) -> Any:
    """Annotations of a Raw as ``made.set_annotations`` takes them: without a date it counts from its own first sample."""
    moved = annotations.copy()
    if moved.orig_time is None:
        moved.onset = moved.onset - made.first_time
    return moved


def as_events(inst: Instance, found: Sequence[Activations]) -> NDArray:
    """Activations as MNE's events (n_events, 3), ordered by sample."""
    rows = []
    for i, one in enumerate(found):
        first = inst.first_samp if is_raw(inst) else inst.events[i, 0] + round(inst.tmin * inst.info["sfreq"])
        rows.append(np.column_stack([one.samples + first, np.zeros_like(one.samples), one.filters + 1]))
    events = np.concatenate(rows).astype(int)
    return events[np.lexsort((events[:, 2], events[:, 0]))]


def as_annotations(raw: Instance, found: Activations, waveforms: Waveforms, names: list[str]) -> Any:
    """Activations of a Raw as annotations that last as long as the filters."""
    rate = raw.info["sfreq"]
    date = raw.info["meas_date"]
    onsets = (found.samples - waveforms.peaks[found.filters]) / rate
    # With a date MNE counts from that date, without one from the first sample.
    onsets = onsets + (raw.first_time if date is not None else 0)
    lasting = np.full(len(onsets), waveforms.shapes.shape[1] / rate)
    return mne_package().Annotations(onsets, lasting, [names[k] for k in found.filters], orig_time=date)


def write_data(windows: Windows, data: Sequence[NDArray]) -> None:
    """Put data (channels, samples) of each window in the place of what an object of MNE holds there."""
    inst = windows.inst
    rows = [inst.ch_names.index(name) for name in windows.names]
    if is_raw(inst):
        for (first, last), one in zip(windows.places, data, strict=True):
            inst[rows, first:last] = one
    else:
        inst.apply_function(lambda old: np.stack(data), picks=rows, channel_wise=False, verbose="error")
