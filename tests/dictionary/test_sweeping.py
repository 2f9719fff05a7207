"""Products with block-Toeplitz sums against a double loop, and sweeps in groups and threads against the paper's."""

import numpy as np
import pytest

from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.dense import sweep_by_blocks
from pointillist.dictionary.toeplitz import ToeplitzStatistics
from pointillist.dictionary.update import update_filters

SIZES = [(7,), (40,), (5, 3), (6, 4), (7, 20), (11, 11), (13, 6), (2, 6, 3), (3, 7, 9)]


def filled(n_filters, size, channels=1, seed=0):
    """Statistics whose C is positive definite: that of random codes on a small circle."""
    rng = np.random.default_rng(seed)
    sums = ToeplitzStatistics(n_filters, channels, size)
    grid = tuple(2 * s for s in size)
    spectra = np.fft.fftn(rng.standard_normal((n_filters, *grid)), axes=range(1, len(size) + 1))
    for k in range(n_filters):
        products = np.fft.ifftn(spectra[k].conj() * spectra[k:], axes=range(1, len(size) + 1)).real
        for axis, side in enumerate(size, 1):
            products = np.take(products, np.arange(1 - side, side) % (2 * side), axis=axis)
        sums.pairs[sums.first[k] : sums.first[k] + n_filters - k] = products
    sums.linear()[...] = rng.standard_normal(sums.linear().shape) * np.max(sums.energies())
    return sums, rng.standard_normal((n_filters, channels, *size)) / np.sqrt(np.prod(size))


def slow_product(sums, filters, k):
    """(C d)_k by its definition, sample by sample of the other filters: C_kl(δ) = C_lk(−δ)."""
    out = np.zeros(filters.shape[1:])
    for m in range(len(filters)):
        block = sums.pairs[sums.first[min(k, m)] + abs(m - k)]
        block = block if m >= k else np.flip(block)
        for j in np.ndindex(*sums.size):
            around = tuple(slice(s - 1 - at, 2 * s - 1 - at) for s, at in zip(sums.size, j, strict=True))
            taps = filters[(m, slice(None), *j)].reshape(-1, *[1] * len(j))
            out += taps * block[around]
    return out


@pytest.mark.parametrize("size", SIZES)
def test_products_are_sums_over_pairs_of_samples(size):
    sums, filters = filled(3, size, channels=2)
    for k in range(3):
        expected = slow_product(sums, filters, k)
        np.testing.assert_allclose(sums.product(filters, k), expected, atol=1e-11 * np.max(np.abs(expected)))


@pytest.mark.parametrize("size", [(9,), (7, 6), (4, 5)])
@pytest.mark.parametrize("chosen", [None, np.arange(1, 30, 3)])
def test_groups_of_filters_change_no_more_than_rounding(size, chosen, monkeypatch):
    sums, filters = filled(30, size, channels=2)
    slow = sweep_by_blocks(sums, filters, FilterConstraints(), chosen)
    for group in (1, 7, 24, 100):
        monkeypatch.setattr("pointillist.dictionary.sweeping._GROUP", group)
        np.testing.assert_allclose(sums.sweep(filters, FilterConstraints(), chosen), slow, atol=1e-11)
    assert np.max(np.abs(slow - filters)) > 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(dtype, monkeypatch):
    monkeypatch.setattr("pointillist.dictionary.sweeping._WORTH_THREADS", 0)
    sums, filters = filled(30, (7, 6))
    found = [
        update_filters(filters.astype(dtype), sums, FilterConstraints(), n_sweeps=2, n_jobs=n) for n in (1, 2, 5, 40)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    assert not np.array_equal(found[0], filters.astype(dtype))


def test_nothing_is_read_behind_the_room_of_wide_filters():
    # Groups of rows reach beyond a block by up to five rows: what is there counts nothing, but must be there.
    sums, filters = filled(2, (7, 60))
    assert sums.product(filters, 0).shape == (1, 7, 60)
    np.testing.assert_allclose(sums.product(filters, 1), slow_product(sums, filters, 1), atol=1e-8)
