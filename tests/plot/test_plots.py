"""Tests of the plots: Axes are returned and labelled, hold what they should, and nothing else changes."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

import pointillist as pt
from pointillist.plot.figures import render

matplotlib.use("agg")  # no screen is needed
RNG = np.random.default_rng(0)
SHAPES = RNG.standard_normal((5, 20))
SERIES = RNG.standard_normal(120)
IMAGE = RNG.standard_normal((24, 30))


@pytest.fixture
def ax():
    return Figure((12, 5), layout="constrained").subplots()


@pytest.fixture(scope="module")
def fitted():
    """A learner of series, one of pictures, one of pictures in colour and one of volumes, each with a signal."""
    signals = {"series": SERIES, "grey": IMAGE, "colour": RNG.standard_normal((3, 24, 30))}
    signals["volume"] = RNG.standard_normal((7, 12, 14))
    sizes = {"series": 9, "grey": 5, "colour": 5, "volume": 3}
    return {
        name: (pt.BatchCSC(3, sizes[name], 0.5, channels=name == "colour", max_iter=2, random_state=0).fit([one]), one)
        for name, one in signals.items()
    }


@pytest.mark.parametrize(
    ("shape", "channels", "pixels", "words"),
    [
        ((6, 5, 5), False, (13, 19, 4), "6 filters of 5×5, each on its own scale"),
        ((6, 3, 5, 5), True, (13, 19, 4), "6 filters of 5×5, each on its own scale"),
        ((6, 2, 5, 5), True, (13, 19, 4), "mean of 2 channels"),
        ((2, 3, 4, 5), False, (11, 18, 4), "three slices through its middle"),
    ],
)
def test_filters_of_pictures_and_volumes_are_one_picture(ax, shape, channels, pixels, words):
    filters = np.random.default_rng(0).standard_normal(shape)
    made = pt.plot_filters(filters, channels=channels, columns=shape[0] // 2, ax=ax)
    assert made is ax
    assert len(ax.images) == 1
    assert ax.images[0].get_array().shape == pixels
    assert words in ax.get_xlabel()
    assert ax.images[0].get_array()[0, 0, -1] == 0  # see-through between the filters


def test_filters_in_time_are_waveforms(ax):
    panels = pt.plot_filters(SHAPES, ax=ax)
    assert panels.shape == (5,)
    np.testing.assert_array_equal(panels[3].get_lines()[-1].get_ydata(), SHAPES[3])
    assert [panel.get_xlabel() for panel in panels] == ["", "", "", "sample", "sample"]
    assert panels[4].get_title(loc="left") == "4"
    assert render(ax.figure).std() > 0


def test_many_channels_are_heat_maps(ax):
    filters = RNG.standard_normal((5, 6, 20))
    panels = pt.plot_filters(filters, channels=True, ax=ax)
    pixels = panels[2].images[0].get_array()
    np.testing.assert_allclose(pixels[..., 3], np.abs(filters[2]) / np.abs(filters[2]).max())
    assert np.array_equal(pixels[..., 0] > pixels[..., 2], filters[2] > 0)  # orange is positive, blue negative


def test_filters_of_a_learner_know_their_channels(fitted, ax):
    pt.plot_filters(fitted["colour"][0], ax=ax)
    assert np.ptp(ax.images[0].get_array()[..., :3], axis=-1).max() > 0


def test_convergence_over_seconds_and_steps(fitted, ax):
    model, _ = fitted["series"]
    assert pt.plot_convergence(model, ax=ax) is ax
    line = ax.get_lines()[0]
    np.testing.assert_array_equal(line.get_xdata(), [info["seconds"] for info in model.history_])
    np.testing.assert_array_equal(line.get_ydata(), [info["objective"] for info in model.history_])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("seconds of learning", "objective")
    other = Figure().subplots()
    pt.plot_convergence(model.history_, quantity="gap", against="iteration", ax=other)
    np.testing.assert_array_equal(other.get_lines()[0].get_ydata(), [info["gap"] for info in model.history_])
    assert (other.get_xlabel(), other.get_ylabel(), other.get_yscale()) == ("step", "relative duality gap", "log")


def test_several_learners_have_names_in_the_legend(fitted, ax):
    models = {"series": fitted["series"][0], "pictures": fitted["grey"][0]}
    pt.plot_convergence(models, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["series", "pictures"]
    other = Figure().subplots()
    pt.plot_convergence(list(models.values()), ax=other)
    assert [text.get_text() for text in other.get_legend().get_texts()] == ["BatchCSC 0", "BatchCSC 1"]
    assert len({line.get_color() for line in other.get_lines()}) == 2


@pytest.mark.parametrize("kind", ["grey", "colour", "volume"])
def test_reconstructions_of_pictures(fitted, ax, kind):
    model, signal = fitted[kind]
    panels = pt.plot_reconstruction(signal, model, ax=ax)
    assert [panel.get_title(loc="left") for panel in panels] == ["Original", "Reconstruction", "Residual", "Codes"]
    assert {(panel.get_xlabel(), panel.get_ylabel()) for panel in panels} == {("column", "row")}
    assert [len(panel.images) for panel in panels] == [1, 1, 1, 0]
    seen = np.asarray(panels[0].images[0].get_array())
    if kind == "grey":
        np.testing.assert_allclose(seen, signal)
        fit = model.inverse_transform(model.transform([signal]))[0]
        np.testing.assert_allclose(panels[1].images[0].get_array(), fit, atol=1e-6)
    if kind == "volume":
        np.testing.assert_allclose(seen, signal[3])
        assert any("slice 3 of 0 to 6" in text.get_text() for text in panels[0].texts)
    if kind == "colour":
        assert seen.shape == (24, 30, 3)
    assert render(ax.figure).std() > 0


def test_reconstruction_itself_and_places_of_its_own():
    figure = Figure()
    places = figure.subplots(2, 2)
    with pytest.raises(ValueError, match=r"ax must be one Axes of matplotlib, or 3 of them"):
        pt.plot_reconstruction(IMAGE, 0.5 * IMAGE, ax=places)
    panels = pt.plot_reconstruction(IMAGE, 0.5 * IMAGE, ax=places.ravel()[:3])
    assert list(panels) == list(places.ravel()[:3])
    np.testing.assert_allclose(panels[2].images[0].get_array(), 0.5 * IMAGE)


def test_reconstruction_of_a_recording(fitted, ax):
    model, signal = fitted["series"]
    upper, middle, lower = pt.plot_reconstruction(signal, model, ax=ax)
    assert [one.get_ylabel() for one in (upper, middle, lower)] == ["signal", "filter", "residual"]
    assert lower.get_xlabel() == "sample"
    fit = model.inverse_transform(model.transform([signal]))[0]
    np.testing.assert_allclose(upper.get_lines()[0].get_ydata(), signal)
    np.testing.assert_allclose(lower.get_lines()[0].get_ydata(), signal - fit, atol=1e-6)
    many = RNG.standard_normal((6, 120))
    codes = model.transform([signal])
    panels = pt.plot_reconstruction(many, 0.9 * many, codes=codes)
    assert "4 strongest of 6 channels" in panels[0].get_title(loc="left")
    plt.close(panels[0].figure)


def test_codes_lie_on_their_pixels(ax):
    dense = np.zeros((1, 2, 20, 30))
    dense[0, 0, 4, 7], dense[0, 1, 15, 22] = 2.0, -1.0
    assert pt.plot_codes(pt.SparseCodes.from_dense(dense), IMAGE, ax=ax) is ax
    (dots,) = ax.collections
    np.testing.assert_array_equal(dots.get_offsets(), [[7, 6], [22, 17]])  # the grid shares the picture's centre
    assert not np.array_equal(*dots.get_facecolors())
    assert len(ax.images) == 1
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("column", "row", "2 codes")
    alone = Figure().subplots()
    pt.plot_codes(pt.SparseCodes.from_dense(dense), ax=alone)
    assert len(alone.images) == 0
    np.testing.assert_array_equal(alone.collections[0].get_offsets(), [[7, 4], [22, 15]])


def test_codes_of_a_volume_are_those_of_one_slice(ax):
    dense = np.zeros((1, 2, 5, 12, 14))
    dense[0, 0, 3, 4, 7] = dense[0, 1, 2, 5, 5] = 1.0
    pt.plot_codes(pt.SparseCodes.from_dense(dense), depth=3, ax=ax)
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), [[7, 4]])
    assert ax.get_title(loc="left") == "1 code, slice 3 of 0 to 4"
    with pytest.raises(ValueError, match="depth must be the number of a slice, from 0 to 4, got 5"):
        pt.plot_codes(pt.SparseCodes.from_dense(dense), depth=5, ax=ax)


@pytest.mark.parametrize("channels", [None, 1, 6])
def test_events_lie_below_the_recording(ax, channels):
    dense = np.zeros((1, 3, 110))
    dense[0, 1, 50] = 2.0
    signal = SERIES if channels is None else np.ones((channels, 1)) * SERIES
    pt.plot_codes(pt.SparseCodes.from_dense(dense), signal, ax=ax)
    spikes = ax.collections[0].get_segments()
    assert spikes[0][0][0] == 55  # the grid shares the recording's centre
    (above,) = ax.child_axes
    (line,) = above.get_lines()
    drawn = line.get_ydata()
    np.testing.assert_allclose(drawn[:120], SERIES)
    assert np.isnan(drawn).sum() == min(channels or 1, 4) - 1  # a gap after each channel
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sample", "filter")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2"]
    assert above.get_xlim() == ax.get_xlim()


def test_nothing_is_shown_and_no_setting_changes(monkeypatch, fitted):
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("a plot showed itself"))
    settings, open_before = dict(matplotlib.rcParams), plt.get_fignums()
    model, signal = fitted["series"]
    codes = model.transform([signal])
    made = [
        *pt.plot_filters(model),
        pt.plot_convergence(model),
        *pt.plot_reconstruction(signal, model),
        pt.plot_codes(codes, signal),
    ]
    assert all(isinstance(one, Axes) for one in made)
    assert len(plt.get_fignums()) == len(open_before) + 4  # each is shown by the caller's plt.show()
    for number in set(plt.get_fignums()) - set(open_before):
        plt.close(number)
    assert dict(matplotlib.rcParams) == settings


def test_errors_name_the_argument(fitted, ax):
    model, signal = fitted["series"]
    codes = model.transform([signal, signal])
    for words, plot, *given in (
        ("ax must be Axes of matplotlib, got 'here'", pt.plot_filters, SHAPES, {"ax": "here"}),
        ("leave channels out", pt.plot_filters, model, {"channels": True}),
        ("codes must be SparseCodes of one signal, got those of 2: index them", pt.plot_codes, codes, {}),
        ("must have 1 axes", pt.plot_codes, codes[0], np.zeros((3, 4, 5)), {}),
        ("depth is for volumes", pt.plot_codes, codes[0], signal, {"depth": 1}),
        ('against must be "seconds" or "iteration", got', pt.plot_convergence, model, {"against": "hours"}),
        ("quantity must be something that was recorded", pt.plot_convergence, model, {"quantity": "loss"}),
        ("models has an empty history", pt.plot_convergence, [[]], {}),
        ("model must give a recon", pt.plot_reconstruction, signal, signal[:50], {"codes": codes[0]}),
        ("give codes", pt.plot_reconstruction, signal, signal, {}),
        ("depth is for volumes", pt.plot_reconstruction, IMAGE, IMAGE, {"depth": 1}),
    ):
        with pytest.raises(ValueError, match=words):
            plot(*given[:-1], **{"ax": ax, **given[-1]})
    with pytest.raises(NotFittedError):
        pt.plot_filters(pt.BatchCSC(), ax=ax)
