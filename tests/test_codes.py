"""Tests of the sparse codes' container: round trips, selections, reordering and errors."""

from types import SimpleNamespace

import numpy as np
import pytest

from pointillist import codes as codes_module
from pointillist.codes import SparseCodes


@pytest.fixture
def dense():
    rng = np.random.default_rng(0)
    return np.where(rng.random((3, 4, 5, 6)) < 0.2, rng.standard_normal((3, 4, 5, 6)), 0).astype(np.float32)


@pytest.fixture
def mixed():
    rng = np.random.default_rng(1)
    return [rng.standard_normal((2, 4)), rng.standard_normal((2, 7)) * (rng.random((2, 7)) < 0.5)]


def test_dense_round_trip(dense):
    codes = SparseCodes.from_dense(dense)
    np.testing.assert_array_equal(codes.to_dense(), dense)
    assert codes.to_dense().dtype == np.float32
    assert codes.shape == dense.shape
    assert codes.nnz == np.count_nonzero(dense)
    assert repr(codes) == f"SparseCodes(3 signals, on 5×6, 4 filters, {codes.nnz} non-zeros)"


def test_scipy_conversion(dense):
    matrix = SparseCodes.from_dense(dense).to_scipy()
    assert matrix.shape == (3, 4 * 5 * 6)
    np.testing.assert_array_equal(matrix.toarray(), dense.reshape(3, -1))


@pytest.mark.parametrize("item", [0, -1, slice(1, None), slice(None, None, -1), [2, 0], [1], np.array([0, 0, 2]), []])
def test_selection_follows_numpy(dense, item):
    chosen = SparseCodes.from_dense(dense)[item]
    expected = dense[item] if not isinstance(item, int) else dense[item][None]
    assert len(chosen) == len(expected)
    if len(chosen):
        np.testing.assert_array_equal(chosen.to_dense(), expected)


def test_a_boolean_mask_selects_or_is_refused(dense):
    codes = SparseCodes.from_dense(dense)
    mask = np.array([True, False, True])
    try:
        chosen = codes[mask]
    except (IndexError, TypeError, ValueError):
        return
    np.testing.assert_array_equal(chosen.to_dense(), dense[mask])


@pytest.mark.parametrize("item", [3, -4, [0, 5]])
def test_selection_outside_is_an_index_error(dense, item):
    with pytest.raises(IndexError, match="of 3"):
        SparseCodes.from_dense(dense)[item]


def test_iteration_yields_single_signals(dense):
    parts = list(SparseCodes.from_dense(dense))
    assert [len(part) for part in parts] == [1, 1, 1]
    np.testing.assert_array_equal(SparseCodes.concatenate(parts).to_dense(), dense)


def test_count_and_usage(dense):
    codes = SparseCodes.from_dense(dense)
    np.testing.assert_array_equal(codes.count(0.5), np.sum(np.abs(dense) >= 0.5, axis=(1, 2, 3)))
    np.testing.assert_array_equal(codes.count(), np.sum(np.abs(dense) >= np.float32(0.1), axis=(1, 2, 3)))
    np.testing.assert_allclose(codes.usage(), np.abs(dense).astype(np.float64).sum(axis=(0, 2, 3)), rtol=1e-12)


def test_grids_of_different_shapes(mixed):
    codes = SparseCodes.from_dense(mixed)
    assert codes.grids == [(4,), (7,)]
    for part, one in zip(codes, mixed, strict=True):
        np.testing.assert_array_equal(part.to_dense()[0], one)
    np.testing.assert_allclose(codes.usage(), sum(np.abs(one).sum(axis=1) for one in mixed))
    for one, expected in zip(codes.to_dense(), mixed, strict=True):
        np.testing.assert_array_equal(one, expected)
    for operation in (codes.to_scipy, lambda: np.asarray(codes)):
        with pytest.raises(ValueError, match=r"one shape, these have 2; pool\(\) gives features of one length"):
            operation()
    assert not hasattr(codes, "shape")
    assert repr(codes) == f"SparseCodes(2 signals, on 2 sizes of grids, 2 filters, {codes.nnz} non-zeros)"


def test_no_codes_at_all():
    codes = SparseCodes.from_dense(np.zeros((2, 3, 4)))
    assert codes.nnz == 0
    assert codes.to_dense().shape == (2, 3, 4)
    assert codes.to_scipy().nnz == 0
    np.testing.assert_array_equal(codes.usage(), np.zeros(3))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SparseCodes([], [np.ones(1)], [(3,)], 1), "one entry for each signal"),
        (lambda: SparseCodes([np.arange(2)], [np.ones(3)], [(3,)], 1), "signal 0 must be 1-D and equally long"),
        (lambda: SparseCodes.from_dense([]), "at least one signal"),
        (lambda: SparseCodes.concatenate([]), "at least one"),
    ],
)
def test_bad_codes_say_why(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_codes_of_different_numbers_of_filters_do_not_join():
    parts = [SparseCodes.from_dense(np.ones((1, k, 4))) for k in (2, 3)]
    with pytest.raises(ValueError, match="filters"):
        SparseCodes.concatenate(parts)
    with pytest.raises(ValueError, match="filters"):
        SparseCodes.from_dense([np.ones((2, 4)), np.ones((3, 4))])


def test_grids_that_are_none_and_masks_of_another_length_are_refused():
    one = [np.array([1])], [np.ones(1)]
    with pytest.raises(ValueError, match="a tuple of integers for each signal"):
        SparseCodes(*one, [("5",)], 2)
    with pytest.raises(IndexError, match="a mask for 1 signals"):
        SparseCodes(*one, [(5,)], 2)[np.array([True, False])]


def test_codes_of_a_device_come_to_the_host_together(monkeypatch):
    one = SparseCodes([np.array([1, 7])], [np.array([2.0, -3.0])], [(5,)], 2, names=["a"])
    moved = []

    def to_host(arrays):
        moved.append(len(arrays))
        return list(arrays)

    monkeypatch.setattr(SparseCodes, "resident", property(lambda self: not moved))
    monkeypatch.setattr(codes_module, "all_to_host", to_host)
    monkeypatch.setattr(codes_module, "summed_by", lambda *given: given[2:])
    assert one.usage() == (5, 2)
    there = one.on_host()
    assert moved == [1, 1]
    assert there.names == ["a"]
    np.testing.assert_array_equal(there.to_dense(), one.to_dense())


class Tensor:
    """What torch's tensors have and NumPy's arrays have not: a type without a letter."""

    def __init__(self, *, real):
        self.ndim, self.shape = 1, (3,)
        self.dtype = SimpleNamespace(is_complex=False, is_floating_point=real)


def test_tensors_are_taken_by_what_torch_says_of_their_numbers():
    assert len(SparseCodes([Tensor(real=False)], [Tensor(real=True)], [(9,)], 1)) == 1
    with pytest.raises(ValueError, match="indices must be integers"):
        SparseCodes([Tensor(real=True)], [Tensor(real=True)], [(9,)], 1)
