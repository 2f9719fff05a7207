"""Odd values: shapes, types of samples, layouts, magnitudes, wrong types and texts, drawn from a generator."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Rng = np.random.Generator
DTYPES = (
    "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "F", "D", "G", ">f4", ">f8", ">i2", ">u4",
    "O", "U3", "S3", "M8[s]", "m8[ms]", "V4", [("a", "f8"), ("b", "i4")],
)  # fmt: skip
"""Types of samples, all that NumPy has."""
SIDES = (0, 1, 1, 2, 3, 5, 17)
SCALES = (1e-300, 1e-160, 1e-38, 1e-20, 1e-7, -1.0, 1e7, 1e20, 1e38, 1e160, 1e300)


_FEW = 5000
"""Samples of which each may have a page of memory for itself."""


class Inherited(np.ndarray):
    """An array of somebody's own class."""


class Hostile:
    """An object that answers no question."""

    def __repr__(self) -> str:
        return "Hostile()"

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


def value(rng: Rng, usual: Any) -> Any:
    """An odd value for an argument that usually has another."""
    if isinstance(usual, np.ndarray) and rng.random() < 0.6:
        return mutated(rng, usual)
    kinds = (_wrong_type, _number, _text, _array, _container)
    return kinds[rng.choice(5, p=(0.3, 0.3, 0.1, 0.2, 0.1))](rng)


def _wrong_type(rng: Rng) -> Any:
    made: tuple[Callable[[], Any], ...] = (
        lambda: None, lambda: True, lambda: False, object, Hostile, dict, list, tuple, set, lambda: {"a": 1}, lambda: {1, 2},
        lambda: len, lambda: int, lambda: Ellipsis, lambda: slice(2), lambda: range(3), lambda: iter([1.0, 2.0]),
        lambda: (one for one in (1.0, 2.0)), lambda: b"odd", lambda: bytearray(b"odd"), lambda: memoryview(b"odd"),
        lambda: np.random.default_rng(0), lambda: np.float64, lambda: np.dtype("f4"), lambda: ValueError("odd"),
        lambda: Path("odd"), lambda: frozenset([1]), lambda: NotImplemented, lambda: np,
    )  # fmt: skip
    return made[rng.integers(len(made))]()


def _number(rng: Rng) -> Any:
    plain = (
        np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, -0.5, 1.5, 1e-300, 5e-324, 1e300, -1e300, 0, 1, 2, 3, 7, -1, -2, -7,
        2**31, 2**63, 2**64, -(2**63), 10**30, 10**400, -(10**400), 1 + 2j, complex(1), np.True_,
        np.datetime64("2020-02-29"), np.timedelta64(3, "s"), np.datetime64("NaT", "s"), np.str_("odd"), np.bytes_(b"odd"),
    )  # fmt: skip
    if rng.random() < 0.7:
        return plain[rng.integers(len(plain))]
    kind = np.dtype(("i1", "u1", "i8", "u8", "f2", "f4", "f8", "g", "D")[rng.integers(9)])
    number = kind.type((0, 1, 2, 3, 100)[rng.integers(5)])
    return number if rng.random() < 0.5 else np.array(number)


def _text(rng: Rng) -> str:
    texts = (
        "",
        "odd",
        "SAME",
        "same ",
        "\0",
        "\n",
        "é\u202e",
        "x" * 5000,
        "nan",
        "1",
        "None",
        "[bold]",
        "%s {0}",
        "..",
        "0s",
        "-1",
    )
    return texts[rng.integers(len(texts))]


def _array(rng: Rng) -> Any:
    """An array of any shape and type of samples."""
    axes = int(rng.integers(0, 6))
    shape = tuple(int(rng.choice(SIDES if axes < 3 else SIDES[:-1])) for _ in range(axes))
    kind = np.dtype(DTYPES[rng.integers(len(DTYPES))])
    with np.errstate(all="ignore"):
        numbers = 100 * rng.standard_normal(shape)
        return in_layout(rng, _cast(np.asarray(numbers), kind))


def _cast(numbers: NDArray, kind: np.dtype) -> NDArray:
    if kind.kind in "V":
        return np.zeros(numbers.shape, kind)
    if kind.kind in "Mm":
        return numbers.astype(np.int64).astype(kind)
    return numbers.astype(kind)


def _container(rng: Rng) -> Any:
    """Lists of things that do not belong together."""
    one = _array(rng)
    made: tuple[Callable[[], Any], ...] = (
        lambda: [one], lambda: [one, _array(rng)], lambda: (one, one), lambda: [[1, 2], [3]], lambda: [[1, "a"], [None, 2]],
        lambda: [np.ones(3), np.ones((2, 2))], lambda: [None, None], lambda: ["a", "b"], lambda: {"signals": one},
        lambda: [1.0, np.nan], lambda: [[[]]], lambda: [_number(rng), _number(rng)], lambda: iter([one]), lambda: [[one]],
        lambda: scipy.sparse.csr_array(np.eye(3)), lambda: scipy.sparse.coo_matrix(np.eye(4)), _bottomless,
        lambda: [0] * 100, lambda: (3, 3), lambda: (5,), lambda: (-1, 2), lambda: (2.5, 3),
    )  # fmt: skip
    return made[rng.integers(len(made))]()


