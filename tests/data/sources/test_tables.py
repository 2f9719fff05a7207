"""Tests of tables as sources: columns as signals or channels, chosen by name, read again where they were not kept."""

import pickle

import numpy as np
import pytest

from pointillist import load_signals, open_source
from pointillist.data.sources import CropSource, JoinedSource, TableSource, cache, tables
from pointillist.errors import UnreadableFileError

SAMPLES = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    lines = [",".join(map(str, [i / 4, *row])) for i, row in enumerate(SAMPLES)]
    (tmp_path / "r.csv").write_text("\n".join(["time,a,b,c", *lines]))
    return tmp_path / "r.csv"


def test_columns_are_signals_or_channels(path):
    several, one = open_source(path, ndim=1), open_source(path, ndim=1, channel_axis=-1)
    assert (len(several), len(one)) == (3, 1)
    np.testing.assert_array_equal([several.read(i) for i in range(3)], SAMPLES.T)
    np.testing.assert_array_equal(one.read(0), SAMPLES.T)
    np.testing.assert_array_equal(one.window(0, (5,), (7,)), SAMPLES.T[:, 5:12])
    np.testing.assert_array_equal(load_signals(path, ndim=1)[1], SAMPLES[:, 1])
    assert [several.name(i) for i in range(3)] == [f"{path}::{name}" for name in "abc"]
    assert one.name(0) == str(path)
    assert several.sampling_rates == one.sampling_rates == {4}
    assert JoinedSource([several, open_source(path, ndim=1)]).sampling_rates == {4}
    several.read(0)[:] = 0  # what is kept is not touched by that
    np.testing.assert_array_equal(several.read(0), SAMPLES[:, 0])


def test_a_column_by_its_name_or_number(path):
    for column in ("b", "2"):
        source = open_source(f"{path}::{column}", ndim=1)
        np.testing.assert_array_equal(source.read(0), SAMPLES[:, 1])
        assert source.name(0) == f"{path}::{column}"
        assert source.names == ("b",)
    assert TableSource(path, "b", channels=True).shape(0) == (1, 40)
    for column in ("d", "0", "4", "time"):
        words = f"r.csv::{column}: it has no column called '{column}': give .* 'a', 'b', 'c'"
        with pytest.raises(UnreadableFileError, match=words):
            TableSource(path, column)


def test_tables_that_were_not_kept_are_read_again(path, monkeypatch):
    monkeypatch.setattr(tables, "_RECENT", cache.Cache(0))
    source = open_source(path, ndim=1)
    np.testing.assert_array_equal(source.read(2), SAMPLES[:, 2])
    path.write_text("1,2\n3,4\n")
    with pytest.raises(UnreadableFileError, match=r"r\.csv.*changed since it was opened"):
        source.read(2)


def test_windows_of_large_tables(path, monkeypatch):
    """Crops are the same whether a table is kept in memory by them or lies in a file of its own."""
    small = CropSource(open_source(path, ndim=1, channel_axis=-1), 5, (8,), seed=3)
    assert not small.source.windowed
    crops = [small.read(i) for i in range(5)]
    monkeypatch.setattr(tables, "LARGE", 10)
    large = CropSource(open_source(path, ndim=1, channel_axis=-1), 5, (8,), seed=3)
    assert large.source.windowed
    np.testing.assert_array_equal([large.read(i) for i in range(5)], crops)


def test_sent_to_another_process(path):
    source = pickle.loads(pickle.dumps(open_source(path, ndim=1)))
    np.testing.assert_array_equal(source.read(1), SAMPLES[:, 1])
    assert source.describe() == open_source(path, ndim=1).describe()
    assert source.describe() != TableSource(path, "a").describe()


def test_refusals(path, tmp_path, caplog):
    with pytest.raises(UnreadableFileError, match=r"r\.csv is a table.*ndim=1 \(--ndim 1, or --channels last\)"):
        open_source(path)
    with pytest.raises(UnreadableFileError, match=r"channel_axis=-1 \(--channels last\), not 0"):
        open_source(path, ndim=1, channel_axis=0)
    (tmp_path / "odd.tsv").write_text("1\t2\nx\t3\n")
    with pytest.raises(UnreadableFileError, match=r"cannot read .*odd\.tsv: line 2, column 1: 'x' is no number"):
        open_source(tmp_path / "odd.tsv", ndim=1)
    skipping = open_source([path, tmp_path / "odd.tsv"], ndim=1, on_error="skip")
    assert len(skipping) == 4
    with pytest.raises(
        ValueError, match=r"holds no files to read.*its tables are read if they are named: '.*/\*\.csv'"
    ):
        open_source(tmp_path, ndim=1)
    (tmp_path / "counted.csv").write_text("0,1\n1,2\n2,4\n")
    open_source(tmp_path / "counted.csv", ndim=1)
    assert "counted.csv: its first column counts evenly and is left out" in caplog.text
