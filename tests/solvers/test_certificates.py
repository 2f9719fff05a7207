"""What a certificate says is true: random problems of all kinds and magnitudes against answers that are all but exact."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt

BOUNDARIES = ["same", "valid", "full", "circular"]
SHAPES = [((40,), (5,)), ((60,), (12,)), ((9, 8), (3, 3)), ((10, 7), (4, 2)), ((4, 5, 4), (2, 2, 3)), ((7,), (7,))]
REACH = {np.float32: 30, np.float64: 150}
"""Powers of ten that signals are multiplied with, at most."""


def _drawn(seed):
    """The arguments of a call to `encode`."""
    rng = np.random.default_rng(seed)
    space, size = SHAPES[rng.integers(len(SHAPES))]
    dtype = [np.float32, np.float64][rng.integers(2)]
    channels = bool(rng.random() < 0.2)
    colours = (2,) if channels else ()
    solver = ["cd", "cd", "cd", "admm", "fft"][rng.integers(5)]
    boundary = "circular" if solver == "fft" else BOUNDARIES[rng.integers(4)]
    n_filters = int(rng.integers(1, 5))
    filters = rng.standard_normal((n_filters, *colours, *size)) / np.sqrt(np.prod(size))
    signals = rng.standard_normal((int(rng.integers(1, 3)), *colours, *space))
    signals[rng.random(signals.shape) < 0.3] = 0
    part = 10 ** rng.uniform(-1.3, 0.2, n_filters if rng.random() < 0.3 else None)
    reach = REACH[dtype]
    size_of_signals = 10 ** rng.uniform(-reach, reach) if rng.random() < 0.8 else 1.0
    room = 6 if abs(np.log10(size_of_signals)) > reach - 8 else 15  # of what is left to codes and filters
    of_filters = 10 ** rng.uniform(-room, room) / max(1, size_of_signals / 10.0**reach) if rng.random() < 0.3 else 1.0
    weights, of_weights = None, 1.0
    if solver != "fft" and rng.random() < 0.4:
        weights = rng.uniform(0, 1, signals.shape) * (rng.random(signals.shape) < 0.8)
        weights[(slice(None), *[0] * (weights.ndim - 1))] = 1.0
        of_weights = 10.0 ** rng.integers(-6, 7) if rng.random() < 0.3 else 1.0
        weights = (weights * of_weights).astype(dtype)
    if dtype == np.float32 and abs(np.log10(size_of_signals / of_filters)) > 31:
        of_filters = 1.0
    tol = float(10 ** rng.uniform(-6 if dtype == np.float32 else -8, -1))
    iterations = {"admm": pt.SampledADMM, "fft": pt.FrequencyADMM}
    return {
        "signals": (signals * size_of_signals).astype(dtype),
        "filters": (filters * of_filters).astype(dtype),
        "penalty": part * (size_of_signals * of_filters * of_weights),
        "weights": weights,
        "boundary": boundary,
        "solver": iterations[solver](max_iter=200, tol=tol) if solver in iterations else solver,
        "tol": None if solver in iterations else tol,
        "channels": channels,
        "nonnegative": bool(rng.random() < 0.3),
        "sampling": 0.5 if solver != "fft" and rng.random() < 0.3 else 1.0,
        "n_jobs": 1,
        "random_state": seed,
    }


def _exact(given):
    """Objectives that exceed the optimum by next to nothing, found where the problem is of ordinary size."""
    arrays = {key: given[key] for key in ("signals", "filters", "weights") if given[key] is not None}
    unit = {key: np.frexp(np.max(np.abs(array)))[1] for key, array in arrays.items()}
    scaled = {key: np.ldexp(given[key].astype(np.float64), -power) for key, power in unit.items()}
    penalty = np.ldexp(given["penalty"], -sum(unit.values()))
    solver = pt.CoordinateDescent(tol=1e-10, max_iter=3000)
    result = pt.encode(**{**given, **scaled, "penalty": penalty, "solver": solver, "tol": None})
    return np.ldexp(result.objective, 2 * unit["signals"] + unit.get("weights", 0))


def _recomputed(given, result):
    """The objective in float64, from the codes and the signals that they make."""
    same = {key: given[key] for key in ("boundary", "channels")}
    fits = pt.decode(result.codes, given["filters"].astype(np.float64), **same)
    weights = [1.0] * len(fits) if given["weights"] is None else given["weights"].astype(np.float64)
    penalty = np.broadcast_to(given["penalty"], len(given["filters"]))
    prices = [
        np.sum(penalty[index // np.prod(grid)] * np.abs(value.astype(np.float64)))
        for index, value, grid in zip(result.codes.indices, result.codes.values, result.codes.grids, strict=True)
    ]
    signals = given["signals"].astype(np.float64)
    losses = [0.5 * np.sum(w * (x - fit) * (x - fit)) for x, fit, w in zip(signals, fits, weights, strict=True)]
    return np.array(losses) + np.array(prices)


def _attack(seeds):
    broken, converged = [], 0
    for seed in seeds:
        given = _drawn(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", category=ConvergenceWarning)
            result = pt.encode(**given)
            optimum = _exact(given)
        lower = result.objective * (1 - result.gap)
        if not (np.all(np.isfinite(lower)) and np.all(lower <= optimum * (1 + 1e-12))):
            broken.append((seed, "bound", lower / optimum - 1))
        if not np.allclose(result.objective, _recomputed(given, result), rtol=1e-9, atol=0):
            broken.append((seed, "objective", result.objective / _recomputed(given, result) - 1))
        if given["nonnegative"] and any((value < 0).any() for value in result.codes.values):
            broken.append((seed, "sign"))
        converged += result.status is pt.Status.CONVERGED
    return broken, converged / len(seeds)


def test_no_bound_is_violated():
    broken, converged = _attack(range(120))
    assert not broken
    assert converged > 0.75


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 6000, 250))
def test_no_bound_of_many_is_violated(first):
    broken, converged = _attack(range(first, first + 250))
    assert not broken
    assert converged > 0.7
