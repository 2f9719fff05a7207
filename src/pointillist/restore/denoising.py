"""Noise removed: Gaussian of known or estimated strength, outliers such as salt and pepper, and Poisson counts."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Unpack, overload

import numpy as np
import scipy.ndimage
from numpy.typing import ArrayLike, NDArray

from pointillist.restore.engine import (
    NO_BLUR,
    Damaged,
    Detailed,
    Details,
    Options,
    Plain,
    Settings,
    choose_filters,
    code,
    mend,
    separate,
    synthesise,
)
from pointillist.restore.finding import damage_in
from pointillist.restore.guessing import Coder, fill_canvas
from pointillist.restore.noise import destabilise, estimate_sigma, stabilise
from pointillist.restore.penalties import Penalty, given_penalty
from pointillist.restore.pictures import Canvas, Picture, open_picture
from pointillist.restore.pieces import Large, as_large
from pointillist.restore.reporting import details_of, finish

NOISES = ("gaussian", "salt_pepper", "outliers", "poisson")

PER_SIGMA = 2.2
"""λ / σ: within 0.1 dB of the best for σ from 15 to 50 of 255."""

_NOISY_MU = 10.0  # averages over more pixels than elsewhere; worth 0.1 dB

_QUIET = 1e-3
_OUTLIER = 0.1  # of full scale: smaller deviations are taken for detail or noise
_IMPULSE = 0.03  # the same for samples that are suspect already
_PRICE = 0.1
_PASSES = 2
_WINDOW = 5


@overload
def denoise(
    image: ArrayLike,
    sigma: float | None = ...,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    *,
    noise: str = ...,
    gain: float = ...,
    **options: Unpack[Plain],
) -> NDArray: ...
@overload
def denoise(
    image: ArrayLike,
    sigma: float | None = ...,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    *,
    noise: str = ...,
    gain: float = ...,
    **options: Unpack[Detailed],
) -> tuple[NDArray, Details]: ...
def denoise(
    image: ArrayLike,
    sigma: float | None = None,
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    *,
    noise: str = "gaussian",
    gain: float = 1.0,
    **options: Unpack[Options],
) -> NDArray | tuple[NDArray, Details]:
    """Remove the noise of a photograph.

    Plain convolutional sparse coding is not the best tool for strong Gaussian noise; BM3D and trained networks do better.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array
        As in `inpaint`; NaN counts as missing and is filled in.
    sigma : float, optional
        Deviation of Gaussian noise, in the image's own units (25 for uint8, say). Estimated by default.
    filters : (n_filters, h, w) or (n_filters, 3, h, w) array, optional
        As in `inpaint`.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale. "auto" follows the noise, λ = 2.2 σ, and for outliers the prediction
        of hidden pixels as in `inpaint`.
    noise : {"gaussian", "salt_pepper", "outliers", "poisson"}
        "salt_pepper": samples at either end of the picture's range that their neighbours do not predict are filled in, the
        others kept. "outliers" does the same for wrong samples of any value, found by a 1×1 filter with a penalty of its
        own, which is a Huber loss, and for specks of dust, found as in `find_damage`. For "poisson" the noise is made
        Gaussian by Anscombe's transform, and the answer brought back by the exact unbiased inverse.
    gain : float
        Counts in one unit of the image, for Poisson noise: a uint8 image is read as counts by default.
    debias, boundary, tol, n_jobs, device, return_details, channel_axis, data_range
        As in `inpaint`.

    Returns
    -------
    array of the image's shape, dtype and scale; with `Details` if asked for

    Examples
    --------
    >>> import numpy as np
    >>> from pointillist.restore import denoise
    >>> rng = np.random.default_rng(0)
    >>> noisy = 0.5 + 0.1 * rng.standard_normal((48, 48))
    >>> filters = rng.standard_normal((4, 5, 5)) / 5
    >>> bool(np.std(denoise(noisy, sigma=0.1, filters=filters)) < 0.05)
    True
    """
    begin = time.perf_counter()
    if noise not in NOISES:
        raise ValueError(f"noise must be one of {', '.join(NOISES)}, got {noise!r}")
    if sigma is not None and not (np.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"sigma must be finite and not negative, got {sigma}")
    if not (np.isfinite(gain) and gain > 0):
        raise ValueError(f"gain must be positive, got {gain}")
    settings = Settings.given(options)
    if noise == "gaussian" and (large := as_large(image, settings)) is not None:
        return _in_pieces(large, sigma, filters, penalty, settings)
    picture = open_picture(image, channel_axis=settings.channel_axis, data_range=settings.data_range)
    bank = choose_filters(filters, "natural-100", picture.shape)
    if noise in ("salt_pepper", "outliers"):
        odd = (_impulses if noise == "salt_pepper" else _outliers)(picture, bank, settings)
        return _without(odd, picture, bank, penalty, settings, begin)
    if noise == "poisson":
        return _counted(picture, bank, penalty, gain, settings, begin)
    level = None if sigma is None else sigma / picture.scale
    return _smoothed(picture, picture, bank, penalty, level, settings, begin)


def _in_pieces(
    large: Large, sigma: float | None, filters: ArrayLike | None, penalty: Penalty, settings: Settings
) -> NDArray | tuple[NDArray, Details]:
    """Remove Gaussian noise from a large picture, everywhere at the strength and the penalty that a montage of it tells."""
    montage = open_picture(large.montage(), data_range=settings.data_range)
    bank = choose_filters(filters, "natural-100", montage.shape)
    level = noise_level(montage) if sigma is None else sigma / montage.scale
    value = given_penalty(penalty, Damaged(*montage.signals(bank.shape[1])), bank, replace(settings, mu=_NOISY_MU))
    value = PER_SIGMA * max(level, _QUIET) if value is None else value

    def restore(crop: NDArray, n_jobs: int) -> tuple[NDArray, Details]:
        own = replace(settings, n_jobs=n_jobs, return_details=True, progress=None)
        picture = open_picture(crop, data_range=montage.scale)
        answer = _smoothed(picture, picture, bank, value, level, own, time.perf_counter())
        assert isinstance(answer, tuple)
        return answer

    return large.restored(restore, settings, margin=2 * max(bank.shape[2:]))


def noise_level(picture: Picture) -> float:
    """Deviation of the noise of a picture in [0, 1], the mean over its channels."""
    return float(
        np.sqrt(np.mean([estimate_sigma(p, w) ** 2 for p, w in zip(picture.planes, picture.weights, strict=True)]))
    )


def _smoothed(
    working: Picture,
    picture: Picture,
    filters: NDArray,
    penalty: Penalty,
    level: float | None,
    settings: Settings,
    begin: float,
    gain: float | None = None,
) -> NDArray | tuple[NDArray, Details]:
    """Code `working`, which is the picture itself or its stabilised counts, at the penalty that its noise asks for."""
    damaged = Damaged(*working.signals(filters.shape[1]))
    level = noise_level(working) if level is None else level
    settings = replace(settings, mu=_NOISY_MU)
    value = given_penalty(penalty, damaged, filters, settings)
    value = PER_SIGMA * max(level, _QUIET) if value is None else value
    mended = mend(damaged, filters, value, settings)
    planes = working.gather(mended.signals)
    if gain is not None:
        planes = destabilise(planes * working.scale) / gain / picture.scale
    sigma = None if gain is not None else level * picture.scale
    return finish(working if gain is None else picture, planes, mended, value, begin, settings, sigma)


def _counted(
    picture: Picture,
    filters: NDArray,
    penalty: Penalty,
    gain: float,
    settings: Settings,
    begin: float,
) -> NDArray | tuple[NDArray, Details]:
    counts = picture.planes * picture.scale * gain
    if np.any(counts < 0):
        raise ValueError("image must not be negative for Poisson noise: these are counts")
    values = stabilise(counts)
    full = float(np.max(values)) - float(stabilise(np.zeros(1))[0])
    working = replace(picture, planes=values / full * (picture.weights > 0), scale=full, bounded=False)
    return _smoothed(working, picture, filters, penalty, 1 / full, settings, begin, gain)


def _without(
    odd: NDArray,
    picture: Picture,
    filters: NDArray,
    penalty: Penalty,
    settings: Settings,
    begin: float,
) -> NDArray | tuple[NDArray, Details]:
    """Fill in the odd samples and keep the others."""
    missing = odd | (picture.weights == 0)
    if np.any(np.all(missing, axis=(1, 2))):
        raise ValueError("image holds nothing but outliers in one of its channels")
    if np.all(missing == missing[:1]):
        missing = missing[:1]
    canvas = Canvas(picture.planes, missing, 1.0, picture.axis, None, False)
    planes, coders = picture.planes.copy(), []
    if np.any(missing):
        coder = Coder(canvas, filters, penalty, settings)
        coders = fill_canvas(canvas, coder, planes, settings)
    image = picture.photograph(planes)
    return (image, details_of(canvas, coders, begin)) if settings.return_details else image


def _impulses(picture: Picture, filters: NDArray, settings: Settings) -> NDArray:
    """Samples at either end of the picture's range that their neighbours do not predict."""
    seen = picture.weights > 0
    low, high = np.min(picture.planes[seen]), np.max(picture.planes[seen])
    suspect = seen & ((picture.planes <= low) | (picture.planes >= high))
    good = picture.weights * ~suspect
    if not np.all(np.any(good > 0, axis=(1, 2))):
        return suspect
    return suspect & (np.abs(picture.planes - _fit(picture, good, filters, None, settings)) > _IMPULSE)


