"""`CSC`: convolutional sparse coding of MNE's Raw and Epochs, with the habits of ``mne.preprocessing.ICA``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lsqr

from pointillist.codes import SparseCodes
from pointillist.dictionary.robust import Robust
from pointillist.errors import ModelFileError
from pointillist.learners import OnlineCSC
from pointillist.learners.persistence import load, save
from pointillist.mne.figures import courses, overlay, raster, show_figure, topographies
from pointillist.mne.learning import (
    BOUNDARY,
    Activations,
    WindowSource,
    activations,
    certify,
    learn,
    only_filters,
    waveforms_of,
)
from pointillist.mne.recordings import (
    Instance,
    Sensors,
    cut,
    is_raw,
    mne_package,
    picked_names,
    sample_range,
    sensors_of,
    survey,
    whole,
)
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.reprs import shown
from pointillist.solvers.base import Result
from pointillist.solvers.encoding import decode
from pointillist.storage.schema import check_form, mapping, number
from pointillist.storage.schema import whole as whole_number
from pointillist.validation import as_numbers, as_path, check_arguments, is_integer, is_number

_LONGEST = 1e9
"""Seconds that events may lie apart."""
_HIGHPASS = 0.5
"""Hertz. Drifts below are as long as a filter or longer, and often larger than what is looked for."""
_REFIT_STEPS = 10
"""Steps of least squares: neighbouring codes of a smooth waveform would run away from each other in many more."""
_FORM = {
    "settings": {"duration": number(0), "penalty": number(0), "n_passes": whole_number(1)},
    "sensors": mapping,
    "exclude": [whole_number(0)],
    "dropped": {...: whole_number(0)},
    "objective": number(),
    "gap": number(),
}


def _check_flags(**given: Any) -> None:
    """Refuse what is neither True nor False."""
    for name, value in given.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {shown(value)}")


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
        start: float | None = None,
        stop: float | None = None,
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
        _check_flags(reject_by_annotation=reject_by_annotation)
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
        source = WindowSource(windows.only(known.kept), sensors, known.mean)
        self._settle(learn(self, source, n_times), sensors)
        self.dropped_ = known.dropped
        self.objective_, self.gap_ = certify(self.model_, source)
        return self

    def __post_init__(self) -> None:
        """Check the parameters; errors name the argument and say what it should be."""
        for name in ("n_filters", "n_passes", *(() if self.rank is None else ("rank",))):
            value = getattr(self, name)
            if not is_integer(value) or not 1 <= value < 2**31:
                raise ValueError(
                    f"{name} must be a positive integer{' or None' * (name == 'rank')}, got {shown(value)}"
                )
        check_arguments(nonnegative=self.nonnegative, tol=self.tol)
        if self.robust is not None and not isinstance(self.robust, Robust):
            raise ValueError(f"robust must be None or a pointillist.Robust, got {shown(self.robust)}")
        if not is_number(self.duration) or self.duration <= 0:
            raise ValueError(f"duration must be a positive number of seconds, got {shown(self.duration)}")
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

    def _chosen(self, given: Sequence[int] | int | None, name: str = "picks") -> list[int]:
        """Numbers of filters that were asked for, ascending; None is all of them. Errors call the argument by `name`."""
        count = len(self.model_.filters_)
        if given is None:
            return list(range(count))
        wrong = ValueError(f"{name} must be None, a number of a filter or a list of these, got {shown(given)}")
        try:
            chosen = np.atleast_1d(as_numbers(given, name))
        except (TypeError, ValueError) as error:
            raise wrong from error
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise wrong
        if chosen.size and (chosen.min() < 0 or chosen.max() >= count):
            raise ValueError(f"{name} must hold numbers of filters from 0 to {count - 1}, got {shown(given)}")
        return sorted({int(k) for k in chosen})

    def _whitened(
        self, inst: Instance, start: float | None, stop: float | None, by_annotation: bool
    ) -> tuple[list[NDArray], list[NDArray] | None]:
        """Signals as the learner takes them, and their weights, None where everything is seen."""
        _check_flags(reject_by_annotation=by_annotation)
        is_raw(inst)
        names, rate = self.sensors_.names, self.sensors_.sfreq
        missing = [name for name in names if name not in inst.ch_names]
        if missing:
            raise ValueError(
                f"inst lacks {len(missing)} channels of the fit, {shown(missing)}: give a recording that has them"
            )
        if not np.isclose(inst.info["sfreq"], rate, rtol=1e-6):
            raise ValueError(
                f"inst is sampled at {inst.info['sfreq']:g} Hz, the fit was at {rate:g} Hz: inst.resample({rate:g}) first"
            )
        windows = whole(inst, names, start=start, stop=stop, by_annotation=by_annotation)
        n_times = self.model_.filters_.shape[2]
        if windows.shortest < n_times:
            raise ValueError(
                f"start and stop, or the epochs of inst, hold {windows.shortest} samples, fewer than a filter: {n_times}"
            )
        data = [windows.read(i) for i in range(len(windows))]
        seen = [~np.isnan(one).any(axis=0) for one in data]
        good = np.concatenate([one[:, own] for one, own in zip(data, seen, strict=True)], axis=1)
        if good.shape[1] == 0:
            raise ValueError(
                "annotations call all of inst bad: give reject_by_annotation=False to look at it all the same"
            )
        white = [self.sensors_.whiten(one, good.mean(axis=1)) for one in data]
        if all(own.all() for own in seen):
            return white, None
        for i, own in enumerate(seen):
            if not own.any():  # an epoch of which nothing is seen has no codes, as silence has none
                white[i], seen[i] = np.zeros_like(white[i]), np.ones_like(own)
        return white, [np.broadcast_to(own.astype(np.float32), one.shape) for one, own in zip(white, seen, strict=True)]

    def _strongest(
        self, inst: Instance, picks: Sequence[int] | int | None, threshold: float, separation: float | None
    ) -> list[Activations]:
        self._check_fitted()
        if not is_number(threshold) or not 0 <= float(threshold) <= 1:
            raise ValueError(f"threshold must be a share of the largest amplitude, from 0 to 1, got {shown(threshold)}")
        if separation is not None and (not is_number(separation) or not 0 <= float(separation) <= _LONGEST):
            raise ValueError(f"separation must be None or seconds, from 0 to {_LONGEST:g}, got {shown(separation)}")
        chosen = self._chosen(picks)
        apart = round((0.1 * self.duration if separation is None else separation) * self.sensors_.sfreq)
        return [one.strongest(chosen, threshold, apart) for one in self.activations(inst)]

    def encode(
        self,
        inst: Instance,
        start: float | None = None,
        stop: float | None = None,
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
        self._check_fitted()
        return self.model_.encode(*self._whitened(inst, start, stop, reject_by_annotation))

    def score(self, inst: Instance, start: float | None = None, stop: float | None = None) -> float:
        """Minus the mean objective per sample of a recording; higher is better, for one penalty.

        `inst`, `start` and `stop` are those of `encode`.
        """
        self._check_fitted()
        signals, weights = self._whitened(inst, start, stop, True)
        return self.model_.score(signals, weights=weights)

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
        start: float | None = None,
        stop: float | None = None,
        *,
        reject_by_annotation: bool = True,
    ) -> Instance:
        """Activations as time series, zero nearly everywhere; each stands where its waveform has its peak.

        A Raw gives a RawArray and an Epochs an EpochsArray, with a "misc" channel for each filter, CSC000, CSC001, ….
        `inst`, which is not changed, `start`, `stop` and `reject_by_annotation` are those of `encode`.
        """
        found = self.activations(inst, start, stop, reject_by_annotation=reject_by_annotation)
        mne, rate = mne_package(), inst.info["sfreq"]
        info, dense = mne.create_info(self.names, rate, "misc"), np.stack([one.dense(len(self.names)) for one in found])
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
        start: float | None = None,
        stop: float | None = None,
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
        picks: Sequence[int] | int | None = None,
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
        picks: Sequence[int] | int | None = None,
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
        onsets = (found.samples - self.waveforms_.peaks[found.filters]) / rate + (
            0 if date is None else inst.first_time
        )
        lasting = np.full(len(onsets), self.waveforms_.shapes.shape[1] / rate)
        return mne_package().Annotations(onsets, lasting, [self.names[k] for k in found.filters], orig_time=date)

    def apply(
        self,
        inst: Instance,
        include: Sequence[int] | int | None = None,
        exclude: Sequence[int] | int | None = None,
        start: float | None = None,
        stop: float | None = None,
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
        self._check_fitted()
        _check_flags(keep_residual=keep_residual)
        gone = set(range(len(self.names))) - set(self._chosen(include, "include"))
        gone |= set() if exclude is None else set(self._chosen(exclude, "exclude"))
        gone |= set(self._chosen(list(self.exclude), "csc.exclude"))
        is_raw(inst)
        if not inst.preload:
            raise RuntimeError("inst is not loaded, but apply changes it in place: inst.load_data() first")
        white, weights = self._whitened(inst, start, stop, reject_by_annotation)
        codes = refitted(self.model_.encode(white, weights), self.model_.filters_, weights)
        windows = whole(inst, self.sensors_.names, start=start, stop=stop, by_annotation=False)
        data = [windows.read(i) for i in range(len(windows))]
        drawn = sorted(gone if keep_residual else set(range(len(self.names))) - gone)
        parts = decode(
            only_filters(codes, drawn), self.sensors_.physical(self.model_.filters_), boundary=BOUNDARY, channels=True
        )
        if keep_residual:
            windows.write([old - part for old, part in zip(data, parts, strict=True)])
        else:
            mean = np.concatenate(data, axis=1).mean(axis=1, keepdims=True)
            windows.write([part + mean for part in parts])
        return inst

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
        """
        self._check_fitted()
        _check_flags(show=show)
        return show_figure(topographies(self, self._chosen(picks), ch_type, info), show)

    def plot_shapes(self, picks: Sequence[int] | int | None = None, *, show: bool = True) -> Any:
        """Draw the courses in time, in seconds from their peaks.

        Parameters
        ----------
        picks : int, sequence of int or None
            Filters; None is all of them.
        show : bool
            Whether to open a window where there is a screen.
        """
        self._check_fitted()
        _check_flags(show=show)
        return show_figure(courses(self, self._chosen(picks)), show)

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
        """
        self._check_fitted()
        _check_flags(show=show)
        return show_figure(raster(self, inst, self._chosen(picks), start, stop), show)

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
        """
        self._check_fitted()
        _check_flags(show=show)
        return show_figure(overlay(self, inst, exclude, picks, start, stop), show)

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
        _check_flags(overwrite=overwrite)
        if as_path(fname, "fname").exists() and not overwrite:
            raise FileExistsError(f"{fname} exists: give overwrite=True to replace it")
        facts = {
            "settings": {name: getattr(self, name) for name in ("duration", "penalty", "n_passes")},
            "sensors": self.sensors_.packed(),
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
        if not model.channels or model.filters_.ndim != 3:
            raise ValueError(f"filters must be (n_filters, channels, n_times), got {model.filters_.shape}")
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


def refitted(result: Result, filters: NDArray, weights: Sequence[NDArray] | None) -> SparseCodes:
    """Codes moved towards their least-squares fit, because the penalty has shrunk them and would leave a part behind."""
    values = []
    for i, (index, old, residual) in enumerate(
        zip(result.codes.indices, result.codes.values, result.residuals, strict=True)
    ):
        operator = ConvolutionOperator(
            filters, Geometry(residual.shape[1:], filters.shape[2:], len(residual), BOUNDARY)
        )
        seen = np.ones((1, 1), np.float32) if weights is None else weights[i]
        matrix = LinearOperator(
            (residual.size, len(index)),
            matvec=lambda z, o=operator, k=index, w=seen: (w * o.synthesise(k, z)).ravel(),
            rmatvec=lambda y, o=operator, k=index, w=seen, shape=residual.shape: o.correlate(w * y.reshape(shape), k),
            dtype=filters.dtype,
        )
        change = lsqr(matrix, residual.ravel(), iter_lim=_REFIT_STEPS)[0] if len(index) else np.zeros(0)
        values.append((old + change).astype(old.dtype))
    return result.codes.replaced(result.codes.indices, values)
