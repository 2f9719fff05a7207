"""What both learners promise: scikit-learn's manners, same bits, honest history, streams, clear refusals."""

import dataclasses
import pickle
from itertools import pairwise

import numpy as np
import pytest
from numba.core import event
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import pointillist as pt
from pointillist.data.sources import ArraySource
from pointillist.dictionary import statistics as sums
from pointillist.dictionary.constraints import filter_shapes
from pointillist.errors import UnreadableFileError
from pointillist.kernels import compiling, convolution
from pointillist.learners.estimators import training_step
from pointillist.learners.step import Step
from pointillist.sampling import generator
from pointillist.solvers import coordinate_descent, scanning

LEARNERS = {
    "batch": lambda **settings: pt.BatchCSC(**{"max_iter": 4, **settings}),
    "online": lambda **settings: pt.OnlineCSC(**{"batch_size": 2, **settings}),
}
SMALL = {"n_filters": 5, "filter_size": 4, "penalty": 0.3, "sampling": 0.5, "random_state": 0, "n_jobs": 1}
SERIES = {"n_filters": 4, "filter_size": 5, "penalty": 0.3, "random_state": 0, "n_jobs": 1}
STREAM = {**SERIES, "sampling": 0.5, "n_epochs": 1}
TINY = {"n_filters": 2, "filter_size": 3, "penalty": 0.5, "random_state": 0, "n_jobs": 1}
SIGNALS = np.random.default_rng(0).standard_normal((4, 30))
ROWS = np.random.default_rng(0).standard_normal((12, 40))
SHORT = {"BatchCSC": {"max_iter": 3}, "OnlineCSC": {"batch_size": 4, "n_epochs": 1}}


@pytest.fixture(params=LEARNERS)
def make(request):
    return LEARNERS[request.param]


@pytest.fixture(params=[pt.BatchCSC, pt.OnlineCSC])
def learner(request):
    return request.param


@pytest.fixture
def series():
    return np.cumsum(np.random.default_rng(0).standard_normal((7, 80)), axis=1) / 3


@pytest.fixture
def signals():
    rng = np.random.default_rng(0)
    return np.cumsum(rng.standard_normal((6, 14, 15)), axis=2) / 3


def test_filters_are_bounded_and_sorted_by_use(make, signals):
    model = make(**SMALL).fit(signals)
    assert model.filters_.shape == (5, 4, 4)
    assert np.all(np.sqrt(np.sum(model.filters_.astype(float) ** 2, axis=(1, 2))) <= 1 + 1e-6)
    assert np.all(np.diff(model.usage_) <= 0)
    assert model.usage_[0] > 0
    assert model.seed_ == 0


def test_learning_lowers_the_objective_on_unseen_signals(make, signals):
    model = make(**{**SMALL, "sampling": 1.0}).fit(signals[:4], validation=signals[4:])
    rng = np.random.default_rng(1)
    first = rng.standard_normal((5, 4, 4))
    first /= np.sqrt(np.sum(first**2, axis=(1, 2), keepdims=True))
    random = pt.encode(signals[4:], first, 0.3).objective.sum()
    assert model.history_[-1]["validation_objective"] < 0.95 * random


