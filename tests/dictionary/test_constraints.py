"""Projections on the filters' constraints: feasible, idempotent and nearest; sizes of filters; filters of low rank.

The update of factors is compared with one with full matrices, and ends in stationary points.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointillist as pt
from pointillist.dictionary.constraints import FilterConstraints, factorise, filter_shapes, nearest_of_rank, orthonormal
from pointillist.dictionary.statistics import make_statistics
from pointillist.dictionary.update import initial_filters, replace_filters
from pointillist.problem import certificate

SUPPORT = np.zeros((2, 3, 4), bool)
SUPPORT[0, :2, :3] = True
SUPPORT[1, 1:, 2:] = True
KINDS = {
    "ball": {},
    "zero mean": {"zero_mean": True},
    "non-negative": {"nonnegative": True},
    "support": {"support": SUPPORT},
    "support and zero mean": {"support": SUPPORT, "zero_mean": True},
    "support and non-negative": {"support": SUPPORT, "nonnegative": True},
}


def feasible(filter_, constraints, k):
    assert np.linalg.norm(filter_) <= 1 + 1e-12
    if constraints.support is not None:
        assert not np.any(filter_[:, ~constraints.support[k]])
    if constraints.zero_mean:
        np.testing.assert_allclose(filter_.sum(axis=(1, 2)), 0, atol=1e-12)
    if constraints.nonnegative:
        assert np.all(filter_ >= 0)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**16), scale=st.sampled_from([0.05, 0.3, 5.0]), k=st.integers(0, 1))
def test_projection_is_feasible_idempotent_and_nearest(kind, seed, scale, k):
    constraints = FilterConstraints(**KINDS[kind])
    rng = np.random.default_rng(seed)
    point = scale * rng.standard_normal((2, 3, 4))
    before = point.copy()
    nearest = constraints.project(point, k)
    np.testing.assert_array_equal(point, before)
    feasible(nearest, constraints, k)
    np.testing.assert_allclose(constraints.project(nearest, k), nearest, atol=1e-12)
    distance = np.linalg.norm(point - nearest)
    for spread in (0.01, 0.1, 1.0):
        other = constraints.project(nearest + spread * rng.standard_normal(point.shape), k)
        feasible(other, constraints, k)
        assert distance <= np.linalg.norm(point - other) + 1e-12
        # The projection on a convex set makes an obtuse angle with every feasible direction.
        assert np.vdot(point - nearest, other - nearest) <= 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_unit_filters_have_unit_norm(kind):
    constraints = FilterConstraints(**KINDS[kind])
    filters = 0.1 + np.random.default_rng(0).random((2, 2, 3, 4))
    unit = constraints.normalise(filters)
    for k, one in enumerate(unit):
        feasible(one, constraints, k)
        assert np.linalg.norm(one) == pytest.approx(1)


def test_a_filter_that_nothing_is_left_of_stays_zero():
    constraints = FilterConstraints(nonnegative=True)
    assert not np.any(constraints.unit(-np.ones((1, 3)), 0))
    assert not np.any(constraints.project(-np.ones((1, 3)), 0))


def test_only_zero_satisfies_both():
    with pytest.raises(ValueError, match="exclude each other"):
        FilterConstraints(zero_mean=True, nonnegative=True)


def test_one_size_needs_no_support():
    shapes = filter_shapes(5, 3, 2)
    assert shapes.sizes == [(3, 3)] * 5
    assert shapes.box == (3, 3)
    assert shapes.support() is None
    assert filter_shapes(2, (3, 5), 2).box == (3, 5)


@pytest.mark.parametrize(
    ("n_filters", "sizes", "expected"), [(5, [3, 5], [3, 3, 3, 5, 5]), ([1, 2], [3, 5], [3, 5, 5]), (2, [4, 3], [4, 3])]
)
def test_counts_are_given_or_shared_out(n_filters, sizes, expected):
    assert filter_shapes(n_filters, sizes, 1).sizes == [(s,) for s in expected]


def test_supports_share_their_centre():
    shapes = filter_shapes(3, [(3, 2), (5, 4), (1, 7)], 2)
    assert shapes.box == (5, 7)
    support = shapes.support()
    for one, size in zip(support, shapes.sizes, strict=True):
        rows, columns = np.nonzero(one)
        assert one.sum() == size[0] * size[1]
        assert rows.min() + (size[0] - 1) // 2 == 2
        assert columns.min() + (size[1] - 1) // 2 == 3
        assert (np.ptp(rows) + 1, np.ptp(columns) + 1) == size


@pytest.mark.parametrize(
    ("n_filters", "size", "message"),
    [
        (0, 3, "n_filters"), (1, [3, 5], "n_filters"),
        ([1], [3, 5], "n_filters must hold one positive integer for each of the 2 sizes"),
        ([1, 0], [3, 5], "n_filters"), (2, 0, "filter_size"), (2, (3,), "filter_size"), (2, (3, 3.5), "filter_size"),
        (2, [], "filter_size is an empty list"),
    ],
)  # fmt: skip
def test_bad_shapes_are_named(n_filters, size, message):
    with pytest.raises(ValueError, match=message):
        filter_shapes(n_filters, size, 2)


SHAPES = {"1-D": ((60,), (9,)), "2-D": ((12, 13), (4, 3)), "3-D": ((6, 7, 8), (2, 3, 2))}
RANKS = {
    "rank 1": {"rank": 1},
    "rank 2": {"rank": 2},
    "rank 3": {"rank": 3},
    "zero mean": {"rank": 2, "zero_mean": True},
    "non-negative": {"rank": 1, "nonnegative": True},
    "support": {"rank": 2, "support": True},
    "support and zero mean": {"rank": 1, "support": True, "zero_mean": True},
}
CHANNELS, N_FILTERS = 6, 4


def statistics_of(reference, kind, shape, **how):
    return reference.sums(kind, 0, *SHAPES[shape], n_filters=N_FILTERS, channels=CHANNELS, **how)


def constraints_of(kind, shape):
    size = SHAPES[shape][1]
    given = dict(RANKS[kind])
    if "support" in given:
        support = np.random.default_rng(1).random((N_FILTERS, *size)) < 0.7
        given["support"] = support | (np.arange(support[0].size).reshape(size) < 3)
    return FilterConstraints(**given)


def start_for(constraints, shape, dtype=np.float64):
    drawn = np.random.default_rng(2).standard_normal((N_FILTERS, CHANNELS, *SHAPES[shape][1]))
    return constraints.normalise(drawn).astype(dtype)


def slow_sweep(sums, filters, constraints):
    """One pass with full gradients: the shapes' step, then the patterns', by singular value decompositions."""
    current, size = filters.astype(np.float64), filters.shape[2:]
    linear, lipschitz = sums.linear, sums.lipschitz()
    free = FilterConstraints(constraints.zero_mean, constraints.nonnegative, constraints.support)
    for k in range(len(filters)):
        left, scales, right = np.linalg.svd(current[k].reshape(CHANNELS, -1), full_matrices=False)
        left, shapes = left[:, : constraints.rank], (scales[:, None] * right)[: constraints.rank]
        signs = np.where(np.sum(left, axis=0) < 0, -1, 1)
        left, shapes = left * signs, shapes * signs[:, None]
        slope = (sums.product(current, k) - linear[k]).reshape(CHANNELS, -1)
        moved = (shapes - left.T @ slope / lipschitz[k]).reshape(constraints.rank, *size)
        shapes = free.project(moved, k).reshape(constraints.rank, -1)
        current[k] = (left @ shapes).reshape(current[k].shape)
        slope = (sums.product(current, k) - linear[k]).reshape(CHANNELS, -1)
        rows = np.linalg.svd(shapes, full_matrices=False)[2]
        units = np.zeros((len(rows), *current.shape))
        units[:, k, 0] = rows.reshape(-1, *size)
        own = np.array([[np.vdot(row, sums.product(unit, k)[0]) for row in rows.reshape(-1, *size)] for unit in units])
        columns = left @ shapes @ rows.T - slope @ rows.T / np.linalg.eigvalsh(own)[-1]
        step = columns @ rows
        step = np.maximum(step, 0) if constraints.nonnegative else step
        current[k] = (step / max(1, np.linalg.norm(step))).reshape(current[k].shape)
    return current


@pytest.mark.parametrize("kind", RANKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_fast_sweep_is_the_slow_one(kind, shape, reference):
    """Patterns and shapes are the same up to a rotation, which none of the steps depends on."""
    sums, constraints = statistics_of(reference, "toeplitz", shape), constraints_of(kind, shape)
    filters = start_for(constraints, shape)
    for _ in range(3):
        expected = slow_sweep(sums, filters, constraints)
        filters = sums.sweep(filters, constraints)
        np.testing.assert_allclose(filters, expected, atol=1e-10)


@pytest.mark.parametrize("kind", RANKS)
@pytest.mark.parametrize("shape", ["1-D", "2-D"])
def test_dense_statistics_make_the_same_step(kind, shape, reference):
    """Without a border the two statistics hold the same sums, and their steps differ by the Lipschitz constants only."""
    small, dense = (statistics_of(reference, name, shape, boundary="valid") for name in ("toeplitz", "dense"))
    constraints = constraints_of(kind, shape)
    filters = start_for(constraints, shape)
    dense.lipschitz = small.lipschitz
    np.testing.assert_allclose(dense.sweep(filters, constraints), small.sweep(filters, constraints), atol=1e-10)


def test_a_rank_that_restricts_nothing_leads_to_the_free_optimum(reference):
    """Free filters and filters of full rank end where no feasible step descends: the problem in d is convex."""
    sums = statistics_of(reference, "toeplitz", "1-D")
    filters = start_for(FilterConstraints(), "1-D")
    free = reference.swept(filters, sums, FilterConstraints(), n_sweeps=1000)
    full = reference.swept(filters, sums, FilterConstraints(rank=CHANNELS), n_sweeps=1000)
    np.testing.assert_allclose(full, free, atol=1e-4)
    assert reference.surrogate(sums, full) == pytest.approx(reference.surrogate(sums, free), rel=1e-8)


def test_sweeps_end_in_a_stationary_point(reference):
    """One filter inside the ball: the slope vanishes along its patterns and along its shapes."""
    rng = np.random.default_rng(3)
    problem, x = reference.problem(rng, (80,), (7,), n_filters=1, channels=5)
    indices = np.flatnonzero(rng.random(problem.geometry.n_positions) < 0.3)
    values = 20 * rng.standard_normal(len(indices))
    sums = make_statistics("toeplitz", 1, 5, (7,))
    reference.add(sums, problem, x, indices, values, certificate(problem, 0, x, indices, values).residual, 1.0)
    found = reference.swept(
        FilterConstraints(rank=1).normalise(problem.filters), sums, FilterConstraints(rank=1), n_sweeps=500
    )
    assert np.linalg.norm(found) < 1
    slope = (sums.product(found, 0) - sums.linear[0]) / sums.lipschitz()[0]
    left, _, right = np.linalg.svd(found[0])
    np.testing.assert_allclose(left[:, 0] @ slope, 0, atol=1e-8)
    np.testing.assert_allclose(slope @ right[0], 0, atol=1e-8)


@pytest.mark.parametrize("rank", [1, 2])
def test_filters_of_zeros_can_grow_again(rank, reference):
    sums, constraints = statistics_of(reference, "toeplitz", "1-D"), FilterConstraints(rank=rank, zero_mean=True)
    grown = sums.sweep(np.zeros((N_FILTERS, CHANNELS, 9)), constraints)
    assert np.all(np.any(grown != 0, axis=(1, 2)))
    np.testing.assert_allclose(grown.sum(axis=2), 0, atol=1e-12)
    assert reference.surrogate(sums, grown) < reference.surrogate(sums, 0 * grown)


@pytest.mark.parametrize("init", ["random", "patches", "array"])
@pytest.mark.parametrize("kind", ["rank 1", "rank 3", "zero mean", "non-negative"])
def test_first_filters_and_replacements_have_the_rank(init, kind):
    rng, constraints = np.random.default_rng(5), FilterConstraints(**RANKS[kind])
    signals = [rng.standard_normal((CHANNELS, 20, 20)) for _ in range(2)]
    shape = (3, CHANNELS, 4, 3)
    given = rng.standard_normal(shape) if init == "array" else init
    filters = initial_filters(given, shape, constraints, signals, rng, np.dtype(np.float32))
    filters = replace_filters(filters, np.array([1]), signals, constraints, rng)
    assert filters.dtype == np.float32
    singular = np.linalg.svd(filters.reshape(3, CHANNELS, 12).astype(float), compute_uv=False)
    assert np.all(singular[:, constraints.rank :] < 1e-6)
    assert np.all(singular[:, 0] > 0.3)
    np.testing.assert_allclose(np.sum(filters.astype(float) ** 2, axis=(1, 2, 3)), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"rank": 1.5}, "rank must be None or a positive integer"),
        ({"rank": 2, "nonnegative": True}, "nonnegative filters of rank=2 cannot be learned"),
    ],
)
def test_bad_ranks_are_named(setting, message):
    signals = np.random.default_rng(0).standard_normal((2, 4, 30))
    learner = pt.BatchCSC(2, 5, channels=True, update=pt.FilterUpdate(nonnegative="nonnegative" in setting), max_iter=1)
    with pytest.raises(ValueError, match=message):
        learner.set_params(rank=setting["rank"]).fit(signals)


def test_a_rank_that_no_filter_can_have_is_refused():
    support = np.zeros((2, 9), bool)
    support[0], support[1, :3] = True, True
    FilterConstraints(rank=3, support=support).check_shape(5, (9,))
    with pytest.raises(ValueError, match="rank=4 is more than filters of 5 channels with 3 samples"):
        FilterConstraints(rank=4, support=support).check_shape(5, (9,))
    with pytest.raises(ValueError, match="give at most 5"):
        FilterConstraints(rank=6).check_shape(5, (9,))


BOXES = {"1-D": (9,), "2-D": (3, 4), "3-D": (2, 3, 2)}


def low_rank(seed, rank, size, channels=7, n_filters=5):
    """Filters of a rank, of norms between 0.1 and 1."""
    rng = np.random.default_rng(seed)
    patterns, shapes = rng.standard_normal((n_filters, channels, rank)), rng.standard_normal((n_filters, rank, *size))
    filters = np.einsum("kcr,kr...->kc...", patterns, shapes)
    norms = np.sqrt(np.sum(filters**2, axis=tuple(range(1, filters.ndim)), keepdims=True))
    return filters / norms * rng.uniform(0.1, 1, n_filters).reshape(-1, *([1] * (filters.ndim - 1)))


@pytest.mark.parametrize("size", BOXES)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_patterns_times_shapes_are_the_filters(size, rank, dtype):
    filters = low_rank(0, rank, BOXES[size]).astype(dtype)
    patterns, shapes = pt.split_channels(filters, rank)
    assert patterns.dtype == shapes.dtype == dtype
    assert patterns.shape == (5, rank, 7)
    assert shapes.shape == (5, rank, *BOXES[size])
    atol = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(np.einsum("krc,kr...->kc...", patterns, shapes), filters, atol=atol)
    for one in patterns:
        np.testing.assert_allclose(one @ one.T, np.eye(rank), atol=atol)
    flat = shapes.reshape(5 * rank, -1)
    assert np.all(np.take_along_axis(flat, np.argmax(np.abs(flat), axis=1)[:, None], axis=1) > 0)
    norms = np.linalg.norm(flat, axis=1).reshape(5, rank)
    assert np.all(np.diff(norms, axis=1) <= 0)


def test_nothing_of_the_rank_is_nearer():
    rng = np.random.default_rng(1)
    full = rng.standard_normal((6, 3, 4))
    for rank in (1, 2):
        nearest = nearest_of_rank(full, rank)
        assert np.linalg.matrix_rank(nearest.reshape(6, 12)) == rank
        patterns, shapes = pt.split_channels(full[None], rank)
        np.testing.assert_allclose(np.einsum("rc,r...->c...", patterns[0], shapes[0]), nearest, atol=1e-12)
        left = np.linalg.svd(full.reshape(6, 12), compute_uv=False)[rank:]
        assert np.sum((full - nearest) ** 2) == pytest.approx(np.sum(left**2))
    assert nearest_of_rank(full, 6) is full


@pytest.mark.parametrize(("rank", "true_rank"), [(1, 1), (2, 2), (3, 3), (3, 1), (3, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_of_filters_are_exact_orthonormal_and_repeatable(rank, true_rank, dtype):
    filters = low_rank(2, max(true_rank, 1), (20,), channels=30).astype(dtype).astype(np.float64) * bool(true_rank)
    patterns, shapes = factorise(filters, rank)
    np.testing.assert_allclose(patterns @ shapes, filters, atol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(np.swapaxes(patterns, 1, 2) @ patterns, np.tile(np.eye(rank), (5, 1, 1)), atol=1e-12)
    for again, first in zip(factorise(filters.copy(), rank), (patterns, shapes), strict=True):
        np.testing.assert_array_equal(again, first)


def test_factors_of_non_negative_filters_are_non_negative():
    patterns, shapes = factorise(np.abs(low_rank(4, 1, (9,))), 1)
    assert np.all(patterns >= 0)
    assert np.all(shapes >= 0)


def test_orthonormal_columns_keep_their_signs():
    columns = np.random.default_rng(5).standard_normal((4, 6, 2))
    q, r = orthonormal(columns)
    np.testing.assert_allclose(q @ r, columns, atol=1e-12)
    assert np.all(np.einsum("kcr,kcr->kr", q, columns) > 0)


@pytest.mark.parametrize(
    ("filters", "rank", "message"),
    [
        (np.ones((2, 5)), 1, r"filters must be a real array \(n_filters, channels, \*size\)"),
        (np.ones((2, 3, 5)), 4, "rank=4 is more than filters of 3 channels with 5 samples can have: give at most 3"),
        (np.ones((2, 3, 5)), None, "rank must be a positive integer"),
    ],
)
def test_what_cannot_be_split_is_named(filters, rank, message):
    with pytest.raises(ValueError, match=message):
        pt.split_channels(filters, rank)
