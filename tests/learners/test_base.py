"""What both learners promise: scikit-learn's manners, same bits, honest history, clear refusals."""

import numpy as np
import pytest
from numba.core import event

import pointillist as pt
from pointillist.dictionary.constraints import filter_shapes
from pointillist.kernels import compiling, convolution
from pointillist.learners.step import Step

LEARNERS = {
    "batch": lambda **settings: pt.BatchCSC(**{"max_iter": 4, **settings}),
    "online": lambda **settings: pt.OnlineCSC(**{"batch_size": 2, **settings}),
}
SMALL = {"n_filters": 5, "filter_size": 4, "penalty": 0.3, "sampling": 0.5, "random_state": 0, "n_jobs": 1}


@pytest.fixture(params=LEARNERS)
def make(request):
    return LEARNERS[request.param]


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


def test_transform_and_back(make, signals):
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


def test_score_is_minus_the_mean_objective_a_sample(make, signals):
    model = make(**SMALL).fit(signals)
    assert model.score(signals) == pytest.approx(-model.encode(signals).objective.sum() / signals.size)
    assert model.score(signals) < 0
    assert model.score(signals) > model.score(3 * signals)


def test_lists_of_different_sizes(make, signals):
    mixed = [signals[0], signals[1][:, :9], signals[2][:8], signals[3]]
    model = make(**SMALL).fit(mixed)
    codes = model.transform(mixed)
    assert codes.grids == [(14, 15), (14, 9), (8, 15), (14, 15)]
    assert [made.shape for made in model.inverse_transform(codes)] == [x.shape for x in mixed]
    model.score(mixed)


@pytest.mark.parametrize("statistics", ["toeplitz", "dense"])
def test_channels(make, signals, statistics):
    colours = np.stack([signals, signals[:, ::-1]], axis=1)
    model = make(channels=True, update=pt.FilterUpdate(statistics=statistics), **SMALL).fit(colours)
    assert model.filters_.shape == (5, 2, 4, 4)
    assert model.inverse_transform(model.transform(colours)).shape == colours.shape
    assert np.all(np.sum(model.filters_**2, axis=(1, 2, 3)) <= 1 + 1e-6)


@pytest.mark.parametrize(("shape", "size"), [((60,), 7), ((7, 8, 9), 3), ((7, 8, 9), (1, 3, 4))])
def test_other_dimensions(make, shape, size):
    data = np.random.default_rng(2).standard_normal((4, *shape))
    model = make(**{**SMALL, "filter_size": size}).fit(data)
    box = size if isinstance(size, tuple) else (size,) * len(shape)
    assert model.filters_.shape == (5, *box)
    assert model.inverse_transform(model.transform(data)).shape == data.shape


@pytest.mark.parametrize("boundary", ["valid", "same", "full"])
@pytest.mark.parametrize("statistics", ["toeplitz", "dense"])
def test_boundaries_and_statistics(make, signals, boundary, statistics):
    update = pt.FilterUpdate(statistics=statistics)
    model = make(boundary=boundary, update=update, **{**SMALL, "sampling": 1.0}).fit(signals)
    objectives = [info["objective"] for info in model.history_]
    if isinstance(model, pt.BatchCSC):
        assert objectives[-1] < objectives[0]
    assert model.transform(signals).nnz > 0


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
    with pytest.raises(ValueError, match="exclude each other"):
        pt.FilterUpdate(zero_mean=True, nonnegative=True)


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


@pytest.mark.parametrize("statistics", ["toeplitz", "dense"])
def test_weights_beyond_one_still_descend(signals, statistics):
    weights = 4 * np.random.default_rng(4).random(signals.shape)
    update = pt.FilterUpdate(statistics=statistics)
    model = pt.BatchCSC(max_iter=8, update=update, learning=1e-4, **{**SMALL, "sampling": 1.0})
    objectives = [info["objective"] for info in model.fit(signals, weights=weights).history_]
    assert np.all(np.diff(objectives) <= 1e-3 * np.abs(objectives[:-1]))
    assert objectives[-1] < 0.95 * objectives[0]


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
HOLE[2] = np.nan
ENDLESS = X.copy()
ENDLESS[2, 0, 0] = np.inf
FLAT[1] = 3.0


@pytest.mark.parametrize(
    ("data", "change", "message"),
    [
        (FLAT, {}, r"X\[1\] is constant"),
        (HOLE, {}, r"X\[2\] is NaN everywhere"),
        (ENDLESS, {}, r"X\[2\] holds NaN or infinite"),
        ([], {}, "X is empty"),
        (np.empty((0, 9, 10)), {}, "X is empty"),
        (X[0, 0], {}, "X.*(axes|dimension)"),
        ([X[0], X[1, 0]], {}, r"X\[1\] must have 2 axes"),
        (X, {"filter_size": 11}, "filter_size.*larger than the signal"),
        (X, {"filter_size": (3, 3, 3)}, "X must have 4 axes"),
        (X, {"filter_size": 0}, "filter_size"),
        (X, {"filter_size": 2.5}, "filter_size"),
        (X, {"n_filters": 0}, "n_filters"),
        (X, {"n_filters": 2.5}, "n_filters"),
        (X, {"penalty": 0}, "penalty"),
        (X, {"penalty": None}, "penalty"),
        (X, {"penalty": float("inf")}, "penalty"),
        (X, {"sampling": 0}, "sampling"),
        (X, {"sampling": 2}, "sampling"),
        (X, {"boundary": "mirror"}, "boundary"),
        (X, {"solver": "simplex"}, "solver must be one of"),
        (X, {"update": pt.FilterUpdate(init=np.ones((5, 3, 3)))}, "init has shape"),
        (X, {"n_jobs": 0}, "n_jobs"),
        (X, {"random_state": -3}, "random_state"),
    ],
)
def test_bad_input_is_named(make, data, change, message):
    with pytest.raises(ValueError, match=message):
        make(**{**SMALL, **change}).fit(data)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((2, 9, 10)), "weights must hold one array for each of the 3"),
        (np.ones((3, 9, 9)), r"weights\[0\] has shape"),
        (-np.ones((9, 10)), r"weights\[0\] must be finite and not negative"),
        (np.zeros((9, 10)), r"weights\[0\] is zero everywhere"),
    ],
)
def test_bad_weights_are_named(make, weights, message):
    with pytest.raises(ValueError, match=message):
        make(**SMALL).fit(X, weights=weights)


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
