"""What a fitted `CSC` does with a recording: codes, sources, events, annotations, and the recording without some filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.learners import OnlineCSC
from pointillist.mne.activations import Activations, activations
from pointillist.mne.cleaning import cleaned, refitted, removed_filters
from pointillist.mne.objects import as_annotations, as_events, as_sources, filter_names, write_data
from pointillist.mne.recordings import Instance, check_raw, check_recording, is_raw, sample_range, whole
from pointillist.mne.sensors import Sensors
from pointillist.mne.settings import check_event_settings, check_flags, chosen_filters
from pointillist.mne.waveforms import waveforms_of
from pointillist.solvers.base import Result


class Fitted:
    """Filters that were learned, with the channels they are for; `CSC` describes the attributes."""

    duration: float
    exclude: list[int]

    def check_fitted(self) -> None:
        """Raise unless `fit` was called."""
        if not hasattr(self, "model_"):
            raise RuntimeError("nothing has been learned yet: call fit first")

    def _whitened(
        self, inst: Instance, start: float | None, stop: float | None, by_annotation: bool
    ) -> tuple[list[NDArray], list[NDArray] | None]:
        """Signals as the learner takes them, and their weights, None where everything is seen."""
        check_flags(reject_by_annotation=by_annotation)
        check_recording(inst, self.sensors_.names, self.sensors_.sfreq)
        windows = whole(inst, self.sensors_.names, start=start, stop=stop, by_annotation=by_annotation)
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
        self.check_fitted()
        check_event_settings(threshold, separation)
        chosen = chosen_filters(picks, len(self.event_id_), "picks")
        apart = round((0.1 * self.duration if separation is None else separation) * self.sensors_.sfreq)
        return [one.strongest(chosen, threshold, apart) for one in self.activations(inst)]

    def settle(self, model: OnlineCSC, sensors: Sensors) -> None:
        """Take over a learned `model` and the `sensors` it is for, and set what follows from them."""
        self.model_, self.sensors_ = model, sensors
        self.waveforms_ = waveforms_of(model.filters_, sensors)
        self.penalty_ = float(np.asarray(model.penalty_))
        self.event_id_ = {name: k + 1 for k, name in enumerate(filter_names(len(model.filters_)))}

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
        self.check_fitted()
        return self.model_.encode(*self._whitened(inst, start, stop, reject_by_annotation))

    def score(self, inst: Instance, start: float | None = None, stop: float | None = None) -> float:
        """Minus the mean objective per sample of a recording; higher is better, for one penalty.

        Parameters
        ----------
        inst : Raw or Epochs
        start, stop : int, float or None
            For Raw: first sample and the one after the last. A float counts seconds.

        Returns
        -------
        float
        """
        self.check_fitted()
        signals, weights = self._whitened(inst, start, stop, True)
        return self.model_.score(signals, weights=weights)

    def get_components(self) -> NDArray:
        """Patterns of the filters over the channels.

        Returns
        -------
        (n_channels, n_filters) array
            In the channels' own units: what they show at the peak of an activation of one.
        """
        self.check_fitted()
        return self.waveforms_.patterns.T.copy()

    def get_shapes(self) -> NDArray:
        """Courses of the filters in time, whose largest absolute sample is 1.

        Returns
        -------
        (n_filters, n_times) array
        """
        self.check_fitted()
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

        Parameters
        ----------
        inst : Raw or Epochs
            It is not changed.
        start, stop : int, float or None
            For Raw: first sample and the one after the last. A float counts seconds.
        reject_by_annotation : bool
            Whether samples with an annotation that begins with "bad" are not looked at.

        Returns
        -------
        RawArray or EpochsArray
            With a channel of type "misc" for each filter: CSC000, CSC001, ….
        """
        found = self.activations(inst, start, stop, reject_by_annotation=reject_by_annotation)
        return as_sources(inst, found, list(self.event_id_), sample_range(inst, start, stop)[0])

    def activations(
        self,
        inst: Instance,
        start: float | None = None,
        stop: float | None = None,
        *,
        reject_by_annotation: bool = True,
    ) -> list[Activations]:
        """Activations as lists of samples, filters and amplitudes.

        Parameters
        ----------
        inst : Raw or Epochs
        start, stop : int, float or None
            For Raw: first sample and the one after the last. A float counts seconds.
        reject_by_annotation : bool
            Whether samples with an annotation that begins with "bad" are not looked at.

        Returns
        -------
        list of Activations
            One for a Raw, one for each epoch. Samples are counted from `start`, or from the epoch's first sample.
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
        return as_events(inst, self._strongest(inst, picks, threshold, separation))

    def to_annotations(
        self,
        inst: Instance,
        picks: Sequence[int] | int | None = None,
        *,
        threshold: float = 0.1,
        separation: float | None = None,
    ) -> Any:
        """Activations as annotations from the beginning to the end of each waveform.

        ``raw.set_annotations(raw.annotations + csc.to_annotations(raw))`` adds them to a recording.

        Parameters
        ----------
        inst : Raw
        picks : int, sequence of int or None
            Filters; None is all of them.
        threshold : float in [0, 1]
            Smallest amplitude of an event, as a share of the filter's largest one in `inst`.
        separation : float or None
            Seconds around an event in which weaker activations of the same filter are none; None is a tenth of `duration`.

        Returns
        -------
        mne.Annotations
            Described by the names of the filters, CSC000, CSC001, ….
        """
        check_raw(inst, "to_annotations")
        (found,) = self._strongest(inst, picks, threshold, separation)
        return as_annotations(inst, found, self.waveforms_, list(self.event_id_))

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
        self.check_fitted()
        check_flags(keep_residual=keep_residual)
        removed = removed_filters(len(self.event_id_), include, exclude, self.exclude)
        is_raw(inst)
        if not inst.preload:
            raise RuntimeError("inst is not loaded, but apply changes it in place: inst.load_data() first")
        white, weights = self._whitened(inst, start, stop, reject_by_annotation)
        codes = refitted(self.model_.encode(white, weights), self.model_.filters_, weights)
        filters = self.sensors_.physical(self.model_.filters_)
        plain = whole(inst, self.sensors_.names, start=start, stop=stop, by_annotation=False)
        write_data(plain, cleaned(plain, codes, filters, removed, keep_residual=keep_residual))
        return inst
