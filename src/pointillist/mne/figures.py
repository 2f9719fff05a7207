"""Figures of a fitted `CSC`. They are returned, and shown where matplotlib can show something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.mne.activations import Activations
from pointillist.mne.fitted import Fitted
from pointillist.mne.objects import filter_names
from pointillist.mne.recordings import Instance, is_raw, mne_package, picked_names, sample_range
from pointillist.mne.settings import check_flags, chosen_filters

_COLUMNS = 5
_SHOWN = 10.0
"""Seconds of a Raw that are drawn where nothing else was asked for."""
_UNITS = {"eeg": "V", "mag": "T", "grad": "T/m", "seeg": "V", "ecog": "V", "dbs": "V"}
_INK, _RED = "#2b2b2b", "#c8402f"


class Figures(Fitted):
    """A fitted model that can be drawn."""

    def plot_components(
        self,
        picks: Sequence[int] | int | None = None,
        ch_type: str | None = None,
        *,
        info: Any = None,
        show: bool = True,
    ) -> Any:
        """Draw the patterns as topographies.

        Parameters
        ----------
        picks : int, sequence of int or None
            Filters; None is all of them.
        ch_type : str or None
            Channels to draw, such as "mag", "grad" or "eeg"; None is the first of these that was fitted.
        info : mne.Info or None
            Where the channels lie; None is where they lay in the fit.
        show : bool
            Whether to open a window where there is a screen.

        Returns
        -------
        matplotlib.figure.Figure
        """
        self.check_fitted()
        mne, plt = mne_package(), _pyplot()
        chosen = chosen_filters(picks, len(self.event_id_), "picks")
        kind = _drawn_type(self.sensors_.types, ch_type)
        rows = [i for i, one in enumerate(self.sensors_.types) if one == kind]
        place = _placed(self.sensors_.info() if info is None else info, [self.sensors_.names[i] for i in rows])
        columns = min(len(chosen), _COLUMNS) or 1
        lines = -(-len(chosen) // columns) or 1
        figure, axes = plt.subplots(
            lines, columns, figsize=(2 * columns, 2.2 * lines), squeeze=False, layout="constrained"
        )
        names = filter_names(len(self.event_id_))
        for ax in axes.flat[len(chosen) :]:
            ax.set_axis_off()
        for ax, k in zip(axes.flat, chosen, strict=False):
            values = self.waveforms_.patterns[k, rows]
            limit = float(np.abs(values).max()) or 1.0
            # Pairs of gradiometers are drawn by their norms, which have no sign.
            look = {"cmap": "Reds"} if kind == "grad" else {"cmap": "RdBu_r", "vlim": (-limit, limit)}
            mne.viz.plot_topomap(values, place, ch_type=kind, axes=ax, show=False, **look)
            ax.set_title(names[k], color=_RED if k in self.exclude else _INK, fontsize="medium")
        return _shown(plt, figure, show)

    def plot_shapes(self, picks: Sequence[int] | int | None = None, *, show: bool = True) -> Any:
        """Draw the courses in time, in seconds from their peaks.

        Parameters
        ----------
        picks : int, sequence of int or None
            Filters; None is all of them.
        show : bool
            Whether to open a window where there is a screen.

        Returns
        -------
        matplotlib.figure.Figure
        """
        self.check_fitted()
        plt = _pyplot()
        chosen = chosen_filters(picks, len(self.event_id_), "picks")
        columns = min(len(chosen), _COLUMNS) or 1
        lines = -(-len(chosen) // columns) or 1
        figure, axes = plt.subplots(
            lines, columns, figsize=(2.4 * columns, 1.7 * lines), squeeze=False, sharey=True, layout="constrained"
        )
        names, shapes = filter_names(len(self.event_id_)), self.waveforms_.shapes
        for ax in axes.flat[len(chosen) :]:
            ax.set_axis_off()
        for ax, k in zip(axes.flat, chosen, strict=False):
            times = (np.arange(shapes.shape[1]) - self.waveforms_.peaks[k]) / self.sensors_.sfreq
            ax.axhline(0, color="0.8", linewidth=0.8)
            ax.axvline(0, color="0.8", linewidth=0.8)
            ax.plot(times, shapes[k], color=_INK, linewidth=1.2)
            ax.set_title(names[k], color=_RED if k in self.exclude else _INK, fontsize="medium")
        figure.supxlabel("seconds", fontsize="medium")
        return _shown(plt, figure, show)

    def plot_sources(
        self,
        inst: Instance,
        picks: Sequence[int] | int | None = None,
        start: float | None = None,
        stop: float | None = None,
        *,
        show: bool = True,
    ) -> Any:
        """Draw when filters are active, and how strongly: one row for each. ``get_sources(inst).plot()`` is to browse in.

        Parameters
        ----------
        inst : Raw or Epochs
            Activations of all epochs are drawn into one figure, strong ones darker.
        picks : int, sequence of int or None
            Filters; None is all of them.
        start, stop : int, float or None
            For Raw: first sample and the one after the last. A float counts seconds. The first ten seconds by default.
        show : bool
            Whether to open a window where there is a screen.

        Returns
        -------
        matplotlib.figure.Figure
        """
        self.check_fitted()
        plt = _pyplot()
        chosen = chosen_filters(picks, len(self.event_id_), "picks")
        start, stop = _first_seconds(inst, start, stop)
        found = self.activations(inst, start, stop)
        begin = sample_range(inst, start, stop)[0] / self.sensors_.sfreq if is_raw(inst) else float(inst.times[0])
        figure, ax = plt.subplots(figsize=(9, 1 + 0.35 * max(len(chosen), 1)), layout="constrained")
        _draw_rows(ax, found, chosen, begin, self.sensors_.sfreq)
        names = filter_names(len(self.event_id_))
        ax.set_yticks(-np.arange(len(chosen)) + 0.0, [names[k] for k in chosen])
        for label, k in zip(ax.get_yticklabels(), chosen, strict=True):
            label.set_color(_RED if k in self.exclude else _INK)
        ax.set_xlim(begin, begin + found[0].n_times / self.sensors_.sfreq)
        ax.set_ylim(-max(len(chosen), 1) + 0.9, 1.05)
        ax.set_xlabel("seconds")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return _shown(plt, figure, show)

    def plot_overlay(
        self,
        inst: Instance,
        exclude: Sequence[int] | int | None = None,
        picks: Any = None,
        start: float | None = None,
        stop: float | None = None,
        *,
        show: bool = True,
    ) -> Any:
        """Draw channels before (red) and after (black) filters are removed; epochs are averaged.

        Parameters
        ----------
        inst : Raw or Epochs
            It is not changed.
        exclude : int, sequence of int or None
            Filters that go, together with those in ``csc.exclude``.
        picks : str, array-like, slice or None
            Channels to draw; None is those of the fit. Each type has an axis of its own.
        start, stop : int, float or None
            For Raw: first sample and the one after the last. A float counts seconds. The first ten seconds by default.
        show : bool
            Whether to open a window where there is a screen.

        Returns
        -------
        matplotlib.figure.Figure
        """
        self.check_fitted()
        plt = _pyplot()
        start, stop = _first_seconds(inst, start, stop)
        names = self.sensors_.names if picks is None else picked_names(inst, picks)
        before = _part(inst, start, stop)
        after = self.apply(before.copy(), exclude=exclude)
        kinds = dict.fromkeys(before.get_channel_types(picks=names))
        figure, axes = plt.subplots(
            len(kinds), 1, figsize=(9, 2.6 * len(kinds)), squeeze=False, sharex=True, layout="constrained"
        )
        begin = 0.0 if not is_raw(inst) else sample_range(inst, start, stop)[0] / inst.info["sfreq"]
        for ax, kind in zip(axes[:, 0], kinds, strict=True):
            members = [name for name in names if before.get_channel_types(picks=[name]) == [kind]]
            for data, colour in ((_averaged(before, members), _RED), (_averaged(after, members), _INK)):
                ax.plot(before.times + begin, data.T, color=colour, linewidth=0.6, alpha=0.7)
            ax.set_ylabel(f"{kind} ({_UNITS[kind]})" if kind in _UNITS else kind)
            ax.margins(x=0)
        axes[0, 0].set_title("before (red) and after (black)", fontsize="medium")
        axes[-1, 0].set_xlabel("seconds")
        return _shown(plt, figure, show)


def _pyplot() -> Any:
    from matplotlib import pyplot

    return pyplot


def _shown(plt: Any, figure: Any, show: bool) -> Any:
    check_flags(show=show)
    if show and plt.get_backend().lower() != "agg":
        plt.show()
    return figure


def _drawn_type(types: Sequence[str], asked: str | None) -> str:
    if asked is not None and (not isinstance(asked, str) or asked not in types):
        raise ValueError(f"ch_type must be one of the fitted types, {', '.join(sorted(set(types)))}, got {asked!r}")
    found = [kind for kind in ("mag", "grad", "eeg", *types) if kind in types]
    return found[0] if asked is None else asked


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


def _first_seconds(inst: Instance, start: float | None, stop: float | None) -> tuple[float | None, float | None]:
    """The range of a Raw that is drawn, ten seconds where its end is open; as given for epochs."""
    if not is_raw(inst) or stop is not None:
        return start, stop
    first = sample_range(inst, start, None)[0]
    return first, min(first + round(_SHOWN * inst.info["sfreq"]), inst.n_times)


def _part(inst: Instance, start: float | None, stop: float | None) -> Instance:
    """A loaded copy of what is drawn."""
    if not is_raw(inst):
        return inst.copy().load_data()
    first, last = sample_range(inst, start, stop)
    rate = inst.info["sfreq"]
    return inst.copy().crop(first / rate, (last - 1) / rate, verbose="error").load_data(verbose="error")


def _averaged(inst: Instance, names: list[str]) -> NDArray:
    """Data (channels, samples) of a Raw, or the mean over epochs."""
    data = inst.get_data(picks=names, verbose="error")
    return data if is_raw(inst) else data.mean(axis=0)


def _draw_rows(ax: Any, found: Sequence[Activations], chosen: list[int], begin: float, rate: float) -> None:
    """A row of vertical lines for each filter, whose heights are amplitudes in units of the filter's largest."""
    for row, k in enumerate(chosen):
        own = [(one.samples[one.filters == k], one.amplitudes[one.filters == k]) for one in found]
        samples, heights = (np.concatenate(parts) for parts in zip(*own, strict=True))
        ax.axhline(-row, color="0.85", linewidth=0.8, zorder=0)
        if len(samples):
            tops = -row + 0.85 * heights / np.abs(heights).max()
            alpha = 1.0 if len(found) == 1 else max(0.15, 1 / np.sqrt(len(found)))
            ax.vlines(begin + samples / rate, -row, tops, color=_INK, linewidth=1, alpha=alpha)
