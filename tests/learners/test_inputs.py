"""Tests of what may be given to learners and to coding: tables, tensors, lists, pictures, and signals without contrast."""

import logging
import warnings

import numpy as np
import pytest
import scipy.sparse

import pointillist as pt

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 40))
FILTERS = RNG.standard_normal((3, 5)) / 3
PICTURE = pt.photographs("test")["camera"][100:164, 100:180]


class Held:
    """An object that offers its array and nothing else."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


class Recorded(Held):
    """A stand-in for a tensor whose gradients are recorded."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")

    @property
    def shape(self):
        return self.array.shape

    @property
    def ndim(self):
        return self.array.ndim

    def detach(self):
        return Held(self.array)


def _table(array=X):
    return pytest.importorskip("pandas").DataFrame(array, columns=[f"t{i}" for i in range(array.shape[1])])


GIVEN = {
    "__array__": Held,
    "list of recorded tensors": lambda array: [Recorded(x) for x in array],
    "lists": np.ndarray.tolist,
    "list of __array__": lambda array: [Held(x) for x in array],
    "objects": lambda array: array.astype(object),
    "array of arrays": lambda array: _entries(list(array)),
    "table": _table,
    "list of columns": lambda array: [row for _, row in _table(array).iterrows()],
    "column of arrays": lambda array: pytest.importorskip("pandas").Series(list(array)),
    "labelled array": lambda array: pytest.importorskip("xarray").DataArray(array, dims=("trial", "time")),
    "tensor": lambda array: pytest.importorskip("torch").tensor(array, requires_grad=True),
}
"""Ways to hold the same numbers."""


def _entries(arrays):
    held = np.empty(len(arrays), object)
    held[:] = arrays
    return held


def _learner(kind=pt.BatchCSC, **settings):
    few = {"max_iter": 1} if kind is pt.BatchCSC else {}
    return kind(3, 5, penalty=0.5, n_jobs=1, random_state=0, **few, **settings)


MODEL = _learner().fit(X)
CALLS = {
    "encode": lambda given: pt.encode(given, FILTERS, 0.5, n_jobs=1).objective,
    "max_penalty": lambda given: pt.max_penalty(given, FILTERS),
    "penalty_path": lambda given: pt.penalty_path(given, FILTERS, n=2, n_jobs=1)[1].result.objective,
    "explained_variance": lambda given: pt.explained_variance(given, FILTERS, pt.encode(X, FILTERS, 0.5).codes).shares,
    "BatchCSC.fit": lambda given: _learner().fit(given).filters_,
    "OnlineCSC.fit": lambda given: _learner(pt.OnlineCSC).fit(given).filters_,
    "OnlineCSC.partial_fit": lambda given: _learner(pt.OnlineCSC).partial_fit(given).filters_,
    "transform": lambda given: MODEL.transform(given).to_dense(),
    "score": lambda given: MODEL.score(given),
}


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("call", CALLS)
def test_what_holds_numbers_is_taken_and_stays_as_it_is(call, kind):
    given = GIVEN[kind](X)
    before = X.copy()
    np.testing.assert_array_equal(CALLS[call](given), CALLS[call](X))
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kind", GIVEN)
def test_weights_come_in_the_same_ways(kind):
    expected = pt.max_penalty(X, FILTERS, weights=np.abs(X))
    np.testing.assert_array_equal(pt.max_penalty(X, FILTERS, weights=GIVEN[kind](np.abs(X))), expected)


@pytest.mark.parametrize("call", CALLS)
def test_sparse_matrices_are_told_what_to_do(call):
    with pytest.raises(TypeError, match=r"(X|signals) is sparse.*give (X|signals)\.toarray\(\)"):
        CALLS[call](scipy.sparse.csr_array(X))


