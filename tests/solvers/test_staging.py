"""Tests of where codes lie: tiles that never touch, and images around a circle."""

import numpy as np
import pytest

from pointillist.model.geometry import Geometry
from pointillist.model.operators import ConvolutionOperator
from pointillist.solvers.staging import partitions_of, stage_of


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
    reach = (layout.run_offsets[:, None] + np.arange(len(layout.run_lanes))).ravel()
    partitions = partitions_of(geometry, positions, 32)
    for colours in partitions:
        assert sorted(np.concatenate([tile for tiles in colours for tile in tiles])) == list(positions)
    for tiles in (tiles for colours in partitions for tiles in colours):
        owner = np.full(geometry.padded_length, -1)
        for number, tile in enumerate(tiles):
            touched = np.unique(bases[tile][:, None] + reach)
            assert np.all(owner[touched] == -1), "two tiles of one colour touch the same samples"
            owner[touched] = number


@pytest.mark.parametrize(("signal", "size"), [((12,), (3,)), ((9,), (9,)), ((10, 7), (4, 6)), ((5, 4, 6), (2, 3, 5))])
def test_images_keep_both_copies_of_a_sample_alike(signal, size):
    geometry = Geometry(signal, size, 2, "circular")
    operator = ConvolutionOperator(np.random.default_rng(0).standard_normal((2, 2, *size)), geometry)
    codes = np.arange(2 * geometry.n_positions)
    nothing, ones = geometry.spread(np.zeros((2, *signal))), geometry.spread(np.ones((2, *signal)))
    stage = stage_of(geometry, operator.layout, codes, nothing, ones, 32)
    (((_, region),),) = stage.partitions[0]
    inside = (region.rows[:, None] + np.arange(region.length)).ravel()
    width = len(stage.layout.run_lanes)
    lanes = (stage.layout.run_offsets[:, None] + np.arange(width)).ravel()
    for i, code in enumerate(codes):
        wide, first = np.zeros_like(stage.residual), stage.places.image_starts[i]
        taps = stage.layout.runs[stage.places.starts[i] :][: len(lanes)]
        for shift in (0, *stage.places.images[first : stage.places.image_starts[i + 1]]):
            wide[stage.places.bases[i] + shift + lanes] += taps
        expected = geometry.spread(operator.synthesise(np.array([code]), np.ones(1)))
        np.testing.assert_allclose(wide[inside], expected[: len(inside)])
    counted = (region.counted[:, None] + np.arange(region.counted_length)).ravel()
    assert len(counted) == 2 * np.prod(signal)
    assert set(counted) <= set(inside)
