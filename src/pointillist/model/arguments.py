"""What callers may pass, checked by name: every error about an argument says which it is and what it should be."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def as_numbers(given: Any, name: str, dtype: DTypeLike | None = None) -> NDArray:
    """Anything that is like an array as a NumPy array of real numbers, perhaps of another type.

    Masked entries of a masked array become NaN, which marks what was not seen wherever such a thing is known and is refused
    elsewhere. Errors call the argument by `name`.
    """
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        precision = given.dtype if given.dtype.kind == "f" else np.result_type(given.dtype, np.float32)
        given = given.astype(precision).filled(np.nan)
    try:
        array = np.asarray(given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} must be an array of real numbers, got {type(given).__name__}: {error}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got {_kind(given, array)}")
    with np.errstate(over="ignore"):
        return array if dtype is None else array.astype(dtype, copy=False)


def _kind(given: Any, array: NDArray) -> str:
    """What was given, in a word or two."""
    return str(array.dtype) if isinstance(given, np.ndarray) else type(given).__name__