@pytest.mark.parametrize("call", CALLS)
def test_masked_samples_were_not_seen_wherever_they_are_given(call):
    holes = np.where(X > 1, np.nan, X)
    expected = CALLS[call](holes)
    np.testing.assert_array_equal(CALLS[call](np.ma.masked_greater(X, 1)), expected)
    np.testing.assert_array_equal(CALLS[call]([np.ma.masked_greater(x, 1) for x in X]), expected)


def test_a_source_of_masked_arrays_keeps_the_masks():
    source = pt.sources.ArraySource([np.ma.masked_greater(x, 1) for x in X])
    assert np.isnan(source.read(0)).sum() == (X[0] > 1).sum() > 0


def test_missing_entries_of_a_table_were_not_seen():
    pandas = pytest.importorskip("pandas")
    table = _table().mask(X > 1).astype("Float64")
    assert table.iloc[0].isna().any()
    assert isinstance(table, pandas.DataFrame)
    np.testing.assert_array_equal(pt.max_penalty(table, FILTERS), pt.max_penalty(np.where(X > 1, np.nan, X), FILTERS))


def test_columns_without_numbers_are_named():
    table = _table().assign(name="a", day="b")
    with pytest.raises(ValueError, match=r"columns that do not hold real numbers: name, day; .*select_dtypes"):
        pt.max_penalty(table, FILTERS)


def test_of_a_dataset_one_variable_is_to_be_chosen():
    data = pytest.importorskip("xarray").Dataset({"a": ("time", X[0])})
    with pytest.raises(TypeError, match="several variables: choose one"):
        pt.max_penalty(data, FILTERS)


def test_one_picture_is_noticed():
    with pytest.warns(UserWarning, match=r"looks like one picture, but its 64 rows.*X\[None\].*filter_size=\(5,\)"):
        _learner().fit(PICTURE)
    with pytest.warns(UserWarning, match="looks like one picture"):
        _learner(pt.OnlineCSC).fit((255 * PICTURE).astype(np.uint8))
    holes = PICTURE.copy()
    holes[10:20] = np.nan
    with pytest.warns(UserWarning, match="looks like one picture"), pytest.raises(ValueError, match=r"X\[10\] is NaN"):
        _learner().fit(holes)


def _rows():
    time = np.linspace(0, 1, 60)
    noise = RNG.standard_normal((50, 60))
    return {
        "noise": noise,
        "walks": np.cumsum(noise, axis=1),
        "heartbeats in line": np.sin(20 * time) * RNG.uniform(0.5, 2, (50, 1)) + 0.1 * noise,
        "windows of one walk": np.cumsum(RNG.standard_normal(3000)).reshape(50, 60),
        "many channels": np.cumsum(RNG.standard_normal((16, 2000)), axis=0),
    }


