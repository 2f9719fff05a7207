"""Planted waveforms are found on Raw and Epochs, and what should not be looked at is not."""

import re

import numpy as np
import pytest

from pointillist.mne import CSC

ARGUMENTS = {"n_filters": 2, "duration": 0.4, "n_passes": 2, "n_jobs": 1, "random_state": 0}


def _check_recovered(csc, planted, cosines, least=0.95):
    for k, pattern, shape in zip(cosines.matched(csc, planted), planted.patterns, planted.shapes, strict=True):
        assert cosines.pattern(csc.get_components()[:, k], pattern) > least
        assert cosines.shape(csc.get_shapes()[k], shape) > least


def test_planted_waveforms_are_found_in_raw(fitted, planted, cosines):
    csc, which = fitted
    assert len(set(which)) == 2
    _check_recovered(csc, planted, cosines)
    assert 0 < csc.gap_ <= 1e-3
    assert csc.objective_ > 0
    assert csc.dropped_ == {"bad": 0, "reject": 0, "flat": 0}
    said = r"<CSC \| 2 filters of 0.4 s, rank 1, fit on 20 eeg channels at 100 Hz, gap .*>"
    assert re.fullmatch(said, repr(csc))
    assert repr(CSC(4, 0.3)) == "<CSC | 4 filters of 0.3 s, rank 1, no fit yet>"


def test_components_are_in_volts_at_the_peak(fitted, planted):
    csc, which = fitted
    for k, peaks, height in zip(which, planted.peaks, (60e-6, 30e-6), strict=True):
        amplitudes = csc.get_sources(planted.raw).get_data()[k]
        near = [amplitudes[max(p - 2, 0) : p + 3].sum() for p in peaks]
        # The code of a lone waveform is its correlation with the filter, less the penalty.
        unshrunk = np.median(near) + csc.penalty_
        assert unshrunk * np.abs(csc.get_components()[:, k]).max() == pytest.approx(height, rel=0.1)
    assert np.allclose(np.abs(csc.get_shapes()).max(axis=1), 1)


def test_planted_waveforms_are_found_in_epochs(epoched, planted, cosines):
    csc = CSC(**{**ARGUMENTS, "n_passes": 4}).fit(epoched)
    _check_recovered(csc, planted, cosines)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_spare_filter_hides_no_waveform(planted, cosines, seed):
    """Two filters may share a waveform, at other shifts or amplitudes; every waveform still has one that is its own."""
    csc = CSC(**{**ARGUMENTS, "n_filters": 3, "n_passes": 4, "random_state": seed}).fit(planted.raw)
    assert len(set(cosines.matched(csc, planted))) == 2
    _check_recovered(csc, planted, cosines, 0.9)


def test_filters_have_the_rank_that_was_asked_for(fitted, planted):
    values = np.linalg.svd(fitted[0].model_.filters_, compute_uv=False)
    assert np.all(values[:, 1] < 1e-5 * values[:, 0])
    free = CSC(**{**ARGUMENTS, "n_passes": 1, "rank": None}).fit(planted.raw)
    values = np.linalg.svd(free.model_.filters_, compute_uv=False)
    assert np.all(values[:, 1] > 1e-3 * values[:, 0])


def test_the_same_seed_gives_the_same_filters_whatever_the_threads(planted):
    one, two = (CSC(**{**ARGUMENTS, "n_jobs": jobs}).fit(planted.raw, stop=10.0) for jobs in (1, 2))
    assert np.array_equal(one.model_.filters_, two.model_.filters_)


def test_samples_that_an_annotation_calls_bad_are_never_looked_at(mne, planted, cosines):
    clean, broken = planted.raw.copy(), planted.raw.copy()
    note = mne.Annotations([5.0, 20.0], [2.0, 3.5], ["bad jump", "BAD_move"])
    broken[:, 500:700] = 1.0
    broken[:, 2000:2350] = -1e4 * broken[:, 2000:2350][0]
    fits = [CSC(**ARGUMENTS).fit(raw.set_annotations(note)) for raw in (clean, broken)]
    _check_recovered(fits[1], planted, cosines, 0.9)
    # The samples there are those of two recordings, so nothing but their rounding may differ.
    assert np.array_equal(fits[0].model_.filters_, fits[1].model_.filters_)
    assert np.array_equal(fits[0].get_sources(clean).get_data(), fits[1].get_sources(broken).get_data())
    seen = CSC(**{**ARGUMENTS, "n_passes": 1}).fit(broken, reject_by_annotation=False)
    assert not np.allclose(seen.model_.filters_, fits[0].model_.filters_, atol=1e-2)


def test_bad_parts_of_epochs_are_never_looked_at(bad_epochs):
    fits = []
    for factor in (1.0, 1e4):
        epochs = bad_epochs(4.5, 0.5)
        epochs.get_data(copy=False)[2, :, 50:100] *= factor
        fits.append(CSC(**{**ARGUMENTS, "n_passes": 1}).fit(epochs))
    assert np.array_equal(fits[0].model_.filters_, fits[1].model_.filters_)


def test_windows_that_exceed_the_limits_are_dropped(planted, cosines):
    raw = planted.raw.copy()
    raw[3, 1000:1010] = 5e-3
    raw[4, 2000:2400] = 0.0
    csc = CSC(**ARGUMENTS).fit(raw, reject={"eeg": 1e-3}, flat={"eeg": 1e-7}, tstep=2.0)
    assert csc.dropped_ == {"bad": 0, "reject": 1, "flat": 2}
    _check_recovered(csc, planted, cosines, 0.9)


