"""`CSC`: convolutional sparse coding of MNE's Raw and Epochs, with the habits of ``mne.preprocessing.ICA``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.robust import Robust
from pointillist.errors import ModelFileError
from pointillist.learners import OnlineCSC
from pointillist.learners.estimators import load, save
from pointillist.mne.learning import (
    BOUNDARY,
    Activations,
    activations,
    certify,
    learn,
    waveforms_of,
)
from pointillist.mne.recordings import (
    FORM,
    Instance,
    Sensors,
    check_recording,
    cut,
    is_raw,
    mne_package,
    picked_names,
    sample_range,
    sensors_of,
    survey,
)
from pointillist.plot.figures import FILE_COLOURS, INK, draw_events
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.reprs import shown
from pointillist.solvers.base import Result
from pointillist.solvers.encoding import decode
from pointillist.storage.schema import check_form, number, whole
from pointillist.validation import as_numbers, as_path, check_arguments, is_integer, is_number

Picks = Sequence[int] | int | None
"""Numbers of filters."""
Time = float | None
"""A sample, if it is an integer, or seconds."""
_HIGHPASS = 0.5
"""Hertz. Drifts below are as long as a filter or longer, and often larger than what is looked for."""
_REFIT_STEPS = 10
"""Steps of least squares of the amplitudes that `CSC.apply` removes."""
_SHOWN = 10.0
"""Seconds of a Raw that are drawn where nothing else was asked for."""
_UNITS = {"eeg": "V", "mag": "T", "grad": "T/m", "seeg": "V", "ecog": "V", "dbs": "V"}
_RED = "#c8402f"
_FORM = {
    "settings": {"duration": number(0), "penalty": number(0), "n_passes": whole(1)},
    "sensors": FORM,
    "exclude": [whole(0)],
    "dropped": {...: whole(0)},
    "objective": number(),
    "gap": number(),
}


@dataclass(eq=False, repr=False)
class CSC:
    """Recurring waveforms of a recording: what they look like on the head and in time, and when they occur.

    The recording is written as a sum of few shifted copies of few filters. A filter of rank one is a pattern over the
    channels times a shape in time. Channels are scaled to comparable units first, each type by its standard deviation.

    Parameters
    ----------
    n_filters : int
        How many waveforms to look for.
    duration : float
        Length of a filter in seconds.
    penalty : float in (0, 1)
        Price of an activation as a share of λ_max, the price with which the first filters explain nothing at all. More
        leaves fewer activations. What that was in absolute terms stands in ``penalty_``.
    noise_cov : mne.Covariance or None
        Whitens the channels, instead of the division by the standard deviation of each channel type.
    rank : int or None
        1 for one pattern and one shape for each filter; more for sums of so many of them; None for a free course in time in
        every channel.
    nonnegative : bool
        Whether activations must be ≥ 0, so that a waveform and its mirror image are two filters.
    robust : Robust or None
        How windows that no filter explains are kept out of the learning; None for not at all.
    n_passes : int
        Passes over the recording.
    tol : float or None
        Relative duality gap of the codes; None is 1e-3.
    n_jobs : int or None
        Threads: -1 is all cores, None what the surrounding joblib context says. The filters do not depend on it.
    device : str
        "cpu", or "cuda" or "cuda:N" for a GPU.
    random_state : int, numpy Generator or None
        Seed of the first filters and of the order of the windows.

    Attributes
    ----------
    exclude : list of int
        Filters that `apply` removes, yours to fill.
    model_ : OnlineCSC
        The learner, for whitened data; ``model_.filters_`` is (n_filters, channels, n_times).
    sensors_ : Sensors
        Names, types and positions of the channels, and how they are scaled.
    waveforms_ : Waveforms
        ``patterns`` (n_filters, n_channels) in physical units, ``shapes`` (n_filters, n_times) with a peak of 1, ``peaks``.
    penalty_ : float
        λ of the whitened data.
    objective_, gap_ : float
        The objective of all windows together, and the largest relative duality gap of one: the certificate.
    dropped_ : dict from str to int
        How many windows were left out because of annotations ("bad"), "reject" and "flat".
    event_id_ : dict from str to int
        Numbers of the filters' events, by the names of the filters.

    Examples
    --------
    >>> import mne, numpy as np
    >>> from pointillist.mne import CSC
    >>> rng = np.random.default_rng(0)
    >>> info = mne.create_info(["Fz", "Cz", "Pz"], 100.0, "eeg")
    >>> info.set_montage("biosemi64")  # doctest: +ELLIPSIS
    <Info ...
    >>> noise = mne.io.RawArray(1e-6 * rng.standard_normal((3, 3000)), info, verbose="error")
    >>> csc = CSC(n_filters=2, duration=0.2, n_passes=2, random_state=0).fit(noise.filter(1, None, verbose="error"))
    >>> csc.get_components().shape, csc.get_sources(noise).get_data().shape
    ((3, 2), (2, 3000))
    """

    n_filters: int = 20
    duration: float = 0.5
    penalty: float = 0.1
    _: KW_ONLY
    noise_cov: Any = None
    rank: int | None = 1
    nonnegative: bool = True
    robust: Any = None
    n_passes: int = 10
    tol: float | None = None
    n_jobs: int | None = -1
    device: str = "cpu"
    random_state: int | np.random.Generator | None = None
    exclude: list[int] = field(default_factory=list, init=False)

    def fit(
        self,
        inst: Instance,
        picks: Any = None,
        start: Time = None,
        stop: Time = None,
        reject: Mapping[str, float] | None = None,
        flat: Mapping[str, float] | None = None,
        tstep: float | None = None,
        reject_by_annotation: bool = True,
    ) -> Self:
        """Learn filters from a recording, which should be high-pass filtered.

        Parameters
        ----------
        inst : Raw or Epochs
            A Raw need not be loaded: it is read window by window.
        picks : str, array-like, slice or None
            Channels, as everywhere in MNE; None is all data channels that are not bad.
        start, stop : int, float or None
            For Raw: first sample and the one after the last. A float counts seconds.
        reject, flat : dict from str to float, optional
            Windows or epochs in which a channel's largest and smallest sample differ by more, or by less, are left out:
            ``reject={"eeg": 200e-6}``.
        tstep : float or None
            For Raw: length in seconds of the windows that the recording is cut into. None is four times `duration`, at
            least 2.
        reject_by_annotation : bool
            Whether samples with an annotation that begins with "bad" are not looked at: their weight is zero.
        """
        self.__post_init__()
        check_arguments(reject_by_annotation=reject_by_annotation)
        raw, rate = is_raw(inst), inst.info["sfreq"]
        if tstep is not None and not raw:
            raise ValueError("tstep is for Raw: epochs are learned from as they are, leave it out")
        if tstep is not None and (not is_number(tstep) or tstep < self.duration):
            raise ValueError(
                f"tstep must be None or seconds, at least the duration of a filter, {self.duration:g}, got {shown(tstep)}"
            )
        if inst.info["highpass"] < _HIGHPASS:
            warnings.warn(
                f"inst is high-pass filtered at {inst.info['highpass']:g} Hz only: drifts would be learned, not waveforms; "
                "inst.filter(1.0, None) first",
                RuntimeWarning,
                stacklevel=2,
            )
        length = round((max(4 * self.duration, 2.0) if tstep is None else float(tstep)) * rate)
        names = picked_names(inst, picks)
        windows = cut(inst, names, length, start=start, stop=stop, by_annotation=reject_by_annotation)
        n_times = round(self.duration * rate)
        if not 2 <= n_times <= windows.shortest:
            raise ValueError(
                f"duration={self.duration:g} is {n_times} samples at {rate:g} Hz: it must be 2 at least, and at most the "
                f"{windows.shortest} of a window or an epoch, which start, stop and tstep cut"
            )
        known = survey(windows, inst.get_channel_types(picks=names), n_times, reject=reject, flat=flat)
        sensors = sensors_of(inst.info, names, known.deviation, self.noise_cov)
        kept = tuple(windows.places[i] for i in known.kept)
        source = replace(windows, places=kept, sensors=sensors, mean=known.mean)
        self._settle(learn(self, source, n_times), sensors)
        self.dropped_ = known.dropped
        self.objective_, self.gap_ = certify(self.model_, source)
        return self

    def __post_init__(self) -> None:
        """Check the parameters; errors name the argument and say what it should be."""
        checked = ("n_filters", "duration", "rank", "nonnegative", "n_passes", "tol")
        check_arguments(**{name: getattr(self, name) for name in checked})
        if self.n_filters == 0:
            raise ValueError("n_filters must be at least 1, got 0")
        if self.robust is not None and not isinstance(self.robust, Robust):
            raise ValueError(f"robust must be None or a pointillist.Robust, got {shown(self.robust)}")
        if not is_number(self.penalty) or not 0 < self.penalty < 1:
            raise ValueError(f"penalty must be a share of λ_max in (0, 1), got {shown(self.penalty)}")

    def _settle(self, model: OnlineCSC, sensors: Sensors) -> None:
        """Take over a learned `model` and the `sensors` it is for, and set what follows from them."""
        self.model_, self.sensors_ = model, sensors
        self.waveforms_ = waveforms_of(model.filters_, sensors)
        self.penalty_ = float(np.asarray(model.penalty_))
        self.event_id_ = {f"CSC{k:03d}": k + 1 for k in range(len(model.filters_))}

    @property
    def names(self) -> list[str]:
        """Names of the filters: as channels, events and annotations."""
        return list(self.event_id_)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise RuntimeError("nothing has been learned yet: call fit first")

    def _chosen(self, given: Picks, name: str = "picks") -> list[int]:
        """Numbers of filters that were asked for, ascending; None is all of them. Errors call the argument by `name`."""
        self._check_fitted()
        count = len(self.model_.filters_)
        numbers = list(range(count)) if given is None else np.atleast_1d(as_numbers(given, name)).tolist()
        if not all(is_integer(k) and 0 <= k < count for k in numbers):
            raise ValueError(
                f"{name} must be None, a number of a filter or a list of these, from 0 to {count - 1}, got {shown(given)}"
            )
        return sorted(set(numbers))

    def _whitened(self, inst: Instance, start: Time, stop: Time, by_annotation: bool) -> list[NDArray]:
        """Signals as the learner takes them, NaN where nothing is seen."""
        self._check_fitted()
        check_arguments(reject_by_annotation=by_annotation)
        check_recording(inst, self.sensors_.names, self.sensors_.sfreq)
        windows = cut(inst, self.sensors_.names, start=start, stop=stop, by_annotation=by_annotation)
        n_times = self.model_.filters_.shape[2]
        if windows.shortest < n_times:
            raise ValueError(
                f"start and stop, or the epochs of inst, hold {windows.shortest} samples, fewer than a filter: {n_times}"
            )
        data = [windows.read(i) for i in range(len(windows))]
        joined = np.concatenate(data, axis=1)
        if np.isnan(joined).all():
            raise ValueError(
                "annotations call all of inst bad: give reject_by_annotation=False to look at it all the same"
            )
        white = [self.sensors_.whiten(one, np.nanmean(joined, axis=1)) for one in data]
        # An epoch of which nothing is seen has no codes, as silence has none.
        return [np.zeros_like(one) if np.isnan(one).all() else one for one in white]

    def _strongest(self, inst: Instance, picks: Picks, threshold: float, separation: float | None) -> list[Activations]:
        """Activations of at least a share of their filter's largest one, none next to a stronger one."""
        apart = 0.1 * self.duration if separation is None else separation
        if not is_number(threshold) or not 0 <= threshold <= 1:
            raise ValueError(f"threshold must be a share of the largest amplitude, from 0 to 1, got {shown(threshold)}")
        if not is_number(apart) or not 0 <= apart <= 1e9:
            raise ValueError(f"separation must be None or seconds, from 0 to 1e+09, got {shown(separation)}")
        chosen, samples = self._chosen(picks), round(apart * self.sensors_.sfreq)
        return [one.strongest(chosen, threshold, samples) for one in self.activations(inst)]

    def encode(
        self,
        inst: Instance,
        start: Time = None,
        stop: Time = None,
        *,
        reject_by_annotation: bool = True,
    ) -> Result:
        """Solve for the codes of a recording, with objective and duality gap: one signal for a Raw, one for each epoch.

        Parameters
        ----------
        inst : Raw or Epochs
            With the channels and the sampling rate of the fit. Each channel's mean is subtracted.
        start, stop : int, float or None
            For Raw: first sample and the one after the last. A float counts seconds.
        reject_by_annotation : bool
            Whether samples with an annotation that begins with "bad" are not looked at.

        Returns
        -------
        Result
            Of whitened data; ``codes``, ``objective``, ``gap``, ``status``, ``residuals``.
        """
        return self.model_.encode(self._whitened(inst, start, stop, reject_by_annotation))

    def score(self, inst: Instance, start: Time = None, stop: Time = None) -> float:
        """Minus the mean objective per sample of a recording; higher is better, for one penalty.

        `inst`, `start` and `stop` are those of `encode`.
        """
        return self.model_.score(self._whitened(inst, start, stop, True))

    def get_components(self) -> NDArray:
        """Patterns of the filters (n_channels, n_filters), in the channels' units at the peak of an activation of one."""
        self._check_fitted()
        return self.waveforms_.patterns.T.copy()

    def get_shapes(self) -> NDArray:
        """Courses of the filters in time (n_filters, n_times), whose largest absolute sample is 1."""
        self._check_fitted()
        return self.waveforms_.shapes.copy()

    def get_sources(
        self,
        inst: Instance,
        start: Time = None,
        stop: Time = None,
        *,
        reject_by_annotation: bool = True,
    ) -> Instance:
        """Activations as time series, zero nearly everywhere; each stands where its waveform has its peak.

        A Raw gives a RawArray and an Epochs an EpochsArray, with a "misc" channel for each filter, CSC000, CSC001, ….
        `inst`, which is not changed, `start`, `stop` and `reject_by_annotation` are those of `encode`.
        """
        found = self.activations(inst, start, stop, reject_by_annotation=reject_by_annotation)
        mne = mne_package()
        info = mne.create_info(self.names, inst.info["sfreq"], "misc")
        dense = np.zeros((len(found), len(self.names), found[0].n_times))
        for one, row in zip(found, dense, strict=True):
            row[one.filters, one.samples] = one.amplitudes
        if not is_raw(inst):
            kept = {name: getattr(inst, name) for name in ("events", "tmin", "event_id", "metadata", "selection")}
            return mne.EpochsArray(dense, info, **kept, drop_log=inst.drop_log, verbose="error")
        first = inst.first_samp + sample_range(inst, start, stop)[0]
        made = mne.io.RawArray(dense[0], info, first_samp=first, verbose="error")
        made.set_meas_date(inst.info["meas_date"])
        annotations = inst.annotations.copy()
        if annotations.orig_time is None:  # without a date they count from the first sample of their own Raw
            annotations.onset = annotations.onset - made.first_time
        return made.set_annotations(annotations, verbose="error")

    def activations(
        self,
        inst: Instance,
        start: Time = None,
        stop: Time = None,
        *,
        reject_by_annotation: bool = True,
    ) -> list[Activations]:
        """Activations as lists of samples, filters and amplitudes: one for a Raw, one for each epoch.

        Samples are counted from `start`, or from the epoch's first sample. `inst`, `stop` and `reject_by_annotation` are
        those of `encode`.
        """
        codes = self.encode(inst, start, stop, reject_by_annotation=reject_by_annotation).codes
        return activations(codes, self.model_.filters_.shape[2], self.waveforms_.peaks)

    def get_events(
        self,
        inst: Instance,
        picks: Picks = None,
        *,
        threshold: float = 0.1,
        separation: float | None = None,
    ) -> NDArray:
        """Activations as events, for ``mne.Epochs(raw, events, csc.event_id_)``.

        Parameters
        ----------
        inst : Raw or Epochs
        picks : int, sequence of int or None
            Filters; None is all of them.
        threshold : float in [0, 1]
            Smallest amplitude of an event, as a share of the filter's largest one in `inst`.
        separation : float or None
            Seconds around an event in which weaker activations of the same filter are none; None is a tenth of `duration`.

        Returns
        -------
        (n_events, 3) int array
            Sample of the peak (for Raw including ``first_samp``), 0, and the filter's number in ``event_id_``, which begins
            with 1.
        """
        rows = []
        for i, one in enumerate(self._strongest(inst, picks, threshold, separation)):
            first = inst.first_samp if is_raw(inst) else inst.events[i, 0] + round(inst.tmin * inst.info["sfreq"])
            rows.append(np.column_stack([one.samples + first, np.zeros_like(one.samples), one.filters + 1]))
        events = np.concatenate(rows).astype(int)
        return events[np.lexsort((events[:, 2], events[:, 0]))]

    def to_annotations(
        self,
        inst: Instance,
        picks: Picks = None,
        *,
        threshold: float = 0.1,
        separation: float | None = None,
    ) -> Any:
        """Activations as annotations from the beginning to the end of each waveform, for a Raw.

        ``raw.set_annotations(raw.annotations + csc.to_annotations(raw))`` adds them to a recording `inst`. They bear the
        names of the filters; `picks`, `threshold` and `separation` are those of `get_events`.
        """
        if not is_raw(inst):
            raise TypeError(
                f"to_annotations needs a Raw, since epochs have no time of their own, got {type(inst).__name__}"
            )
        (found,) = self._strongest(inst, picks, threshold, separation)
        rate, date = inst.info["sfreq"], inst.info["meas_date"]
        # With a date MNE counts from that date, without one from the first sample.
        begin = 0 if date is None else inst.first_time
        onsets = begin + (found.samples - self.waveforms_.peaks[found.filters]) / rate
        lasting = np.full(len(onsets), self.waveforms_.shapes.shape[1] / rate)
        return mne_package().Annotations(onsets, lasting, [self.names[k] for k in found.filters], orig_time=date)

    def apply(
        self,
        inst: Instance,
        include: Picks = None,
        exclude: Picks = None,
        start: Time = None,
        stop: Time = None,
        *,
        keep_residual: bool = True,
        reject_by_annotation: bool = True,
    ) -> Instance:
        """Remove what some filters contribute from a recording, **in place**, as ``ICA.apply`` does.

        The amplitudes of activations are fitted anew without the penalty, which would leave a part of each waveform behind.

        Parameters
        ----------
        inst : Raw or Epochs
            Loaded into memory. It is changed; give ``inst.copy()`` to keep it.
        include : int, sequence of int or None
            Filters that stay, all others go; None is all.
        exclude : int, sequence of int or None
            Filters that go, together with those in ``csc.exclude``.
        start, stop : int, float or None
            For Raw: first sample and the one after the last. A float counts seconds.
        keep_residual : bool
            Whether what no filter explains stays too. False leaves the contributions of the filters that stay, and the
            channels' means.
        reject_by_annotation : bool
            Whether samples with an annotation that begins with "bad" are not looked at, and so mostly left as they are.

        Returns
        -------
        Raw or Epochs
            `inst` itself.
        """
        check_arguments(keep_residual=keep_residual)
        stay = set(self._chosen(include, "include")) - set(self._chosen(list(self.exclude), "csc.exclude"))
        stay -= set() if exclude is None else set(self._chosen(exclude, "exclude"))
        white, filters = self._whitened(inst, start, stop, reject_by_annotation), self.model_.filters_
        if not inst.preload:
            raise RuntimeError("inst is not loaded, but apply changes it in place: inst.load_data() first")
        codes, values = self.model_.encode(white).codes, []
        for signal, index, value in zip(white, codes.indices, codes.values, strict=True):
            geometry, seen = Geometry(signal.shape[1:], filters.shape[2:], len(signal), BOUNDARY), ~np.isnan(signal)
            operator = ConvolutionOperator(filters, geometry)
            values.append(operator.refit(index, value, np.nan_to_num(signal), seen, _REFIT_STEPS))
        windows = cut(inst, self.sensors_.names, start=start, stop=stop, by_annotation=False)
        data = [windows.read(i) for i in range(len(windows))]
        drawn = self.sensors_.physical(filters)
        drawn[[(k in stay) == keep_residual for k in range(len(filters))]] = 0
        parts = decode(codes.replaced(codes.indices, values), drawn, boundary=BOUNDARY, channels=True)
        if keep_residual:
            windows.write([old - part for old, part in zip(data, parts, strict=True)])
        else:
            mean = np.concatenate(data, axis=1).mean(axis=1, keepdims=True)
            windows.write([part + mean for part in parts])
        return inst

    def _grid(self, chosen: list[int], width: float, height: float) -> tuple[Any, Any]:
        """A figure with an axis for each filter, which bears its name, red where it is excluded; and the axes."""
        columns = min(len(chosen), 5) or 1
        figure, axes = _subplots(-(-len(chosen) // columns) or 1, columns, width, height)
        for ax in axes.flat[len(chosen) :]:
            ax.set_axis_off()
        for ax, k in zip(axes.flat, chosen, strict=False):
            ax.set_title(self.names[k], color=_RED if k in self.exclude else INK, fontsize="medium")
        return figure, axes.flat

    def plot_components(
        self,
        picks: Picks = None,
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
        """
        chosen, types = self._chosen(picks), self.sensors_.types
        if ch_type is not None and ch_type not in types:
            words = ", ".join(sorted(set(types)))
            raise ValueError(f"ch_type must be one of the fitted types, {words}, got {shown(ch_type)}")
        kind = ch_type or next(one for one in ("mag", "grad", "eeg", *types) if one in types)
        rows = [i for i, one in enumerate(types) if one == kind]
        place = _placed(self.sensors_.info() if info is None else info, [self.sensors_.names[i] for i in rows])
        figure, axes = self._grid(chosen, 2, 2.2)
        for ax, k in zip(axes, chosen, strict=False):
            values = self.waveforms_.patterns[k, rows]
            limit = float(np.abs(values).max()) or 1.0
            # Pairs of gradiometers are drawn by their norms, which have no sign.
            look = {"cmap": "Reds"} if kind == "grad" else {"cmap": "RdBu_r", "vlim": (-limit, limit)}
            mne_package().viz.plot_topomap(values, place, ch_type=kind, axes=ax, show=False, **look)
        return _opened(figure, show)

    def plot_shapes(self, picks: Picks = None, *, show: bool = True) -> Any:
        """Draw the courses in time, in seconds from their peaks.

        Parameters
        ----------
        picks : int, sequence of int or None
            Filters; None is all of them.
        show : bool
            Whether to open a window where there is a screen.
        """
        chosen, shapes = self._chosen(picks), self.waveforms_.shapes
        figure, axes = self._grid(chosen, 2.4, 1.7)
        for ax, k in zip(axes, chosen, strict=False):
            times = (np.arange(shapes.shape[1]) - self.waveforms_.peaks[k]) / self.sensors_.sfreq
            ax.axhline(0, color="0.8", linewidth=0.8)
            ax.axvline(0, color="0.8", linewidth=0.8)
            ax.plot(times, shapes[k], color=INK, linewidth=1.2)
            ax.set_ylim(-1.1, 1.1)
        figure.supxlabel("seconds", fontsize="medium")
        return _opened(figure, show)

    def plot_sources(
        self,
        inst: Instance,
        picks: Picks = None,
        start: Time = None,
        stop: Time = None,
        *,
        show: bool = True,
    ) -> Any:
        """Draw when filters are active, and how strongly: one row for each. ``get_sources(inst).plot()`` is to browse in.

        Parameters
        ----------
        inst : Raw or Epochs
            Activations of all epochs are drawn into one figure.
        picks : int, sequence of int or None
            Filters; None is all of them.
        start, stop : int, float or None
            For Raw: first sample and the one after the last. A float counts seconds. The first ten seconds by default.
        show : bool
            Whether to open a window where there is a screen.
        """
        chosen = self._chosen(picks)
        start, stop = _first_seconds(inst, start, stop)
        found = self.get_sources(inst, start, stop)
        times = found.times + (sample_range(inst, start, stop)[0] / found.info["sfreq"] if is_raw(inst) else 0)
        data = found.get_data(verbose="error").reshape(-1, len(self.names), len(times))[:, chosen]
        data = data / np.abs(data).max(axis=(0, 2), keepdims=True).clip(1e-300)
        _, rows, samples = np.nonzero(data)
        figure, axes = _subplots(1, 1, 9, 1 + 0.35 * max(len(chosen), 1))
        ax = axes[0, 0]
        draw_events(ax, np.stack([times[samples], rows, data[data != 0]], axis=1), max(len(chosen), 1), FILE_COLOURS)
        ax.set_yticks(range(len(chosen)), [self.names[k] for k in chosen])
        for label, k in zip(ax.get_yticklabels(), chosen, strict=True):
            label.set_color(_RED if k in self.exclude else INK)
        ax.set(xlim=(times[0], times[0] + len(times) / found.info["sfreq"]), xlabel="seconds", ylabel="")
        return _opened(figure, show)

    def plot_overlay(
        self,
        inst: Instance,
        exclude: Picks = None,
        picks: Any = None,
        start: Time = None,
        stop: Time = None,
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
        """
        start, stop = _first_seconds(inst, start, stop)
        names = self.sensors_.names if picks is None else picked_names(inst, picks)
        before = inst.copy()
        if is_raw(inst):
            first, last = (sample / inst.info["sfreq"] for sample in sample_range(inst, start, stop))
            before.crop(first, last, include_tmax=False, verbose="error")
        after = self.apply(before.load_data().copy(), exclude=exclude)
        types = np.array(before.get_channel_types(picks=names))
        kinds = list(dict.fromkeys(types))
        figure, axes = _subplots(len(kinds), 1, 9, 2.6, sharex=True)
        for one, colour in ((before, _RED), (after, INK)):
            data: NDArray = one.get_data(picks=names, verbose="error")
            courses = data if is_raw(one) else data.mean(axis=0)
            times = before.times + (first if is_raw(inst) else 0)
            for ax, kind in zip(axes[:, 0], kinds, strict=True):
                ax.plot(times, courses[types == kind].T, color=colour, linewidth=0.6, alpha=0.7)
                ax.set_ylabel(f"{kind} ({_UNITS[kind]})" if kind in _UNITS else kind)
                ax.margins(x=0)
        axes[0, 0].set_title("before (red) and after (black)", fontsize="medium")
        axes[-1, 0].set_xlabel("seconds")
        return _opened(figure, show)

    def save(self, fname: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a file, which `read_csc` reads, and `pointillist.load` too, as an `OnlineCSC`.

        Parameters
        ----------
        fname : str or path
            ``.safetensors`` by custom.
        overwrite : bool
            Whether to replace a file that exists.
        """
        self._check_fitted()
        check_arguments(overwrite=overwrite)
        if as_path(fname, "fname").exists() and not overwrite:
            raise FileExistsError(f"{fname} exists: give overwrite=True to replace it")
        facts = {
            "settings": {name: getattr(self, name) for name in ("duration", "penalty", "n_passes")},
            "sensors": {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self.sensors_).items()},
            "exclude": [int(k) for k in self.exclude],
            "dropped": self.dropped_,
            "objective": self.objective_,
            "gap": self.gap_,
        }
        save(self.model_, fname, preprocessing={"mne": facts})

    def __repr__(self) -> str:
        asked = f"{self.n_filters} filters of {self.duration:g} s, rank {self.rank}"
        if not hasattr(self, "model_"):
            return f"<CSC | {asked}, no fit yet>"
        counts = {kind: self.sensors_.types.count(kind) for kind in dict.fromkeys(self.sensors_.types)}
        channels = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        return f"<CSC | {asked}, fit on {channels} channels at {self.sensors_.sfreq:g} Hz, gap {self.gap_:.1e}>"


def read_csc(fname: str | os.PathLike[str]) -> CSC:
    """Read a model that `CSC.save` wrote. Nothing in the file is run: it holds arrays and plain values.

    Parameters
    ----------
    fname : str or path

    Returns
    -------
    CSC
        Fitted, on the CPU, with the patterns' positions: `plot_components` works without the recording.

    Raises
    ------
    FileNotFoundError, PermissionError
    ModelFileError
        If the file is not one of a `CSC`.

    Examples
    --------
    >>> import mne, numpy as np
    >>> from pointillist.mne import CSC, read_csc
    >>> data = 1e-6 * np.random.default_rng(0).standard_normal((2, 1000))
    >>> raw = mne.io.RawArray(data, mne.create_info(2, 100.0, "eeg"), verbose="error").filter(1, None, verbose="error")
    >>> CSC(n_filters=2, duration=0.2, n_passes=1, random_state=0).fit(raw).save("csc.safetensors")
    >>> read_csc("csc.safetensors").get_components().shape
    (2, 2)
    """
    model = load(as_path(fname, "fname"))
    facts = getattr(model, "preprocessing_", {}).get("mne")
    if not isinstance(model, OnlineCSC) or facts is None:
        raise ModelFileError(f"{fname} is a model, but not of a CSC: read it by pointillist.load")
    try:
        check_form(facts, _FORM, "mne")
        csc = CSC(
            len(model.filters_),
            **facts["settings"],
            rank=model.rank,
            nonnegative=model.nonnegative,
            robust=model.robust,
            tol=model.tol,
            n_jobs=model.n_jobs,
            random_state=model.seed_,
        )
        csc._settle(model, Sensors.unpacked(facts["sensors"], model.filters_.shape[1]))
        csc.exclude = csc._chosen(facts["exclude"], "exclude")
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"{fname} is a damaged file of a CSC: {error}") from error
    csc.dropped_, csc.objective_, csc.gap_ = facts["dropped"], facts["objective"], facts["gap"]
    return csc


def _subplots(rows: int, columns: int, width: float, height: float, **how: Any) -> tuple[Any, Any]:
    """A figure of pyplot with axes (rows, columns) of that size in inches each."""
    from matplotlib import pyplot

    size = (columns * width, rows * height)
    return pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **how)


def _opened(figure: Any, show: bool) -> Any:
    """The figure, after opening a window with it if asked to and if there is a screen."""
    from matplotlib import pyplot

    check_arguments(show=show)
    if show and pyplot.get_backend().lower() != "agg":
        pyplot.show()
    return figure


def _placed(info: Any, names: list[str]) -> Any:
    """An Info with these channels only, all of which have a position."""
    if not isinstance(info, mne_package().Info):
        raise TypeError(f"info must be None or an Info of MNE, got {type(info).__name__}")
    places = {channel["ch_name"]: channel["loc"][:3] for channel in info["chs"]}
    for name in names:
        if name not in places or not np.isfinite(places[name]).all() or not np.any(places[name]):
            raise ValueError(
                f"channel {name} has no position: give info=, or set a montage before the fit, "
                'raw.set_montage("biosemi64")'
            )
    return mne_package().pick_info(info, [info["ch_names"].index(name) for name in names])


def _first_seconds(inst: Instance, start: Time, stop: Time) -> tuple[float | None, float | None]:
    """The range of a Raw that is drawn, ten seconds where its end is open; as given for epochs."""
    if not is_raw(inst) or stop is not None:
        return start, stop
    first = sample_range(inst, start, None)[0]
    return first, min(first + round(_SHOWN * inst.info["sfreq"]), inst.n_times)
