"""Tests of where codes lie: tiles that never touch, and codes that come round a circle."""

import numpy as np
import pytest

from pointillist.backends import sweeps
from pointillist.backends.lanes import width_of
from pointillist.backends.updates import Places
from pointillist.model.geometry import Geometry
from pointillist.model.operators import ConvolutionOperator
from pointillist.solvers.staging import Partitions, stage_of


@pytest.mark.parametrize(
    ("signal", "size"),
    [((200,), (5,)), ((20, 250), (3, 11)), ((20, 190), (3, 11)), ((95, 95), (4, 5)), ((3, 45, 100), (2, 3, 3))],
)
def test_tiles_of_one_colour_write_to_disjoint_samples(signal, size):
    """Padded lanes count: they are read and written back, so that two threads there lose updates."""
    geometry = Geometry(signal, size, 1, "same")
    layout = ConvolutionOperator(np.ones((1, 1, *size), np.float32), geometry).layout
    positions = np.arange(geometry.n_positions)
    row, column = np.divmod(positions, layout.row_length)
    bases = layout.row_bases[row] + column
    reach = (layout.run_offsets[:, None] + np.arange(width_of(layout.run_lanes))).ravel()
    partitions = Partitions(geometry, positions, 32)
    for colours in partitions:
        assert sorted(np.concatenate([tile for tiles in colours for tile, _ in tiles])) == list(positions)
    for tiles in (tiles for colours in partitions for tiles in colours):
        owner = np.full(geometry.padded_length, -1)
        for number, (tile, region) in enumerate(tiles):
            touched = np.unique(bases[tile][:, None] + reach)
            kept = np.unique(region.rows[:, None] + np.arange(region.length))
            np.testing.assert_array_equal(kept, np.unique(bases[tile][:, None] + layout.taps))
            assert np.all(owner[touched] == -1), "two tiles of one colour touch the same samples"
            owner[touched] = number


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
    stage = stage_of(geometry, operator.layout, codes, geometry.spread(x), geometry.spread(np.ones_like(x)), 32)
    (((_, region),),) = stage.partitions[0]
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
