"""Sweeps over working sets: where codes lie, strips that never touch, and what sweeps come to, whoever does them."""

import dataclasses
import threading

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from pointillist.kernels.convolution import run_width
from pointillist.kernels.sweep import Effort, disperse
from pointillist.parallel import SharedMap
from pointillist.problem import Geometry, Problem
from pointillist.solvers import sweeping
from pointillist.solvers.sweeping import SweepContext, field_of

CASES = [
    ((500,), (5,), 1), ((500,), (5,), 2), ((41, 50), (3, 11), 1), ((40, 17), (1, 9), 2), ((95, 24), (11, 5), 1),
    ((23, 12, 10), (2, 3, 3), 1), ((441, 20), (1, 4), 2), ((90,), (20,), 2), ((7, 90), (6, 9), 1), ((60, 9), (5, 9), 2),
    ((30, 17), (9, 4), 2), ((50, 12), (21, 4), 1), ((140,), (20,), 2), ((13, 12, 10), (4, 3, 3), 1),
]  # fmt: skip


@pytest.fixture
def tune(monkeypatch):
    """Change numbers of the tuning."""
    return lambda **numbers: monkeypatch.setattr(sweeping, "TUNING", dataclasses.replace(sweeping.TUNING, **numbers))


@pytest.fixture
def tiny(tune):
    """Strips of few positions, and helpers for sweeps of any size."""
    tune(strip_positions=1, products_for_help=0)


def _descended(problem, x, codes, effort, mapper=map, ridge=0.0, calls=1):
    """Values of codes and the residual after some descents from zero, and how many strips there were."""
    context, weights = SweepContext(problem, 0, mapper), problem.weights_of(0)
    values, flat = np.zeros(len(codes), x.dtype), problem.geometry.spread(x if weights is None else weights * x)
    for _ in range(calls):
        laid, _ = context.sweep(codes, values, flat, effort, ridge=ridge)
        flat = problem.geometry.spread(context.field.unlaid(laid))
    return values, context.field.unlaid(laid), len(context.field.first_positions) - 1


def _places(field, positions):
    """All places where an update of codes at positions begins in the signal."""
    rows, columns = np.divmod(positions, field.geometry.grid[-1])
    bases = field.row_bases[rows] + columns
    return np.concatenate([bases, field.ghosts(positions, bases)[0]])


def _touched(field, positions):
    """Samples that an update of codes reads or writes, with the padding of runs."""
    lanes = np.arange(run_width(field.geometry.filter[-1]))
    return np.unique(_places(field, positions)[:, None, None] + field.offsets[:, None] + lanes)


