"""Tests of where codes lie: those that come round a circle."""

import numpy as np
import pytest

from pointillist.backends import sweeps
from pointillist.backends.updates import Places
from pointillist.model.geometry import Geometry
from pointillist.model.operators import ConvolutionOperator
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
    stage = Ring(geometry, operator.layout, geometry.spread(np.ones_like(x))).stage(codes, geometry.spread(x))
    ((_, region),) = stage.cuts[0].tiles
    doubled = region.rows[:, None] + np.arange(region.length)
    columns = np.arange(region.length) % signal[-1]
    one, few = np.ones(len(codes), dtype), len(codes) // 3  # curvatures so large that no code moves far
    values = np.zeros(len(codes), dtype)
    for i in rng.permutation(len(codes))[:few]:
        this, circle = slice(i, i + 1), stage.places.circle
        circle = circle._replace(ways=circle.ways[this], seams=circle.seams[this], columns=circle.columns[this])
        sweeps.descend(
            stage.layout, Places(stage.places.bases[this], stage.places.starts[this], circle), 99 * one[:1], 0 * one[:1],
            dtype(0), one[:1] > 0, stage.weights, False, values[this], stage.residual, 1.0, 0, 1, region, True,
        )  # fmt: skip
    left = geometry.spread(x - operator.synthesise(codes, values))
    box = left[: 2 * np.prod(geometry.padded)].reshape(2, *geometry.padded)
    expected = box[(slice(None), *(slice(n) for n in signal))].reshape(-1, signal[-1])[:, columns]
    np.testing.assert_allclose(stage.residual[doubled], expected, atol=1e-12 if dtype == np.float64 else 1e-4)
    counted = (region.counted[:, None] + np.arange(region.counted_length)).ravel()
    assert len(counted) == 2 * np.prod(signal)
    assert set(counted) <= set(doubled.ravel())
