"""The sparse codes of several signals: which filter, where, how strong. Nothing here solves for them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

from pointillist.arrays import all_to_host, any_resident, summed_by
from pointillist.reprs import shown
from pointillist.validation import as_list, as_numbers, check_arguments, is_integer


def regions_along(regions: Any, ndim: int) -> tuple[int, ...]:
    """The number of regions along each of `ndim` axes, checked."""
    several = tuple(regions) if isinstance(regions, Sequence) and not isinstance(regions, str | bytes) else None
    counts = (regions,) * ndim if several is None else several
    whole = [is_integer(n) and int(n) > 0 for n in counts]
    if len(counts) != ndim or not all(whole):
        raise ValueError(
            f"regions must be a positive integer, or one for each of the {ndim} axes of the signals, got {shown(regions)}"
        )
    return tuple(int(n) for n in counts)


class SparseCodes:
    """Codes of n signals, possibly on grids of different shapes.

    Parameters
    ----------
    indices : sequence of (nnz_i,) int64 arrays
        Flat positions in ``(n_filters, *grid)``, ascending, one array for each signal.
    values : sequence of (nnz_i,) float arrays
        The codes at those positions.
    grids : sequence of tuple of int
        Shape of the grid of each signal.
    n_filters : int
    names : sequence of str, optional
        What the signals are called, one name for each: the files that ``pointillist encode`` coded, for instance. They go
        with their signals when some are selected or joined.

    Examples
    --------
    >>> import numpy as np
    >>> dense = np.zeros((2, 3, 4, 4), np.float32)
    >>> dense[1, 2, 0, 3] = -1.5
    >>> codes = SparseCodes.from_dense(dense)
    >>> len(codes), codes.nnz, codes[1].nnz
    (2, 1, 1)
    >>> bool(np.all(codes.to_dense() == dense))
    True
    """

    def __init__(
        self,
        indices: Sequence[NDArray],
        values: Sequence[NDArray],
        grids: Sequence[tuple[int, ...]],
        n_filters: int,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        check_arguments(n_filters=n_filters)
        indices, values, grids = as_list(indices, "indices"), as_list(values, "values"), as_list(grids, "grids")
        if not len(indices) == len(values) == len(grids):
            raise ValueError("indices, values and grids must have one entry for each signal")
        for i, (index, value) in enumerate(zip(indices, values, strict=True)):
            if not (getattr(index, "ndim", 0) == getattr(value, "ndim", 0) == 1) or index.shape != value.shape:
                raise ValueError(f"indices and values of signal {i} must be 1-D and equally long")
            if _letter(index.dtype) not in "iu" or _letter(value.dtype) not in "fiub":
                raise ValueError(
                    f"indices must be integers and values real numbers, signal {i} has {index.dtype} and {value.dtype}"
                )
        self.indices, self.values = indices, values
        try:
            self.grids = [tuple(operator.index(n) for n in grid) for grid in grids]
        except TypeError:
            raise ValueError(f"grids must hold a tuple of integers for each signal, got {shown(grids)}") from None
        self.n_filters = int(n_filters)
        self.names = None if names is None else as_list(names, "names")
        if self.names is not None and not (
            len(self.names) == len(indices) and all(isinstance(name, str) for name in self.names)
        ):
            raise ValueError(f"names must hold one text for each of the {len(indices)} signals, got {shown(names)}")

    @classmethod
    def from_dense(cls, dense: NDArray | Sequence[NDArray]) -> SparseCodes:
        """Make codes from `dense` ones, ``(n_signals, n_filters, *grid)`` or a list of ``(n_filters, *grid)`` arrays."""
        arrays = [as_numbers(one, f"dense[{i}]") for i, one in enumerate(as_list(dense, "dense"))]
        if not arrays:
            raise ValueError("dense must hold at least one signal")
        if any(one.ndim == 0 for one in arrays):
            raise ValueError("dense must hold an array (n_filters, *grid) for each signal, got numbers")
        if len({len(one) for one in arrays}) > 1:
            raise ValueError(
                f"dense must be for the same number of filters everywhere, got {sorted({len(one) for one in arrays})}"
            )
        indices = [np.flatnonzero(one) for one in arrays]
        values = [one.ravel()[index] for one, index in zip(arrays, indices, strict=True)]
        return cls(indices, values, [one.shape[1:] for one in arrays], arrays[0].shape[0])

    @classmethod
    def concatenate(cls, parts: Sequence[SparseCodes]) -> SparseCodes:
        """Join the codes of all signals of all `parts`, in order."""
        parts = as_list(parts, "parts")
        if not parts or not all(isinstance(part, SparseCodes) for part in parts):
            raise ValueError(f"parts must hold at least one SparseCodes, and nothing else, got {shown(parts)}")
        if len({part.n_filters for part in parts}) > 1:
            raise ValueError(
                f"parts must be for the same number of filters, got {sorted({part.n_filters for part in parts})}"
            )
        return cls.trusted(
            [index for part in parts for index in part.indices],
            [value for part in parts for value in part.values],
            [grid for part in parts for grid in part.grids],
            parts[0].n_filters,
            [name for part in parts for name in part.names or []]
            if all(part.names is not None for part in parts)
            else None,
        )

    @classmethod
    def trusted(
        cls,
        indices: list[Any],
        values: list[Any],
        grids: list[tuple[int, ...]],
        n_filters: int,
        names: list[str] | None = None,
    ) -> SparseCodes:
        """Codes of `indices`, `values`, `grids` and perhaps `names` for `n_filters`, unchecked: solvers made them."""
        made = cls.__new__(cls)
        made.indices, made.values, made.grids, made.n_filters, made.names = indices, values, grids, n_filters, names
        return made

    def replaced(self, indices: list[Any], values: list[Any]) -> SparseCodes:
        """Other codes of these signals, with other `indices` and `values`, unchecked."""
        return self.trusted(indices, values, self.grids, self.n_filters, self.names)

    @property
    def resident(self) -> bool:
        """True if the codes live on a device (CuPy arrays or torch's CUDA tensors)."""
        return any_resident(self.values[:1])

    def on_host(self) -> SparseCodes:
        """Return these codes as NumPy arrays."""
        if not self.resident:
            return self
        return self.replaced(all_to_host(self.indices), all_to_host(self.values))

    def to_dense(self) -> NDArray | list[NDArray]:
        """Dense codes ``(n_signals, n_filters, *grid)``; a list of ``(n_filters, *grid)`` where grids differ."""
        host = self.on_host()
        dense: Any
        if len(set(self.grids)) == 1:
            dense = np.zeros((len(self), self.n_filters, *self.grids[0]), host.dtype)
        else:
            dense = [np.zeros((self.n_filters, *grid), host.dtype) for grid in host.grids]
        for one, index, value in zip(dense, host.indices, host.values, strict=True):
            one.reshape(-1)[index] = value
        return dense

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        """Return what `to_dense` does, for whoever takes arrays, such as the next step of a pipeline."""
        self._common_grid("an array")
        return np.asarray(self.to_dense()).astype(dtype or self.dtype, copy=False)

    def to_scipy(self) -> scipy.sparse.csr_array:
        """A CSR array ``(n_signals, n_filters · positions)``, for scikit-learn and friends."""
        grid, host = self._common_grid("to_scipy"), self.on_host()
        pointers = np.concatenate([[0], np.cumsum([len(index) for index in self.indices])])
        shape = (len(self), self.n_filters * prod(grid))
        return scipy.sparse.csr_array(
            (np.concatenate(host.values), np.concatenate(host.indices), pointers), shape=shape
        )

    def _common_grid(self, what: str) -> tuple[int, ...]:
        if len(set(self.grids)) != 1:
            raise ValueError(
                f"{what} needs signals of one shape, these have {len(set(self.grids))}; pool() gives features of one "
                "length, to_dense() a list, and an index the codes of one signal"
            )
        return self.grids[0]

    @property
    def dtype(self) -> np.dtype:
        return self.values[0].dtype if self.values else np.dtype(np.float32)

    @property
    def nnz(self) -> int:
        """Number of non-zero codes over all signals."""
        return sum(len(index) for index in self.indices)

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n_signals, n_filters, *grid)``; codes on different grids have no such attribute, but a length."""
        if len(set(self.grids)) != 1:
            raise AttributeError("codes of signals of several sizes have no shape: see grids, and use len and pool")
        return (len(self), self.n_filters, *self.grids[0])

    def count(self, threshold: float = 0.1) -> NDArray:
        """Count the codes of each signal whose ``|value|`` is at least `threshold`, as the paper does."""
        check_arguments(threshold=threshold)
        return np.array([int(np.count_nonzero(np.abs(value) >= threshold)) for value in self.on_host().values])

    def usage(self) -> NDArray:
        """Sum of ``|value|`` for each filter, over all signals, in float64."""
        total = np.zeros(self.n_filters)
        if self.resident and len(set(self.grids)) == 1:
            return summed_by(self.indices, self.values, prod(self.grids[0]), self.n_filters)
        host = self.on_host()
        for index, value, grid in zip(host.indices, host.values, self.grids, strict=True):
            weight = np.abs(value).astype(np.float64)
            total += np.bincount(index // prod(grid), weight, minlength=self.n_filters)
        return total

    def events(self, *, sampling_rate: float = 1.0, as_frame: bool = False) -> Any:
        """Return all codes as a table of events, ordered by signal, then by position, then by filter.

        What a position means follows from the boundary that the codes were solved with. It is the sample of the signal
        on which the filter's centre lies, its sample (size − 1) // 2, for "same" and "circular"; on which its first
        sample lies for "valid"; and on which its last sample lies for "full", where that may be beyond the signal's end.
        Subtract (size − 1) // 2 for "same", nothing for "valid" and size − 1 for "full" to get where a filter begins.

        Parameters
        ----------
        sampling_rate : float
            Samples in a unit of time, for signals of one dimension: `time` is `sample` over it.
        as_frame : bool
            Whether to return a DataFrame, which needs pandas.

        Returns
        -------
        structured array or DataFrame, one row for each code that is not zero
            `signal`; the position, by `sample` and `time` in one dimension, `row` and `column` in two, `depth`, `row` and
            `column` in three, `axis0`, `axis1`, … in more; `filter`; and `amplitude`, the code itself.

        Examples
        --------
        >>> codes = SparseCodes.from_dense(np.array([[[0, 0, 0, 2.5], [0, -1.0, 0, 0]]]))
        >>> codes.events(sampling_rate=100)[["sample", "time", "filter", "amplitude"]].tolist()
        [(1, 0.01, 1, -1.0), (3, 0.03, 0, 2.5)]
        """
        check_arguments(sampling_rate=sampling_rate, as_frame=as_frame)
        ndim = self._common_ndim("events")
        if ndim != 1 and sampling_rate != 1:
            raise ValueError(f"sampling_rate is for signals in time, of one dimension; these have {ndim}: leave it out")
        axes = {1: ("sample",), 2: ("row", "column"), 3: ("depth", "row", "column")}
        names = axes.get(ndim) or tuple(f"axis{i}" for i in range(ndim))
        fields: list[Any] = [("signal", np.int64), *((name, np.int64) for name in names)]
        fields += [("time", np.float64)] * (ndim == 1) + [("filter", np.int64), ("amplitude", self.dtype)]
        host, table = self.on_host(), np.empty(self.nnz, fields)
        first = 0
        for i, (index, value, grid) in enumerate(zip(host.indices, host.values, self.grids, strict=True)):
            own = table[first : first + len(index)]
            filters, positions = np.divmod(index, prod(grid))
            order = np.lexsort((filters, positions))
            own["signal"], own["filter"], own["amplitude"] = i, filters[order], value[order]
            for name, axis in zip(names, np.unravel_index(positions[order], grid), strict=True):
                own[name] = axis
            if ndim == 1:
                own["time"] = own["sample"] / sampling_rate
            first += len(index)
        if not as_frame:
            return table
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise ImportError("as_frame=True needs pandas: pip install 'pointillist[pandas]'") from error
        return pandas.DataFrame({name: table[name] for name in table.dtype.names or ()})

    def pool(
        self, how: str = "sum", *, regions: int | tuple[int, ...] = 1, signs: bool = False
    ) -> NDArray[np.floating]:
        """Features of one length for signals of any sizes, for a classifier: how much each filter is used, and where.

        Parameters
        ----------
        how : {"sum", "mean", "max", "count"}
            What is made of the ``|codes|`` of a filter in a region: their sum; their mean over all its positions, which
            does not grow with the signal; the largest of them; or the number of those that are not zero.
        regions : int or tuple of int
            Into how many equal parts each axis of a signal is cut; 1 pools over the whole signal, ``(2, 3)`` cuts pictures
            into two rows of three regions.
        signs : bool
            Whether positive and negative codes are pooled apart, which makes twice as many features.

        Returns
        -------
        (n_signals, n_features) array
            For each filter, for both signs of its codes where asked for, one feature for every region, row by row.

        Examples
        --------
        >>> codes = SparseCodes.from_dense([np.array([[0, 0, 0, 2.5], [0, -1.0, 0, 0]]), np.array([[1.0, 1.0], [0, 3.0]])])
        >>> codes.pool()
        array([[2.5, 1. ],
               [2. , 3. ]])
        >>> codes.pool("max", regions=2)
        array([[0. , 2.5, 1. , 0. ],
               [1. , 1. , 0. , 3. ]])
        """
        check_arguments(how=how, signs=signs)
        parts = regions_along(regions, self._common_ndim("pool"))
        for grid in self.grids:
            if any(n > samples for n, samples in zip(parts, grid, strict=True)):
                raise ValueError(
                    f"regions={shown(regions)} are more than there are positions, on a grid of shape {grid}"
                )
        host, n_regions, kinds = self.on_host(), prod(parts), self.n_filters * (1 + bool(signs))
        out = np.zeros((len(self), kinds * n_regions), host.dtype)
        for row, index, value, grid in zip(out, host.indices, host.values, self.grids, strict=True):
            kind, where = np.divmod(index, prod(grid))
            if signs:
                kind = 2 * kind + (value < 0)
            place, size = kind * n_regions + _region(where, grid, parts), np.abs(value)
            if how == "max":
                np.maximum.at(row, place, size)
            else:
                row[:] = np.bincount(place, size > 0 if how == "count" else size, minlength=len(row))
            if how == "mean":
                row /= np.tile(np.bincount(_region(np.arange(prod(grid)), grid, parts)), kinds)
        return out

    def _common_ndim(self, what: str) -> int:
        """Number of axes that all grids have; one where there are none."""
        found = {len(grid) for grid in self.grids} or {1}
        if len(found) > 1:
            raise ValueError(f"{what} needs signals of one number of dimensions, these have {sorted(found)}")
        return found.pop()

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, item: Any) -> SparseCodes:
        """The codes of one signal or of a selection of signals, always as `SparseCodes`."""
        if isinstance(item, tuple) and len(item) == 2 and item[1] is Ellipsis:  # as scikit-learn selects signals
            item = item[0]
        if isinstance(item, slice):
            chosen = list(range(len(self)))[item]
        else:
            wanted = np.atleast_1d(np.asarray(item))
            if wanted.dtype == bool:
                if len(wanted) != len(self):
                    raise IndexError(f"a mask for {len(self)} signals must have as many entries, got {len(wanted)}")
                wanted = np.flatnonzero(wanted)
            chosen = [int(i) for i in wanted]
        if not all(-len(self) <= i < len(self) for i in chosen):
            raise IndexError(f"signals {shown(chosen)} of {len(self)}")
        names = None if self.names is None else [self.names[i] for i in chosen]
        indices, values, grids = ([held[i] for i in chosen] for held in (self.indices, self.values, self.grids))
        return self.trusted(indices, values, grids, self.n_filters, names)

    def __repr__(self) -> str:
        grids = sorted(set(self.grids))
        on = f", on {'×'.join(map(str, grids[0]))}" if len(grids) == 1 else f", on {len(grids)} sizes of grids"
        return f"SparseCodes({len(self)} signals{on if grids else ''}, {self.n_filters} filters, {self.nnz} non-zeros)"


def _region(where: NDArray, grid: tuple[int, ...], parts: tuple[int, ...]) -> NDArray:
    """Region of each flat position: along an axis, position p of n lies in region p · parts // n."""
    number = np.zeros(len(where), np.int64)
    for position, samples, n in zip(np.unravel_index(where, grid), grid, parts, strict=True):
        number = number * n + position * n // samples
    return number


def _letter(dtype: Any) -> str:
    """NumPy's letter for a kind of numbers, also for the types of torch, which have none."""
    if hasattr(dtype, "kind"):
        return dtype.kind
    return "c" if dtype.is_complex else "f" if dtype.is_floating_point else "i"
