"""Tests of the page about anomalies: charts for series, framed pictures for images and volumes, a table for all."""

import numpy as np
import pytest

from pointillist import AnomalyScore
from pointillist.plot.figures import Chart
from pointillist.plot.page import Picture, SideBySide, Table, render_page
from pointillist.plot.reports import anomaly_page, event_columns, write_anomaly_report


def _found(shape, extent, events):
    score = np.zeros(shape)
    for place in events:
        score[place] = 9.0
    return AnomalyScore([score], {"residual": [score]}, 2.0, extent)


def _section(page, title):
    return next((section.blocks for section in page.sections if section.title == title), None)


@pytest.mark.parametrize(
    ("shape", "extent", "event", "kind"),
    [((5000,), (50,), 1234, Chart), ((30, 40), (5, 5), (7, 9), Picture), ((6, 30, 40), (3, 5, 5), (2, 7, 9), Picture)],
)
def test_signals_of_every_kind(shape, extent, event, kind, tmp_path):
    signal = np.random.default_rng(0).standard_normal(shape)
    found = _found(shape, extent, [event])
    page = anomaly_page(["a.npy"], [signal], found)
    shown = _section(page, "Signals and scores")[1]
    assert isinstance(shown, SideBySide)
    assert [type(block) for block in shown.blocks] == [kind, kind]
    table = _section(page, "Events")[0]
    assert isinstance(table, Table)
    assert list(table.columns) == event_columns(len(shape))
    assert table.rows[0][0] == "a.npy"
    assert table.rows[0][-2:] == [9.0, "residual"]
    assert (_section(page, "The strongest events") is not None) == (len(shape) == 1)
    write_anomaly_report(tmp_path / "page.html", ["a.npy"], [signal], found)
    assert (tmp_path / "page.html").read_text() == render_page(page)


def test_a_page_without_events():
    page = anomaly_page(["calm"], [np.zeros((20, 20))], _found((20, 20), (3, 3), []))
    assert _section(page, "Events") is None
    assert "no event" in render_page(page)


def test_channels_are_drawn_one_below_the_other(tmp_path):
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((9, 3000)) * np.arange(1, 10)[:, None]
    signal[8, 100:200] = np.nan
    page = anomaly_page(["a.npy"], [signal], _found((3000,), (50,), [1234]))
    whole, score = _section(page, "Signals and scores")[1].blocks
    assert list(whole.rows) == ["3", "4", "5", "6", "7", "8"]
    assert "The 6 strongest of 9 channels" in whole.caption
    assert np.all(np.diff(list(whole.rows.values())) < 0)
    assert np.count_nonzero(np.diff(whole.curves[0].x) < 0) == 5
    assert not score.rows
    close = _section(page, "The strongest events")[0].blocks[0]
    around, event = close.curves
    assert set(event.x[np.isfinite(event.y)]) == {1234}
    assert around.x.min() == 1234 - 200
    assert render_page(page).count("channel") > 0


@pytest.mark.parametrize("shape", [(3, 20, 30), (2, 6, 20, 30)])
def test_images_with_channels_and_gaps(shape):
    signal = np.random.default_rng(0).standard_normal(shape)
    signal[..., 2:5, 2:5] = np.nan
    extent = place = (3,) * (len(shape) - 1)
    page = anomaly_page(["a.npy"], [signal], _found(shape[1:], extent, [place]))
    shown = _section(page, "Signals and scores")[1].blocks
    assert [(type(block), block.width, block.height) for block in shown] == [(Picture, 30, 20)] * 2
