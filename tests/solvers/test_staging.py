"""Tests of where codes lie: those that come round a circle."""

import numpy as np
import pytest

from pointillist.kernels import sweeps
from pointillist.kernels.combining import MEMORY, make_memory
from pointillist.kernels.sweeps import Codes, Effort
from pointillist.kernels.team import make_team
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.solvers.staging import Ring


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("signal", "size"),
    [((12,), (3,)), ((9,), (9,)), ((10, 7), (4, 6)), ((5, 4, 6), (2, 3, 5)), ((6, 40), (3, 37)), ((33,), (33,))],
)
def test_codes_come_round_a_circle_and_keep_both_copies_of_a_sample_alike(signal, size, dtype):
    rng = np.random.default_rng(0)
    geometry = Geometry(signal, size, 2, "circular")
    operator = ConvolutionOperator(rng.standard_normal((2, 2, *size)).astype(dtype), geometry)
    codes = np.arange(2 * geometry.n_positions)
    x = rng.standard_normal((2, *signal)).astype(dtype)
    ring, ones = Ring(geometry, operator.layout), geometry.spread(np.ones_like(x))
    stage = ring.stage(codes, geometry.spread(x), ring.laid(ones))
    strips = stage.strips
    doubled = np.concatenate([a + np.arange(n) for a, n in zip(strips.rows, strips.lengths, strict=True)])
    one, few = np.ones(len(codes), dtype), len(codes) // 3  # curvatures so large that no code moves far
    values = np.zeros(len(codes), dtype)
    for i in rng.permutation(len(codes))[:few]:
        this = codes[i : i + 1]
        alone = ring.stage(this, geometry.spread(x), stage.weights)._replace(residual=stage.residual)
        sweeps.descend(
            0, 1, make_team(), alone.layout, alone.places, Codes(values[i : i + 1], 99 * one[:1], 0 * one[:1], one[:1] > 0),
            dtype(0), False, stage.residual, stage.weights, False, alone.strips,
            make_memory(np.zeros((MEMORY + 1, 0), dtype), 1, len(alone.strips.reached)), Effort(1.0, 0, 1),
        )  # fmt: skip
    left = geometry.spread(x - operator.synthesise(codes, values))
    box = left[: 2 * np.prod(geometry.padded)].reshape(2, *geometry.padded)
    circle = box[(slice(None), *(slice(n) for n in signal))].reshape(-1, signal[-1])
    again = np.zeros_like(stage.residual)
    rows = again[: np.prod(ring.shape)].reshape(-1, ring.shape[-1])
    rows[:, : signal[-1]] = circle
    twice = len(doubled) // len(rows) - signal[-1]
    rows[:, signal[-1] : signal[-1] + twice] = circle[:, :twice]
    np.testing.assert_allclose(stage.residual[doubled], again[doubled], atol=1e-12 if dtype == np.float64 else 1e-4)
    np.testing.assert_allclose(ring.inside(stage.residual), x - operator.synthesise(codes, values), atol=1e-4)
    assert len(doubled) == len(np.unique(doubled))
    assert np.sum(strips.counted) == 2 * np.prod(signal)