@pytest.mark.parametrize("solver", ["cd", "admm"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_seed_same_bits_for_any_number_of_threads(make, signals, solver, dtype):
    settings = {**SMALL, "solver": solver}
    one, again, two = (make(**{**settings, "n_jobs": n}).fit(signals.astype(dtype)) for n in (1, 1, 2))
    assert one.filters_.dtype == dtype
    for other in (again, two):
        np.testing.assert_array_equal(other.filters_, one.filters_)
        np.testing.assert_array_equal(other.usage_, one.usage_)
        for a, b in zip(one.history_, other.history_, strict=True):
            assert {k: v for k, v in a.items() if k != "seconds"} == {k: v for k, v in b.items() if k != "seconds"}
    different = make(**{**settings, "random_state": 1}).fit(signals.astype(dtype))
    assert not np.array_equal(different.filters_, one.filters_)


def test_history_is_complete(make, signals):
    model = make(**SMALL).fit(signals, validation=signals[:2])
    keys = {"iteration", "seconds", "objective", "nnz", "gap", "n_seen", "replaced", "validation_objective"}
    assert all(set(info) == keys for info in model.history_)
    assert [info["iteration"] for info in model.history_] == list(range(1, model.n_iter_ + 1))
    assert np.all(np.diff([info["seconds"] for info in model.history_]) > 0)
    assert model.history_[-1]["n_seen"] == model.n_seen_
    held_out = model.encode(signals[:2]).objective.sum()
    assert model.history_[-1]["validation_objective"] == pytest.approx(held_out, rel=2e-3)


def test_seconds_of_the_history_are_without_compilation(make, signals, monkeypatch):
    late, real, encode = [0.0], compiling.perf_counter, Step.encode

    def compile_first(*given, **named):
        with event.trigger_event("numba:compile", data={"dispatcher": convolution.correlate}):
            late[0] += 1000  # as if a kernel took so many seconds
        return encode(*given, **named)

    monkeypatch.setattr(compiling, "perf_counter", lambda: real() + late[0])
    monkeypatch.setattr(Step, "encode", compile_first)
    model = make(**SMALL).fit(signals)
    assert late[0] >= 3000
    assert 0 < model.history_[-1]["seconds"] < 1000
    plain = make(**SMALL).fit(signals)
    assert "validation_objective" not in plain.history_[0]


def test_callbacks_see_every_iteration_and_can_stop(make, signals):
    seen = []

    def stop_after_two(info):
        seen.append(info["iteration"])
        return len(seen) == 2

    model = make(**SMALL).fit(signals, callbacks=(stop_after_two, lambda info: None))
    assert seen == [1, 2]
    assert model.n_iter_ == 2
    assert np.all(np.diff(model.usage_) <= 0)


def test_transform_and_back_and_the_score(make, signals):
    model = make(**{**SMALL, "penalty": 0.05}).fit(signals)
    codes = model.transform(signals)
    assert isinstance(codes, pt.SparseCodes)
    assert codes.shape == (6, 5, 14, 15)
    made = model.inverse_transform(codes)
    assert made.shape == signals.shape
    assert np.sum((signals - made) ** 2) < 0.2 * np.sum(signals**2)
    result = model.encode(signals)
    assert np.all(result.gap <= 1e-3)
    np.testing.assert_array_equal(result.codes.to_dense(), codes.to_dense())
    assert model.score(signals) == pytest.approx(-result.objective.sum() / signals.size)
    assert 0 > model.score(signals) > model.score(3 * signals)


@pytest.mark.parametrize(
    ("shape", "size", "more"),
    [
        ((60,), (7,), {}), ((7, 8, 9), 3, {}), ((7, 8, 9), (1, 3, 4), {}), ((2, 14, 15), (4, 4), {"channels": True}),
        ((2, 14, 15), (4, 4), {"channels": True, "update": pt.FilterUpdate(statistics="dense")}),
    ],
)  # fmt: skip
def test_other_dimensions_and_channels(make, shape, size, more):
    data = np.random.default_rng(2).standard_normal((4, *shape))
    model = make(**{**SMALL, "filter_size": size, **more}).fit(data)
    box = size if isinstance(size, tuple) else (size,) * len(shape)
    assert model.filters_.shape == (5, *shape[: len(shape) - len(box)], *box)
    assert model.inverse_transform(model.transform(data)).shape == data.shape
    assert np.all(np.sum(model.filters_.reshape(5, -1) ** 2, axis=1) <= 1 + 1e-6)


def test_circular_learning_with_the_frequency_solver(make, signals):
    settings = {**SMALL, "sampling": 1.0, "boundary": "circular"}
    for statistics in ("toeplitz", "dense"):
        model = make(solver="fft", update=pt.FilterUpdate(statistics=statistics), tol=1e-2, **settings).fit(signals)
        assert model.transform(signals).nnz > 0
    with pytest.raises(ValueError, match="sampling"):
        make(solver="fft", **{**settings, "sampling": 0.5}).fit(signals)


def test_a_circle_has_no_beginning():
    """Turned signals teach the same filters when nothing is clipped at a border; otherwise seams would matter."""
    rng = np.random.default_rng(3)
    signals = np.cumsum(rng.standard_normal((3, 40)), axis=1)
    signals -= np.linspace(signals[:, 0], signals[:, -1], 40, axis=1)
    start = rng.standard_normal((3, 5))
    learned = {}
    for boundary in ("circular", "same"):
        settings = {"update": pt.FilterUpdate(init=start), "learning": 1e-10, "max_iter": 4, "boundary": boundary}
        learned[boundary] = [
            pt.BatchCSC(3, 5, 0.5, random_state=0, **settings).fit(np.roll(signals, shift, axis=1)).filters_
            for shift in (0, 17)
        ]
    np.testing.assert_allclose(*learned["circular"], atol=1e-4)
    assert np.max(np.abs(np.subtract(*learned["same"]))) > 1e-2


def test_constraints_hold(make, signals):
    mean = make(update=pt.FilterUpdate(zero_mean=True), **SMALL).fit(signals)
    np.testing.assert_allclose(mean.filters_.sum(axis=(1, 2)), 0, atol=1e-5)
    positive = make(nonnegative=True, update=pt.FilterUpdate(nonnegative=True), **SMALL).fit(signals - signals.min())
    assert np.all(positive.filters_ >= 0)
    assert all(np.all(values > 0) for values in positive.transform(signals - signals.min()).values)


def test_filters_of_several_sizes_keep_to_their_support(make, signals):
    model = make(**{**SMALL, "filter_size": [3, 6], "n_filters": [3, 2]}).fit(signals)
    assert model.filters_.shape == (5, 6, 6)
    support = filter_shapes([3, 2], [3, 6], 2).support()
    small = [not np.any(one[~support[0]]) for one in model.filters_]
    assert sum(small) == 3


def test_unseen_samples_do_not_matter(make, signals):
    weights = (np.random.default_rng(3).random(signals.shape) < 0.7).astype(float)
    settings = {**SMALL, "sampling": 1.0}
    clean = make(**settings).fit(signals, weights=weights)
    punched = make(**settings).fit(np.where(weights > 0, signals, np.nan), weights=weights)
    np.testing.assert_array_equal(clean.filters_, punched.filters_)
    plain = make(**settings).fit(signals)
    assert not np.array_equal(clean.filters_, plain.filters_)
    assert clean.score(np.where(weights > 0, signals, np.nan), weights=weights) < 0


def test_fit_transform_passes_weights_on(make, signals):
    weights = (np.random.default_rng(5).random(signals.shape) < 0.7).astype(float)
    holes = np.where(weights > 0, signals, np.nan)
    codes = make(**SMALL).fit_transform(holes, weights=weights)
    expected = make(**SMALL).fit(holes, weights=weights).transform(holes, weights=weights)
    np.testing.assert_array_equal(codes.to_dense(), expected.to_dense())


def test_each_filter_keeps_its_own_penalty_when_sorted(make, signals):
    """The dear filter is never used, so sorting puts it last: its price has to move with it."""
    prices = np.array([1e6, 0.3, 0.3])
    update = pt.FilterUpdate(replace_unused=False)
    settings = {**SMALL, "n_filters": 3, "penalty": prices, "update": update, "sampling": 1.0}
    model = make(**settings).fit(signals)
    assert model.usage_[2] == 0
    assert model.usage_[1] > 0
    usage = model.transform(signals).usage()
    assert usage[2] == 0
    assert np.all(usage[:2] > 0)


def test_unused_filters_are_replaced(make, signals):
    dead = np.zeros((5, 4, 4))
    dead[0] = 0.25
    model = make(update=pt.FilterUpdate(init=dead), **{**SMALL, "sampling": 1.0}).fit(signals)
    assert model.history_[0]["replaced"] == 4
    assert np.all(np.sum(model.filters_**2, axis=(1, 2)) > 0.1)
    update = pt.FilterUpdate(init=dead, replace_unused=False)
    kept = make(update=update, **{**SMALL, "sampling": 1.0}).fit(signals)
    assert not np.any(kept.filters_[1:])
    assert all(info["replaced"] == 0 for info in kept.history_)


X = np.random.default_rng(6).standard_normal((3, 9, 10))
HOLE, FLAT = X.copy(), X.copy()
HOLE[2], FLAT[1] = np.nan, 3.0


@pytest.mark.parametrize(
    ("data", "change", "message"),
    [
        (FLAT, {}, r"X\[1\] is constant"),
        (HOLE, {}, r"X\[2\] is NaN everywhere"),
        (X[0, 0], {}, "X.*(axes|dimension)"),
        ([X[0], X[1, 0]], {}, r"X\[1\] must have 2 axes"),
        (X, {"filter_size": 11}, "filter_size.*larger than the signal"),
        (X, {"filter_size": (3, 3, 3)}, "X must have 4 axes"),
        (X, {"update": pt.FilterUpdate(init=np.ones((5, 3, 3)))}, "init has shape"),
    ],
)
def test_bad_input_is_named(make, data, change, message):
    with pytest.raises(ValueError, match=message):
        make(**{**SMALL, **change}).fit(data)


def test_other_channels_than_learned_are_refused(make):
    colours = np.random.default_rng(7).standard_normal((3, 2, 9, 10))
    model = make(channels=True, **SMALL).fit(colours)
    with pytest.raises(ValueError, match="channels"):
        model.transform(colours[:, :1])
    with pytest.raises(ValueError, match="channels"):
        make(channels=True, **SMALL).fit([colours[0], colours[1, :1]])


def test_a_penalty_that_forbids_all_codes_is_told(caplog):
    signals = np.random.default_rng(0).standard_normal((6, 60))
    pt.OnlineCSC(3, 5, penalty=100.0, random_state=0).fit(signals)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "no code was non-zero in 3 steps: the penalty is too large for these signals, or sampling too small"
    ]
    caplog.clear()
    pt.OnlineCSC(3, 5, penalty=0.5, random_state=0).fit(signals)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_partial_fit_goes_on_after_fit(series):
    model = pt.OnlineCSC(batch_size=2, **STREAM).fit(series)
    before = model.filters_.copy()
    model.partial_fit(series[:3])
    assert model.n_seen_ == 10
    assert model.n_iter_ == 5
    change = np.linalg.norm(model.filters_ - before, axis=1)
    assert 0 < change.max() < 0.7
    # A reorder that statistics and filters did not share would throw the filters far away.
    assert (
        pt.encode(series, model.filters_, 0.3).objective.sum() < 1.05 * pt.encode(series, before, 0.3).objective.sum()
    )


def test_fit_starts_afresh(series):
    model = pt.OnlineCSC(batch_size=2, **STREAM).fit(series)
    first = model.filters_.copy()
    model.partial_fit(series)
    np.testing.assert_array_equal(model.fit(series).filters_, first)
    assert model.n_seen_ == 7


@pytest.mark.parametrize("kind", ["array", "list", "source"])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_fit_is_a_plain_loop_over_shuffled_batches(series, kind, shuffle, weighted):
    """Streams, sources and arrays share one loop: to the bit what partial fits in the documented order give."""
    update = pt.FilterUpdate(forgetting=2.0 if weighted else 1.0)
    settings = {**STREAM, "batch_size": 3, "n_epochs": 2, "update": update}
    weights = np.random.default_rng(1).random(series.shape) if weighted else None
    if weighted and kind == "source":
        pytest.skip("a source marks what was not seen by NaN")
    given = {"array": series, "list": list(series), "source": ArraySource(series)}[kind]
    model = pt.OnlineCSC(**settings).fit(given, weights=weights, shuffle=shuffle)
    plain = pt.OnlineCSC(**settings)
    for epoch in range(2):
        order = generator(0, epoch, 2).permutation(7) if shuffle else np.arange(7)
        for first in (0, 3, 6):
            chosen = order[first : first + 3]
            plain.partial_fit(series[chosen], weights=None if weights is None else weights[chosen])
    plain.state_.sort_by_use()
    np.testing.assert_array_equal(model.filters_, plain.state_.filters[:, 0])
    np.testing.assert_array_equal(model.usage_, plain.state_.usage)
    assert (model.n_seen_, model.n_iter_) == (plain.n_seen_, plain.n_iter_) == (14, 6)
    assert [info["objective"] for info in model.history_] == [info["objective"] for info in plain.history_]


class Damaged(ArraySource):
    """Signals of which some cannot be read."""

    damaged = (0, 4)

    def read(self, index, epoch=0):
        if index in self.damaged:
            raise UnreadableFileError(f"cannot read {self.name(index)}: it is damaged")
        return super().read(index, epoch)


@pytest.mark.parametrize("init", ["random", "patches"])
def test_unreadable_signals_are_skipped_or_stop_the_run(series, init, caplog):
    settings = {**STREAM, "batch_size": 2, "n_epochs": 2, "update": pt.FilterUpdate(init=init)}
    model = pt.OnlineCSC(**settings).fit(Damaged(series), on_error="skip")
    assert model.n_seen_ == 10
    assert model.skipped_ == {f"cannot read X[{i}]: it is damaged": 2 for i in (0, 4)}
    assert caplog.text.count("X[4]") == 1
    with pytest.raises(UnreadableFileError, match=r"X\[[04]\]"):
        pt.OnlineCSC(**settings).fit(Damaged(series))


class Counting(ArraySource):
    """How often each signal was read."""

    def __init__(self, series):
        super().__init__(series)
        self.reads = [0] * len(series)

    def read(self, index, epoch=0):
        self.reads[index] += 1
        return super().read(index, epoch)


@pytest.mark.parametrize(
    ("n_epochs", "prefetch", "init", "most"),
    [(1, 0, "random", 1), (1, 2, "random", 1), (3, 2, "random", 3), (1, 2, "patches", 2)],
)
def test_signals_are_read_once_for_each_pass_and_once_for_patches(series, n_epochs, prefetch, init, most):
    source = Counting(series)
    settings = {**STREAM, "n_epochs": n_epochs, "update": pt.FilterUpdate(init=init)}
    pt.OnlineCSC(**settings, batch_size=2).fit(source, prefetch=prefetch)
    assert source.reads == [most] * len(series)


def test_signals_from_an_iterator(series):
    model = pt.OnlineCSC(batch_size=3, **STREAM).fit(signal for signal in series)
    plain = pt.OnlineCSC(batch_size=3, **STREAM).fit(series, shuffle=False)
    np.testing.assert_array_equal(model.filters_, plain.filters_)
    with pytest.raises(ValueError, match="no signal that can be used"):
        pt.OnlineCSC(**STREAM).fit(iter([]))
    with pytest.raises(ValueError, match="weights are for arrays"):
        pt.OnlineCSC(**STREAM).fit(iter(series), weights=series)


def test_validation_is_done_when_due(series):
    model = pt.OnlineCSC(batch_size=1, **STREAM).fit(series, validation=series[:1], validation_every=3)
    due = ["validation_objective" in info for info in model.history_]
    assert due == [False, False, True, False, False, True, False]


@pytest.mark.parametrize(
    ("learner", "setting", "how", "message"),
    [
        (pt.OnlineCSC, {"batch_size": 0}, {}, "batch_size must be a positive integer"),
        (pt.OnlineCSC, {"n_epochs": 0}, {}, "n_epochs must be None or a positive integer"),
        (pt.OnlineCSC, {}, {"validation_every": 2}, "validation_every needs validation"),
        (pt.OnlineCSC, {}, {"resume": True, "warm_start": True, "checkpoint": pt.Checkpoints("m")}, "begins a new run"),
        (pt.BatchCSC, {"max_iter": 0}, {}, "max_iter must be a positive integer"),
    ],
)
def test_settings_of_one_learner_are_named(series, learner, setting, how, message):
    with pytest.raises(ValueError, match=message):
        learner(**SERIES, **setting).fit(series, **how)


@pytest.mark.parametrize("forgetting", [1.0, 2.0, None])
def test_weights_of_images_are_increments_of_a_power(forgetting):
    update = pt.FilterUpdate(forgetting=forgetting)
    power = 4 if forgetting is None else forgetting
    model = pt.OnlineCSC(**{**SERIES, "update": update})
    for first, last in ((0, 2), (2, 5)):
        model.partial_fit(ROWS[first:last])
        assert model.state_.statistics.total == pytest.approx(last**power)


def test_bad_batches_leave_the_model_as_it_was(series):
    model = pt.OnlineCSC(**STREAM).fit(series)
    before, seen = model.filters_.copy(), model.n_seen_
    for bad in (series[:, :4], series[:2] * np.nan, series[None], []):
        with pytest.raises(ValueError, match=r"X|filter_size|dimensions"):
            model.partial_fit(bad)
    np.testing.assert_array_equal(model.filters_, before)
    assert model.n_seen_ == seen
    again = pt.OnlineCSC(**STREAM).fit(series).partial_fit(series[:2])
    np.testing.assert_array_equal(model.partial_fit(series[:2]).filters_, again.filters_)


def test_threads_that_share_every_part_of_a_step_do_not_change_a_bit(monkeypatch):
    # By themselves threads share scans, pairs and sweeps of large problems only.
    for module, numbers in (
        (coordinate_descent, {"thread_products_with_ridge": 0}),
        (scanning, {"chunk_positions": 100}),
        (sums, {"shared_pairs": 0, "shared_products": 0, "group": 5}),
    ):
        monkeypatch.setattr(module, "TUNING", dataclasses.replace(module.TUNING, **numbers))
    pictures = np.cumsum(np.random.default_rng(0).standard_normal((6, 31, 24)), axis=1).astype(np.float32)
    found = [
        pt.OnlineCSC(n_filters=12, filter_size=7, penalty=0.5, n_jobs=n, n_epochs=1, random_state=0).fit(pictures)
        for n in (1, 2, 5)
    ]
    assert found[0].history_[-1]["nnz"] > 50
    for other in found[1:]:
        np.testing.assert_array_equal(other.filters_, found[0].filters_)
        assert [one["gap"] for one in other.history_] == [one["gap"] for one in found[0].history_]


@pytest.mark.parametrize("boundary", ["valid", "same", "full"])
@pytest.mark.parametrize("statistics", ["toeplitz", "dense"])
@pytest.mark.parametrize("weighted", [False, True])
def test_exact_alternation_never_rises(signals, boundary, statistics, weighted):
    """Codes to a tight tolerance, then a descent on the filters, with weights beyond one too."""
    weights = 4 * np.random.default_rng(4).random(signals.shape) if weighted else None
    update = pt.FilterUpdate(replace_unused=False, statistics=statistics)
    settings = {**SMALL, "sampling": 1.0, "boundary": boundary, "update": update}
    model = pt.BatchCSC(max_iter=8, learning=1e-6, **settings).fit(signals, weights=weights)
    objectives = np.array([info["objective"] for info in model.history_])
    assert np.all(np.diff(objectives) <= 1e-5 * objectives[:-1])
    assert objectives[-1] < 0.95 * objectives[0]


def test_the_recorded_objective_is_that_of_the_codes_and_new_filters(series):
    model = pt.BatchCSC(max_iter=1, sampling=1.0, learning=1e-7, **SERIES).fit(series)
    step = training_step(pt.BatchCSC(max_iter=1, sampling=1.0, **SERIES))
    start = step.start(step.check(series), 0).filters
    codes = pt.encode(series, start[:, 0], 0.3, tol=1e-7)
    best = pt.encode(series, model.filters_, 0.3, tol=1e-7).objective.sum()
    assert best <= model.history_[0]["objective"] * (1 + 1e-6)
    assert model.history_[0]["objective"] <= codes.objective.sum()
    assert model.history_[0]["nnz"] == pytest.approx(codes.codes.nnz, rel=0.05)


def test_small_changes_stop_it(series):
    eager = pt.BatchCSC(max_iter=100, sampling=1.0, **SERIES).fit(series, min_change=0.5)
    assert eager.n_iter_ == 3
    patient = pt.BatchCSC(max_iter=30, sampling=1.0, learning=0.01, **SERIES).fit(series, min_change=1e-3)
    assert 3 < patient.n_iter_ < 30
    recent = [info["objective"] for info in patient.history_[-3:]]
    assert all(abs(b - a) < 1e-3 * a for a, b in pairwise(recent))
    assert pt.BatchCSC(max_iter=5, **SERIES).fit(series).n_iter_ == 5


def test_fields_are_parameters(learner):
    model = learner(**TINY, solver=pt.solvers.CoordinateDescent(max_iter=7))
    parameters = model.get_params()
    assert parameters["update__zero_mean"] is False
    assert parameters["solver__max_iter"] == 7
    assert "learning__strength" not in parameters
    assert learner().get_params()["learning__strength"] == 1.0
    assert "update__zero_mean" not in model.get_params(deep=False)


def test_setting_a_field_replaces_the_object(learner):
    update = pt.FilterUpdate(n_sweeps=2)
    model = learner(**TINY, update=update)
    assert model.set_params(update__zero_mean=True, learning__strength=2.0, n_filters=3) is model
    assert model.update == pt.FilterUpdate(n_sweeps=2, zero_mean=True)
    assert model.learning == pt.Ridge(2.0)
    assert model.n_filters == 3
    assert update == pt.FilterUpdate(n_sweeps=2)
    solved = learner(solver=pt.solvers.CoordinateDescent()).set_params(solver__max_iter=5)
    assert solved.solver == pt.solvers.CoordinateDescent(max_iter=5)
    both = learner().set_params(update__n_sweeps=3, update=update)
    assert both.update.n_sweeps == 3


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ({"update__zeromean": True}, "update__zeromean does not exist: FilterUpdate has init, "),
        ({"update__zero_mean__alpha": 2.0}, "update__zero_mean__alpha does not exist"),
        ({"update__": 2.0}, "update__ does not exist"),
        ({"robust__alpha": 2.0}, "robust__alpha does not exist: robust=None has no fields"),
        ({"robust": pt.Robust(), "robust__beta": 2.0}, "robust__beta does not exist: Robust has"),
        ({"robust": pt.Robust(), "robust__alpha": -1.0}, "alpha must be a positive"),
        ({"solver__max_iter": 3}, "solver='cd' has no fields"),
        ({"nothing__at_all": 3}, "has no parameter 'nothing'"),
        ({"nothing": 3}, "Invalid parameter"),
        ({"update__n_sweeps": 0}, "n_sweeps must be None or a positive integer"),
    ],
)
def test_names_that_do_not_exist_are_refused(learner, parameter, message):
    with pytest.raises(ValueError, match=message):
        learner().set_params(**parameter)
    with pytest.raises(ValueError, match="learning=None has no fields"):
        learner(solver="admm").set_params(learning__strength=2.0)


