"""Tests of the page about one's own run, for signals of every kind."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from pointillist import BatchCSC, OnlineCSC
from pointillist.plot import Example
from pointillist.plot.figures import Trace
from pointillist.plot.page import Compare, Picture, SideBySide, Table, render_page
from pointillist.plot.reports import learning_page


def _fitted(shape, size, channels=False, **settings):
    signals = np.random.default_rng(0).standard_normal((3, *shape)).astype(np.float32)
    model = OnlineCSC(3, size, 0.5, channels=channels, random_state=0, n_jobs=1, **settings)
    return model.fit(signals[:2], validation=signals[2:]), signals


def _blocks(page, title):
    return next(section.blocks for section in page.sections if section.title == title)


@pytest.mark.parametrize(
    ("shape", "size", "channels", "kind"),
    [
        ((80,), 5, False, Trace),
        ((2, 80), 5, True, Trace),
        ((20, 24), 5, False, Compare),
        ((3, 20, 24), 5, True, Compare),
        ((2, 20, 24), 5, True, Compare),
        ((9, 10, 11), 3, False, Compare),
    ],
)
def test_signals_of_every_kind(shape, size, channels, kind):
    model, signals = _fitted(shape, size, channels)
    page = learning_page(model, [Example("trained", signals[0]), Example("unseen", signals[2], held_out=True)])
    *shown, table = _blocks(page, "Reconstructions")
    if kind is Compare:
        assert isinstance(shown[0], SideBySide)
        shown = shown[0].blocks
    assert [type(block) for block in shown] == [kind, kind]
    assert isinstance(table, Table)
    assert [line[0] for line in table.rows] == ["unseen", "trained"]
    result = model.encode(signals[2:])
    assert (table.rows[0][3], table.rows[0][5]) == (result.codes.nnz, f"{result.gap[0]:.1e}")
    assert "held-out signals" in str(_blocks(page, "In numbers"))
    assert render_page(page).count("<img") == (1 + 2 * 2 if kind is Compare else 0)


def test_signals_in_time_are_shown_with_their_events():
    model, signals = _fitted((2, 3000), 90, channels=True)
    page = learning_page(model, [Example("recording", signals[0])])
    trace = _blocks(page, "Reconstructions")[0]
    original, _ = trace.signal.curves
    np.testing.assert_array_equal(original.x[:720], np.arange(1140, 1860))
    np.testing.assert_allclose(original.y[:720], signals[0][0, 1140:1860])
    assert list(trace.signal.rows) == ["0", "1"]
    codes = model.transform(signals[:1]).events()
    inside = codes[(codes["sample"] >= 1140) & (codes["sample"] < 1860)]
    np.testing.assert_array_equal(trace.events[:, 0], inside["sample"])
    np.testing.assert_array_equal(trace.events[:, 1], inside["filter"])
    waves = _blocks(page, "Filters")[0]
    assert np.shape(waves.filters) == (3, 2, 90)
    assert "2 channels" in waves.caption


def test_without_examples_and_without_history():
    model, _ = _fitted((20, 24), 5)
    assert "Reconstructions" not in [section.title for section in learning_page(model, []).sections]
    with pytest.raises(ValueError, match="fit it first"):
        learning_page(BatchCSC(), [])


@pytest.mark.parametrize("colour", [False, True])
def test_the_first_picture_is_the_photograph_as_it_is(colour):
    model, signals = _fitted((20, 24), 5)
    photograph = np.random.default_rng(1).random((3, 20, 24) if colour else (20, 24)).astype(np.float32)
    shown = [Example("photo.jpg", signals[0], stored=photograph), Example("more.jpg", signals[1], stored=photograph)]
    page = learning_page(model, shown)
    row = _blocks(page, "An example")[0]
    assert [type(block) for block in row.blocks] == [Picture, Compare]
    assert [section.title for section in page.sections].index("An example") == 1
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(row.blocks[0].source.partition(",")[2]))))
    expected = np.round(255 * photograph).astype(np.uint8)
    np.testing.assert_array_equal(pixels, np.moveaxis(expected, 0, -1) if colour else expected)
    assert row.blocks[1].label == "normalised"
    text = render_page(page)
    assert text.index("The photograph as it is.") < text.index("Filters</h2>")
    assert text.count("<img") == 1 + 2 * 3
    assert ">normalised</span>" in text
