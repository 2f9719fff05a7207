"""The dictionaries that come with the package, learned from photographs that may be redistributed.

``dictionaries/MODEL_CARD.md`` says from which, how, and what they are worth. Learning them is done by
``scripts/learn_dictionaries.py``.
"""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from pointillist.storage import load_model

_NAMES = ("natural-400", "natural-100", "natural-colour-100")


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
    if name not in _NAMES:
        raise ValueError(f"no dictionary {name!r} comes with the package: choose one of {', '.join(_NAMES)}")
    resource = files("pointillist.data").joinpath("dictionaries", f"{name}.safetensors")
    with as_file(resource) as path:
        return load_model(path).arrays["filters"].astype(np.float32)