def test_copies_are_equal_and_their_own(learner):
    first = np.random.default_rng(1).standard_normal((2, 3))
    model = learner(**TINY, update=pt.FilterUpdate(init=first), learning=pt.Ridge(half_life=4))
    copy = clone(model)
    np.testing.assert_array_equal(copy.update.init, first)
    assert copy.learning == model.learning
    again = pickle.loads(pickle.dumps(model.fit(SIGNALS)))
    np.testing.assert_array_equal(again.filters_, model.filters_)
    np.testing.assert_array_equal(again.transform(SIGNALS).to_dense(), model.transform(SIGNALS).to_dense())


def test_pipelines_pass_fields_on(learner):
    pipeline = Pipeline([("centre", FunctionTransformer()), ("csc", learner(**TINY))])
    pipeline.set_params(csc__update__zero_mean=True).fit(SIGNALS)
    np.testing.assert_allclose(pipeline["csc"].filters_.sum(axis=1), 0, atol=1e-6)
    assert pipeline.get_params()["csc__update__zero_mean"] is True


def test_fields_that_exclude_each_other_are_set_together(learner):
    model = learner(**TINY, robust=pt.Robust(alpha=2.0, warm_up=1))
    assert model.get_params()["robust__alpha"] == 2.0
    model.set_params(robust__alpha=3.5, robust__fraction=0.1)
    assert model.robust == pt.Robust(fraction=0.1, warm_up=1)
    assert learner().set_params(robust__window=30, robust=pt.Robust()).robust == pt.Robust(window=30)


