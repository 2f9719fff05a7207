"""The photographs that come with the package, for demonstrations and tests that need real images.

All are CC0 or in the public domain; ``photographs/SOURCES.md`` says where each comes from.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pointillist.data.images import load_image
from pointillist.model.arguments import check_arguments

_FILES = {
    "train": ("astronaut.jpg", "brick.jpg", "chelsea.jpg", "gravel.jpg", "rocket.jpg"),
    "test": ("camera.jpg", "coffee.jpg"),
}


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
