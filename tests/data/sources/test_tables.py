"""Tests of tables in text: what they may be written in, times, errors that name the line, and columns as signals."""

import pickle

import numpy as np
import pytest

from pointillist import load_signals, open_source
from pointillist.data.sources import CropSource, JoinedSource, TableSource, tables
from pointillist.data.sources.tables import read_table
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


def test_tables_are_read_again_where_they_changed(path):
    source = open_source(path, ndim=1)
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


NAN = np.nan


@pytest.fixture
def read(tmp_path):
    """A function that reads a table of some text or bytes."""

    def reading(text):
        path = tmp_path / "table.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(path)

    return reading


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("1,2\n3,4\n", (), [[1, 2], [3, 4]]),
        ("a,b\r\n1,2\r\n3,4", ("a", "b"), [[1, 2], [3, 4]]),
        ("a;b\n1,5;-2e1\n3;4", ("a", "b"), [[1.5, -20], [3, 4]]),
        ("a;b\n1.5;2\n3;4", ("a", "b"), [[1.5, 2], [3, 4]]),
        ("a\tb\n1,5\t2\n3\t4", ("a", "b"), [[1.5, 2], [3, 4]]),
        ("1 2\n 3   4\n", (), [[1, 2], [3, 4]]),
        ("0,1\n0.5,2\n-3,4\n", ("0", "1"), [[0.5, 2], [-3, 4]]),
        ("0,1\n5,2\n", (), [[0, 1], [5, 2]]),
        ("1,high\n3,4\n", ("1", "high"), [[3, 4]]),
        ("5\n7.5\n", (), [[5], [7.5]]),
        ("# by hand\n\na,b\n# and so on\n1,2\n\n\n", ("a", "b"), [[1, 2]]),
        ("\ufeffa,b\n1,2\n", ("a", "b"), [[1, 2]]),
        ("a,b\n1,2\n".encode("utf-16"), ("a", "b"), [[1, 2]]),
        ("sep=;\na;b\n1;2\n", ("a", "b"), [[1, 2]]),
        ('"left, in mV","b"\n"1","2"\n', ("left, in mV", "b"), [[1, 2]]),
        ("a,b,\n1,2,\n3,4,\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("a,b\n1,2,\n3,4,\n", ("a", "b"), [[1, 2], [3, 4]]),
        (
            "a,b,c\n,2,\n,,\nNA,n/a,NaN\n1,null,-\n",
            ("a", "b", "c"),
            [[NAN, 2, NAN], [NAN] * 3, [NAN] * 3, [1, NAN, NAN]],
        ),
        ("a\tb\n1\t2\n\t\n3\t4\n", ("a", "b"), [[1, 2], [NAN, NAN], [3, 4]]),
        ('a b c\n1 NA ""\nnan 2 3\n', ("a", "b", "c"), [[1, NAN, NAN], [NAN, 2, 3]]),
    ],
)
def test_what_tables_are_written_in(read, text, names, rows):
    table = read(text)
    assert table.names == names
    assert table.samples.dtype == np.float32
    np.testing.assert_array_equal(table.samples, np.array(rows, np.float32))
    assert (table.sampling_rate, table.left_out) == (None, None)


@pytest.mark.parametrize(
    ("text", "rate", "left_out"),
    [
        ("time,x\n0,1\n0.002,2\n0.004,3\n", 500, "time"), ("Time (ms);x\n10;1\n12;2\n14;3\n", 500, "Time (ms)"),
        ("t\tx\n0\t1\n0,5\t2\n1\t3\n", 2, "t"), ("seconds,x\n0,1\n1,2\n", 1, "seconds"),
        ("sample,x\n7,1\n8,2\n9,3\n", None, "sample"), (",0\n0,1\n1,2\n2,3\n", None, ""),
        ('"","V1"\n"1",1\n"2",2\n"3",3\n', None, ""), ("0.1,1\n0.2,2\n0.3,3\n", None, ""),
        ("Unnamed: 0,x\n0,1\n1,2\n2,3\n", None, "Unnamed: 0"),
        ("\n".join(f"{i / 360:.3f} {1 + i}" for i in range(30)), None, ""),
    ],
)  # fmt: skip
def test_times_are_no_samples(read, text, rate, left_out):
    table = read(text)
    np.testing.assert_array_equal(table.samples[:2, 0], [1, 2])
    assert table.samples.shape[1] == 1
    assert (table.sampling_rate, table.left_out) == (rate, left_out)


