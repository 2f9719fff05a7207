"""Circular problems solved by turning, against the solver that wraps around itself."""

import numpy as np
import pytest

from pointillist.model.problem import certificate
from pointillist.solvers.base import Status
from pointillist.solvers.descent import CoordinateDescent
from pointillist.solvers.turning import Turning

SHAPES = {"1-D": ((24,), (5,)), "long 1-D": ((30,), (18,)), "2-D": ((11, 9), (3, 4)), "3-D": ((6, 5, 6), (2, 3, 3))}


def patient(tol):
    return CoordinateDescent(tol=tol, max_iter=2000)


def hasty(tol):
    return CoordinateDescent(tol=tol, max_iter=1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", ["plain", "weights", "sample", "nonnegative", "penalties"])
def test_turning_finds_the_optimum_of_the_circle(shape, case, reference):
    rng = np.random.default_rng(0)
    signal, size = SHAPES[shape]
    options = {
        "plain": {},
        "weights": {"weights": "mask"},
        "sample": {"sample": np.flatnonzero(rng.random(3 * int(np.prod(signal))) < 0.4)},
        "nonnegative": {"nonnegative": True},
        "penalties": {"penalty": rng.uniform(0.2, 0.6, (3, *signal))},
    }[case]
    problem, x = reference.problem(rng, signal, size, boundary="circular", **options)
    solver = Turning(make=patient, tol=1e-5)
    plain = CoordinateDescent(tol=1e-8, max_iter=5000)
    found = solver.solve(solver.prepare(problem), [x, 0.5 * x])
    best = plain.solve(plain.prepare(problem), [x, 0.5 * x])
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.objective, best.objective, rtol=1.1e-5)
    for i, one in enumerate((x, 0.5 * x)):
        judged = certificate(problem, i, one, found.codes.indices[i], found.codes.values[i])
        assert judged.gap == pytest.approx(found.gap[i], abs=1e-9)
        assert np.all(np.diff(found.codes.indices[i]) > 0)
        if problem.sample is not None:
            assert np.all(np.isin(found.codes.indices[i], problem.sample))


def test_turning_starts_where_it_is_told(reference):
    problem, x = reference.problem(np.random.default_rng(1), (24,), (5,), boundary="circular")
    solver = Turning(make=patient, tol=1e-5)
    first = solver.solve(solver.prepare(problem), [x])
    again = solver.solve(solver.prepare(problem), [x], start=first.codes)
    assert again.iterations[0] < first.iterations[0]
    assert again.objective[0] == pytest.approx(first.objective[0], rel=1e-6)


def test_too_few_turns_are_admitted(reference):
    problem, x = reference.problem(np.random.default_rng(2), (24,), (5,), boundary="circular")
    solver = Turning(make=hasty, tol=1e-9, max_turns=1)
    assert solver.solve(solver.prepare(problem), [x]).status is Status.ITERATION_LIMIT
