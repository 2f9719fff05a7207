"""The kernel of conditional means against dense universal kriging, written out with NumPy."""

import numpy as np
import pytest

from pointillist.kernels.compiling import allocating_kernel
from pointillist.kernels.kriging import factorise, fill_blocks, zeros_for

LAG = 24
NOWHERE = np.zeros((0, 2), np.int64)
NUGGET = 1e-4


def stationary(rng, *, smoothness=2.0):
    """A positive definite table of covariances: the autocorrelation of a smooth random patch."""
    y, x = np.mgrid[-8:9, -8:9]
    patch = rng.standard_normal((17, 17)) * np.exp(-(x**2 + y**2) / (2 * smoothness**2))
    table = np.zeros((2 * LAG + 1, 2 * LAG + 1))
    full = np.fft.irfft2(np.abs(np.fft.rfft2(patch, (33, 33))) ** 2, (33, 33))
    table[LAG - 16 : LAG + 17, LAG - 16 : LAG + 17] = np.fft.fftshift(full)
    return table


def by_hand(planes, sources, targets, table):
    """Values (channels, n) and deviations (n,): generalised least squares for the plane, then the residuals' mean."""

    def covariance(a, b):
        gap = a[:, None] - b[None]
        return table[LAG + gap[..., 0], LAG + gap[..., 1]]

    kernel = covariance(sources, sources) + NUGGET * table[LAG, LAG] * np.eye(len(sources))
    across = covariance(targets, sources)
    seen = planes[:, sources[:, 0], sources[:, 1]].T
    trend = np.column_stack([np.ones(len(sources)), sources])
    inverse = np.linalg.inv(kernel)
    plane = np.linalg.solve(trend.T @ inverse @ trend, trend.T @ inverse @ seen)
    there = np.column_stack([np.ones(len(targets)), targets])
    values = there @ plane + across @ inverse @ (seen - trend @ plane)
    left = table[LAG, LAG] - np.sum((across @ inverse) * across, axis=1)
    return values.T, np.sqrt(np.maximum(left, 0))


def filled(planes, known, wanted, block, tables, *, others=None, deviations=True):
    out = np.full(planes.shape, np.nan)
    deviation = np.full(known.shape if deviations else (0, 0), np.nan)
    others = np.zeros((0, *tables.shape[1:])) if others is None else others
    blocks = np.array([block], np.int64).reshape(-1, 7)
    fill_blocks(
        planes, known, wanted, blocks, tables, np.ones(len(tables)), others, NUGGET, NOWHERE, 0.0, out, deviation
    )
    return out, deviation


def nearest(sources, targets, most):
    """The `most` sources nearest to any target, raster order first among equals, in raster order."""
    distances = np.min(np.sum((sources[:, None] - targets[None]) ** 2, axis=2), axis=1)
    return sources[np.sort(np.lexsort((np.arange(len(sources)), distances))[:most])]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("channels", [1, 3])
