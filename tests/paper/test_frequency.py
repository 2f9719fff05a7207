"""Tests of the frequency-domain learners against slow, obvious ones."""

import numpy as np
import pytest
import scipy.optimize
from paper.frequency import (
    BatchFrequency,
    circular_codes,
    learn_online,
    pad,
    project,
)
from paper.inputs import PENALTY


@pytest.fixture
def images():
    return np.random.default_rng(0).standard_normal((3, 12, 14)).astype(np.float32)


@pytest.fixture
def start():
    return project(np.random.default_rng(1).standard_normal((2, 3, 3))).astype(np.float32)


def _fits(codes, filters):
    spectra = np.fft.fft2(pad(filters, codes.shape[2:]))
    return np.fft.ifft2(np.sum(np.fft.fft2(codes) * spectra, axis=1)).real


def test_objective_is_that_of_its_codes_and_filters(images, start):
    learner = BatchFrequency(images, start)
    steps = iter(learner)
    codes = circular_codes(images, start)
    found = next(steps)
    expected = 0.5 * np.sum((images - _fits(codes, learner.filters)) ** 2) + PENALTY * np.sum(np.abs(codes))
    assert found == pytest.approx(expected, rel=1e-4)
    assert np.all(np.linalg.norm(learner.filters, axis=(1, 2)) <= 1 + 1e-5)


def test_filter_updates_reach_the_constrained_optimum(images, start, monkeypatch):
    monkeypatch.setattr("paper.frequency.ITERATIONS", 400)
    codes = np.random.default_rng(2).standard_normal((3, 2, 12, 14)).astype(np.float32)
    learner = BatchFrequency(images, start)
    learner.update(np.fft.rfft2(codes).astype(np.complex64), np.fft.rfft2(images).astype(np.complex64))

    def loss(flat):
        return 0.5 * np.sum((images - _fits(codes, flat.reshape(2, 3, 3))) ** 2)

    inside = [{"type": "ineq", "fun": lambda flat, k=k: 1 - np.sum(flat.reshape(2, -1)[k] ** 2)} for k in range(2)]
    best = scipy.optimize.minimize(
        loss, start.ravel().astype(float), constraints=inside, method="SLSQP", options={"ftol": 1e-10}
    )
    assert loss(learner.filters.ravel()) == pytest.approx(best.fun, rel=1e-4)


def test_online_learning_keeps_what_is_due(images, start):
    path = learn_online(images, start, passes=2, due=lambda step: step == 2, first=10.0, delay=5.0)
    assert path.seen == [2, 6]
    assert path.seconds[0] < path.seconds[1]
    assert not np.allclose(path.filters[-1], start)
    assert np.all(np.linalg.norm(path.filters[-1], axis=(1, 2)) <= 1 + 1e-5)
