"""`CSC`: convolutional sparse coding of MNE's Raw and Epochs, with the habits of ``mne.preprocessing.ICA``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from pointillist.mne.figures import Figures
from pointillist.mne.learning import WindowSource, certify, learn
from pointillist.mne.recordings import Instance, cut, picked_names
from pointillist.mne.sensors import sensors_of
from pointillist.mne.settings import check_flags, check_settings, filter_samples, window_samples
from pointillist.mne.storing import save_csc
from pointillist.mne.survey import survey


class CSC(Figures):
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

    def __init__(
        self,
        n_filters: int = 20,
        duration: float = 0.5,
        penalty: float = 0.1,
        *,
        noise_cov: Any = None,
        rank: int | None = 1,
        nonnegative: bool = True,
        robust: Any = None,
        n_passes: int = 10,
        tol: float | None = None,
        n_jobs: int | None = -1,
        device: str = "cpu",
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_filters = n_filters
        self.duration = duration
        self.penalty = penalty
        self.noise_cov = noise_cov
        self.rank = rank
        self.nonnegative = nonnegative
        self.robust = robust
        self.n_passes = n_passes
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.exclude: list[int] = []
        check_settings(self)

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

        Returns
        -------
        self
        """
        check_settings(self)
        check_flags(reject_by_annotation=reject_by_annotation)
        length = window_samples(inst, tstep, self.duration)
        names = picked_names(inst, picks)
        windows = cut(inst, names, length, start=start, stop=stop, by_annotation=reject_by_annotation)
        n_times = filter_samples(inst, self.duration, windows.shortest)
        known = survey(windows, inst.get_channel_types(picks=names), n_times, reject=reject, flat=flat)
        sensors = sensors_of(inst.info, names, known.deviation, self.noise_cov)
        source = WindowSource(windows.only(known.kept), sensors, known.mean)
        self.settle(learn(self, source, n_times), sensors)
        self.dropped_ = known.dropped
        self.objective_, self.gap_ = certify(self.model_, source)
        return self

    def save(self, fname: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a file, which `read_csc` reads, and `pointillist.load` too, as an `OnlineCSC`.

        Parameters
        ----------
        fname : str or path
            ``.safetensors`` by custom.
        overwrite : bool
            Whether to replace a file that exists.
        """
        self.check_fitted()
        check_flags(overwrite=overwrite)
        save_csc(self, fname, overwrite=overwrite)

    def __repr__(self) -> str:
        asked = f"{self.n_filters} filters of {self.duration:g} s, rank {self.rank}"
        if not hasattr(self, "model_"):
            return f"<CSC | {asked}, no fit yet>"
        counts = {kind: self.sensors_.types.count(kind) for kind in dict.fromkeys(self.sensors_.types)}
        channels = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        return f"<CSC | {asked}, fit on {channels} channels at {self.sensors_.sfreq:g} Hz, gap {self.gap_:.1e}>"