def test_a_column_without_a_name_that_does_not_count_evenly_is_a_signal(read):
    assert read("0,1\n1,2\n3,3\n").samples.shape == (3, 2)
    assert read("s,x\n0,1\n1,2\n2,3\n").names == ("s", "x")  # one letter may be anything


@pytest.mark.parametrize("rate", [90, 360, 600, 4096])
def test_times_that_were_rounded(read, rate):
    """Milliseconds of rates that do not divide a thousand, some of which are equal."""
    lines = [f"{i / rate:.3f},{i % 5}" for i in range(2 * rate + 1)]
    assert read("\n".join(["time,x", *lines])).sampling_rate == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("# nothing\n\n", "it is empty"),
        ("a,b\n", "a line of names, but no numbers"),
        (b"\x89PNG\r\n\x1a\n\0\0", "it is no text"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 columns, the lines before it have 2"),
        ("# c\na,b\n1,2\n3\n", "line 4 has 1 column, the lines before it have 2"),
        ("a,b,c\n1,2\n", "line 1 names 3 columns, line 2 has 2"),
        ("a,b\n1,2\n3,high\n", r"line 3, column 2 \(b\): 'high' is no number"),
        ("1,2\n3,high\n", "line 2, column 2: 'high' is no number"),
        ("a;b\n1.5;2\n1,5;2\n", r"line 3, column 1 \(a\): '1,5' is no number"),
        ("1\n\n2\n", "line 2 is empty, but the table goes on"),
        ("a,\n" + 150 * "1,\n" + "2,3\n", "line 152 has 2 columns, the lines before it have 1"),
        (
            "time,x\n0,1\n1,2\n3,3\n4,4\n5,5\n",
            "line 4: the time in its first column goes from 1 to 3, where steps of 1 are usual",
        ),
        ("time,x\n0,1\n2,2\n1,3\n", "line 4: the time in its first column goes from 2 to 1"),
        ("\n".join(f"{i},7" for i in (*range(120), 5)), "line 121: .* a first line of names says so"),
        ("time,x\n0,1\n,2\n2,3\n", "line 3 has no time"),
        ("time,x\n2024-01-01,1\n2024-01-02,3\n", "'2024-01-01' is no number; .* times are written as seconds"),
        ("signal,sample,filter,amplitude\n0,1,2,3\n", "table of events"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(read, text, words):
    with pytest.raises(ValueError, match=words):
        read(text)


def test_long_tables_are_kept_in_a_file(read, monkeypatch):
    samples = np.random.default_rng(0).standard_normal((120_000, 3)).astype(np.float32)
    samples[7, 1] = np.nan
    rows = [",".join("" if np.isnan(value) else str(value) for value in row) for row in samples]
    text = "\n".join(["time,a,b,c", *(f"{i / 8},{row}" for i, row in enumerate(rows))])
    assert len(text) > 2**22
    whole = read(text)
    np.testing.assert_array_equal(whole.samples, samples)
    monkeypatch.setattr(tables, "LARGE", 300)
    filed = read(text)
    assert isinstance(filed.samples, np.memmap)
    np.testing.assert_array_equal(filed.samples, samples)
    assert filed.sampling_rate == whole.sampling_rate == 8
    with pytest.raises(ValueError, match=r"line 110002, column 3 \(b\): 'x'"):
        read(text.replace(f"{110_000 / 8},{rows[110_000]}", f"{110_000 / 8},0,x,0"))


def test_a_line_without_an_end_is_refused_before_it_is_read(read):
    with pytest.raises(ValueError, match="line 2 has 4,194,304 characters or more"):
        read("1,2\n" + "3," * 2**22)
