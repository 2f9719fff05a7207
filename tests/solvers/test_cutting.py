"""Tests of tiles: what can be swept over at the same time never touches."""

import numpy as np
import pytest

from pointillist.backends.lanes import width_of
from pointillist.model.geometry import Geometry
from pointillist.model.operators import ConvolutionOperator
from pointillist.solvers.cutting import Cuts, Cutter

CASES = [
    ((2500,), (5,)), ((20, 250), (3, 11)), ((20, 190), (3, 11)), ((95, 95), (4, 5)), ((3, 45, 100), (2, 3, 3)),
    ((110, 700), (11, 11)), ((300, 40), (9, 3)), ((441, 80), (1, 4)),
]  # fmt: skip
SEVERAL = [((130, 80), (2, 11)), ((445, 60), (1, 3)), ((30, 1100), (4, 11))]
"""Of two channels and without a margin: what runs on behind the last row meets samples of the next channel."""


def _earlier(after):
    """For each tile all that are done before it begins, those that it waits for indirectly too."""
    before = []
    for some in after:
        before.append(set(some).union(*(before[n] for n in some)))
    return before


@pytest.mark.parametrize(
    ("signal", "size", "channels", "boundary"),
    [(*case, 1, "same") for case in CASES] + [(*case, 2, "valid") for case in SEVERAL],
)
@pytest.mark.parametrize("cut", [Cutter.into_tiles, Cutter.into_strips])
def test_tiles_that_do_not_wait_for_each_other_write_to_disjoint_samples(signal, size, channels, boundary, cut):
    """Padded lanes count: they are read and written back, so that two threads there lose updates."""
    geometry = Geometry(signal, size, channels, boundary)
    layout = ConvolutionOperator(np.ones((1, channels, *size), np.float32), geometry).layout
    positions = np.arange(geometry.n_positions)
    row, column = np.divmod(positions, layout.row_length)
    bases = layout.row_bases[row] + column
    reach = (layout.run_offsets[:, None] + np.arange(width_of(layout.run_lanes))).ravel()
    cuts = Cuts(cut(geometry, 32), positions)
    assert len(cuts[0].tiles) > 1
    for tiles, after in cuts:
        assert sorted(np.concatenate([tile for tile, _ in tiles])) == list(positions)
        assert all(other < n for n, some in enumerate(after) for other in some)
        earlier = _earlier(after)
        touched = [np.unique(bases[tile][:, None] + reach) for tile, _ in tiles]
        for n, (tile, region) in enumerate(tiles):
            kept = np.unique(region.rows[:, None] + np.arange(region.length))
            np.testing.assert_array_equal(kept, np.unique(bases[tile][:, None] + layout.taps))
            for other in set(range(n)) - earlier[n]:
                assert len(np.intersect1d(touched[n], touched[other])) == 0, "two tiles touch at the same time"


@pytest.mark.parametrize("length", [257, 441, 445, 1849, 1933, 2021, 5000])
@pytest.mark.parametrize("side", [32, 64, 128])
def test_no_tile_is_empty_or_narrow(length, side):
    geometry = Geometry((length, 300), (1, 9), 1, "same")
    for cutter in (Cutter.into_tiles(geometry, side), Cutter.into_strips(geometry, side)):
        for number in range(cutter.n_ways):
            owners = cutter.way(number).owners.reshape(geometry.grid)
            for along, count in zip((owners[:, 0] // cutter.counts[1], owners[0]), cutter.counts, strict=True):
                sides = np.bincount(along, minlength=count)
                assert len(sides) == count
                assert np.min(sides[1:], initial=len(along)) >= len(along) // count
                assert sides[0] >= len(along) // (2 * count)


def test_touching_tiles_keep_their_order_whatever_codes_there_are():
    """The order in which two tiles that touch are swept over is that of their colours: bits must not depend on counts."""
    geometry = Geometry((100, 100), (5, 5), 1, "same")
    cutter, rng = Cutter.into_tiles(geometry, 42), np.random.default_rng(0)
    owners = cutter.way(0).owners
    orders = set()
    for share in (1.0, 0.3, 0.05):
        positions = np.flatnonzero(rng.random(geometry.n_positions) < share * rng.random(geometry.n_positions))
        tiles, after = Cuts(cutter, positions)[0]
        named = [int(owners[positions[tile[0]]]) for tile, _ in tiles]
        orders |= {(named[other], named[n]) for n, some in enumerate(after) for other in some}
    assert orders
    assert not orders & {(b, a) for a, b in orders}


def test_tiles_without_codes_are_left_out():
    geometry = Geometry((100, 100), (5, 5), 1, "same")
    tiles, after = Cuts(Cutter.into_tiles(geometry, 42), np.array([3, 5, 9999]))[0]
    assert [len(tile) for tile, _ in tiles] == [2, 1]
    assert len(after) == 2
    assert Cuts(Cutter.into_tiles(geometry, 42), np.empty(0, np.int64))[1].tiles == []


def test_the_tile_that_most_work_waits_for_is_the_first():
    geometry = Geometry((400, 100), (5, 5), 1, "same")
    positions = np.concatenate([np.arange(300), np.arange(20_000, 23_000)])
    tiles, _ = Cuts(Cutter.into_tiles(geometry, 100), positions)[0]
    assert np.min(positions[tiles[0][0]]) >= 20_000


@pytest.mark.parametrize("grid", [(90, 90), (5000,), (60, 60, 60)])
def test_only_pictures_of_several_tiles_are_cut_into_strips(grid):
    geometry = Geometry(grid, (5,) * len(grid), 1, "same")
    tiles, strips = Cutter.into_tiles(geometry, 100), Cutter.into_strips(geometry, 100)
    assert tiles.counts == strips.counts
    picture = Geometry((300, 300), (5, 5), 1, "same")
    assert Cutter.into_strips(picture, 100).counts == [10, 1]
    band = Geometry((30, 300), (5, 5), 1, "same")  # one strip: threads have nothing to share then
    assert Cutter.into_strips(band, 100).counts == Cutter.into_tiles(band, 100).counts == [1, 4]
