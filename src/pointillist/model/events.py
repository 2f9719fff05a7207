"""Codes as a table of events: which filter occurs in which signal, where, and how strongly."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

EVENT_BYTES = 112
"""Bytes that a code takes as an event: its row in a table, and the arrays by which the rows of one signal are sorted."""

_AXES = {1: ("sample",), 2: ("row", "column"), 3: ("depth", "row", "column")}


def event_table(
    indices: Sequence[NDArray],
    values: Sequence[NDArray],
    grids: Sequence[tuple[int, ...]],
    sampling_rate: float = 1.0,
) -> NDArray:
    """Codes of several signals as a structured array, by signal and position; see `SparseCodes.events`."""
    ndim = _common_ndim(grids)
    if ndim != 1 and sampling_rate != 1:
        raise ValueError(f"sampling_rate is for signals in time, of one dimension; these have {ndim}: leave it out")
    names = _AXES.get(ndim) or tuple(f"axis{i}" for i in range(ndim))
    amplitude = values[0].dtype if len(values) else np.dtype(np.float32)
    fields: list[Any] = [("signal", np.int64), *((name, np.int64) for name in names)]
    fields += [("time", np.float64)] * (ndim == 1) + [("filter", np.int64), ("amplitude", amplitude)]
    table = np.empty(sum(len(index) for index in indices), np.dtype(fields))
    first = 0
    for i, (index, value, grid) in enumerate(zip(indices, values, grids, strict=True)):
        own = table[first : first + len(index)]
        filters, positions = np.divmod(index, prod(grid))
        order = np.lexsort((filters, positions))
        own["signal"], own["filter"], own["amplitude"] = i, filters[order], value[order]
        for name, axis in zip(names, np.unravel_index(positions[order], grid), strict=True):
            own[name] = axis
        if ndim == 1:
            own["time"] = own["sample"] / sampling_rate
        first += len(index)
    return table


def as_data_frame(table: NDArray) -> Any:
    """A structured array as a DataFrame of pandas, which must be installed."""
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise ImportError("as_frame=True needs pandas: pip install 'pointillist[pandas]'") from error
    return pandas.DataFrame({name: table[name] for name in table.dtype.names or ()})


def _common_ndim(grids: Sequence[tuple[int, ...]]) -> int:
    """The number of axes that all grids have; one where there are none."""
    found = {len(grid) for grid in grids} or {1}
    if len(found) > 1:
        raise ValueError(f"events needs signals of one number of dimensions, these have {sorted(found)}")
    return found.pop()
