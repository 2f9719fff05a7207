"""Figures are made of what was learned, also without the recording."""

import matplotlib as mpl
import numpy as np
import pytest

from pointillist.mne import CSC, read_csc


@pytest.fixture(autouse=True)
def _closed():
    mpl.use("agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def _titles(figure):
    return [ax.get_title() for ax in figure.axes if ax.get_title()]


def test_components_have_a_topography_each(fitted, tmp_path):
    csc, _ = fitted
    figure = csc.plot_components([0, 1])
    assert _titles(figure) == ["CSC000", "CSC001"]
    assert all(ax.images for ax in figure.axes)
    csc.save(tmp_path / "csc.safetensors")
    again = read_csc(tmp_path / "csc.safetensors").plot_components([1])
    assert _titles(again) == ["CSC001"]
    assert np.array_equal(again.axes[0].images[0].get_array(), figure.axes[1].images[0].get_array())


def test_sources_have_a_row_each(fitted, planted, epoched):
    csc, which = fitted
    ax = csc.plot_sources(planted.raw, start=5.0, stop=15.0).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["CSC000", "CSC001"]
    assert ax.get_xlim() == (5.0, 15.0)
    drawn = np.array([line[0, 0] for line in ax.collections[0].get_segments()])
    inside = [p / 100 for p in planted.peaks[0] if 520 < p < 1480]
    assert all(np.min(np.abs(drawn - one)) < 0.03 for one in inside)
    assert csc.plot_sources(planted.raw, picks=which[0]).axes[0].get_xlim() == (0.0, 10.0)
    assert csc.plot_sources(epoched).axes[0].get_xlim() == pytest.approx((0.0, 2.0))


def test_overlay_shows_before_and_after(fitted, planted, epoched):
    csc, which = fitted
    before = planted.raw.get_data().copy()
    figure = csc.plot_overlay(planted.raw, exclude=which[0], picks=["Fp1"], start=2.0, stop=8.0)
    old, new = (line.get_ydata() for line in figure.axes[0].lines)
    assert np.allclose(old, before[0, 200:800])
    assert np.ptp(new) < 0.5 * np.ptp(old)
    assert np.array_equal(planted.raw.get_data(), before)
    assert len(csc.plot_overlay(epoched, exclude=which[0]).axes[0].lines) == 40


def test_channels_without_a_position_are_named(mne, planted):
    bare = mne.io.RawArray(planted.raw.get_data(), mne.create_info(planted.raw.ch_names, 100.0, "eeg"), verbose="error")
    bare.filter(0.5, None, verbose="error")
    csc = CSC(2, 0.4, n_passes=1, n_jobs=1, random_state=0).fit(bare, stop=5.0)
    with pytest.raises(ValueError, match="channel Fp1 has no position"):
        csc.plot_components()
    assert csc.plot_components(info=planted.raw.info).axes[0].images
    with pytest.raises(ValueError, match="ch_type must be one of the fitted types, eeg"):
        csc.plot_components(ch_type="mag", info=planted.raw.info)
    with pytest.raises(ValueError, match="show must be True or False"):
        csc.plot_shapes(show=None)