def _changed(field, positions):
    """Samples that an update of codes changes, without the margin around a circle."""
    width, size = run_width(field.geometry.filter[-1]), field.geometry.filter[-1]
    runs = np.arange(-(-size // width) * width).reshape(-1, width) < size
    filled = np.tile(runs, (len(field.offsets) // len(runs), 1))
    changed = (_places(field, positions)[:, None, None] + field.offsets[:, None] + np.arange(width))[:, filled]
    held = np.zeros((field.geometry.channels, *field.geometry.padded), bool)
    inside = np.pad(~held, [(0, 0), *((m, m) for m in field.margin)]).reshape(-1)
    changed = np.unique(changed)
    return changed[inside[changed]]


def _samples(strips, s, lengths):
    """Samples of a strip, whose rows have some lengths."""
    some = range(strips.begins[s], strips.ends[s])
    return np.concatenate([strips.rows[i] + np.arange(lengths[i]) for i in some])


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
@pytest.mark.parametrize(("signal", "size", "channels"), CASES)
def test_strips_of_a_colour_write_to_disjoint_samples(signal, size, channels, boundary):
    """Padded lanes count: they are read and written back, so that two threads there lose updates."""
    geometry = Geometry(signal, size, channels, boundary)
    field, positions = field_of(geometry, 1), np.arange(geometry.n_positions)
    strips = field.strips(positions)
    count = len(strips.ends)
    assert count % strips.n_colours == 0
    assert count == 1 or count >= 2 * strips.n_colours
    assert np.all(np.diff(strips.codes) > 0)
    touched = [_touched(field, positions[a:b]) for a, b in zip(strips.codes[:-1], strips.codes[1:], strict=True)]
    inside = np.zeros((channels, *geometry.padded), bool)
    # What lies in the margin of a circle is never looked at.
    inside = np.append(np.pad(~inside, [(0, 0), *((m, m) for m in field.margin)]).reshape(-1), [True] * 32)
    for colour in range(strips.n_colours):
        together = np.concatenate([some[inside[some]] for some in touched[colour :: strips.n_colours]])
        assert len(np.unique(together)) == len(together), "two strips touch at the same time"


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
@pytest.mark.parametrize(("signal", "size", "channels"), CASES)
def test_codes_reach_the_next_strips_of_other_colours_and_each_sample_is_in_one(signal, size, channels, boundary):
    geometry = Geometry(signal, size, channels, boundary)
    field, positions = field_of(geometry, 1), np.arange(geometry.n_positions)
    strips = field.strips(positions)
    count = len(strips.ends)
    samples = np.concatenate([_samples(strips, s, strips.lengths) for s in range(count)])
    counted = np.concatenate([_samples(strips, s, strips.counted) for s in range(count)])
    assert len(np.unique(samples)) == len(samples) == channels * np.prod(geometry.padded)
    held = field.laid(geometry.spread(np.ones((channels, *signal), np.float32)))
    assert np.sum(held[counted]) == channels * np.prod(signal)
    for s in range(count):
        changed = _changed(field, positions[strips.codes[s] : strips.codes[s + 1]])
        near = [_samples(strips, (s + z) % count, strips.lengths) for z in range(strips.n_colours)]
        assert set(changed) <= set(np.concatenate(near))


def test_strips_without_codes_are_reached_by_those_before_them():
    field = field_of(Geometry((100, 40), (5, 5), 1, "same"), 1)
    strips = field.strips(np.array([3, 5, 12 * 40, 99 * 40]))
    assert len(strips.ends) == 20
    np.testing.assert_array_equal(np.diff(strips.codes), [2, 0, 1] + [0] * 16 + [1])
    np.testing.assert_array_equal(np.flatnonzero(strips.ends > strips.begins), [0, 1, 2, 3, 19])
    none = field.strips(np.empty(0, int))
    np.testing.assert_array_equal(none.ends, none.begins)


@pytest.mark.parametrize(
    ("grid", "count", "colours", "least"),
    [
        ((4000, 30), 64, 2, 1), ((21, 300), 1, 1, 1), ((28, 40), 12, 6, 1), ((30, 300), 6, 3, 1), ((40, 300), 4, 2, 1),
        ((5000,), 64, 2, 1), ((45, 45), 1, 1, 1024),
    ],
)  # fmt: skip
def test_there_are_as_many_strips_as_filters_allow(grid, count, colours, least):
    strips = field_of(Geometry(grid, (10,) * len(grid), 1, "same"), least).strips(np.arange(3))
    assert (len(strips.ends), strips.n_colours) == (count, colours)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("way", ["plain", "recorded", "compared"])
@pytest.mark.parametrize(
    ("signal", "size"),
    [((12,), (3,)), ((9,), (9,)), ((10, 7), (4, 6)), ((5, 4, 6), (2, 3, 5)), ((6, 40), (3, 37)), ((33,), (33,))],
)
def test_codes_come_round_a_circle(signal, size, dtype, way, tune):
    tune(compared=0.0 if way == "compared" else np.inf)
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((2, 2, *size)).astype(dtype)
    problem = Problem(filters=filters, geometry=Geometry(signal, size, 2, "circular"), penalty=np.full((2, 1), 0.05))
    codes = _some_codes(rng, problem, problem.operator.n_codes)
    x = rng.standard_normal((2, *signal)).astype(dtype)
    values, left, _ = _descended(problem, x, codes, Effort(1e-9, 0 if way == "plain" else 4, 3))
    expected = x - problem.operator.synthesise(codes, values, dtype=np.float64)
    assert np.count_nonzero(values) > 3
    np.testing.assert_allclose(left, expected, atol=1e-11 if dtype == np.float64 else 2e-4)


def _some_codes(rng, problem, count):
    """Some codes in the order of their positions."""
    keys = np.sort(rng.choice(problem.operator.n_codes, count, replace=False))
    return keys % problem.n_filters * problem.geometry.n_positions + keys // problem.n_filters


@pytest.mark.parametrize("boundary", ["same", "circular"])
@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize(("nonnegative", "ridge"), [(False, 0.0), (True, 0.0), (False, 0.3)])
def test_extrapolated_sweeps_reach_the_optimum_and_keep_the_residual(reference, boundary, weights, nonnegative, ridge):
    rng = np.random.default_rng(4)
    problem, x = reference.problem(
        rng, (9, 8), (4, 3), n_filters=2, boundary=boundary, weights=weights, penalty=0.05, nonnegative=nonnegative
    )
    matrix = reference.matrix(problem.filters, problem.geometry)
    seen = np.ones(x.size) if weights is None else problem.weights.ravel()
    codes = _some_codes(rng, problem, problem.operator.n_codes)
    taller = np.vstack([np.sqrt(seen)[:, None] * matrix, np.sqrt(ridge) * np.eye(len(codes))])
    longer = np.concatenate([np.sqrt(seen) * x.ravel(), np.zeros(len(codes))])
    expected = reference.lasso(taller, longer, 0.05, nonnegative=nonnegative)
    values, *_ = _descended(problem, x, codes, Effort(1e-12, 15, 1), ridge=ridge, calls=60)
    dense = np.zeros(len(codes))
    dense[codes] = values

    def objective(z):
        fit = 0.5 * seen @ (x.ravel() - matrix @ z) ** 2
        return fit + 0.05 * np.sum(np.abs(z)) + 0.5 * ridge * np.sum(z**2)

    assert objective(dense) == pytest.approx(expected.objective, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("boundary", ["same", "full", "circular"])
@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize(("size", "target"), [((5, 5), 1e-9), ((5, 5), 1e-2), ((7, 19), 1e-9), ((7, 19), 1e-2)])
def test_the_residual_stays_that_of_the_codes(reference, boundary, dtype, weights, size, target):
    rng = np.random.default_rng(5)
    problem, x = reference.problem(
        rng, (30, 28), size, n_filters=4, boundary=boundary, weights=weights, penalty=0.02, dtype=dtype
    )
    codes = _some_codes(rng, problem, 500)
    values, residual, _ = _descended(problem, x, codes, Effort(target, 12, 1), calls=4)
    exact = dataclasses.replace(problem, filters=problem.filters.astype(np.float64))
    left = x - exact.operator.synthesise(codes, values.astype(np.float64))
    left = left if weights is None else problem.weights * left
    rounding = 3e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(residual, left, rtol=rounding, atol=rounding)


def test_extrapolation_saves_sweeps(reference):
    """On codes that overlap much, as many sweeps come far closer to the optimum with it than without."""
    rng = np.random.default_rng(6)
    problem, x = reference.problem(rng, (40, 40), (9, 9), n_filters=3, penalty=0.02)
    smooth = gaussian_filter(problem.filters, (0, 0, 1.5, 1.5))
    smooth /= np.sqrt(np.sum(smooth**2, axis=(1, 2, 3), keepdims=True))
    problem = dataclasses.replace(problem, filters=smooth)
    codes = _some_codes(rng, problem, 900)

    def objective(extra, calls):
        values, *_ = _descended(problem, x, codes, Effort(1e-15, extra, 1), calls=calls)
        left = x - problem.operator.synthesise(codes, values)
        return 0.5 * np.sum(left**2) + 0.02 * np.sum(np.abs(values))

    best, plain, extrapolated = objective(20, 300), objective(0, 126), objective(20, 6)
    assert extrapolated - best < 0.3 * (plain - best)


@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize("boundary", ["same", "full", "circular"])
@pytest.mark.parametrize("size", [(5, 4), (15, 4)])
def test_strips_come_to_what_the_whole_comes_to(reference, tune, boundary, weights, size):
    rng = np.random.default_rng(7)
    problem, x = reference.problem(rng, (90, 35), size, n_filters=3, boundary=boundary, weights=weights, penalty=0.3)
    codes, effort = _some_codes(rng, problem, 900), Effort(1e-12, 6, 400, 2)
    tune(strip_positions=10**9)
    whole, _, one = _descended(problem, x, codes, effort)
    tune(strip_positions=1)
    cut, _, many = _descended(problem, x, codes, effort)
    assert one == 1 < 6 <= many
    assert np.count_nonzero(whole) > 300
    np.testing.assert_allclose(cut, whole, atol=1e-8)


@pytest.mark.parametrize("n_jobs", [2, 3, 7])
@pytest.mark.parametrize("boundary", ["valid", "same", "circular"])
@pytest.mark.parametrize(
    ("signal", "size", "channels", "weights"),
    [
        ((120, 50), (5, 4), 1, None),
        ((90, 30), (1, 9), 2, "uneven"),
        ((700,), (20,), 2, None),
        ((44, 9, 20), (3, 2, 11), 1, None),
        ((150, 20), (30, 9), 2, "uneven"),
    ],
)
def test_any_number_of_threads_comes_to_the_same_bits(
    reference, tiny, boundary, signal, size, channels, weights, n_jobs
):
    rng = np.random.default_rng(8)
    problem, x = reference.problem(
        rng,
        signal,
        size,
        n_filters=3,
        channels=channels,
        boundary=boundary,
        weights=weights,
        penalty=0.2,
        dtype=np.float32,
    )
    codes = _some_codes(rng, problem, 1200)
    for effort in (Effort(1e-3, 6, 4, 3), Effort(1e-6, 12, 2), Effort(0.0, 0, 0, 4, True)):
        alone, left, count = _descended(problem, x, codes, effort, ridge=0.1)
        assert count >= 4
        assert np.count_nonzero(alone) > 50
        for _ in range(3):
            shared, other, _ = _descended(problem, x, codes, effort, SharedMap(n_jobs), 0.1)
            np.testing.assert_array_equal(shared, alone)
            np.testing.assert_array_equal(other, left)


def test_after_a_helper_was_late_the_leader_works_alone(reference, tiny, monkeypatch):
    rng = np.random.default_rng(9)
    problem, x = reference.problem(rng, (200, 60), (5, 5), n_filters=3, penalty=0.05, dtype=np.float32)
    codes, asked = _some_codes(rng, problem, 2000), []
    context = SweepContext(problem, 0, SharedMap(2))
    monkeypatch.setattr(SharedMap, "ask", lambda self, work: asked.append(work))
    monkeypatch.setattr(sweeping, "disperse", lambda found: bool(disperse(found)) or len(asked) == 1)
    for _ in range(3):
        context.sweep(codes, np.zeros(len(codes), x.dtype), problem.geometry.spread(x), Effort(1e-3, 6, 3))
    assert len(asked) == 1
    before = threading.active_count()
    asked[0]()  # much too late: it finds that all is over
    assert threading.active_count() == before


def test_an_exception_sends_helpers_home(reference, tiny, monkeypatch):
    rng = np.random.default_rng(9)
    problem, x = reference.problem(rng, (200, 60), (5, 5), n_filters=3, penalty=0.05, dtype=np.float32)
    codes, plain, done = _some_codes(rng, problem, 2000), sweeping.descend, threading.Event()

    def descend(rank, *args, **kwargs):
        if rank == 0:
            raise KeyboardInterrupt
        plain(rank, *args, **kwargs)
        done.set()

    monkeypatch.setattr(sweeping, "descend", descend)
    with pytest.raises(KeyboardInterrupt):
        _descended(problem, x, codes, Effort(1e-3, 6, 3), SharedMap(2))
    assert done.wait(30), "a helper waits for a leader that never began"
