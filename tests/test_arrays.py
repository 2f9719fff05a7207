"""Numbers as other libraries hold them, arrays on a device and in files; `learners/test_inputs.py` has those libraries."""

from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from pointillist import arrays
from pointillist.arrays import (
    Rows,
    all_to_host,
    any_resident,
    as_cupy,
    as_kind,
    as_plain,
    group_by_shape,
    is_resident,
    kind_of,
    members_of,
    stacked,
    summed_by,
    to_host,
)


class Table:
    """As much of a table of objects as is looked at."""

    def __init__(self, columns, answer):
        self.columns, self.answer = list(columns), answer
        self.dtypes = {name: SimpleNamespace(kind=kind) for name, kind in columns.items()}

    def __array__(self, dtype=None, copy=None):
        return np.full((2, len(self.columns)), None, object)

    def to_numpy(self, dtype, na_value):
        if isinstance(self.answer, Exception):
            raise self.answer
        return np.asarray(self.answer, dtype)


def test_tables_say_which_columns_hold_no_numbers():
    np.testing.assert_array_equal(as_plain(Table({"a": "f"}, [[1.0], [np.nan]]), "X"), [[1.0], [np.nan]])
    with pytest.raises(ValueError, match="X has columns that do not hold real numbers: when"):
        as_plain(Table({"a": "f", "when": "M"}, TypeError("no")), "X")
    with pytest.raises(TypeError, match="X must hold real numbers: no"):
        as_plain(Table({"a": "f"}, TypeError("no")), "X")


def test_several_variables_and_objects_are_refused_or_read():
    with pytest.raises(TypeError, match="several variables: choose one"):
        as_plain(SimpleNamespace(data_vars={}), "X")
    assert as_plain(np.array([Decimal(1), 2], object), "X").dtype == np.float64
    with pytest.raises(ValueError, match="numbers that float64 cannot hold"):
        as_plain(np.array([10**400, 1], object), "X")


class Tensor:
    """What torch shows of a tensor: it knows where it is, and one with gradients refuses its array interface."""

    def __init__(self, is_cuda):
        self.is_cuda = is_cuda

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("requires grad")


@pytest.mark.parametrize(
    ("array", "there", "kind"),
    [(np.ones(3), False, "numpy"), (Tensor(False), False, "numpy"), (Tensor(True), True, "torch")],
)
def test_where_arrays_live_is_seen_without_touching_them(array, there, kind):
    assert (is_resident(array), any_resident([np.ones(3), array]), kind_of([np.ones(3), array])) == (there, there, kind)


def test_rows_know_the_array_that_they_are_of():
    whole = np.arange(12).reshape(4, 3)
    rows = Rows(whole, list(whole))
    assert stacked(rows) is whole
    assert stacked(members_of(rows, [0, 1, 2, 3])) is whole
    np.testing.assert_array_equal(stacked(rows[1:3]), whole[1:3])
    np.testing.assert_array_equal(stacked(members_of(rows, [0, 2])), whole[[0, 2]])
    np.testing.assert_array_equal(rows[2], whole[2])
    assert group_by_shape(rows) == [[0, 1, 2, 3]]


def test_arrays_on_the_host_stay_as_they_are():
    array = np.ones(3)
    assert to_host(array) is array
    assert to_host([1, 2]) == [1, 2]
    arrays = [array, array]
    assert all_to_host(arrays) is arrays
    np.testing.assert_array_equal(stacked(arrays), np.ones((2, 3)))


@pytest.mark.gpu
def test_memory_is_shared_with_cupy_and_torch():
    cupy, torch = pytest.importorskip("cupy"), pytest.importorskip("torch")
    tensor = torch.arange(6.0, device="cuda", requires_grad=True)
    taken = as_cupy(tensor)
    assert taken.data.ptr == tensor.data_ptr()
    back = as_kind(taken, "torch")
    assert back.data_ptr() == tensor.data_ptr()
    assert as_cupy(taken) is taken
    assert kind_of(tensor) == "torch"
    assert kind_of(taken) == "cupy"
    assert isinstance(stacked([taken, taken]), cupy.ndarray)
    assert isinstance(stacked([back, back]), torch.Tensor)
    np.testing.assert_array_equal(to_host(tensor), np.arange(6.0))
    np.testing.assert_array_equal(np.concatenate(all_to_host([taken[:2], taken[2:]])), np.arange(6.0))


