"""Tests of `encode`, `decode`, `max_penalty` and `penalty_path` as users call them."""

import warnings

import numpy as np
import pytest
from attack.told import told
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt
from pointillist import penalty_path
from pointillist.sampling import Draws, draw_sample
from pointillist.solvers import CoordinateDescent, FrequencyADMM, SampledADMM
from pointillist.validation import BOUNDARIES

COMBINATIONS = [
    *(("cd", boundary) for boundary in BOUNDARIES),
    *((SampledADMM(rho=1.0, tol=1e-3, max_iter=5000), boundary) for boundary in ("same", "circular")),
    (FrequencyADMM(rho=1.0, tol=1e-3, max_iter=5000), "circular"),
]
SOLVERS = [
    (CoordinateDescent(max_iter=1, tol=1e-9), "same"),
    (SampledADMM(max_iter=2, tol=1e-9), "same"),
    (FrequencyADMM(max_iter=2, tol=1e-9), "circular"),
]


def name(value):
    return value if isinstance(value, str) else type(value).__name__


@pytest.fixture
def filters(reference):
    return reference.filters(np.random.default_rng(0), 4, 1, (3, 4))[:, 0]


@pytest.fixture
def signals():
    rng = np.random.default_rng(1)
    return [rng.standard_normal(shape) for shape in ((9, 10), (7, 12), (9, 10), (8, 8), (7, 12))]


@pytest.mark.parametrize(("solver", "boundary"), COMBINATIONS, ids=name)
def test_signals_of_mixed_sizes_keep_their_order(filters, signals, solver, boundary):
    together = pt.encode(signals, filters, 0.5, solver=solver, boundary=boundary)
    assert len(together.codes) == len(signals)
    made = pt.decode(together.codes, filters, boundary=boundary)
    for i, signal in enumerate(signals):
        alone = pt.encode(signal[None], filters, 0.5, solver=solver, boundary=boundary)
        assert together.objective[i] == pytest.approx(alone.objective[0], rel=1e-3)
        assert together.residuals[i].shape == (1, *signal.shape)
        assert made[i].shape == signal.shape
        np.testing.assert_allclose(signal - made[i], together.residuals[i][0], atol=1e-9)


KINDS = {
    "lines": {"shape": (5, 1, 400), "size": (16,)},
    "lines in batches": {"shape": (9, 2, 12_000), "size": (24,), "n_filters": 6},
    "a line of many filters": {"shape": (1, 1, 60_000), "size": (64,), "n_filters": 40, "penalty": 3.0},
    "lines of many channels": {"shape": (3, 12, 700), "size": (15,)},
    "lines of rank one": {"shape": (3, 20, 900), "size": (20,), "rank": 1},
    "a line of rank one": {"shape": (1, 24, 40_000), "size": (32,), "rank": 1, "penalty": 3.0},
    "pictures of rank one": {"shape": (2, 12, 60, 70), "size": (5, 5), "rank": 1},
    # Beyond 10,000 samples BLAS splits even a dot product among its threads.
    "pictures": {"shape": (3, 1, 104, 104), "size": (6, 5)},
    "pictures around a circle": {"shape": (3, 1, 104, 104), "size": (6, 5), "solver": "fft", "boundary": "circular"},
    "a large picture": {"shape": (1, 3, 330, 350), "size": (7, 7), "n_filters": 10, "penalty": 2.0},
}
WEIGHTED = [
    (kind, weighted) for kind in KINDS for weighted in (False, True) if not (weighted and "solver" in KINDS[kind])
]


@pytest.mark.parametrize(("kind", "weighted"), WEIGHTED)
def test_any_number_of_threads_gives_the_same_bits(kind, weighted):
    given = {"n_filters": 4, "rank": None, "penalty": 1.5, "solver": "cd", "boundary": "same", **KINDS[kind]}
    (count, channels, *space), size, n_filters = given["shape"], given["size"], given["n_filters"]
    rng = np.random.default_rng(2)
    filters = rng.standard_normal((n_filters, channels, *size))
    if given["rank"] == 1:
        filters = filters[:, :1] * rng.standard_normal((n_filters, channels, *np.ones_like(size)))
    filters /= np.sqrt(np.sum(filters**2, axis=tuple(range(1, filters.ndim)), keepdims=True))
    dense = 5 * rng.standard_normal((count, n_filters, *space))
    dense *= rng.random(dense.shape) < 0.5 / (n_filters * np.prod(size))
    signals = pt.decode(pt.SparseCodes.from_dense(dense), filters, channels=True)
    signals = (signals + 0.2 * rng.standard_normal(signals.shape)).astype(np.float32)
    weights = np.ones(signals.shape) if weighted else None
    if weighted:
        weights[..., 20:40], weights[..., 44:48] = 0.0, 0.5
    more = {name: given[name] for name in ("solver", "boundary")}
    one, *others = (
        pt.encode(
            signals, filters.astype(np.float32), given["penalty"], weights=weights, channels=True, tol=0.01, n_jobs=n, **more
        )
        for n in (1, 2, 3)
    )  # fmt: skip
    assert one.codes.nnz > 0
    assert all(told(other) == told(one) for other in others)


