"""Photographs that come with the package, for whoever needs real images, and dictionaries learned from such.

The photographs are CC0 or in the public domain; ``photographs/SOURCES.md`` says where each comes from.
``dictionaries/MODEL_CARD.md`` says from which photographs the dictionaries were learned, how, and what they are worth.
Learning them is done by ``scripts/learn_dictionaries.py``.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pointillist.data.images import load_image
from pointillist.reprs import shown
from pointillist.storage import load_model
from pointillist.validation import check_arguments

_FILES = {
    "train": ("astronaut.jpg", "brick.jpg", "chelsea.jpg", "gravel.jpg", "rocket.jpg"),
    "test": ("camera.jpg", "coffee.jpg"),
}
_DICTIONARIES = ("natural-400", "natural-100", "natural-colour-100")


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
    resource = files("pointillist.data").joinpath("dictionaries", f"{name}.safetensors")
    with as_file(resource) as path:
        return load_model(path).arrays["filters"].astype(np.float32)
