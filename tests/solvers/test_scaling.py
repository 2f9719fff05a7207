"""Tests of the scales that problems are solved in: the same answers at every magnitude, and what cannot be written."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.problem import certificate
from pointillist.solvers import CoordinateDescent
from pointillist.solvers.scaling import by_scale
from pointillist.solvers.tiles import TiledDescent

RNG = np.random.default_rng(0)
SIGNALS = RNG.standard_normal((2, 60)).astype(np.float32)
FILTERS = (RNG.standard_normal((3, 5)) / 2).astype(np.float32)
WEIGHTS = (RNG.random(SIGNALS.shape) + 0.1).astype(np.float32)


def _encode(signal=0, filters=0, weights=0, **more):
    """Codes of a problem whose parts are multiplied by powers of two, for the same codes but for such a factor."""
    return pt.encode(
        np.ldexp(SIGNALS, signal), np.ldexp(FILTERS, filters), np.ldexp(0.5, signal + filters + weights),
        weights=np.ldexp(WEIGHTS, weights), tol=1e-4, n_jobs=1, **more,
    )  # fmt: skip


@pytest.mark.parametrize("power", [90, -90])
def test_codes_have_the_same_bits_at_every_magnitude(power):
    usual, other = _encode(), _encode(power)
    for one, two in zip(usual.codes.values, other.codes.values, strict=True):
        np.testing.assert_array_equal(np.ldexp(one, power), two)
    np.testing.assert_array_equal(np.ldexp(usual.objective, 2 * power), other.objective)
    np.testing.assert_array_equal(usual.gap, other.gap)
    np.testing.assert_array_equal(np.ldexp(usual.residuals[0], power), other.residuals[0])


@pytest.mark.parametrize("powers", [(60, 60, 0), (-30, -60, 0), (20, 20, 60), (0, 30, -60)])
@pytest.mark.parametrize("solver", ["cd", "admm"])
def test_filters_and_weights_may_have_any_magnitude(powers, solver):
    signal, filters, weights = powers
    usual, other = _encode(solver=solver), _encode(*powers, solver=solver)
    assert other.status is pt.Status.CONVERGED
    np.testing.assert_allclose(np.ldexp(usual.objective, weights + 2 * signal), other.objective, rtol=1e-4)
    np.testing.assert_allclose(
        np.ldexp(usual.codes.to_dense(), signal - filters),
        other.codes.to_dense(),
        atol=np.ldexp(0.01, signal - filters),
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_settings_in_units_of_the_filters_keep_their_meaning():
    for solver, name in ((pt.solvers.CoordinateDescent, "ridge"), (pt.solvers.SampledADMM, "rho")):
        usual, other = (
            pt.encode(
                SIGNALS, np.ldexp(FILTERS, power), np.ldexp(0.5, power), n_jobs=1,
                solver=solver(**{name: 2.0 * 4.0**power, "tol": 0.5}),
            ).codes.to_dense()
            for power in (0, 40)
        )  # fmt: skip
        np.testing.assert_allclose(np.ldexp(usual, -40), other, atol=2.0**-50)


def test_ordinary_problems_are_left_alone():
    for magnitude in (1e-6, 1.0, 65535.0):
        ((members, scale),) = by_scale([SIGNALS[:1] * magnitude] * 2, FILTERS[:, None], None, np.array(1.0))
        assert members == [0, 1]
        assert scale.is_one


def test_signals_of_different_magnitudes_keep_their_places():
    factors = [1.0, 1e18, 1e-18, 0.0, 1e18]
    signals = [(SIGNALS[0] * np.float32(factor)).astype(np.float32) for factor in factors]
    assert len(by_scale([one[None] for one in signals], FILTERS[:, None], None, np.array(1e17))) == 4
    alone = [pt.encode([one], FILTERS, 1e17, n_jobs=1) for one in signals]
    all_of_them = pt.encode(signals, FILTERS, 1e17, n_jobs=1)
    assert [len(index) > 0 for index in all_of_them.codes.indices] == [False, True, False, False, True]
    np.testing.assert_array_equal(all_of_them.objective, [one.objective[0] for one in alone])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"signals": SIGNALS.astype(float) * 1e170, "penalty": 1e169}, "signals.*too large"),
        ({"signals": SIGNALS.astype(float) * 1e-170, "penalty": 1e-171}, "signals.*too small"),
        (
            {"signals": SIGNALS * np.float32(1e25), "filters": FILTERS * np.float32(1e-25)},
            "codes that float32 cannot hold",
        ),
        ({"penalty": 1e-40}, "penalty is so small"),
        (
            {"filters": FILTERS * np.float32(1e20), "penalty": 1e20, "solver": pt.solvers.CoordinateDescent(ridge=1.0)},
            None,
        ),
        (
            {
                "filters": FILTERS * np.array([[1e20], [1], [1e-20]], np.float32),
                "solver": pt.solvers.CoordinateDescent(ridge=1.0),
            },
            "filters differ",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_cannot_be_written_is_refused_by_name(change, words):
    given = {"signals": SIGNALS, "filters": FILTERS, "penalty": 0.5, "n_jobs": 1, **change}
    if words is None:
        assert np.isfinite(pt.encode(**given).objective).all()
    else:
        with pytest.raises(ValueError, match=words):
            pt.encode(**given)


def test_filters_of_very_different_norms_are_all_used():
    """What a filter is multiplied by, its codes are divided by: the same problem."""
    factors = np.array([1e20, 1.0, 1e-15])
    usual = pt.encode(SIGNALS, FILTERS, 0.3, n_jobs=1, tol=1e-4)
    other = pt.encode(SIGNALS, FILTERS * factors[:, None].astype(np.float32), 0.3 * factors, n_jobs=1, tol=1e-4)
    assert other.status is pt.Status.CONVERGED
    np.testing.assert_allclose(other.objective, usual.objective, rtol=1e-4)


@pytest.mark.parametrize("weights", [None, "uneven"])
def test_the_objective_by_tiles_is_that_of_the_codes(reference, weights):
    problem, x = reference.problem(np.random.default_rng(3), (90, 95), (5, 5), dtype=np.float32, weights=weights)
    solver = TiledDescent(coder=CoordinateDescent(tol=1e-3), side=16)
    found = solver.solve(solver.prepare(problem), [x])
    exact = certificate(problem, 0, x, found.codes.indices[0], found.codes.values[0])
    assert found.objective[0] == pytest.approx(exact.objective, rel=1e-12)


def test_silent_signals_beside_loud_filters_have_no_codes():
    """The scale of a signal that is zero everywhere follows from the penalty and the filters."""
    filters = np.ldexp(FILTERS.astype(np.float64), 115)
    found = pt.encode(np.zeros((1, 60)), filters, 1e-8, n_jobs=1)
    assert found.status is pt.Status.CONVERGED
    assert found.codes.nnz == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tiles_in_the_span_of_filters_reach_the_tolerance_or_say_so():
    """Rounding in the span may hide whether the tolerance is met: then the last steps are made in all channels."""
    rng = np.random.default_rng(0)
    signals = rng.standard_normal((1, 6, 40, 40)).astype(np.float32)
    filters = (rng.standard_normal((3, 1, 5, 5)) * rng.standard_normal((1, 6, 1, 1))).astype(np.float32)
    solver = TiledDescent(coder=CoordinateDescent(tol=3e-4, max_iter=20), side=8)
    found = pt.encode(signals, filters, 0.01, channels=True, solver=solver, n_jobs=1)
    assert found.status is not pt.Status.CONVERGED or found.gap[0] <= 3e-4
