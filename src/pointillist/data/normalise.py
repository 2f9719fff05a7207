"""Local contrast normalisation, the preprocessing under which filters are learned.

Works on arrays of one, two or three spatial axes. Reading files is not done here.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from pointillist.arrays import bands, extent, ranked, scratch
from pointillist.data.samples import to_float
from pointillist.validation import as_numbers, check_arguments, within_rounding

Images = TypeVar("Images", NDArray[Any], list[NDArray[Any]])

_MARGIN = 6
"""Samples of the window on either side of its middle."""
_SIGMA = 3 * 1.591

# Below this fraction of the image's range a local deviation is rounding error of a flat area, not contrast.
_FLAT = 1e-6


def contrast_normalise(images: Images, *, ndim: int = 2) -> Images:
    """Remove the local mean and divide by the local standard deviation.

    A Gaussian window of 13 samples per axis (sigma 4.773 samples), mirrored at the borders without repeating
    the edge sample, gives the local mean and deviation. The deviation is raised to at least its own median
    over the image, which keeps flat areas from being amplified; where most of the image is flat, the median
    is taken over the rest. Finally the mean of the result is subtracted.

    Parameters
    ----------
    images : array (height, width), array (n, height, width), or list of arrays (height, width) of any sizes
        Grey pictures, or the channels of one signal (channels, height, width) as `as_signals` makes it of colour. uint8
        and uint16 are scaled to [0, 1] first. The result does not depend on the scale.
    ndim : int
        Number of spatial axes: 1 for series (length,), 2 for images, 3 for volumes (depth, height, width); the shapes
        above change accordingly.

    Returns
    -------
    array of the same shape, or list of arrays
        float32, or float64 where float64 came in; zero mean, and a spread of the order of one.

    Examples
    --------
    >>> import pointillist as pt
    >>> image = pt.contrast_normalise(pt.photographs()["camera"])
    >>> image.shape, bool(abs(image.mean()) < 1e-6)
    ((352, 352), True)

    Raises
    ------
    ValueError
        If an image is constant, empty, not finite, of an unsupported type or of the wrong number of axes.
    """
    check_arguments(ndim=ndim)
    given: Any = images
    stack = isinstance(given, np.ndarray)
    if not stack and not isinstance(given, list | tuple):
        raise ValueError(f"images must be an array or a list of arrays, got {type(given).__name__}")
    if stack and given.ndim == ndim:
        return _normalise_one(given, ndim, "images")
    if stack and given.ndim != ndim + 1:
        raise ValueError(f"images must have {ndim} or {ndim + 1} axes for ndim={ndim}, got shape {given.shape}")
    if stack and ndim == 2 and given.shape[-1] == 3:
        raise ValueError(
            f"images of shape {given.shape} looks like one picture in colour: take it in grey, or "
            "contrast_normalise(as_signals(picture)[0]), channel by channel"
        )
    if len(given) == 0:
        raise ValueError("images is empty: pass at least one image")
    found = [_normalise_one(image, ndim, f"images[{i}]") for i, image in enumerate(given)]
    result: Any = np.stack(found) if stack else found
    return result


def _normalise_one(image: NDArray[np.generic], ndim: int, name: str) -> Any:
    """Normalise one image, a large one in bands of rows: that takes little memory, and none for an image in a file."""
    image = as_numbers(image, name)
    if image.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, got shape {image.shape}")
    if image.size == 0:
        raise ValueError(f"{name} is empty, shape {image.shape}")
    with np.errstate(invalid="ignore"):  # as some kinds of NaN are
        ends = to_float(np.array(extent(image[None]), image.dtype), name)
    low, high = map(float, ends)
    if not np.isfinite(ends).all():
        raise ValueError(f"{name} holds NaN or infinity: replace or mask those samples first")
    if within_rounding(low, high, ends.dtype):
        raise ValueError(f"{name} is constant, so it has no contrast to normalise: leave it out")
    # Centring and scaling leave the result unchanged; they protect the variance from cancellation and overflow.
    centre, scale = low / 2 + high / 2, high / 2 - low / 2
    spans = [rows for _, rows in bands((1, *image.shape))]
    result, deviation = (scratch(image, image.shape, np.float64) for _ in range(2))
    for rows in spans:
        first = max(rows.start - _MARGIN, 0)
        x = (to_float(image[first : rows.stop + _MARGIN], name).astype(np.float64) - centre) / scale
        own = slice(rows.start - first, rows.stop - first)
        mean = gaussian_filter(x, _SIGMA, mode="mirror", radius=_MARGIN)
        square = gaussian_filter(x**2, _SIGMA, mode="mirror", radius=_MARGIN)
        result[rows], deviation[rows] = (x - mean)[own], np.sqrt(np.maximum(square - mean**2, 0))[own]
    typical, total = _typical(deviation), 0.0
    for rows in spans:
        result[rows] /= np.maximum(deviation[rows], typical)
        total += float(np.sum(result[rows]))
    out = scratch(image, image.shape, ends.dtype)
    for rows in spans:
        np.subtract(result[rows], total / image.size, out=out[rows], casting="same_kind")
    return out


def _typical(deviation: NDArray[np.float64]) -> float:
    # The plain median unless it is zero, which happens when most of the image is flat (a scan, a silhouette). The
    # published training arrays were made with the lower of the two middle values, not with their average.
    median = ranked(deviation, (deviation.size - 1) // 2)
    if median > _FLAT:
        return median
    flat = sum(int(np.count_nonzero(deviation[rows] <= _FLAT)) for _, rows in bands((1, *deviation.shape)))
    return ranked(deviation, flat + (deviation.size - flat - 1) // 2)
