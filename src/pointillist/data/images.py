"""Pictures as floating-point arrays: from image files, from the package itself, and made into signals.

Decoding itself belongs to `photofiles`, which also keeps what a file says about its picture. The photographs that ship are
CC0 or in the public domain; ``photographs/SOURCES.md`` says where each comes from. ``dictionaries/MODEL_CARD.md`` says from
which photographs the dictionaries were learned, how, and what they are worth.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from importlib.resources import as_file, files
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.data.damage import OnError, read_each
from pointillist.data.paths import PathLike, files_of
from pointillist.data.photofiles.files import read_photograph
from pointillist.data.photofiles.photograph import IMAGE_SUFFIXES
from pointillist.data.samples import to_float, to_grey
from pointillist.errors import UnreadableFileError
from pointillist.reprs import shown
from pointillist.storage import load_model
from pointillist.validation import as_numbers, check_arguments

logger = logging.getLogger(__name__)

_FILES = {
    "train": ("astronaut.jpg", "brick.jpg", "chelsea.jpg", "gravel.jpg", "rocket.jpg"),
    "test": ("camera.jpg", "coffee.jpg"),
}
_DICTIONARIES = ("natural-400", "natural-100", "natural-colour-100")


def load_image(path: str | os.PathLike[str], *, grey: bool = True) -> NDArray[np.float32]:
    """Read an image file as a picture.

    Whatever `read_photograph` reads: PNG, JPEG, TIFF (8 and 16 bits, float) and the other formats of Pillow, including
    1-bit, palette and CMYK images. An alpha channel is dropped, not composited. The EXIF orientation is applied. Of an
    animation or a multi-page file the first frame is read, and the log says so.

    Parameters
    ----------
    path : str or path
        The file. One with more than 179 megapixels (twice ``PIL.Image.MAX_IMAGE_PIXELS``) is refused, unread.
    grey : bool
        Whether to return 0.2989 R + 0.5870 G + 0.1140 B instead of colour.

    Returns
    -------
    float32 array (height, width), or (height, width, 3) when ``grey`` is false
        Integer samples are scaled to [0, 1]; those of a float TIFF are kept as they are. A grey file read
        with ``grey=False`` has three equal channels. `as_signals` makes signals of pictures.

    Examples
    --------
    >>> import pointillist as pt
    >>> from PIL import Image
    >>> Image.new("RGB", (40, 30), "white").save("white.png")
    >>> pt.load_image("white.png").shape, pt.load_image("white.png", grey=False).shape
    ((30, 40), (30, 40, 3))

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    UnreadableFileError
        If the file is empty, truncated, not an image, or so large that it looks like a decompression bomb.
    """
    check_arguments(grey=grey)
    photograph = read_photograph(path)
    for note in photograph.notes:
        logger.info("%s: %s", path, note)
    try:
        with np.errstate(over="raise"):
            samples = np.require(to_float(photograph.pixels, str(path)), np.float32, "W")
    except FloatingPointError:
        raise UnreadableFileError(f"cannot read {path}: its samples are too large for float32") from None
    if samples.ndim == 2:
        return samples if grey else np.stack([samples] * 3, axis=-1)
    return to_grey(samples) if grey else samples


def load_images(
    paths: PathLike | Iterable[PathLike],
    *,
    grey: bool = True,
    on_error: OnError = "raise",
    recursive: bool | None = None,
) -> list[NDArray[np.float32]]:
    """Read image files, those in folders and those that patterns match, as a list of pictures.

    Parameters
    ----------
    paths : path or iterable of paths
        A folder stands for the image files in it, sorted by name with numbers in numeric order; hidden files and files of
        other kinds are left out. ``photos/**/*.jpg`` and the like are patterns.
    grey : bool
        Whether to convert to grey, see `load_image`.
    on_error : {"raise", "skip"}
        Whether an unreadable file stops the reading, or is left out with a warning in the log.
    recursive : bool or None
        Whether files in subfolders are read too, as in `open_source`.

    Returns
    -------
    list of float32 arrays (height, width), or (height, width, 3) when ``grey`` is false

    Examples
    --------
    >>> import pointillist as pt
    >>> from PIL import Image
    >>> for name, size in {"a.png": (40, 30), "b.png": (20, 20)}.items():
    ...     Image.new("L", size).save(name)
    >>> [image.shape for image in pt.load_images(["a.png", "b.png"])]
    [(30, 40), (20, 20)]

    Raises
    ------
    FileNotFoundError
        If a path does not exist, whatever ``on_error`` is.
    UnreadableFileError
        If a file cannot be read and ``on_error`` is "raise".
    ValueError
        If a folder holds no image files, or no file could be read.
    """
    check_arguments(grey=grey, on_error=on_error)
    found = files_of(paths, IMAGE_SUFFIXES, recursive=recursive)
    return read_each(found, lambda file: load_image(file, grey=grey), on_error)


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
    # Sparse matrices have toarray, and are refused.
    alone = isinstance(pictures, np.ndarray) or hasattr(pictures, "toarray")
    signals = []
    for i, given in enumerate([pictures] if alone else pictures):
        name = f"pictures[{i}]"
        picture = as_numbers(given, name)
        if channel_axis is not None and picture.ndim not in (2, 3):
            raise ValueError(
                f"{name} must be (height, width) or have channels as well, got shape {picture.shape}; "
                "channel_axis=None is for arrays without channels"
            )
        if channel_axis is not None and picture.ndim == 3:
            if not -3 <= channel_axis < 3:
                raise ValueError(f"channel_axis must be an axis of {name}, from -3 to 2, got {channel_axis}")
            picture = np.moveaxis(picture, channel_axis, 0)
        signals.append(np.ascontiguousarray(to_float(picture, name)))
    if not signals:
        raise ValueError("pictures is empty: give at least one picture")
    if channel_axis is not None and len({signal.shape[:-2] for signal in signals}) > 1:
        raise ValueError("pictures must be all grey or all colour: convert some of them, load_image does by grey=")
    return np.stack(signals) if len({signal.shape for signal in signals}) == 1 else signals


def photographs(split: Literal["all", "train", "test"] = "all", *, grey: bool = True) -> dict[str, NDArray[np.float32]]:
    """Return the shipped photographs.

    Parameters
    ----------
    split : "all", "train" or "test"
        "train" is meant for learning filters, "test" is held out for judging them.
    grey : bool
        Whether to convert to grey, see `load_image`.

    Returns
    -------
    dict from name to float32 array (height, width) in [0, 1], or (height, width, 3) when ``grey`` is false
        The sizes differ; the longer side has at most 384 pixels.

    Examples
    --------
    >>> import pointillist as pt
    >>> sorted(pt.photographs("test"))
    ['camera', 'coffee']
    >>> pt.photographs(grey=False)["coffee"].shape
    (235, 352, 3)
    """
    check_arguments(grey=grey)
    if not isinstance(split, str) or (split != "all" and split not in _FILES):
        raise ValueError(f'split must be "all", "train" or "test", got {split!r}')
    names = _FILES["train"] + _FILES["test"] if split == "all" else _FILES[split]
    pictures = {}
    for name in names:
        with as_file(files("pointillist.data").joinpath("photographs", name)) as path:
            pictures[path.stem] = load_image(path, grey=grey)
    return pictures


def load_filters(name: str = "natural-100") -> NDArray[np.float32]:
    """Return a dictionary that ships with the package.

    Parameters
    ----------
    name : {"natural-100", "natural-400", "natural-colour-100"}
        Filters of 11×11 for the detail of photographs in [0, 1], the most used first. The colour ones have three
        channels, red, green and blue, that share their codes.

    Returns
    -------
    float32 array (400, 11, 11), (100, 11, 11) or (100, 3, 11, 11)

    Examples
    --------
    >>> from pointillist.data import load_filters
    >>> load_filters("natural-100").shape
    (100, 11, 11)
    """
    if not isinstance(name, str) or name not in _DICTIONARIES:
        raise ValueError(
            f"no dictionary {shown(name)} comes with the package: name must be one of {', '.join(_DICTIONARIES)}"
        )
    with as_file(files("pointillist.data").joinpath("dictionaries", f"{name}.safetensors")) as path:
        return load_model(path).arrays["filters"].astype(np.float32)