@pytest.mark.parametrize(
    ("signal", "bank", "kept"),
    [
        (np.float64, np.float64, np.float64),
        (np.float64, np.float32, np.float64),
        (np.float32, np.float64, np.float64),
        (np.float32, np.float32, np.float32),
        (np.uint8, np.float32, np.float32),
    ],
)
def test_the_wider_precision_is_kept(filters, signals, signal, bank, kept):
    given = (10 * np.abs(signals[0])).astype(signal)[None]
    result = pt.encode(given, filters.astype(bank), 2.0)
    assert result.codes.dtype == kept
    assert result.residuals[0].dtype == kept
    assert result.objective.dtype == np.float64
    made = pt.decode(result.codes, filters.astype(bank))
    assert made.dtype == kept
    np.testing.assert_allclose(given - made, result.residuals[0], atol=1e-12 if kept == np.float64 else 1e-4)


@pytest.mark.parametrize(("solver", "boundary"), SOLVERS, ids=name)
def test_stopping_early_warns_with_advice(filters, signals, solver, boundary):
    with pytest.warns(ConvergenceWarning, match=r"5 of 5 signals stopped at: iteration limit.*raise"):
        result = pt.encode(signals, filters, 0.3, solver=solver, boundary=boundary)
    assert result.status is pt.Status.ITERATION_LIMIT
    assert np.all(result.gap > 1e-9)


def test_converging_does_not_warn(filters, signals):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = pt.encode(signals, filters, 0.5, tol=1e-3)
    assert result.status is pt.Status.CONVERGED
    assert np.all(result.gap <= 1e-3)


@pytest.mark.parametrize("solver", ["cd", SampledADMM(rho=1.0, max_iter=5000, tol=1e-2)], ids=name)
def test_sampled_codes_stay_in_the_sample(filters, signals, solver):
    settings = {"solver": solver, "sampling": 0.3}
    one, again, other = (pt.encode(signals, filters, 0.5, random_state=s, **settings) for s in (3, 3, 4))
    for index, values, same, grid in zip(
        one.codes.indices, one.codes.values, again.codes.values, one.codes.grids, strict=True
    ):
        assert np.all(np.isin(index, draw_sample(4, grid, Draws(0.3), 3, 0).indices))
        np.testing.assert_array_equal(values, same)
    assert any(not np.array_equal(a, b) for a, b in zip(one.codes.indices, other.codes.indices, strict=True))
    assert np.all(one.objective >= pt.encode(signals, filters, 0.5).objective * (1 - 1e-3))


@pytest.mark.parametrize("solver", ["cd", SampledADMM(rho=1.0, max_iter=5000, tol=1e-2)], ids=name)
def test_unseen_samples_do_not_matter(filters, signals, solver):
    rng = np.random.default_rng(5)
    weights = [(rng.random(signal.shape) < 0.7).astype(float) for signal in signals]
    holes = [np.where(w > 0, signal, np.nan) for w, signal in zip(weights, signals, strict=True)]
    clean = pt.encode(signals, filters, 0.5, weights=weights, solver=solver)
    punched = pt.encode(holes, filters, 0.5, weights=weights, solver=solver)
    np.testing.assert_array_equal(clean.objective, punched.objective)
    for w, residual in zip(weights, punched.residuals, strict=True):
        assert np.all(residual[0][w == 0] == 0)


@pytest.mark.parametrize("solver", ["cd", SampledADMM(rho=1.0, max_iter=5000, tol=1e-2)], ids=name)
def test_shared_weights_equal_repeated_ones(filters, signals, solver):
    stack = np.stack([signals[0], signals[2]])
    weights = np.random.default_rng(6).random((9, 10))
    shared = pt.encode(stack, filters, 0.3, weights=weights, solver=solver)
    repeated = pt.encode(stack, filters, 0.3, weights=[weights, weights.copy()], solver=solver)
    np.testing.assert_array_equal(shared.codes.to_dense(), repeated.codes.to_dense())


