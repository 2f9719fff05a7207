"""Figures of a fitted `CSC`: they are returned, and shown where matplotlib can show something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.mne.recordings import Instance, is_raw, mne_package, picked_names, sample_range

_SHOWN = 10.0
"""Seconds of a Raw that are drawn where nothing else was asked for."""
_UNITS = {"eeg": "V", "mag": "T", "grad": "T/m", "seeg": "V", "ecog": "V", "dbs": "V"}
_INK, _RED = "#2b2b2b", "#c8402f"


def show_figure(figure: Any, show: bool) -> Any:
    """The figure, after opening a window with it if asked to and if there is a screen."""
    from matplotlib import pyplot

    if show and pyplot.get_backend().lower() != "agg":
        pyplot.show()
    return figure


def _grid(csc: Any, chosen: list[int], width: float, height: float, **how: Any) -> tuple[Any, Any]:
    """A figure with an axis for each filter, which bears its name, red where it is excluded; and the axes."""
    from matplotlib import pyplot

    columns = min(len(chosen), 5) or 1
    lines = -(-len(chosen) // columns) or 1
    figure, axes = pyplot.subplots(
        lines, columns, figsize=(width * columns, height * lines), squeeze=False, layout="constrained", **how
    )
    for ax in axes.flat[len(chosen) :]:
        ax.set_axis_off()
    for ax, k in zip(axes.flat, chosen, strict=False):
        ax.set_title(csc.names[k], color=_RED if k in csc.exclude else _INK, fontsize="medium")
    return figure, axes.flat


def topographies(csc: Any, chosen: list[int], ch_type: str | None, info: Any) -> Any:
    """Patterns of filters on the head; see `CSC.plot_components`."""
    types = csc.sensors_.types
    if ch_type is not None and (not isinstance(ch_type, str) or ch_type not in types):
        raise ValueError(f"ch_type must be one of the fitted types, {', '.join(sorted(set(types)))}, got {ch_type!r}")
    kind = ch_type or next(one for one in ("mag", "grad", "eeg", *types) if one in types)
    rows = [i for i, one in enumerate(types) if one == kind]
    place = _placed(csc.sensors_.info() if info is None else info, [csc.sensors_.names[i] for i in rows])
    figure, axes = _grid(csc, chosen, 2, 2.2)
    for ax, k in zip(axes, chosen, strict=False):
        values = csc.waveforms_.patterns[k, rows]
        limit = float(np.abs(values).max()) or 1.0
        # Pairs of gradiometers are drawn by their norms, which have no sign.
        look = {"cmap": "Reds"} if kind == "grad" else {"cmap": "RdBu_r", "vlim": (-limit, limit)}
        mne_package().viz.plot_topomap(values, place, ch_type=kind, axes=ax, show=False, **look)
    return figure


def _placed(info: Any, names: list[str]) -> Any:
    """An Info with these channels only, all of which have a position."""
    if not isinstance(info, mne_package().Info):
        raise TypeError(f"info must be None or an Info of MNE, got {type(info).__name__}")
    missing = [name for name in names if name not in info["ch_names"]]
    if missing:
        raise ValueError(f"info lacks {len(missing)} channels of the fit, among them {missing[0]}")
    place = mne_package().pick_info(info, [info["ch_names"].index(name) for name in names])
    located = [np.isfinite(one["loc"][:3]).all() and np.any(one["loc"][:3]) for one in place["chs"]]
    if not all(located):
        raise ValueError(
            f"channel {names[located.index(False)]} has no position: give info=, or set a montage before the fit, "
            'raw.set_montage("biosemi64")'
        )
    return place


def courses(csc: Any, chosen: list[int]) -> Any:
    """Courses of filters in time; see `CSC.plot_shapes`."""
    figure, axes = _grid(csc, chosen, 2.4, 1.7, sharey=True)
    shapes = csc.waveforms_.shapes
    for ax, k in zip(axes, chosen, strict=False):
        times = (np.arange(shapes.shape[1]) - csc.waveforms_.peaks[k]) / csc.sensors_.sfreq
        ax.axhline(0, color="0.8", linewidth=0.8)
        ax.axvline(0, color="0.8", linewidth=0.8)
        ax.plot(times, shapes[k], color=_INK, linewidth=1.2)
    figure.supxlabel("seconds", fontsize="medium")
    return figure


def raster(csc: Any, inst: Instance, chosen: list[int], start: float | None, stop: float | None) -> Any:
    """Activations of filters in rows, by amplitude in units of the filter's largest; see `CSC.plot_sources`."""
    from matplotlib import pyplot

    start, stop = _first_seconds(inst, start, stop)
    found, rate = csc.activations(inst, start, stop), csc.sensors_.sfreq
    begin = sample_range(inst, start, stop)[0] / rate if is_raw(inst) else float(inst.times[0])
    figure, ax = pyplot.subplots(figsize=(9, 1 + 0.35 * max(len(chosen), 1)), layout="constrained")
    alpha = 1.0 if len(found) == 1 else max(0.15, 1 / np.sqrt(len(found)))
    for row, k in enumerate(chosen):
        samples = np.concatenate([one.samples[one.filters == k] for one in found])
        heights = np.concatenate([one.amplitudes[one.filters == k] for one in found])
        ax.axhline(-row, color="0.85", linewidth=0.8, zorder=0)
        if len(samples):
            tops = -row + 0.85 * heights / np.abs(heights).max()
            ax.vlines(begin + samples / rate, -row, tops, color=_INK, linewidth=1, alpha=alpha)
    ax.set_yticks(-np.arange(len(chosen)) + 0.0, [csc.names[k] for k in chosen])
    for label, k in zip(ax.get_yticklabels(), chosen, strict=True):
        label.set_color(_RED if k in csc.exclude else _INK)
    ax.set_xlim(begin, begin + found[0].n_times / rate)
    ax.set_ylim(-max(len(chosen), 1) + 0.9, 1.05)
    ax.set_xlabel("seconds")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return figure


