"""Signals from codes: the way back of `encoding`."""

from __future__ import annotations

from numpy.typing import ArrayLike, NDArray

from pointillist.arrays import kind_of, stacked, to_host
from pointillist.codes import SparseCodes
from pointillist.problem import signal_shape, synthesise
from pointillist.solvers.resident import decode_resident
from pointillist.validation import as_filters, check_arguments


def decode(
    codes: SparseCodes, filters: ArrayLike, *, boundary: str = "same", channels: bool = False
) -> NDArray | list[NDArray]:
    """Signals from sparse codes: the sum of the filters that the codes place.

    Parameters
    ----------
    codes : SparseCodes
        Of n signals.
    filters : (n_filters, [channels,] *size) array
        Those that the codes were solved for.
    boundary : {"same", "valid", "full", "circular"}
        That of the codes.
    channels : bool
        Whether the axis after the first of `filters` holds channels.

    Returns
    -------
    (n_signals, [channels,] *space) array, or list of ([channels,] *space) arrays
        A list when the signals have several shapes. Codes that live on a device give signals there, of their kind.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> codes = pt.SparseCodes.from_dense(np.array([[[0.0, 0.0, 2.0, 0.0, 0.0]]]))
    >>> pt.decode(codes, [[1.0, 3.0, 1.0]])
    array([[0., 2., 6., 2., 0.]])
    """
    check_arguments(boundary=boundary, channels=channels)
    if not isinstance(codes, SparseCodes):
        raise ValueError(f"codes must be SparseCodes, got {type(codes).__name__}")
    bank = as_filters(to_host(filters), channels=channels)
    if len(bank) != codes.n_filters:
        raise ValueError(f"codes are for {codes.n_filters} filters, got {len(bank)}")
    if any(len(grid) != bank.ndim - 2 for grid in codes.grids):
        raise ValueError(
            f"filters have {bank.ndim - 2} dimensions, the grids of the codes {sorted({len(g) for g in codes.grids})}; they "
            "must agree (channels=True says that the axis after the first holds channels)"
        )
    shapes = [signal_shape(grid, bank.shape[2:], boundary) for grid in codes.grids]
    kind = kind_of(codes.values)
    if kind == "numpy":
        signals = synthesise(codes, bank, shapes, bank.shape[1], boundary)
    else:
        signals = decode_resident(codes, bank, shapes, boundary, kind)
    if not channels:
        signals = [signal[0] for signal in signals]
    return stacked(signals) if len(set(shapes)) == 1 else signals
