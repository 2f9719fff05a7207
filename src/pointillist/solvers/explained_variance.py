"""Energy of signals that each filter explains, given their codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.codes import SparseCodes
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.reprs import ShortRepr
from pointillist.validation import Signals, check_arguments, trusted

BAND_SAMPLES = 2**20
"""Samples of a signal that are looked at together."""


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedVariance(ShortRepr):
    """Shares of the energy of signals that their codes explain, together and filter by filter.

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
    arrays, bank, seen = trusted(signals, filters, weights, channels=channels)
    bank = bank.astype(np.float64)
    if not isinstance(codes, SparseCodes):
        raise ValueError(f"codes must be SparseCodes, got {type(codes).__name__}")
    geometries = [Geometry(array.shape[1:], bank.shape[2:], len(array), boundary) for array in arrays]
    if codes.n_filters != len(bank) or codes.grids != [geometry.grid for geometry in geometries]:
        raise ValueError("codes must be those of these signals for these filters and this boundary")
    host = codes.on_host()
    gains, left, whole = np.zeros(len(bank)), 0.0, 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for i, (array, geometry) in enumerate(zip(arrays, geometries, strict=True)):
            numbers, places = np.divmod(host.indices[i], geometry.n_positions)
            for band, first, local, cut in _bands(geometry):
                # The codes whose filters reach the band, on a grid of its own.
                row = geometry.n_positions // geometry.grid[0]
                chosen = np.flatnonzero((places >= first * row) & (places < (first + local.grid[0]) * row))
                indices = numbers[chosen] * local.n_positions + places[chosen] - first * row
                values, operator = host.values[i][chosen].astype(np.float64), ConvolutionOperator(bank, local)
                x = array[:, band].astype(np.float64)
                w = 1.0 if seen is None else seen[i][:, band].astype(np.float64)
                residual = x - operator.synthesise(indices, values)[cut]
                whole, left = whole + float(np.sum(w * x**2)), left + float(np.sum(w * residual**2))
                for k in range(len(bank)):  # the fits of all filters at once would fill the memory
                    own = numbers[chosen] == k
                    one = operator.synthesise(indices[own], values[own])[cut]
                    gains[k] += np.sum(w * one * (2 * residual + one))
        shares, rest = gains / whole, left / np.float64(whole)
    if not 0 < whole < np.inf or not np.isfinite(shares).all() or not np.isfinite(rest):
        raise ValueError("signals are zero everywhere, or their squares overflow: there is no energy to explain")
    return ExplainedVariance(shares, 1 - float(rest))


def _bands(geometry: Geometry) -> Iterator[tuple[slice, int, Geometry, tuple[slice, ...]]]:
    """Bands of a signal along its first axis: first rows of codes that reach them, geometries, places in these.

    A signal whose filters wrap around is one band.
    """
    length, size, offset, grid = geometry.signal[0], geometry.filter[0], geometry.offset, geometry.grid
    if geometry.boundary == "circular":
        yield slice(0, length), 0, geometry, (slice(None),)
        return
    step = max(size, BAND_SAMPLES // (geometry.channels * prod(geometry.signal[1:])))
    for begin in range(0, length, step):
        end = min(begin + step, length)
        first, last = max(begin + offset[0] - size + 1, 0), min(end + offset[0], grid[0])
        local = Geometry((last - first + size - 1, *geometry.padded[1:]), geometry.filter, geometry.channels, "valid")
        rest = (slice(o, o + n) for o, n in zip(offset[1:], geometry.signal[1:], strict=True))
        yield (
            slice(begin, end),
            first,
            local,
            (slice(None), slice(begin + offset[0] - first, end + offset[0] - first), *rest),
        )
