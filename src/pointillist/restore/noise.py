"""Noise of pictures: how strong it is, and the transform that makes Poisson noise look Gaussian. Nothing here removes it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.restore.pictures import ChannelAxis, Picture, open_canvas

_ROOT = np.sqrt(3.0)
_HIGH_PASS = np.array([1 - _ROOT, _ROOT - 3, 3 + _ROOT, -1 - _ROOT]) / (4 * np.sqrt(2.0))
"""Daubechies' wavelet with two vanishing moments: blind to brightness and to straight ramps."""

_NORMAL_MAD = 0.6744897501960817
_FEWEST = 16
_STRONGEST = 1e9


def estimate_sigma(image: ArrayLike, mask: ArrayLike | None = None, *, channel_axis: ChannelAxis = "auto") -> float:
    """Deviation of the noise of a picture, from the median size of its finest diagonal details.

    Parameters
    ----------
    image : (height, width) or (height, width, 3) array
    mask : (height, width) or image-shaped bool array, optional
        True marks missing pixels, beside those that are NaN; details that touch them are left out.
    channel_axis : int, None or "auto"
        Axis of the channels, as in `denoise`.

    Returns
    -------
    float
        In the image's own units; over several channels the root of the mean square. Texture is taken for noise where it
        covers most of the picture.

    Examples
    --------
    >>> import numpy as np
    >>> noise = 0.1 * np.random.default_rng(0).standard_normal((128, 128))
    >>> abs(estimate_sigma(noise) - 0.1) < 0.01
    True
    """
    picture = open_canvas(image, mask, channel_axis=channel_axis, data_range=1.0).picture()
    return noise_sigma(picture.planes, picture.weights)


def noise_sigma(planes: NDArray, weights: NDArray) -> float:
    """Deviation of the noise of planes (channels, height, width), the root of the mean square over them."""
    pairs = zip(planes, weights, strict=True)
    return float(np.sqrt(np.mean([plane_sigma(plane, seen) ** 2 for plane, seen in pairs])))


def given_level(sigma: float | None, picture: Picture) -> float:
    """Deviation of the noise in units of full scale: the one given, or the one that the picture shows."""
    if sigma is None:
        return noise_sigma(picture.planes, picture.weights)
    sigma = float(sigma)  # NumPy's small types hold no full scale
    if sigma > _STRONGEST * picture.scale:
        raise ValueError(
            f"sigma is {sigma:.2g}, more than {_STRONGEST:g} times the picture's full scale, {picture.scale:.2g}"
        )
    return sigma / picture.scale


def plane_sigma(plane: NDArray, weights: NDArray | None = None) -> float:
    """Deviation of the noise of one plane (height, width); zero where too little of it was seen to tell."""
    if min(plane.shape) < len(_HIGH_PASS):
        return 0.0
    diagonal = _filtered(_filtered(np.asarray(plane, np.float64), 0, _HIGH_PASS), 1, _HIGH_PASS)
    if weights is not None:
        ones = np.ones(len(_HIGH_PASS))
        diagonal = diagonal[_filtered(_filtered((weights == 0).astype(float), 0, ones), 1, ones) < 0.5]
    if diagonal.size < _FEWEST:
        return 0.0
    return float(np.median(np.abs(diagonal)) / _NORMAL_MAD)


def _filtered(x: NDArray, axis: int, taps: NDArray) -> NDArray:
    return np.apply_along_axis(np.convolve, axis, x, taps, mode="valid")


def stabilise(counts: NDArray) -> NDArray:
    """Anscombe's transform 2√(x + 3/8): Poisson counts get a deviation of one, nearly, from four counts on."""
    return 2 * np.sqrt(np.maximum(counts, 0) + 0.375)


def destabilise(values: NDArray) -> NDArray:
    """The closed form of the exact unbiased inverse of `stabilise` (Mäkitalo and Foi, 2011), never negative."""
    d = np.maximum(values, 2 * np.sqrt(0.375))
    root = np.sqrt(1.5)
    return np.maximum(d**2 / 4 + root / (4 * d) - 11 / (8 * d**2) + 5 * root / (8 * d**3) - 0.125, 0)