@pytest.mark.parametrize("kind", _rows())
def test_recordings_are_no_picture(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        _learner().fit(_rows()[kind])


@pytest.mark.parametrize(
    ("given", "size"), [(PICTURE, (5,)), (PICTURE, [(3,), (5,)]), (PICTURE[None], 5), (list(PICTURE), 5)]
)
def test_nobody_is_told_what_was_said(given, size):
    n_filters = [1, 2] if isinstance(size, list) else 3
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        _learner().set_params(filter_size=size, n_filters=n_filters).fit(given)


@pytest.mark.parametrize(
    ("shape", "channels", "advice"),
    [
        ((4, 20, 20, 3), False, r"pt\.as_signals\(list\(X\)\) for pictures, with channels=True.*=\(3, 3, 3\)"),
        ((4, 20, 20, 4), True, r"pt\.as_signals\(list\(X\)\) for pictures.*filter_size=\(3, 3\)"),
        ((20, 30, 3), False, r"pt\.as_signals\(X\) for one picture, np\.moveaxis\(X, -1, 1\) for series"),
        ((5, 200, 3), True, r"np\.moveaxis\(X, -1, 1\) for series"),
    ],
)
def test_colours_behind_the_samples_get_a_hint(shape, channels, advice):
    colours = RNG.standard_normal(shape)
    for given in (colours, pt.sources.ArraySource(colours)) if channels else (colours,):
        with pytest.raises(ValueError, match=rf"colours or channels behind its samples.*{advice}"):
            pt.OnlineCSC(2, 3, channels=channels, random_state=0).fit(given)


def test_the_hints_lead_to_colour_filters_and_to_volumes():
    colours = RNG.standard_normal((2, 20, 20, 3))
    learned = pt.OnlineCSC(2, 3, 0.5, channels=True, random_state=0).fit(pt.as_signals(list(colours)))
    assert learned.filters_.shape == (2, 3, 3, 3)
    volumes = pt.OnlineCSC(2, (3, 3, 3), 0.5, random_state=0).fit(colours)
    assert volumes.filters_.shape == (2, 3, 3, 3)


DULL = np.vstack([X[:2], np.ones((1, 40)), X[2:], np.full((1, 40), np.nan)])


@pytest.mark.parametrize("kind", [pt.BatchCSC, pt.OnlineCSC])
def test_a_constant_signal_is_skipped_and_counted_by_choice(kind, caplog):
    with pytest.raises(ValueError, match=r"X\[2\] is constant.*on_error='skip'"):
        _learner(kind).fit(DULL[:-1])
    with caplog.at_level(logging.WARNING):
        model = _learner(kind).fit(DULL, on_error="skip")
    np.testing.assert_array_equal(model.filters_, _learner(kind).fit(X).filters_)
    assert [reason.split(" is ")[0] for reason in model.skipped_] == ["X[2]", "X[5]"]
    assert set(model.skipped_.values()) == {1}
    assert model.n_seen_ % len(X) == 0
    assert "skipped: X[2] is constant" in caplog.text
    assert _learner(kind).fit(X, on_error="skip").skipped_ == {}


def test_weights_follow_the_signals_that_are_left():
    weights = np.ones(DULL.shape)
    weights[0, :5] = 0
    weights[4] = 0
    left = [0, 1, 3]
    model = _learner().fit(np.nan_to_num(DULL), weights=weights, on_error="skip")
    np.testing.assert_array_equal(model.filters_, _learner().fit(DULL[left], weights=weights[left]).filters_)
    assert len(model.skipped_) == 3


@pytest.mark.parametrize("kind", [pt.BatchCSC, pt.OnlineCSC])
def test_signals_smaller_than_the_filters_are_skipped_and_others_keep_their_numbers(kind):
    loud = X[3].copy()
    loud[10:13] = 50
    together = {"batch_size": 3} if kind is pt.OnlineCSC else {}
    model = _learner(kind, robust=pt.Robust(), **together)
    mixed = [X[0], X[1][:3], X[2], loud]
    model.fit(mixed, on_error="skip")
    assert list(model.skipped_) == ["X[1] is 3, smaller than the filters, 5: use smaller ones"]
    assert set(model.outliers_["signal"].tolist()) <= {0, 2, 3}
    assert 3 in model.outliers_["signal"]


@pytest.mark.parametrize("kind", [pt.BatchCSC, pt.OnlineCSC])
def test_at_least_one_signal_must_be_left(kind):
    with pytest.raises(ValueError, match=r"X gave no signal that can be used; the first: X\[0\] is constant"):
        _learner(kind).fit(np.ones((2, 40)), on_error="skip")
    with pytest.raises(ValueError, match='on_error must be one of "raise", "skip"'):
        _learner(kind).fit(X, on_error="ignore")


def test_partial_fit_skips_too():
    model = _learner(pt.OnlineCSC)
    for batch in (np.ones((2, 40)), DULL[:3], np.ones((2, 40)), DULL[3:5]):
        model.partial_fit(batch, on_error="skip")
    plain = _learner(pt.OnlineCSC).partial_fit(X[:2]).partial_fit(X[2:])
    np.testing.assert_array_equal(model.filters_, plain.filters_)
    assert sum(model.skipped_.values()) == 5
