"""Tests of sweeps over tiles: what they come to is what sweeps over the whole come to."""

import numpy as np
import pytest

from pointillist.solvers.cutting import Cutters
from pointillist.solvers.sweeping import Effort, Ground, descend


def _descended(problem, x, codes, tile, sweeps, extra):
    """Values of some codes after a descent in tiles of a side, and how many tiles there were."""
    ground = Ground(problem, 0, Cutters(problem.geometry, tile))
    working = ground.working(codes, np.zeros(len(codes), x.dtype))
    weights = problem.weights_of(0)
    stage = ground.stage(codes, problem.geometry.spread(x if weights is None else weights * x))
    descend(stage, working, Effort(1e-12, extra, sweeps, smooth=2), map)
    return working.values, len(stage.cuts[0].tiles)


@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize("boundary", ["same", "full"])
def test_tiles_come_to_what_the_whole_comes_to(reference, boundary, weights):
    rng = np.random.default_rng(7)
    problem, x = reference.problem(rng, (90, 85), (5, 4), n_filters=3, boundary=boundary, weights=weights, penalty=0.3)
    keys = np.sort(rng.choice(problem.operator.n_codes, 900, replace=False))  # in the order of their positions
    codes = keys % 3 * problem.geometry.n_positions + keys // 3
    whole, one = _descended(problem, x, codes, 1000, 400, 6)
    tiled, many = _descended(problem, x, codes, 32, 400, 6)
    assert one == 1 < 8 < many
    assert np.count_nonzero(whole) > 300
    np.testing.assert_allclose(tiled, whole, atol=1e-8)