def overlay(csc: Any, inst: Instance, exclude: Any, picks: Any, start: float | None, stop: float | None) -> Any:
    """Channels before and after filters are removed; see `CSC.plot_overlay`."""
    from matplotlib import pyplot

    start, stop = _first_seconds(inst, start, stop)
    names: Sequence[str] = csc.sensors_.names if picks is None else picked_names(inst, picks)
    begin = 0.0
    if is_raw(inst):
        rate = inst.info["sfreq"]
        first, last = sample_range(inst, start, stop)
        begin = first / rate
        before = inst.copy().crop(begin, (last - 1) / rate, verbose="error").load_data(verbose="error")
    else:
        before = inst.copy().load_data()
    after = csc.apply(before.copy(), exclude=exclude)
    kinds = dict.fromkeys(before.get_channel_types(picks=names))
    figure, axes = pyplot.subplots(
        len(kinds), 1, figsize=(9, 2.6 * len(kinds)), squeeze=False, sharex=True, layout="constrained"
    )
    for ax, kind in zip(axes[:, 0], kinds, strict=True):
        members = [name for name in names if before.get_channel_types(picks=[name]) == [kind]]
        for one, colour in ((before, _RED), (after, _INK)):
            data: NDArray = one.get_data(picks=members, verbose="error")
            course = data if is_raw(one) else data.mean(axis=0)
            ax.plot(before.times + begin, course.T, color=colour, linewidth=0.6, alpha=0.7)
        ax.set_ylabel(f"{kind} ({_UNITS[kind]})" if kind in _UNITS else kind)
        ax.margins(x=0)
    axes[0, 0].set_title("before (red) and after (black)", fontsize="medium")
    axes[-1, 0].set_xlabel("seconds")
    return figure


def _first_seconds(inst: Instance, start: float | None, stop: float | None) -> tuple[float | None, float | None]:
    """The range of a Raw that is drawn, ten seconds where its end is open; as given for epochs."""
    if not is_raw(inst) or stop is not None:
        return start, stop
    first = sample_range(inst, start, None)[0]
    return first, min(first + round(_SHOWN * inst.info["sfreq"]), inst.n_times)
