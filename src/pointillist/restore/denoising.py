"""Noise removed: Gaussian of known or estimated strength, outliers such as salt and pepper, and Poisson counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.restore.engine import Damaged, Detailed, Details, Options, Plain, Settings, choose_filters, mend
from pointillist.restore.guessing import Coder, fill_canvas
from pointillist.restore.noise import destabilise, estimate_sigma, stabilise
from pointillist.restore.outliers import find_impulses, find_outliers
from pointillist.restore.penalties import Penalty, given_penalty, parse_penalty
from pointillist.restore.pictures import Canvas, Picture, open_canvas, open_picture
from pointillist.restore.pieces import Large, as_large
from pointillist.restore.reporting import details_of, finish
from pointillist.solvers.tiles import Progress

NOISES = ("gaussian", "salt_pepper", "outliers", "poisson")

PER_SIGMA = 2.2
"""λ / σ: within 0.1 dB of the best for σ from 15 to 50 of 255."""

_NOISY_MU = 10.0  # averages over more pixels than elsewhere; worth 0.1 dB

_QUIET = 1e-3
_FINDING = 0.7  # part of the work of removing outliers that is finding them


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
    if noise in ("salt_pepper", "outliers"):
        find = find_impulses if noise == "salt_pepper" else find_outliers
        return _without(find, image, filters, penalty, settings, begin)
    counts = None
    if noise == "poisson":
        counts = Counts.of(open_canvas(image, channel_axis=settings.channel_axis), gain)
    if (large := as_large(image, settings)) is not None:
        return _in_pieces(large, sigma, filters, penalty, counts, settings)
    picture = open_picture(image, channel_axis=settings.channel_axis, data_range=settings.data_range)
    bank = choose_filters(filters, "natural-100", picture.shape)
    level = None if sigma is None else sigma / picture.scale
    return _smoothed(picture, bank, penalty, level, counts, settings, begin)


@dataclass(frozen=True)
class Counts:
    """How counts become samples whose noise has the deviation one: `gain` counts in a unit of the image, up to `full`."""

    gain: float
    full: float

    @classmethod
    def of(cls, canvas: Canvas, gain: float) -> Counts:
        low, high = canvas.extremes()
        if low < 0:
            raise ValueError("image must not be negative for Poisson noise: these are counts")
        none, most = stabilise(np.array([0.0, high * gain]))
        return cls(gain, float(most - none) or 1.0)

    def stabilised(self, picture: Picture) -> Picture:
        values = stabilise(picture.planes * picture.scale * self.gain) / self.full
        return replace(picture, planes=values * (picture.weights > 0), scale=self.full, bounded=False)

    def restored(self, planes: NDArray, scale: float) -> NDArray:
        """Planes in units of the picture's full scale from restored stabilised ones."""
        return destabilise(planes * self.full) / self.gain / scale


def _in_pieces(
    large: Large,
    sigma: float | None,
    filters: ArrayLike | None,
    penalty: Penalty,
    counts: Counts | None,
    settings: Settings,
) -> NDArray | tuple[NDArray, Details]:
    """Remove noise from a large picture, everywhere at the strength and the penalty that a montage of it tells."""
    montage = open_picture(large.montage(), data_range=settings.data_range)
    working = montage if counts is None else counts.stabilised(montage)
    bank = choose_filters(filters, "natural-100", montage.shape)
    level = _level(working, None if sigma is None else sigma / montage.scale, counts)
    value = given_penalty(penalty, Damaged(*working.signals(bank.shape[1])), bank, replace(settings, mu=_NOISY_MU))
    value = PER_SIGMA * max(level, _QUIET) if value is None else value

    def restore(crop: NDArray, n_jobs: int) -> tuple[NDArray, Details]:
        own = replace(settings, n_jobs=n_jobs, return_details=True, progress=None)
        picture = open_picture(crop, data_range=montage.scale)
        answer = _smoothed(picture, bank, value, level, counts, own, time.perf_counter())
        assert isinstance(answer, tuple)
        return answer

    return large.restored(restore, settings, margin=2 * max(bank.shape[2:]))


def noise_level(picture: Picture) -> float:
    """Deviation of the noise of a picture in [0, 1], the mean over its channels."""
    return float(
        np.sqrt(np.mean([estimate_sigma(p, w) ** 2 for p, w in zip(picture.planes, picture.weights, strict=True)]))
    )


def _level(working: Picture, given: float | None, counts: Counts | None) -> float:
    """Deviation of the noise: that of stabilised counts is known, others are given or estimated."""
    if counts is not None:
        return 1 / counts.full
    return noise_level(working) if given is None else given


def _smoothed(
    picture: Picture,
    filters: NDArray,
    penalty: Penalty,
    level: float | None,
    counts: Counts | None,
    settings: Settings,
    begin: float,
) -> NDArray | tuple[NDArray, Details]:
    """Code the picture, or its stabilised counts, at the penalty that its noise asks for."""
    working = picture if counts is None else counts.stabilised(picture)
    damaged = Damaged(*working.signals(filters.shape[1]))
    level = _level(working, level, counts)
    settings = replace(settings, mu=_NOISY_MU)
    value = given_penalty(penalty, damaged, filters, settings)
    value = PER_SIGMA * max(level, _QUIET) if value is None else value
    mended = mend(damaged, filters, value, settings)
    planes = working.gather(mended.signals)
    if counts is None:
        return finish(picture, planes, mended, value, begin, settings, level * picture.scale)
    return finish(picture, counts.restored(planes, picture.scale), mended, value, begin, settings)


def _without(
    find: Callable[[Canvas, NDArray, Settings], NDArray],
    image: ArrayLike,
    filters: ArrayLike | None,
    penalty: Penalty,
    settings: Settings,
    begin: float,
) -> NDArray | tuple[NDArray, Details]:
    """Fill in the odd samples and keep the others."""
    canvas = open_canvas(image, channel_axis=settings.channel_axis, data_range=settings.data_range)
    bank = choose_filters(filters, "natural-100", canvas.shape)
    parse_penalty(penalty)
    missing = canvas.missing | find(canvas, bank, replace(settings, progress=_share(settings.progress, 0, _FINDING)))
    if np.any(np.all(missing, axis=(1, 2))):
        raise ValueError("image holds nothing but outliers in one of its channels")
    if np.all(missing == missing[:1]):
        missing = missing[:1]
    canvas = replace(canvas, missing=missing)
    answer, coders = np.array(image), []
    target = answer[None] if canvas.axis is None else np.moveaxis(answer, canvas.axis, 0)
    if np.any(missing):
        filling = replace(settings, progress=_share(settings.progress, _FINDING, 1))
        coder = Coder(canvas, bank, penalty, filling)
        coders = fill_canvas(canvas, coder, target[: len(canvas.planes)], filling)
    return (answer, details_of(canvas, coders, begin)) if settings.return_details else answer


def _share(progress: Progress | None, begin: float, end: float) -> Progress | None:
    return None if progress is None else lambda part: progress(begin + (end - begin) * part)
