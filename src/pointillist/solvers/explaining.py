"""How much of some signals each filter explains, given their codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.arrays import to_host
from pointillist.codes import SparseCodes
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.reprs import ShortRepr
from pointillist.solvers.inputs import take_signals
from pointillist.validation import Signals, as_filters, check_arguments

_BAND_SAMPLES = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedVariance(ShortRepr):
    """How much of the energy of some signals their codes explain, together and filter by filter.

    Attributes
    ----------
    shares : (n_filters,) float64 array
        What would be lost without each filter: the rise of the residual's energy if its codes were left out, over the
        energy of the signals.
    total : float
        What all filters together explain, 1 − (energy of the residual) / (energy of the signals).

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> signals, filters = np.array([[0, 0, 3.0, 0, 0, 0, 4.0, 0]]), np.array([[0, 1.0, 0], [1, 0, 0.1]])
    >>> codes = pt.encode(signals, filters, 0.5).codes
    >>> pt.explained_variance(signals, filters, codes).order.tolist()
    [0, 1]
    """

    shares: NDArray
    total: float

    @property
    def order(self) -> NDArray:
        """Numbers of the filters, that which explains the most first."""
        return np.argsort(-self.shares, kind="stable")


def explained_variance(
    signals: Signals,
    filters: ArrayLike,
    codes: SparseCodes,
    *,
    weights: Signals | None = None,
    boundary: str = "same",
    channels: bool = False,
) -> ExplainedVariance:
    """Measure how much of the energy of signals each filter explains.

    The share of a filter is what would be lost without it: by how much the energy of the residual, Σ w (x − Dz)², rises if
    its codes are set to zero and all others stay, over the energy of the signals, Σ w x². For codes of least objective no
    share is negative. Filters that lie on each other's samples share what they explain together, so the shares need not add
    up to the total. Energy is counted from zero: take a mean that is not to be explained off the signals first.

    Parameters
    ----------
    signals : (n_signals, [channels,] *space) array or list of arrays of any sizes
        Large ones are walked in bands, and may be memory-mapped.
    filters : (n_filters, [channels,] *size) array
    codes : SparseCodes
        Codes of these signals for these filters.
    weights : like signals, or one array for all of them
        w ≥ 0, as the codes were solved with. Zero marks samples that were not seen; they may be NaN.
    boundary : {"same", "valid", "full", "circular"}
        The boundary that the codes were solved with.
    channels : bool
        Whether the axis after the first holds channels, which share their codes.

    Returns
    -------
    ExplainedVariance
        ``shares`` of the filters, the ``total``, and ``order``, the filters ranked by their share.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> rng = np.random.default_rng(0)
    >>> signals, filters = rng.standard_normal((2, 200)), rng.standard_normal((3, 9)) / 3
    >>> found = pt.explained_variance(signals, filters, pt.encode(signals, filters, 0.5).codes)
    >>> found.shares.shape, bool(0 < found.total < 1), bool(found.shares[found.order[0]] == found.shares.max())
    ((3,), True, True)
    """
    check_arguments(boundary=boundary, channels=channels)
    bank = as_filters(to_host(filters), channels=channels).astype(np.float64)
    arrays, seen = take_signals(signals, weights, bank.ndim - 2, channels=channels)
    if not isinstance(codes, SparseCodes):
        raise ValueError(f"codes must be SparseCodes, got {type(codes).__name__}")
    if any(len(array) != bank.shape[1] for array in arrays):
        raise ValueError(f"signals must have {bank.shape[1]} channels, as the filters have")
    geometries = [Geometry(array.shape[1:], bank.shape[2:], len(array), boundary) for array in arrays]
    if codes.n_filters != len(bank) or codes.grids != [geometry.grid for geometry in geometries]:
        raise ValueError("codes must be those of these signals for these filters and this boundary")
    host = codes.on_host()
    gains, left, whole = np.zeros(len(bank)), 0.0, 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for i, (array, geometry) in enumerate(zip(arrays, geometries, strict=True)):
            for part in _parts(geometry):
                fits = _Fits(bank, geometry, part, host.indices[i], host.values[i])
                x = array[part.samples].astype(np.float64)
                w = 1.0 if seen is None else seen[i][part.samples].astype(np.float64)
                residual = x - sum(fits)
                whole, left = whole + float(np.sum(w * x**2)), left + float(np.sum(w * residual**2))
                gains += [float(np.sum(w * one * (2 * residual + one))) for one in fits]
        shares, rest = gains / whole, left / np.float64(whole)
    if not 0 < whole < np.inf or not np.isfinite(shares).all() or not np.isfinite(rest):
        raise ValueError("signals are zero everywhere, or their squares overflow: there is no energy to explain")
    return ExplainedVariance(shares, 1 - float(rest))


@dataclass(frozen=True)
class _Part:
    """Samples of a signal (channels, *space), and the range of positions along the first axis whose filters reach them."""

    samples: tuple[slice, ...]
    first: int
    last: int


def _parts(geometry: Geometry) -> Iterator[_Part]:
    """Yield parts that cover a signal: bands along its first axis, or all of it where filters wrap around."""
    length, size, offset = geometry.signal[0], geometry.filter[0], geometry.offset[0]
    step = max(size, _BAND_SAMPLES // (geometry.channels * prod(geometry.signal[1:])))
    if geometry.boundary == "circular":
        yield _Part((slice(None),), 0, geometry.grid[0])
        return
    for begin in range(0, length, step):
        end = min(begin + step, length)
        first, last = max(begin + offset - size + 1, 0), min(end + offset, geometry.grid[0])
        yield _Part((slice(None), slice(begin, end)), first, last)


class _Fits:
    """What the codes of each filter alone make of a part of a signal, computed anew whenever it is gone through."""

    def __init__(self, bank: NDArray, geometry: Geometry, part: _Part, indices: NDArray, values: NDArray) -> None:
        self._bank, self._geometry, self._part = bank, geometry, part
        self._indices, self._values = indices, values.astype(np.float64)
        self._local = geometry
        self._inside: tuple[slice, ...] = (slice(None),)
        if geometry.boundary != "circular":
            rows = part.last - part.first + geometry.filter[0] - 1
            self._local = Geometry((rows, *geometry.padded[1:]), geometry.filter, geometry.channels, "valid")
            begin = part.samples[1].start + geometry.offset[0] - part.first
            spans = [slice(begin, begin + part.samples[1].stop - part.samples[1].start)]
            others = zip(geometry.offset[1:], geometry.signal[1:], strict=True)
            self._inside = (slice(None), *spans, *(slice(o, o + n) for o, n in others))

    def __iter__(self) -> Iterator[NDArray]:
        row, positions = prod(self._geometry.grid[1:]), self._geometry.n_positions
        for k in range(len(self._bank)):
            base = k * positions + self._part.first * row
            first, last = np.searchsorted(self._indices, [base, base + self._local.n_positions])
            operator = ConvolutionOperator(self._bank[k : k + 1], self._local)
            fit = operator.synthesise(self._indices[first:last] - base, self._values[first:last])
            yield fit[self._inside]
