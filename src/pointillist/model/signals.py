"""From what users pass to what the engine works on: lists of ``(channels, *space)`` arrays, checked once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.model.large import bands, converted, extent, scratch

Signals = NDArray | Sequence[ArrayLike]


def checked_signals(signals: Signals, ndim: int, *, channels: bool, name: str = "signals") -> list[NDArray]:
    """Check signals and give each the shape ``(channels, *space)``.

    Parameters
    ----------
    signals : (n_signals, [channels,] *space) array or list of ([channels,] *space) arrays
    ndim : int
        Number of spatial dimensions.
    channels : bool
        Whether the axis after the first holds channels.

    Returns
    -------
    list of arrays
        float64 where that was given, float32 otherwise. NaN and infinity pass; see `check_finite`.
    """
    if isinstance(signals, np.ndarray) and signals.ndim != 1 + channels + ndim:
        raise ValueError(
            f"{name} must have {1 + channels + ndim} axes {_axes(ndim, channels)}, got an array of shape "
            f"{signals.shape}"
            + ("; add an axis for a single signal: signals[None]" if signals.ndim == channels + ndim else "")
        )
    if len(signals) == 0:
        raise ValueError(f"{name} is empty: give at least one signal")
    return [_one(signal, i, ndim, channels, name) for i, signal in enumerate(signals)]


def _one(signal: ArrayLike, i: int, ndim: int, channels: bool, name: str) -> NDArray:
    array = np.asarray(signal)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name}[{i}] must hold real numbers, got {array.dtype}")
    if array.ndim != channels + ndim:
        raise ValueError(
            f"{name}[{i}] must have {channels + ndim} axes, got shape {array.shape}; the filters have {ndim} dimensions"
        )
    if array.size == 0:
        raise ValueError(f"{name}[{i}] is empty, its shape is {array.shape}")
    kept = array.dtype if array.dtype == np.float64 else np.float32
    return converted(array if channels else array[None], kept)


def check_finite(signals: list[NDArray], weights: list[NDArray] | None, name: str = "signals") -> list[NDArray]:
    """Refuse NaN and infinity where the weight is not zero; set samples of weight zero to zero."""
    checked = []
    for i, signal in enumerate(signals):
        if weights is not None:
            signal = _seen_only(signal, weights[i])
        bad = sum(int(np.sum(~np.isfinite(signal[band]))) for band in bands(signal.shape))
        if bad:
            raise ValueError(f"{name}[{i}] holds {bad} NaN or infinite samples; give weights that are zero there")
        checked.append(signal)
    return checked


def _seen_only(signal: NDArray, weights: NDArray) -> NDArray:
    out = scratch(signal, signal.shape, signal.dtype)
    for band in bands(signal.shape):
        out[band] = np.where(weights[band] > 0, signal[band], signal.dtype.type(0))
    return out


def as_weights(weights: Signals | None, signals: list[NDArray], *, channels: bool) -> list[NDArray] | None:
    """One weight array for each signal, of the signal's shape, checked; None stays None.

    `weights` is one array for each signal, or a single one that all signals share. Weights without the channel axis
    serve all channels.
    """
    if weights is None:
        return None
    arrays = [np.asarray(w) for w in weights] if not isinstance(weights, np.ndarray) else weights
    space = signals[0].shape[1:]
    if isinstance(arrays, np.ndarray) and arrays.shape in (space, signals[0].shape):
        if channels and arrays.shape == (len(signals), *space) and len(signals) > 1:
            raise ValueError(
                f"weights of shape {arrays.shape} could be one for each signal or one for each channel; give them the shape "
                f"{(len(signals), *signals[0].shape)}"
            )
        arrays = [arrays] * len(signals)
    if len(arrays) != len(signals):
        raise ValueError(f"weights must hold one array for each of the {len(signals)} signals, got {len(arrays)}")
    return [_one_weight(np.asarray(w), signal, i) for i, (w, signal) in enumerate(zip(arrays, signals, strict=True))]


def _one_weight(weight: NDArray, signal: NDArray, i: int) -> NDArray:
    if weight.shape not in (signal.shape, signal.shape[1:]):
        raise ValueError(f"weights[{i}] has shape {weight.shape}, the signal {signal.shape[1:]}; they must agree")
    full = converted(np.broadcast_to(weight, signal.shape), signal.dtype)
    low, high = extent(full)
    if not (np.isfinite(high) and low >= 0):
        raise ValueError(f"weights[{i}] must be finite and not negative")
    if high == 0:
        raise ValueError(f"weights[{i}] is zero everywhere: nothing of that signal was seen")
    return full


def group_by_shape(signals: Sequence[NDArray]) -> list[list[int]]:
    """Indices of the signals of each shape, in order of appearance."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, signal in enumerate(signals):
        groups.setdefault(signal.shape, []).append(i)
    return list(groups.values())


def as_filters(filters: ArrayLike, *, channels: bool) -> NDArray:
    """Check filters and give them the shape ``(n_filters, channels, *size)``."""
    array = np.asarray(filters)
    if array.dtype.kind not in "fiu" or array.ndim < 2 + channels:
        raise ValueError(
            f"filters must be a real array {_axes(0, channels, 'n_filters')[:-1]}, *size), got {array.dtype} of shape "
            f"{array.shape}"
        )
    if array.size == 0 or not np.all(np.isfinite(array)):
        raise ValueError("filters must be finite and not empty")
    array = np.ascontiguousarray(array, array.dtype if array.dtype == np.float64 else np.float32)
    return array if channels else array[:, None]


def _axes(ndim: int, channels: bool, first: str = "n_signals") -> str:
    space = {1: "length", 2: "height, width", 3: "depth, height, width"}.get(ndim, "*space")
    names = [first] + ["channels"] * channels + ([space] if ndim else [])
    return f"({', '.join(names)})"