def test_dense_kriging(seed, channels):
    rng = np.random.default_rng(seed)
    shape, (top, bottom, left, right), reach = (23, 19), (7, 13, 5, 12), 4
    planes = rng.standard_normal((channels, *shape))
    missing = rng.random(shape) < rng.uniform(0.2, 0.8)
    wanted = missing & (rng.random(shape) < 0.8)
    tables = np.stack([stationary(rng), stationary(rng, smoothness=1.0)])
    which = seed % 2
    box = np.zeros(shape, bool)
    box[top - reach : bottom + reach, left - reach : right + reach] = True
    inner = np.zeros(shape, bool)
    inner[top:bottom, left:right] = True
    sources, targets = np.argwhere(~missing & box), np.argwhere(wanted & inner)
    values, spread = by_hand(planes, sources, targets, tables[which])
    out, deviation = filled(planes, ~missing, wanted, (top, bottom, left, right, reach, 600, which), tables)
    np.testing.assert_allclose(out[:, wanted & inner], values, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(deviation[wanted & inner], spread, rtol=1e-8, atol=1e-8)
    assert np.all(np.isnan(out[:, ~(wanted & inner)]))
    assert np.all(np.isnan(deviation[~(wanted & inner)]))


def test_float32_comes_near():
    """Many sources and a smooth table, as scattered pixels have them."""
    rng = np.random.default_rng(8)
    table = np.exp(-((np.hypot(*np.mgrid[-LAG : LAG + 1, -LAG : LAG + 1]) / 6) ** 2))
    y, x = np.mgrid[:24, :24]
    planes, known = np.stack([np.cos(x / 5 + y / 8), 0.5 + 0.01 * x]), rng.random((24, 24)) < 0.5
    block, others = (
        (8, 16, 8, 16, 4, 90, 0),
        np.exp(-np.abs(np.mgrid[-LAG : LAG + 1, -LAG : LAG + 1]).sum(axis=0) / 9)[None],
    )
    exact, spread = filled(planes, known, ~known, block, table[None], others=others)
    rounded, near = filled(
        planes, known, ~known, block, table[None].astype(np.float32), others=others.astype(np.float32)
    )
    np.testing.assert_allclose(rounded, exact, atol=1e-4)
    np.testing.assert_allclose(near, spread, atol=1e-3)


@pytest.mark.parametrize("most", [4, 7, 12, 40])
def test_the_nearest_are_used_and_ties_go_in_raster_order(most):
    """A hole in the middle of a grid that is symmetric about it: there are ties at every distance."""
    rng = np.random.default_rng(most)
    planes, table = rng.standard_normal((2, 15, 15)), stationary(rng)
    wanted = np.zeros((15, 15), bool)
    wanted[7, 6:9] = True
    sources = nearest(np.argwhere(~wanted), np.argwhere(wanted), most)
    values, _ = by_hand(planes, sources, np.argwhere(wanted), table)
    out, _ = filled(planes, ~wanted, wanted, (7, 8, 6, 9, 15, most, 0), table[None], deviations=False)
    np.testing.assert_allclose(out[:, wanted], values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("line", ["row", "column", "diagonal"])
def test_pixels_on_one_line_tell_the_slope_along_it_and_none_across(line):
    step = {"row": (0, 1), "column": (1, 0), "diagonal": (1, 1)}[line]
    known = np.zeros((21, 21), bool)
    places = np.array([5, 5]) + np.outer(np.arange(8), step)
    known[tuple(places.T)] = True
    y, x = np.mgrid[:21, :21]
    along = 10 + 0.5 * (y * step[0] + x * step[1])
    wanted = ~known
    wanted[:4], wanted[14:], wanted[:, :4], wanted[:, 14:] = False, False, False, False
    out, _ = filled(along[None], known, wanted, (4, 14, 4, 14, 8, 600, 0), stationary(np.random.default_rng(0))[None])
    np.testing.assert_allclose(out[0][wanted], along[wanted], atol=1e-5)


@pytest.mark.parametrize("place", [(3, 3), (9, 2), (12, 14)])
def test_one_known_pixel_is_repeated(place):
    known = np.zeros((16, 16), bool)
    known[place] = True
    planes = np.stack([np.full((16, 16), 5.0), np.full((16, 16), -2.0)])
    table = stationary(np.random.default_rng(1))
    out, deviation = filled(planes, known, ~known, (0, 16, 0, 16, 4, 600, 0), table[None])
    np.testing.assert_allclose(out[:, ~known], np.broadcast_to([[5.0], [-2.0]], (2, 255)), atol=1e-6)
    far = np.max(np.abs(np.argwhere(~known) - place), axis=1) > 16
    np.testing.assert_allclose(deviation[~known][far], np.sqrt(table[LAG, LAG]))


def test_scaled_covariances_scale_deviations_and_leave_values():
    rng = np.random.default_rng(2)
    planes, known, table = rng.standard_normal((1, 12, 12)), rng.random((12, 12)) < 0.5, stationary(rng)
    block = (2, 10, 2, 10, 2, 600, 0)
    one, spread = filled(planes, known, ~known, block, table[None])
    other, narrow = filled(planes, known, ~known, block, 1e-12 * table[None])
    np.testing.assert_allclose(other, one, rtol=1e-6)
    np.testing.assert_allclose(narrow, 1e-6 * spread, rtol=1e-6)


def test_blocks_without_wanted_or_known_pixels_are_left_alone():
    planes, none, table = np.ones((1, 8, 8)), np.zeros((8, 8), bool), stationary(np.random.default_rng(3))[None]
    for known, wanted in ((~none, none), (none, ~none)):
        out, deviation = filled(planes, known, wanted, (0, 8, 0, 8, 3, 50, 0), table)
        assert np.all(np.isnan(out))
        assert np.all(np.isnan(deviation))


def likelihood(values, sources, table):
    """Mean logarithm of the likelihood of planes at the sources, at the best unit of the table and the best plane."""
    gap = sources[:, None] - sources[None]
    lag, n = len(table) // 2, len(sources)
    kernel = table[lag + gap[..., 0], lag + gap[..., 1]] + NUGGET * table[lag, lag] * np.eye(n)
    trend, inverse = np.column_stack([np.ones(n), sources]), np.linalg.inv(kernel)
    seen = values[:, sources[:, 0], sources[:, 1]].T
    left = seen - trend @ np.linalg.solve(trend.T @ inverse @ trend, trend.T @ inverse @ seen)
    return -0.5 * np.log(np.mean(np.sum(left * (inverse @ left), axis=0)) / n) - 0.5 * np.linalg.slogdet(kernel)[1] / n


def test_tables_are_mixed_by_likelihood_and_the_likeliest_tells_the_deviation():
    """Noise that is a little alike, under its own table and a smoother one, whichever stands first."""
    rng = np.random.default_rng(7)
    planes = 3 * rng.standard_normal((2, 24, 24))
    distances = np.hypot(*np.mgrid[-LAG : LAG + 1, -LAG : LAG + 1])
    rough, smooth = np.exp(-distances / 0.4), np.exp(-distances / 4)
    wanted = np.zeros((24, 24), bool)
    wanted[11:13, 11:13] = True
    block, sources = (10, 14, 10, 14, 6, 400, 0), np.argwhere(~wanted[4:20, 4:20]) + 4
    first, second = (by_hand(planes, sources, np.argwhere(wanted), table)[0] for table in (rough, smooth))
    weight = np.exp(5 * (likelihood(planes, sources, smooth) - likelihood(planes, sources, rough)))
    assert 0.02 < weight < 0.98
    one, far = filled(planes, ~wanted, wanted, block, smooth[None], others=rough[None])
    other, near = filled(planes, ~wanted, wanted, block, rough[None], others=smooth[None])
    np.testing.assert_allclose(one[:, wanted], (first + weight * second) / (1 + weight), rtol=1e-7)
    np.testing.assert_allclose(other[:, wanted], one[:, wanted], rtol=1e-9)
    np.testing.assert_allclose(near[wanted], 1, rtol=0.05)  # in the table's own unit
    np.testing.assert_allclose(far[wanted], 3, rtol=0.2)  # in that of the values


def test_a_table_that_is_far_less_likely_is_left_out():
    y, x = np.mgrid[:20, :20]
    planes = np.cos(x / 5 + y / 8)[None]
    distances = np.hypot(*np.mgrid[-20:21, -20:21])
    white, smooth = (distances == 0).astype(float), np.exp(-((distances / 6) ** 2))
    wanted = np.zeros((20, 20), bool)
    wanted[9:11, 9:11] = True
    block = (8, 12, 8, 12, 6, 400, 0)
    alone, _ = filled(planes, ~wanted, wanted, block, smooth[None])
    for table, others in ((smooth, white), (white, smooth)):
        mixed, _ = filled(planes, ~wanted, wanted, block, table[None], others=others[None])
        np.testing.assert_allclose(mixed[0][wanted], alone[0][wanted], atol=1e-3)
    np.testing.assert_allclose(alone[0][wanted], planes[0][wanted], atol=1e-3)


def test_pixels_across_a_hole_are_used_before_those_behind_its_rim():
    """Of a hole one quarter is a block; what lies across the hole is beyond its nearest 104 pixels."""
    rng = np.random.default_rng(4)
    planes, table = rng.standard_normal((1, 32, 32)), stationary(rng)
    wanted = np.zeros((32, 32), bool)
    wanted[10:20, 10:20] = True
    block = (10, 15, 10, 15, 9, 104, 0)
    plain, _ = filled(planes, ~wanted, wanted, block, table[None])
    across, behind = planes.copy(), planes.copy()
    across[:, 20:22, 10:15] += 1
    behind[:, 10:15, 5:7] += 1
    inner = np.s_[0, 10:15, 10:15]
    assert np.max(np.abs(filled(across, ~wanted, wanted, block, table[None])[0][inner] - plain[inner])) > 1e-3
    np.testing.assert_array_equal(filled(behind, ~wanted, wanted, block, table[None])[0][inner], plain[inner])


def test_what_lies_beyond_an_edge_is_not_used_in_a_calm_hole():
    rng = np.random.default_rng(5)
    planes, table = 0.01 * rng.standard_normal((1, 32, 32)), stationary(rng)
    wanted = np.zeros((32, 32), bool)
    wanted[12:18, 12:18] = True
    block = (12, 18, 12, 18, 8, 250, 0)
    edge = planes.copy()
    edge[:, :, 21:] += 100
    calm, beside = (filled(values, ~wanted, wanted, block, table[None])[0][:, wanted] for values in (planes, edge))
    np.testing.assert_allclose(beside, calm, atol=0.01)


@allocating_kernel
def factorised(matrix, sides):
    """The upper factor of a matrix, and the sides (n, k) divided by its transpose, with what a row has besides."""
    n, k = sides.shape
    system = zeros_for(n, n + k, matrix.dtype)
    system[:n, :n], system[:n, n : n + k] = matrix, sides
    factorise(system.ravel(), system.shape[1], n, n + k)
    return system


@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("n", [*range(1, 20), 37, 80])
@pytest.mark.parametrize("k", [1, 4, 6])
def test_factor_and_right_sides(dtype, close, n, k):
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, n + 5))
    matrix, sides = root @ root.T, rng.standard_normal((n, k))
    found = factorised(np.triu(matrix).astype(dtype), sides.astype(dtype))
    upper = np.linalg.cholesky(matrix).T
    np.testing.assert_allclose(np.triu(found[:n, :n]), upper, atol=close * np.max(upper))
    expected = np.linalg.solve(upper.T, sides)
    np.testing.assert_allclose(
        found[:n, n : n + k], expected, atol=close * np.max(np.abs(expected)) * np.linalg.cond(upper)
    )


def test_a_singular_matrix_leaves_finite_numbers():
    assert np.all(np.isfinite(factorised(np.ones((9, 9)), np.ones((9, 1)))))