@pytest.mark.gpu
def test_rows_of_one_array_are_put_together_without_a_copy():
    cupy = pytest.importorskip("cupy")
    whole = cupy.arange(24.0).reshape(4, 2, 3)
    rows = list(whole)
    assert stacked(rows).data.ptr == whole.data.ptr
    assert stacked(rows[1:3]).data.ptr == rows[1].data.ptr
    for some in ([rows[2], rows[0]], [rows[0], rows[0]], [rows[0].T, rows[1].T]):
        np.testing.assert_array_equal(stacked(some).get(), np.stack([one.get() for one in some]))


@pytest.mark.gpu
def test_sums_of_runs():
    cupy = pytest.importorskip("cupy")
    indices, values = (
        [cupy.asarray([0, 7]), cupy.asarray([5, 9])],
        [cupy.asarray([1.0, -2.0]), cupy.asarray([3.0, 4.0])],
    )
    np.testing.assert_array_equal(summed_by(indices, values, 5, 3), [1.0, 9.0, 0.0])


@pytest.fixture
def narrow(monkeypatch):
    """Bands so small that small arrays have many."""
    monkeypatch.setattr(arrays, "BAND_SAMPLES", 64)


@pytest.mark.parametrize("shape", [(1, 1000), (2, 7, 13), (1, 3, 400), (3, 5, 4, 6), (1, 1)])
def test_bands_cover_every_sample_once(narrow, shape):
    seen = np.zeros(shape, int)
    for band in arrays.bands(shape):
        seen[band] += 1
    assert np.all(seen == 1)


def test_companions_of_files_are_in_files(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(3, 4))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for view in (mapped, np.asarray(mapped)[None], mapped[1:].T):
        assert arrays.is_mapped(view)
        assert isinstance(arrays.scratch(view, (2, 2), np.float32), np.memmap)
    assert not arrays.is_mapped(mapped + 1)
    held = arrays.scratch(mapped, (5,), np.float64)
    held[:] = 3
    np.testing.assert_array_equal(held, 3)
    assert type(arrays.scratch(np.zeros(3), (5,), np.float64)) is np.ndarray


def test_conversion_copies_only_what_differs(narrow):
    array = np.arange(300, dtype=np.int16).reshape(1, 10, 30)
    np.testing.assert_array_equal(arrays.converted(array, np.float32), array.astype(np.float32))
    assert arrays.converted(array, np.int16) is array
    turned = arrays.converted(array.swapaxes(1, 2), np.int16)
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, array.swapaxes(1, 2))


def test_extent(narrow):
    array = np.random.default_rng(0).standard_normal((2, 20, 30))
    assert arrays.extent(array) == (array.min(), array.max())
    array[1, 7, 7] = np.nan
    assert np.isnan(arrays.extent(array)).all()


@pytest.mark.parametrize("kind", ["even", "skewed", "ties", "constant"])
def test_ranks_are_exact(narrow, kind):
    rng = np.random.default_rng(1)
    values = {
        "even": rng.random((40, 50)),
        "skewed": np.exp(20 * rng.standard_normal((40, 50))),
        "ties": np.where(rng.random((40, 50)) < 0.7, 0.0, rng.random((40, 50))),
        "constant": np.full((40, 50), 0.25),
    }[kind]
    ordered = np.sort(values, axis=None)
    for rank in (0, 1, 700, 999, 1000, 1500, 1998, 1999):
        assert arrays.ranked(values, rank) == ordered[rank]


def test_pages_are_let_go_of_but_nothing_is_lost(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3 * 10**5, dtype=np.float32).reshape(3, -1))
    for mode in ("r", "r+", "c"):
        array = np.load(tmp_path / "a.npy", mmap_mode=mode)
        if mode != "r":
            array[1, 5] = -7
        before = array.copy()
        arrays.release(array, array[1:, ::2], np.zeros(3))
        np.testing.assert_array_equal(array, before)
    file = arrays.scratch_file((2, 10**5), np.float32)
    for band in arrays.walked(file):
        file[band] = 5
    assert (file == 5).all()
