"""Sources, events, annotations and cleaned recordings of a fitted model."""

import numpy as np
import pytest


def _near(found, wanted, within=2):
    """Share of wanted samples that have one of the found samples nearby."""
    return np.mean([np.min(np.abs(np.asarray(found) - one), initial=10**6) <= within for one in wanted])


def test_sources_stand_where_waveforms_peak(fitted, planted):
    csc, which = fitted
    sources = csc.get_sources(planted.raw)
    assert sources.ch_names == ["CSC000", "CSC001"]
    assert set(sources.get_channel_types()) == {"misc"}
    data = sources.get_data()
    assert data.shape == (2, planted.raw.n_times)
    assert data.min() >= 0
    for k, peaks in zip(which, planted.peaks, strict=True):
        strong = np.flatnonzero(data[k] > 0.3 * data[k].max())
        assert _near(strong, peaks) > 0.95
        assert _near(peaks, strong) > 0.95


def test_sources_keep_time_dates_and_annotations(mne, fitted, planted):
    csc, _ = fitted
    raw = mne.io.RawArray(planted.raw.get_data(), planted.raw.info, first_samp=250, verbose="error")
    raw.set_meas_date(1_000_000)
    raw.set_annotations(mne.Annotations([6.0], [0.5], ["note"], orig_time=raw.info["meas_date"]))
    sources = csc.get_sources(raw, start=2.0, stop=20.0)
    assert (sources.first_samp, sources.n_times) == (450, 1800)
    assert sources.info["meas_date"] == raw.info["meas_date"]
    assert sources.annotations.onset.tolist() == [6.0]
    dateless = mne.io.RawArray(planted.raw.get_data(), planted.raw.info, first_samp=250, verbose="error")
    dateless.set_annotations(mne.Annotations([6.0], [0.5], ["bad"]))
    sources = csc.get_sources(dateless, start=2.0, stop=20.0)
    assert sources.annotations.onset.tolist() == dateless.annotations.onset.tolist()
    bad, again = (np.isnan(one.get_data(reject_by_annotation="NaN", verbose="error")[0]) for one in (dateless, sources))
    assert np.array_equal(again, bad[200:2000])


def test_sources_of_epochs_are_epochs(fitted, planted, epoched):
    csc, which = fitted
    sources = csc.get_sources(epoched)
    assert len(sources) == len(epoched)
    assert np.array_equal(sources.times, epoched.times)
    assert np.array_equal(sources.events, epoched.events)
    data = np.swapaxes(sources.get_data(), 0, 1).reshape(2, -1)
    inside = [[p for p in peaks if 20 < p % 200 < 180] for peaks in planted.peaks]
    for k, peaks in zip(which, inside, strict=True):
        assert _near(np.flatnonzero(data[k] > 0.3 * data[k].max()), peaks) > 0.95


def test_codes_have_a_certificate(fitted, planted, epoched):
    csc, _ = fitted
    whole, pieces = csc.encode(planted.raw), csc.encode(epoched)
    assert len(whole.codes) == 1
    assert len(pieces.codes) == len(epoched)
    assert max(whole.gap.max(), pieces.gap.max()) <= 1e-3
    assert csc.score(planted.raw) == pytest.approx(-whole.objective.sum() / planted.raw.get_data().size)
    assert csc.score(planted.raw, stop=10.0) < 0


def test_events_have_the_planted_times(mne, fitted, planted):
    csc, which = fitted
    raw = mne.io.RawArray(planted.raw.get_data(), planted.raw.info, first_samp=250, verbose="error")
    events = csc.get_events(raw, which, threshold=0.3)
    assert events.shape[1] == 3
    assert np.all(np.diff(events[:, 0]) >= 0)
    for k, peaks in zip(which, planted.peaks, strict=True):
        own = events[events[:, 2] == csc.event_id_[f"CSC{k:03d}"], 0] - 250
        assert len(own) == len(peaks)
        assert _near(own, peaks) == 1
    everything = csc.get_events(raw, threshold=0.0, separation=0.0)
    assert len(everything) == np.count_nonzero(csc.get_sources(raw).get_data())
    # MNE takes them as they are.
    assert len(mne.Epochs(raw, events, tmin=-0.1, tmax=0.1, baseline=None, verbose="error").load_data()) > 0


def test_events_of_epochs_are_samples_of_the_recording(fitted, planted, epoched):
    csc, which = fitted
    events = csc.get_events(epoched, which[1], threshold=0.3)
    inside = [p for p in planted.peaks[1] if 20 < p % 200 < 180]
    assert _near(events[:, 0], inside) == 1


def test_annotations_span_the_waveforms(mne, fitted, planted):
    csc, which = fitted
    raw = mne.io.RawArray(planted.raw.get_data(), planted.raw.info, first_samp=250, verbose="error")
    raw.set_meas_date(1_000_000)
    notes = csc.to_annotations(raw, which[0], threshold=0.3)
    assert set(notes.description) == {f"CSC{which[0]:03d}"}
    assert np.allclose(notes.duration, 0.4)
    raw.set_annotations(raw.annotations + notes)
    begins = (raw.annotations.onset - raw.first_time) * 100
    inside = planted.peaks[0]
    assert len(begins) == len(inside)
    assert np.all((begins < inside) & (inside < begins + 40))
    dateless = csc.to_annotations(planted.raw, which[0], threshold=0.3)
    assert np.allclose(dateless.onset * 100, begins)