def _bottomless() -> list[Any]:
    """A list that holds itself."""
    endless: list[Any] = []
    endless.append(endless)
    return endless


def mutated(rng: Rng, array: NDArray) -> Any:
    """A usual array with something wrong or unusual in one or two ways."""
    changed: Any = array
    for _ in range(rng.integers(1, 3)):
        changed = _CHANGES[rng.integers(len(_CHANGES))](rng, changed)
        if not isinstance(changed, np.ndarray):
            return changed
    return changed


def _other_kind(rng: Rng, array: NDArray) -> NDArray:
    with np.errstate(all="ignore"):
        return (
            _cast(np.asarray(array), np.dtype(DTYPES[rng.integers(len(DTYPES))]))
            if array.dtype.kind in "biuf"
            else array
        )


def _scaled(rng: Rng, array: NDArray) -> NDArray:
    with np.errstate(all="ignore"):
        return array * SCALES[rng.integers(len(SCALES))] if array.dtype.kind in "biuf" else array


def _spotted(rng: Rng, array: NDArray) -> NDArray:
    """With some samples that are no usual numbers."""
    if array.dtype.kind != "f" or not array.size:
        return array
    spotted = array.copy()
    odd = (np.nan, np.inf, -np.inf, -0.0, 1e30, 5e-324)[rng.integers(6)]
    with np.errstate(all="ignore"):
        spotted[rng.random(array.shape) < (0.1 if rng.random() < 0.7 else 1)] = odd
    return spotted


def _constant(rng: Rng, array: NDArray) -> NDArray:
    return np.full_like(array, rng.integers(0, 2)) if array.dtype.kind in "biuf" else array


def _fewer_axes(rng: Rng, array: NDArray) -> NDArray:
    return array[0] if array.ndim and len(array) else array


def _more_axes(rng: Rng, array: NDArray) -> NDArray:
    return np.expand_dims(array, int(rng.integers(array.ndim + 1)))


def _turned(rng: Rng, array: NDArray) -> NDArray:
    return array.T


def _cut(rng: Rng, array: NDArray) -> NDArray:
    """With some samples along one axis only; perhaps none."""
    if not array.ndim:
        return array
    axis = int(rng.integers(array.ndim))
    return np.take(array, np.arange(min(array.shape[axis], int(rng.choice([0, 1, 2, 4])))), axis)


def _masked(rng: Rng, array: NDArray) -> Any:
    return np.ma.masked_array(array, rng.random(array.shape) < (0.2 if rng.random() < 0.7 else 1))


def _listed(rng: Rng, array: NDArray) -> Any:
    listed = array.tolist()
    if isinstance(listed, list) and len(listed) > 1 and isinstance(listed[0], list) and rng.random() < 0.4:
        listed[0] = listed[0][:-1]
    return listed


def _sparse(rng: Rng, array: NDArray) -> Any:
    return scipy.sparse.csr_array(array) if array.ndim == 2 and array.dtype.kind in "iuf" else array


def in_layout(rng: Rng, array: NDArray) -> Any:
    """The same numbers in another layout in memory."""
    choices = list(layouts(array))
    return choices[rng.integers(len(choices))][1] if array.dtype.kind in "?biufcM" and array.size else array


def layouts(array: NDArray) -> Iterator[tuple[str, NDArray]]:
    """An array in layouts and classes that mean the same, with their names."""
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    frozen = array.copy()
    frozen.flags.writeable = False
    yield "Fortran", np.asfortranarray(array)
    yield "strided", wide[..., 0]
    if array.size <= _FEW:
        far = np.zeros((*array.shape, 4096), array.dtype)
        far[..., 7] = array
        yield "huge strides", far[..., 7]
    yield "big-endian", array.astype(array.dtype.newbyteorder(">"))
    yield "read-only", frozen
    yield "backwards", np.ascontiguousarray(array[..., ::-1])[..., ::-1] if array.ndim else array
    yield "of another class", array.view(Inherited)
    yield "masked nowhere", np.ma.masked_array(array)
    yield "mapped", _mapped(array)


def _mapped(array: NDArray) -> NDArray:
    """The array in a file without a name, which goes away with it."""
    if not array.size or array.dtype.hasobject:
        return array
    with tempfile.TemporaryFile() as file:
        mapped: NDArray = np.memmap(file, array.dtype, "w+", shape=array.shape)
    mapped[...] = array
    return mapped


_CHANGES: tuple[Callable[[Rng, Any], Any], ...] = (
    _other_kind, _other_kind, _scaled, _scaled, _spotted, _spotted, _constant, _fewer_axes, _more_axes, _turned, _cut,
    _masked, _listed, _sparse, in_layout,
)  # fmt: skip