def _outliers(picture: Picture, filters: NDArray, settings: Settings) -> NDArray:
    """Samples that a filter of one pixel explains at a smaller price than the filters of the dictionary.

    That filter makes a Huber loss of the squared one. What was found is left out of the next pass, which shows outliers
    that others had hidden and brings back what was only detail. Specks of dust are too large for it and are found by
    their shape.
    """
    odd = np.zeros(picture.planes.shape, bool)
    for _ in range(_PASSES):
        good = picture.weights * ~odd
        if not np.all(np.any(good > 0, axis=(1, 2))):
            break
        fit = _fit(picture, good, filters, _OUTLIER, settings)
        odd = (picture.weights > 0) & (np.abs(picture.planes - fit) > _OUTLIER)
    return odd | ((picture.weights > 0) & damage_in(np.moveaxis(picture.planes, 0, -1), kinds=("dust",)))


def _fit(picture: Picture, weights: NDArray, filters: NDArray, spike: float | None, settings: Settings) -> NDArray:
    """Planes as the filters explain them, plane by plane; samples that a spike at this price explains better are ignored."""
    bank = filters if filters.shape[1] == 1 else filters.mean(axis=1, keepdims=True)
    prices = np.full(len(bank), _PRICE)
    if spike is not None:
        point = np.zeros((1, *bank.shape[1:]), bank.dtype)
        point[(0, 0, *((f - 1) // 2 for f in bank.shape[2:]))] = 1
        bank, prices = np.concatenate([bank, point]), np.append(prices, spike)
    plain = bank if spike is None else np.concatenate([bank[:-1], np.zeros_like(point)])
    settings = replace(settings, boundary="same", debias=False)
    planes = []
    for plane, weight in zip(picture.planes, weights, strict=True):
        seen = Damaged([plane[None]], [weight[None]])
        trusted = seen if spike is None else Damaged([plane[None]], [_near_median(plane, weight)[None]])
        smooth = separate(trusted, settings)
        codes = code(seen, smooth, bank, prices, settings).codes
        detail = synthesise(codes, plain, [(1, *plane.shape)], NO_BLUR, "same")[0]
        planes.append((smooth[0].sharp + detail)[0])
    return np.stack(planes)


def _near_median(plane: NDArray, weights: NDArray) -> NDArray:
    """Weights without the pixels far from the median of their neighbours, where the smooth part is concerned."""
    middle = scipy.ndimage.median_filter(np.where(weights > 0, plane, np.median(plane[weights > 0])), _WINDOW)
    near = weights * (np.abs(plane - middle) <= 2 * _OUTLIER)
    return near if np.any(near) else weights