def test_channel_types_are_made_comparable(mne, planted, cosines):
    """Half of the channels as magnetometers, whose numbers are a thousand million times smaller."""
    raw = planted.raw.copy()
    raw[10:, :] = raw[10:, :][0] * 1e-9
    raw.set_channel_types(dict.fromkeys(raw.ch_names[10:], "mag"), verbose="error", on_unit_change="ignore")
    csc = CSC(**ARGUMENTS).fit(raw)
    unscaled = csc.get_components().copy()
    unscaled[10:] *= 1e9
    found = [max(cosines.pattern(unscaled[:, k], pattern) for k in range(2)) for pattern in planted.patterns]
    assert min(found) > 0.95


def test_a_noise_covariance_whitens(mne, planted, cosines):
    ones = np.ones(len(planted.raw.ch_names)) * (2e-6) ** 2
    cov = mne.Covariance(ones, planted.raw.ch_names, [], [], 1000)
    csc = CSC(**ARGUMENTS, noise_cov=cov).fit(planted.raw)
    _check_recovered(csc, planted, cosines)
    white = csc.sensors_.whiten(planted.raw.get_data(), np.zeros(20))
    assert np.allclose(csc.sensors_.colorer @ white.astype(np.float64), planted.raw.get_data(), atol=1e-10)


def test_picks_start_and_stop_choose_what_is_learned_from(planted):
    csc = CSC(**{**ARGUMENTS, "n_passes": 1}).fit(planted.raw, picks=["Cz", "C3"], start=1000, stop=20.0)
    assert csc.sensors_.names == ["Cz", "C3"] or csc.sensors_.names == ["C3", "Cz"]
    assert csc.get_components().shape == (2, 2)
    bads = planted.raw.copy()
    bads.info["bads"] = ["Oz"]
    assert "Oz" not in CSC(**{**ARGUMENTS, "n_passes": 1}).fit(bads, stop=5.0).sensors_.names


def test_a_recording_that_is_not_loaded_is_read_window_by_window(mne, planted, tmp_path):
    planted.raw.save(tmp_path / "some_raw.fif", fmt="double", verbose="error")
    lazy = mne.io.read_raw_fif(tmp_path / "some_raw.fif", preload=False, verbose="error")
    csc = CSC(**{**ARGUMENTS, "n_passes": 1}).fit(lazy, stop=20.0)
    assert not lazy.preload
    again = CSC(**{**ARGUMENTS, "n_passes": 1}).fit(planted.raw, stop=20.0)
    assert np.allclose(csc.model_.filters_, again.model_.filters_, atol=1e-5)


def test_drifts_are_warned_of(mne):
    raw = mne.io.RawArray(
        np.random.default_rng(0).standard_normal((2, 400)), mne.create_info(2, 100.0, "eeg"), verbose="error"
    )
    with pytest.warns(RuntimeWarning, match=r"inst\.filter\(1\.0, None\)"):
        CSC(**{**ARGUMENTS, "n_passes": 1}).fit(raw)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"n_filters": 0}, "n_filters must be at least 1, got 0"),
        ({"duration": -1.0}, "duration must be a positive, finite number"),
        ({"penalty": 2.0}, r"penalty must be a share of λ_max in \(0, 1\)"),
        ({"rank": 0}, "rank must be None or a positive integer"),
        ({"n_passes": 1.5}, "n_passes must be a positive integer"),
        ({"nonnegative": "yes"}, "nonnegative must be True or False"),
        ({"robust": True}, "robust must be None or a pointillist.Robust"),
        ({"tol": -1}, "tol must be"),
    ],
)
def test_settings_are_checked(given, named):
    with pytest.raises(ValueError, match=named):
        CSC(**given)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"picks": "mag"}, "picks='mag' names no channels"),
        ({"picks": ["Cz", "nowhere"]}, "picks="),
        ({"start": 50.0}, "start < stop"),
        ({"stop": -3}, "stop must be None, a sample"),
        ({"tstep": 0.1}, "tstep must be None or seconds, at least the duration"),
        ({"reject": {"eeg": -1}}, "reject must be None or a dict"),
        ({"reject": {"mag": 1e-12}}, "reject has the channel types"),
        ({"flat": {"eeg": 1.0}}, "40 fall|fall below flat; relax"),
        ({"reject_by_annotation": None}, "reject_by_annotation must be True or False"),
    ],
)
def test_what_fit_is_given_is_checked(given, named, planted):
    with pytest.raises(ValueError, match=named):
        CSC(**ARGUMENTS).fit(planted.raw, **given)


def test_what_belongs_to_raw_is_refused_for_epochs(epoched):
    for given, words in (({"start": 1.0}, "start and stop are for Raw"), ({"tstep": 2.0}, "tstep is for Raw")):
        with pytest.raises(ValueError, match=words):
            CSC(**ARGUMENTS).fit(epoched, **given)
    with pytest.raises(TypeError, match="inst must be a Raw or an Epochs of MNE, got"):
        CSC(**ARGUMENTS).fit(epoched.average())
    with pytest.raises(ValueError, match="duration=3 is 300 samples"):
        CSC(**{**ARGUMENTS, "duration": 3.0}).fit(epoched)


def test_flat_channels_and_nothing_left_are_named(mne, planted):
    silent = mne.io.RawArray(np.zeros((2, 800)), mne.create_info(2, 100.0, "eeg"), verbose="error")
    with pytest.warns(RuntimeWarning), pytest.raises(ValueError, match="all channels of type eeg are flat"):
        CSC(**ARGUMENTS).fit(silent)
    covered = planted.raw.copy().set_annotations(mne.Annotations([0.0], [100.0], ["bad"]), verbose="error")
    with pytest.raises(ValueError, match="no window is left to learn from"):
        CSC(**ARGUMENTS).fit(covered)