def test_apply_removes_one_waveform_in_place_and_leaves_the_other(fitted, planted):
    csc, which = fitted
    raw = planted.raw.copy()
    assert csc.apply(raw, exclude=which[0]) is raw
    before, after = planted.raw.get_data(), raw.get_data()
    gone, kept = planted.parts
    assert np.linalg.norm(after - (before - gone)) < 0.25 * np.linalg.norm(gone)
    left = np.sum((after - before) * kept) / np.sum(kept**2)
    assert abs(left) < 0.05
    assert np.array_equal(planted.raw.copy().get_data(), before)


def test_apply_honours_exclude_include_and_the_range(fitted, planted):
    csc, which = fitted
    others = [which[0]]
    included = csc.apply(planted.raw.copy(), include=which[1]).get_data()
    assert np.array_equal(included, csc.apply(planted.raw.copy(), exclude=others).get_data())
    csc.exclude = others
    try:
        assert np.array_equal(included, csc.apply(planted.raw.copy()).get_data())
    finally:
        csc.exclude = []
    part = csc.apply(planted.raw.copy(), exclude=[0, 1], start=10.0, stop=20.0).get_data()
    changed = np.any(part != planted.raw.get_data(), axis=0)
    assert not changed[:1000].any()
    assert not changed[2000:].any()
    assert changed[1000:2000].any()
    assert np.array_equal(csc.apply(planted.raw.copy()).get_data(), planted.raw.get_data())


def test_without_the_residual_the_filters_alone_are_left(fitted, planted):
    csc, which = fitted
    alone = csc.apply(planted.raw.copy(), include=which[1], keep_residual=False).get_data()
    assert np.linalg.norm(alone - planted.parts[1]) < 0.35 * np.linalg.norm(planted.parts[1])
    parts = [csc.apply(planted.raw.copy(), include=k, keep_residual=False).get_data() for k in range(2)]
    mean = planted.raw.get_data().mean(axis=1, keepdims=True)
    nothing = csc.apply(planted.raw.copy(), include=[], keep_residual=True).get_data()
    assert np.allclose(sum(one - mean for one in parts) + nothing, planted.raw.get_data(), atol=1e-12)


def test_apply_works_on_epochs_in_place(fitted, planted, epoched):
    csc, which = fitted
    epochs = epoched.copy()
    assert csc.apply(epochs, exclude=which[0]) is epochs
    gone = planted.parts[0].reshape(20, -1, 200).swapaxes(0, 1)[: len(epoched)]
    removed = epoched.get_data(copy=True) - epochs.get_data(copy=True)
    assert np.linalg.norm(removed - gone) < 0.3 * np.linalg.norm(gone)


def test_channels_may_come_in_another_order(mne, fitted, planted):
    csc, _ = fitted
    turned = planted.raw.copy().reorder_channels(planted.raw.ch_names[::-1])
    assert np.array_equal(csc.get_sources(turned).get_data(), csc.get_sources(planted.raw).get_data())
    cleaned = csc.apply(turned, exclude=0).reorder_channels(planted.raw.ch_names)
    assert np.array_equal(cleaned.get_data(), csc.apply(planted.raw.copy(), exclude=0).get_data())


def test_recordings_that_do_not_fit_are_named(mne, fitted, planted, epoched, tmp_path):
    csc, _ = fitted
    with pytest.raises(ValueError, match=r"inst lacks 1 channels of the fit, \['Oz'\]"):
        csc.get_sources(planted.raw.copy().drop_channels(["Oz"]))
    with pytest.raises(ValueError, match=r"inst\.resample\(100\) first"):
        csc.get_sources(planted.raw.copy().crop(0, 5).resample(50, verbose="error"))
    with pytest.raises(TypeError, match="to_annotations needs a Raw"):
        csc.to_annotations(epoched)
    with pytest.raises(ValueError, match="exclude must be None, a number of a filter or a list of these, from 0 to 1"):
        csc.apply(planted.raw.copy(), exclude=[2])
    for word, value in (("picks", "blink"), ("picks", np.ones((3, 0, 2))), ("threshold", 3), ("separation", -1)):
        with pytest.raises(ValueError, match=f"{word} must"):
            csc.get_events(planted.raw, **{word: value})
    with pytest.raises(ValueError, match="keep_residual must be True or False"):
        csc.apply(planted.raw.copy(), keep_residual=1)
    planted.raw.save(tmp_path / "some_raw.fif", verbose="error")
    lazy = mne.io.read_raw_fif(tmp_path / "some_raw.fif", verbose="error")
    with pytest.raises(RuntimeError, match=r"inst\.load_data\(\) first"):
        csc.apply(lazy)


def test_an_epoch_that_is_bad_altogether_has_no_activations(fitted, bad_epochs):
    csc, _ = fitted
    epochs = bad_epochs(2.0, 2.0)
    assert not csc.get_sources(epochs).get_data()[1].any()
    assert csc.get_sources(epochs, reject_by_annotation=False).get_data()[1].any()
