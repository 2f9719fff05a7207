"""Tests of the frequency-domain reference: what it refuses and its quadratic step; its optima are in test_solvers.py."""

import numpy as np
import pytest

from pointillist.solvers.fourier_admm import FrequencyADMM


@pytest.mark.parametrize(("size", "signal"), [((4,), (11,)), ((3, 2), (6, 7)), ((2, 3, 2), (4, 5, 6))])
@pytest.mark.parametrize("channels", [1, 3])
def test_quadratic_step_is_the_regularised_inverse(size, signal, channels, reference):
    rng = np.random.default_rng(0)
    problem, _ = reference.problem(rng, signal, size, channels=channels, boundary="circular")
    state = FrequencyADMM(rho=0.7).prepare(problem)
    right = rng.standard_normal((3, *signal))
    solved = np.fft.irfftn(state.quadratic_step(np.fft.rfftn(right, axes=state.axes)), signal, axes=state.axes)
    matrix = reference.matrix(problem.filters, problem.geometry)
    expected = np.linalg.solve(matrix.T @ matrix + 0.7 * np.eye(matrix.shape[1]), right.ravel())
    np.testing.assert_allclose(solved.ravel(), expected, atol=1e-10)


@pytest.mark.parametrize("setting", [{"relaxation": 2.0}, {"rho": 0.0}, {"tol": -1e-3}, {"max_iter": 0}])
def test_settings_are_checked(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        FrequencyADMM(**setting)
