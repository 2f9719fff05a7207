"""Tests of magnitudes: the same answers whatever signals, filters and weights are multiplied by."""

import numpy as np
import pytest

import pointillist as pt

RNG = np.random.default_rng(0)
SIGNALS = RNG.standard_normal((2, 60))
FILTERS = RNG.standard_normal((3, 5)) / 2
WEIGHTS = RNG.random(SIGNALS.shape) + 0.1


def encode(signal=1.0, filters=1.0, weights=1.0, dtype=np.float64, **more):
    """Codes of a problem whose parts are multiplied by factors, one for each filter: the same codes but for factors."""
    factors = np.broadcast_to(np.asarray(filters, float), 3)
    given = {"solver": "cd", "tol": 1e-8, "n_jobs": 1, **more}
    return pt.encode(
        (SIGNALS * signal).astype(dtype), (FILTERS * factors[:, None]).astype(dtype), 0.5 * signal * weights * factors,
        weights=(WEIGHTS * weights).astype(dtype), **given,
    )  # fmt: skip


USUAL = encode()


@pytest.mark.parametrize("weights", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("filters", [1.0, 1e-12, 70.0, 1e12, [1e-12, 1.0, 1e12], [0.3, 7.0, 900.0]])
def test_answers_do_not_depend_on_norms_and_weights(filters, weights):
    other = encode(filters=filters, weights=weights)
    assert other.status is pt.Status.CONVERGED
    np.testing.assert_allclose(other.objective, weights * USUAL.objective, rtol=1e-6)
    factors = np.broadcast_to(filters, 3)[:, None]
    np.testing.assert_allclose(other.codes.to_dense() * factors, USUAL.codes.to_dense(), atol=1e-3)


@pytest.mark.parametrize("power", [96, -96])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_have_the_same_bits_for_extreme_signals(power, dtype):
    usual, other = encode(dtype=dtype, tol=1e-4), encode(np.ldexp(1.0, power), dtype=dtype, tol=1e-4)
    for one, two in zip(usual.codes.values, other.codes.values, strict=True):
        np.testing.assert_array_equal(np.ldexp(one, power), two)
    np.testing.assert_array_equal(np.ldexp(usual.objective, 2 * power), other.objective)
    np.testing.assert_array_equal(usual.gap, other.gap)
    np.testing.assert_array_equal(np.ldexp(usual.residuals[0], power), other.residuals[0])


@pytest.mark.parametrize("powers", [(60, 60, 0), (-30, -60, 0), (20, 20, 60), (0, 30, -60)])
@pytest.mark.parametrize("solver", ["cd", "admm"])
def test_single_precision_holds_any_magnitude(powers, solver):
    given = {"dtype": np.float32, "tol": 1e-4, "solver": solver}
    usual, other = encode(**given), encode(*np.ldexp(1.0, powers), **given)
    assert other.status is pt.Status.CONVERGED
    signal, filters, weights = powers
    np.testing.assert_allclose(np.ldexp(usual.objective, weights + 2 * signal), other.objective, rtol=1e-4)
    codes = np.ldexp(other.codes.to_dense(), filters - signal)
    np.testing.assert_allclose(usual.codes.to_dense(), codes, atol=0.01)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("solver", "name"), [(pt.solvers.CoordinateDescent, "ridge"), (pt.solvers.SampledADMM, "rho")])
def test_settings_in_units_of_the_filters_keep_their_meaning(solver, name):
    usual, other = (
        encode(filters=2.0**power, solver=solver(**{name: 2.0 * 4.0**power, "tol": 0.5}), tol=None).codes.to_dense()
        for power in (0, 40)
    )
    np.testing.assert_allclose(np.ldexp(usual, -40), other, atol=2.0**-50)


def test_signals_of_different_magnitudes_keep_their_places():
    signals = [SIGNALS[0] * factor for factor in (1.0, 1e18, 1e-18, 0.0, 1e18)]
    alone = [pt.encode([one], FILTERS, 1e17, n_jobs=1) for one in signals]
    together = pt.encode(signals, FILTERS, 1e17, n_jobs=1)
    assert [len(index) > 0 for index in together.codes.indices] == [False, True, False, False, True]
    np.testing.assert_array_equal(together.objective, [one.objective[0] for one in alone])


def test_codes_to_start_from_are_scaled_too():
    found = encode(filters=1e9, start=encode(filters=1e9).codes, tol=1e-6)
    np.testing.assert_array_equal(found.iterations, [0, 0])


def test_silent_signals_beside_loud_filters_have_no_codes():
    found = pt.encode(np.zeros((1, 60)), np.ldexp(FILTERS, 115), 1e-8, n_jobs=1)
    assert found.status is pt.Status.CONVERGED
    assert found.codes.nnz == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"signals": SIGNALS * 1e170, "penalty": 1e169}, "signals.*too large"),
        ({"signals": SIGNALS * 1e-170, "penalty": 1e-171}, "signals.*too small"),
        (
            {"signals": (SIGNALS * 1e25).astype(np.float32), "filters": (FILTERS * 1e-25).astype(np.float32)},
            "codes that float32 cannot hold",
        ),
        ({"penalty": 1e-40}, "penalty is so small"),
        (
            {"filters": FILTERS * np.array([[1e20], [1], [1e-20]]), "solver": pt.solvers.CoordinateDescent(ridge=1.0)},
            "filters differ so much in magnitude that ridge",
        ),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(change, words):
    with pytest.raises(ValueError, match=words):
        pt.encode(**{"signals": SIGNALS, "filters": FILTERS, "penalty": 0.5, "n_jobs": 1, **change})


@pytest.mark.parametrize("solver", [pt.solvers.CoordinateDescent(ridge=0.5), pt.solvers.SampledADMM(rho=1.0)])
@pytest.mark.parametrize("power", [-1074, 1000])
def test_settings_stay_finite_beside_any_weights(solver, power):
    changed = solver.rescaled(power)
    number = changed.ridge if isinstance(changed, pt.solvers.CoordinateDescent) else changed.rho
    assert number == 2.0 ** (120 if power < 0 else -120)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_weights_that_their_precision_cannot_hold_are_refused_by_name():
    with pytest.raises(ValueError, match=r"weights\[0\] must be finite"):
        pt.encode(SIGNALS.astype(np.float32), FILTERS, 0.5, weights=np.full(SIGNALS.shape, 1e160))
