"""Statistics on a device beside those of the CPU."""

import numpy as np
import pytest

from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.statistics import CodedBatch, DeviceStatistics, ToeplitzStatistics
from pointillist.solvers.encoding import encode

pytestmark = pytest.mark.gpu


def _both(shape, size, channels, boundary, masked):
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((6, channels, *size)).astype(np.float32)
    filters /= np.sqrt(np.sum(filters**2, axis=tuple(range(1, filters.ndim)), keepdims=True))
    signals = rng.standard_normal((3, channels, *shape)).astype(np.float32)
    weights = 2 * rng.random(signals.shape).astype(np.float32) if masked else None
    result = encode(signals, filters, 0.4, channels=True, boundary=boundary, weights=weights)
    ours, theirs = DeviceStatistics(6, channels, size, "cuda"), ToeplitzStatistics(6, channels, size)
    own = None if weights is None else list(weights)
    batch = CodedBatch(list(signals), own, result.codes, result.residuals, boundary)
    for sums in (ours, theirs):
        sums.add(batch, filters, np.array([1.0, 3.0, 5.0]))
    np.testing.assert_allclose(ours.objectives(batch, filters, 0.4), theirs.objectives(batch, filters, 0.4), rtol=1e-5)
    return ours, theirs, filters


CASES = [
    ((30, 27), (5, 5), 1, "same", False), ((30, 27), (5, 4), 1, "valid", True), ((20, 25), (5, 5), 3, "full", True),
    ((200,), (9,), 1, "same", False), ((12, 13, 14), (3, 4, 5), 1, "same", False),
    ((11, 12, 10), (3, 3, 3), 2, "full", True), ((30, 27), (5, 4), 1, "circular", False),
    ((6, 27), (5, 5), 2, "circular", True), ((14,), (9,), 1, "circular", False),
    ((5, 7, 9), (3, 4, 5), 1, "circular", True),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_sums_agree(case, reference):
    ours, theirs, filters = _both(*case)
    here = ours.on_host()
    np.testing.assert_allclose(here.linear, theirs.linear, atol=1e-6 * np.abs(theirs.linear).max())
    np.testing.assert_allclose(here.pairs, theirs.pairs, atol=1e-12 * np.abs(theirs.pairs).max())
    np.testing.assert_allclose(here.lipschitz(), theirs.lipschitz(), rtol=1e-10)
    np.testing.assert_allclose(ours.energies(), theirs.energies(), rtol=1e-10)
    assert ours.total == theirs.total
    assert reference.surrogate(here, filters) == pytest.approx(reference.surrogate(theirs, filters), rel=1e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("zero_mean", [False, True])
def test_sweeps_agree(case, zero_mean):
    ours, theirs, filters = _both(*case)
    constraints = FilterConstraints(zero_mean, False, None)
    np.testing.assert_allclose(ours.sweep(filters, constraints), theirs.sweep(filters, constraints), atol=2e-5)


def test_sums_are_stored_and_reordered():
    ours, theirs, _ = _both(*CASES[0])
    order = np.array([3, 1, 0, 5, 4, 2])
    again = DeviceStatistics(6, 1, (5, 5), "cuda")
    again.load(ours.arrays())
    again.permute(order)
    theirs.permute(order)
    pairs = again.on_host().pairs
    np.testing.assert_allclose(pairs, theirs.pairs, atol=1e-12 * np.abs(theirs.pairs).max())
    np.testing.assert_allclose(again.energies(), theirs.energies(), rtol=1e-10)
