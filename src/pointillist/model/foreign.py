"""What other libraries hold numbers in (tables, labelled arrays, tensors, masked and sparse arrays), as NumPy arrays.

Nothing that is given is changed, and none of these libraries is imported: their objects are known by what they offer.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

_MOST_NAMES = 5
"""Columns that an error names."""


def as_plain(given: Any, name: str) -> NDArray:
    """Anything like an array as a NumPy array of any type of samples; errors call it by `name`.

    Masked entries of a masked array and missing ones of a table become NaN. Numbers that are kept as Python objects become
    float64.
    """
    if scipy.sparse.issparse(given):
        raise TypeError(f"{name} is sparse, and sparse signals are not supported: give {name}.toarray()")
    if isinstance(given, np.ma.MaskedArray) and given.dtype.kind in "fiubc" and np.ma.is_masked(given):
        precision = given.dtype if given.dtype.kind == "f" else np.result_type(given.dtype, np.float32)
        given = np.ma.filled(given.astype(precision), np.nan)
    if hasattr(given, "data_vars"):
        raise TypeError(
            f"{name} is a {type(given).__name__} of several variables: choose one, {name}[...] by its name, or join them "
            f"by {name}.to_dataarray()"
        )
    if hasattr(given, "detach"):  # a tensor whose gradients are recorded does not turn into an array by itself
        given = given.detach()
    try:
        array = np.asarray(given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} must be an array of real numbers, got {type(given).__name__}: {error}") from None
    return array if array.dtype.kind != "O" else _numbers(given, array, name)


def _numbers(given: Any, array: NDArray, name: str) -> NDArray:
    """Python objects that are numbers as float64, and missing ones as NaN; others stay objects, which nobody takes."""
    if array.ndim == 0:
        return array
    try:
        if hasattr(given, "to_numpy"):
            return np.asarray(given.to_numpy(dtype=np.float64, na_value=np.nan))
        return array.astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} holds numbers that float64 cannot hold: {error}") from None
    except (ValueError, TypeError) as error:
        columns = _columns_without_numbers(given)
        if not columns and isinstance(error, TypeError):
            raise TypeError(f"{name} must hold real numbers: {error}") from None
        if not columns:
            return array
        raise ValueError(
            f"{name} has columns that do not hold real numbers: {', '.join(columns[:_MOST_NAMES])}"
            f"{', …' if len(columns) > _MOST_NAMES else ''}; leave them out: {name}.select_dtypes('number')"
        ) from None


def _columns_without_numbers(given: Any) -> list[str]:
    """Names of the columns of a table that hold texts, dates or other objects; none for what is no table."""
    kinds: Any = getattr(given, "dtypes", None)
    if not hasattr(kinds, "items") or not hasattr(given, "columns"):
        return []
    return [str(column) for column, kind in kinds.items() if getattr(kind, "kind", "O") not in "fiub"]


def shape_of(given: Any, name: str) -> tuple[int, ...]:
    """The shape of anything like an array, without its samples where it tells; errors call it by `name`."""
    shape = getattr(given, "shape", None)
    return tuple(shape) if shape is not None else as_plain(given, name).shape


def as_several(given: Any, name: str) -> Any:
    """Signals or weights as one array or a list of them, whatever library they come from; errors call them by `name`.

    A list stays a list: its entries become arrays one by one, so that each is called by its number. So do arrays and
    columns whose entries are arrays themselves, of several sizes.
    """
    if isinstance(given, list | tuple | np.ndarray) and not _holds_arrays(given):
        return given
    if hasattr(given, "data_vars") or scipy.sparse.issparse(given) or isinstance(given, np.ma.MaskedArray):
        return as_plain(given, name)
    if hasattr(given, "__array__"):
        return list(given) if _holds_arrays(np.asarray(given)) else as_plain(given, name)
    return given


def _holds_arrays(given: Any) -> bool:
    """Whether an array of one axis has arrays for entries."""
    objects = isinstance(given, np.ndarray) and given.dtype.kind == "O" and given.ndim == 1 and len(given) > 0
    return bool(objects) and all(np.ndim(one) > 0 for one in given)