@pytest.mark.parametrize("n_channels", [1, 2, 4])
def test_signals_with_other_channels_than_the_filters_are_refused(n_channels, reference):
    bank = reference.filters(np.random.default_rng(8), 2, 3, (3,))
    x = np.random.default_rng(9).standard_normal((2, n_channels, 12))
    for call in (lambda: pt.encode(x, bank, channels=True), lambda: pt.max_penalty(x, bank, channels=True)):
        with pytest.raises(ValueError, match="channels"):
            call()


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_max_penalty_is_the_first_that_gives_zero(filters, signals, boundary, nonnegative):
    largest = pt.max_penalty(signals, filters, boundary=boundary, nonnegative=nonnegative)
    for signal, penalty in zip(signals, largest, strict=True):
        zero, some = (
            pt.encode(signal[None], filters, p, boundary=boundary, nonnegative=nonnegative, tol=1e-6)
            for p in (penalty * 1.001, penalty * 0.97)
        )
        energy = 0.5 * np.sum(signal**2)
        assert zero.codes.nnz == 0
        assert zero.objective[0] == pytest.approx(energy, rel=1e-6)
        assert some.codes.nnz > 0
        assert some.objective[0] < energy * (1 - 1e-5)


def test_max_penalty_sees_weights(filters, signals):
    weights = [np.full(signal.shape, 2.0) for signal in signals]
    plain = pt.max_penalty(signals, filters)
    np.testing.assert_allclose(pt.max_penalty(signals, filters, weights=weights), 2 * plain)


def test_nan_marks_what_was_not_seen():
    rng = np.random.default_rng(3)
    signals, filters = rng.standard_normal((2, 9, 10)), rng.standard_normal((4, 3, 3))
    signals[1, 2, 3:6] = np.nan
    weights = (~np.isnan(signals)).astype(float)
    ours, theirs = pt.encode(signals, filters, 0.5), pt.encode(signals, filters, 0.5, weights=weights)
    np.testing.assert_array_equal(ours.codes.to_dense(), theirs.codes.to_dense())
    np.testing.assert_array_equal(pt.max_penalty(signals, filters), pt.max_penalty(signals, filters, weights=weights))
    path = [pt.penalty_path(signals, filters, n=3, weights=given) for given in (None, weights)]
    assert [point.penalty for point in path[0]] == [point.penalty for point in path[1]]
    np.testing.assert_array_equal(path[0][2].result.objective, path[1][2].result.objective)


IMAGE = np.random.default_rng(10).standard_normal((2, 9, 10))
CODES = pt.SparseCodes.from_dense(np.zeros((2, 4, 9, 10)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"signals": IMAGE[None]}, "signals must have 3 axes"),
        ({"signals": IMAGE[:, :2]}, "filter.*larger than the signal"),
        ({"penalty": np.ones(3)}, "penalty of shape"),
        ({"tol": 0.1, "solver": CoordinateDescent()}, r"leave tol out, or write solver=CoordinateDescent\(tol=0.1\)"),
        ({"start": CODES, "solver": "admm"}, "start would have no effect: SampledADMM begins at zero"),
        ({"start": CODES, "solver": FrequencyADMM(), "boundary": "circular"}, "start would have no effect"),
        ({"start": CODES[:1]}, "start must hold codes of the same signals"),
        ({"start": CODES, "boundary": "full"}, "start must hold codes of the same signals"),
        ({"start": pt.SparseCodes.from_dense(np.zeros((2, 3, 9, 10)))}, "4 filters"),
        ({"solver": "fft"}, 'boundary="circular"'),
        ({"solver": "fft", "boundary": "circular", "sampling": 0.5}, "neither sampling nor weights"),
        ({"solver": "fft", "boundary": "circular", "weights": np.ones((9, 10))}, "neither sampling nor weights"),
    ],
)
def test_bad_arguments_are_named(filters, change, message):
    arguments = {"signals": IMAGE, "filters": filters, "penalty": 0.5, **change}
    with pytest.raises(ValueError, match=message):
        pt.encode(**arguments)


OUT_OF_RANGE = {
    "penalty": (0, -1.0, np.inf, None), "sampling": (0, 1.1), "boundary": ("mirror",), "solver": ("simplex", 3),
    "n_jobs": (0,), "random_state": (-1,), "tol": (-1,),
}  # fmt: skip


