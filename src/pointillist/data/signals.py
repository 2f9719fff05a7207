"""Signals, as the learners and `encode` take them: ([channels,] *space), made of pictures or read from files."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.data.damage import OnError, read_each
from pointillist.data.paths import PathLike
from pointillist.data.samples import to_float
from pointillist.data.sources.opening import open_source
from pointillist.validation import as_numbers, check_arguments


def as_signals(
    pictures: ArrayLike | Iterable[ArrayLike], *, channel_axis: int | None = -1
) -> NDArray[np.floating] | list[NDArray[np.floating]]:
    """Make signals of pictures: the step from (height, width, 3) to what learners and `encode` take.

    Parameters
    ----------
    pictures : array (height, width[, channels]), or a list or other iterable of such arrays
        An array is one picture. uint8 and uint16 are scaled to [0, 1].
    channel_axis : int or None
        Where the channels of a colour picture lie; a picture of two axes is grey. None says that there are no channels,
        so that every array is one signal, whatever its number of axes.

    Returns
    -------
    array (n, [channels,] height, width), or a list of arrays ([channels,] height, width) if their sizes differ
        Colour is for ``channels=True``.

    Examples
    --------
    >>> import pointillist as pt
    >>> photographs = pt.photographs(grey=False)
    >>> pt.as_signals(photographs["coffee"]).shape
    (1, 3, 235, 352)
    >>> pt.as_signals([photographs["camera"][:90, :100], photographs["coffee"][:90, :100]]).shape
    (2, 3, 90, 100)
    >>> pt.as_signals(pt.photographs()["camera"]).shape
    (1, 352, 352)

    Raises
    ------
    ValueError
        If there is no picture, if grey ones are mixed with colour, or if samples have an unsupported type.
    """
    check_arguments(channel_axis=channel_axis)
    if isinstance(pictures, str | bytes) or not isinstance(pictures, Iterable):
        raise ValueError(f"pictures must be an array or several, got {type(pictures).__name__}")
    alone = isinstance(pictures, np.ndarray) or hasattr(
        pictures, "toarray"
    )  # as sparse matrices have, which are refused
    several = [pictures] if alone else list(pictures)
    if not several:
        raise ValueError("pictures is empty: give at least one picture")
    named = [(f"pictures[{i}]", one) for i, one in enumerate(several)]
    signals = [_as_signal(as_numbers(one, name), channel_axis, name) for name, one in named]
    if len({(signal.ndim, signal.shape[: signal.ndim - 2]) for signal in signals}) > 1 and channel_axis is not None:
        raise ValueError("pictures must be all grey or all colour: convert some of them, load_image does by grey=")
    return np.stack(signals) if len({signal.shape for signal in signals}) == 1 else signals


def _as_signal(picture: NDArray, channel_axis: int | None, name: str) -> NDArray[np.floating]:
    if channel_axis is not None:
        if picture.ndim not in (2, 3):
            raise ValueError(
                f"{name} must be (height, width) or have channels as well, got shape {picture.shape}; "
                "channel_axis=None is for arrays without channels"
            )
        if picture.ndim == 3 and not -3 <= channel_axis < 3:
            raise ValueError(f"channel_axis must be an axis of {name}, from -3 to 2, got {channel_axis}")
        if picture.ndim == 3:
            picture = np.moveaxis(picture, channel_axis, 0)
    return np.ascontiguousarray(to_float(picture, name))


def load_signals(
    paths: PathLike | Iterable[PathLike],
    *,
    ndim: int = 2,
    channel_axis: int | None = None,
    on_error: OnError = "raise",
    recursive: bool | None = None,
) -> list[NDArray[np.floating]]:
    """Read everything that `open_source` opens as one list of signals.

    Parameters
    ----------
    paths : path or iterable of paths
        As for `open_source`: image files, which become grey, ``.npy`` files, TIFF stacks, arrays in zarr and HDF5 files,
        tables in text (``.csv``, ``.tsv``) with ``ndim=1``, folders, and patterns.
    ndim : int
        Axes of a signal: 2 for images, 1 for series (length,), 3 for volumes (depth, height, width). An array with
        one axis more is a stack of signals. Image files can only be read with 2.
    channel_axis : int or None
        Which axis of an array's signals holds channels, 0 for (channels, samples) and -1 for (samples, channels); None
        where they have none. With channels, image files are read in colour.
    on_error : {"raise", "skip"}
        As for `load_images`.
    recursive : bool or None
        Whether files in subfolders are read too, as in `open_source`.

    Returns
    -------
    list of float arrays ([channels,] *space)
        uint8 and uint16 samples are scaled to [0, 1]. float32 and float64 signals are read-only views of the
        mapped ``.npy`` file, so that a large stack is not read before it is used. A signal of more than four million
        samples in a ``.npy`` or TIFF file is left in a file in any case.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> np.save("series.npy", np.zeros((5, 200), np.float32))
    >>> len(pt.load_signals("series.npy", ndim=1))
    5

    Raises
    ------
    FileNotFoundError, UnreadableFileError, ValueError
        As for `load_images`.
    """
    source = open_source(paths, ndim=ndim, channel_axis=channel_axis, on_error=on_error, recursive=recursive)
    return read_each(range(len(source)), source.mapped, on_error)
