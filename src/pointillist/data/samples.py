"""Conversion of raw samples to floating point: integer scaling and the grey weights.

Private to the data layer; reading files and normalising contrast are done by its neighbours.
"""

import numpy as np
from numpy.typing import NDArray

GREY_WEIGHTS = (0.2989, 0.5870, 0.1140)

_FULL_SCALE = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}


def to_float(samples: NDArray[np.generic], name: str) -> NDArray[np.floating]:
    """Return samples as native float32 or float64.

    Parameters
    ----------
    samples : array of any shape
        uint8 and uint16 are divided by 255 and 65535, so that they span [0, 1]; bool becomes 0 and 1; float32
        and float64 keep their values and are not copied when they are native; float16 becomes float32.
    name : str
        What to call the samples in an error message.

    Returns
    -------
    array of the same shape, float32 (float64 where float64 came in)

    Raises
    ------
    ValueError
        For any other type, because its range is unknown.
    """
    native = samples.dtype.newbyteorder("=")
    if native == np.float64:
        return samples.astype(np.float64, copy=False)
    if native.kind == "b" or native in (np.float16, np.float32):
        return samples.astype(np.float32, copy=False)
    if native in _FULL_SCALE:
        return samples.astype(np.float32) / np.float32(_FULL_SCALE[native])
    raise ValueError(f"{name} has samples of type {samples.dtype}: convert them to uint8, uint16, float32 or float64")


def to_grey(colour: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return 0.2989 R + 0.5870 G + 0.1140 B of colour (height, width, 3), an array (height, width)."""
    weights = np.asarray(GREY_WEIGHTS, dtype=colour.dtype)
    return np.tensordot(weights, np.moveaxis(colour, -1, 0), axes=1)