@pytest.mark.parametrize(("word", "value"), [(word, one) for word, some in OUT_OF_RANGE.items() for one in some])
def test_values_out_of_range_are_named(filters, word, value):
    given = {"penalty": 0.5, word: value}
    for call in (
        lambda: pt.encode(IMAGE, filters, **given),
        lambda: pt.BatchCSC(4, 3, **given).fit(IMAGE),
        lambda: pt.OnlineCSC(4, 3, **given).fit(IMAGE),
    ):
        with pytest.raises(ValueError, match=word):
            call()


def test_decode_refuses_codes_of_other_filters(filters):
    codes = pt.encode(IMAGE, filters, 1.0).codes
    with pytest.raises(ValueError, match="codes are for 4 filters, got 3"):
        pt.decode(codes, filters[:3])
    with pytest.raises(ValueError, match="boundary"):
        pt.decode(codes, filters, boundary="mirror")


RNG = np.random.default_rng(0)


def test_a_path_starts_at_zero_codes_and_agrees_with_encode():
    signals, filters = RNG.standard_normal((2, 14, 15)), RNG.standard_normal((4, 3, 3)) / 3
    path = penalty_path(signals, filters, n=5, smallest=0.05, tol=1e-6)
    values = [point.penalty for point in path]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(0.05 * values[0])
    assert path[0].result.codes.nnz == 0
    alone = pt.encode(signals, filters, values[-1], tol=1e-6)
    np.testing.assert_allclose(path[-1].result.objective, alone.objective, rtol=1e-5)


def test_a_path_of_ones_own_with_weights():
    signals, filters = RNG.standard_normal((1, 40)), RNG.standard_normal((2, 5))
    weights = np.ones((1, 40))
    weights[0, :10] = 0
    path = penalty_path(signals, filters, penalties=[0.1, 1.0], weights=weights)
    assert [point.penalty for point in path] == [1.0, 0.1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"penalties": [1.0], "n": 4}, "leave out penalties"),
        ({"penalties": [1.0], "smallest": 0.1}, "leave out penalties"),
        ({"signals": np.zeros((1, 20))}, "zero"),
        ({"smallest": 1e-300}, "smallest asks for more than there is: penalty is so small"),
        ({"penalties": [1e-300]}, "penalties asks for more than there is: penalty is so small"),
    ],
)
def test_bad_paths_are_named(change, words):
    given = {"signals": RNG.standard_normal((1, 20)), "filters": RNG.standard_normal((2, 5)), **change}
    with pytest.raises(ValueError, match=words):
        penalty_path(**given)


def test_each_penalty_starts_from_the_codes_of_the_one_before():
    signals, filters = RNG.standard_normal((1, 60)), RNG.standard_normal((3, 5))
    twice = penalty_path(signals, filters, penalties=[0.5, 0.5])
    assert twice[1].result.iterations[0] <= 1 < twice[0].result.iterations[0]


def test_solvers_that_begin_at_zero_and_objects_with_a_tolerance_have_paths_too():
    rng = np.random.default_rng(0)
    signals, filters = rng.standard_normal((1, 60)), rng.standard_normal((3, 5))
    paths = [
        penalty_path(signals, filters, n=3, **how)
        for how in ({"tol": 1e-6}, {"solver": pt.solvers.SampledADMM(tol=1e-4, max_iter=3000)})
    ]
    np.testing.assert_allclose(*([point.result.objective[0] for point in path] for path in paths), rtol=2e-4)
    with pytest.raises(ValueError, match="tol"):
        penalty_path(signals, filters, solver=pt.solvers.CoordinateDescent(), tol=1e-2)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["cupy", "torch"])
def test_paths_of_arrays_on_a_device(kind):
    module = pytest.importorskip(kind)
    signals, filters = (
        RNG.standard_normal((2, 30, 31)).astype(np.float32),
        RNG.standard_normal((4, 5, 5)).astype(np.float32),
    )
    weights = (RNG.random(signals.shape) < 0.7).astype(np.float32)
    move = module.asarray if kind == "cupy" else lambda array: module.as_tensor(array, device="cuda")
    np.testing.assert_array_equal(
        pt.max_penalty(move(signals), move(filters), weights=move(weights)),
        pt.max_penalty(signals, filters, weights=weights),
    )
    there = penalty_path(
        move(signals), move(filters), n=3, smallest=0.1, weights=move(weights), tol=1e-4, device="cuda"
    )
    here = penalty_path(signals, filters, n=3, smallest=0.1, weights=weights, tol=1e-4)
    for one, other in zip(there, here, strict=True):
        assert one.penalty == other.penalty
        np.testing.assert_allclose(one.result.objective, other.result.objective, rtol=1e-3)
        assert type(one.result.codes.values[0]) is type(move(signals))