def test_grid_search_over_fields_and_passes(learner):
    length = "n_epochs" if learner is pt.OnlineCSC else "max_iter"
    model = learner(**TINY, robust=pt.Robust(window=10))
    grid = {"robust__alpha": [0.5, 50.0], "update__zero_mean": [False, True], length: [1, 2]}
    search = GridSearchCV(model, grid, cv=2).fit(SIGNALS)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    best, found = search.best_params_, search.best_estimator_
    assert found.robust == pt.Robust(alpha=best["robust__alpha"], window=10)
    assert found.update.zero_mean == best["update__zero_mean"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pt.OnlineCSC(4, 7, 0.5).fit(SIGNALS, n_epochs=2), "n_epochs"),
        (lambda: pt.OnlineCSC(4, 7, callbacks=[]), "callbacks is an argument of fit"),
        (lambda: pt.BatchCSC(4, 7, verbose=1), "verbose is an argument of fit"),
        (lambda: pt.FilterUpdate(rank=1), "rank"),
        (lambda: pt.OnlineCSC(4, 7, epochs=3), "epochs"),
    ],
)
def test_an_argument_in_another_place_is_told_its_own(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def _learner(name, **settings):
    usual = {"penalty": 0.5, "n_jobs": 1, "random_state": 0, **SHORT[name]}
    return getattr(pt, name)(3, 5, **{**usual, **settings})


@pytest.mark.parametrize("name", SHORT)
def test_a_warm_start_begins_with_the_filters_of_the_last_fit(name):
    model = _learner(name).fit(ROWS)
    first = model.filters_.copy()
    given = _learner(name, penalty=0.3, update=pt.FilterUpdate(init=first)).fit(ROWS)
    model.set_params(penalty=0.3).fit(ROWS, warm_start=True)
    np.testing.assert_array_equal(model.filters_, given.filters_)
    assert model.update is None
    assert len(model.history_) == 3
    assert not np.array_equal(model.filters_, _learner(name, penalty=0.3).fit(ROWS).filters_)


@pytest.mark.parametrize("name", SHORT)
def test_a_warm_start_of_an_unfitted_learner_is_a_plain_one(name):
    fitted = _learner(name).fit(ROWS)
    np.testing.assert_array_equal(clone(fitted).fit(ROWS, warm_start=True).filters_, fitted.filters_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_filters": 4}, "warm_start needs as many filters.*3 of 5.*n_filters=4 and filter_size=5"),
        ({"filter_size": 7}, "warm_start needs as many filters"),
        ({"penalty": np.ones(3)}, "warm_start needs .* one penalty for all"),
        ({"n_filters": [1, 2], "filter_size": [3, 5]}, "warm_start needs as many filters of one size"),
    ],
)
@pytest.mark.parametrize("name", SHORT)
def test_other_filters_cannot_be_begun_with(name, change, message):
    model = _learner(name).fit(ROWS).set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(ROWS, warm_start=True)


@pytest.mark.parametrize("verbose", [0, False, 1, True])
def test_lines_come_less_and_less_often(verbose, capsys):
    _learner("OnlineCSC", batch_size=1).fit(ROWS, verbose=verbose)
    said = capsys.readouterr().out.splitlines()
    assert [int(line.split(":")[0].removeprefix("step ")) for line in said] == ([1, 2, 5, 10, 12] if verbose else [])


def test_two_tells_of_every_step_and_of_signals_that_are_held_out(capsys):
    model = _learner("BatchCSC").fit(ROWS, verbose=2, validation=ROWS[:2])
    said = capsys.readouterr().out.splitlines()
    last = model.history_[-1]
    assert len(said) == 3
    assert said[2].startswith(f"step 3: objective {last['objective']:.6g}, held-out objective ")
    assert f" {last['nnz']:,} codes, " in said[2]
