"""Pictures as floating-point arrays, from one image file or from many.

Decoding itself belongs to `photofiles`, which also keeps what a file says about its picture.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pointillist.data.damage import OnError, check_on_error, read_each
from pointillist.data.paths import PathLike, files_of
from pointillist.data.photofiles.formats import IMAGE_SUFFIXES
from pointillist.data.photofiles.reading import read_photograph
from pointillist.data.samples import to_float, to_grey
from pointillist.errors import UnreadableFileError
from pointillist.validation import check_arguments

logger = logging.getLogger(__name__)


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
    check_arguments(grey=grey)
    check_on_error(on_error)
    files = files_of(paths, IMAGE_SUFFIXES, recursive=recursive)
    return read_each(files, lambda file: load_image(file, grey=grey), on_error)
