"""Noise removed: Gaussian of known or estimated strength, outliers such as salt and pepper, and Poisson counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.ndimage
from numpy.typing import ArrayLike, NDArray

from pointillist.kernels.compiling import working_time
from pointillist.restore.blur import NO_BLUR
from pointillist.restore.engine import (
    Damaged,
    Penalty,
    Recovered,
    Settings,
    check_settings,
    choose_filters,
    choose_penalty,
    code,
    parse_penalty,
    recover,
    separate,
    synthesise,
)
from pointillist.restore.inpainting import Coding, fill, filling_details
from pointillist.restore.picture import (
    Box,
    Canvas,
    ChannelAxis,
    Picture,
    Progress,
    check_unused,
    inside,
    open_canvas,
    share_of,
    tiles,
)
from pointillist.restore.subject import TUNING as SUBJECT
from pointillist.restore.subject import Details, answer, open_subject, tile_by_tile
from pointillist.validation import check_arguments

NOISES = ("gaussian", "salt_pepper", "outliers", "poisson")


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.restoration``."""

    per_sigma: float = 2.2
    """λ / σ: within 0.1 dB of the best for σ from 15 to 50 of 255."""
    mu: float = 10.0
    """Stiffness of the smooth part: averages over more pixels than elsewhere, worth 0.1 dB."""
    outlier: float = 0.1
    """Deviation from the fit, of full scale, below which a sample is detail or noise."""
    impulse: float = 0.03
    """Deviation for samples at either end of the range, which are suspect already."""
    price: float = 0.1
    """λ of the fit that outliers are told from."""


TUNING = Tuning()


def denoise(
    image: ArrayLike,
    sigma: float | None = None,
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    *,
    noise: str = "gaussian",
    gain: float = 1.0,
    debias: bool = False,
    boundary: str = "same",
    tol: float = 0.05,
    n_jobs: int | None = -1,
    device: str = "cpu",
    return_details: bool = False,
    channel_axis: ChannelAxis = "auto",
    data_range: float | None = None,
    progress: Progress | None = None,
) -> NDArray | Any:
    """Remove the noise of a photograph.

    Plain convolutional sparse coding is not the best tool for strong Gaussian noise; BM3D and trained networks do better.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array
        As in `inpaint`; NaN counts as missing and is filled in.
    sigma : float, optional
        Deviation of Gaussian noise, in the image's own units (25 for uint8, say). Estimated by default.
    filters : (n_filters, h, w) or (n_filters, 3, h, w) array, optional
        A dictionary for the detail of photographs in [0, 1], as in `inpaint`.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale. "auto" follows the noise, λ = 2.2 σ, and for outliers the prediction
        of hidden pixels as in `inpaint`.
    noise : {"gaussian", "salt_pepper", "outliers", "poisson"}
        "salt_pepper": samples at either end of the picture's range that their neighbours do not predict are filled in, the
        others kept. "outliers" does the same for wrong samples of any value, found by a 1×1 filter with a penalty of its
        own, which is a Huber loss, and for specks of dust, found as in `find_damage`. For "poisson" the noise is made
        Gaussian by Anscombe's transform, and the answer brought back by the exact unbiased inverse.
    gain : float
        Counts in one unit of the image, for Poisson noise: a uint8 image is read as counts by default. It takes the place
        of `data_range` there.
    debias : bool
        Refit the non-zeros by least squares on their support.
    boundary : {"same", "full"}
        Whether filters are centred on the picture's own pixels, or anywhere they touch it.
    tol : float
        Relative duality gap of the codes.
    n_jobs : int, optional
        Threads: -1 for all cores, None for what the surrounding joblib context says.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve for the codes on a GPU, as in `encode`.
    return_details : bool
        Whether to return `Details` too.
    channel_axis : int, None or "auto"
        Axis of the channels, None for grey; "auto" is None for two axes and -1 for (height, width, 3 or so).
    data_range : float, optional
        Full scale; by default that of the image's type, as in `inpaint`.
    progress : callable, optional
        Called from time to time with the share of the work that is done, from 0 to 1.

    Returns
    -------
    array of the image's shape, dtype and scale; with `return_details` a pair of it and `Details`

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
    begin = working_time()
    check_arguments(sigma=sigma, gain=gain, return_details=return_details, data_range=data_range)
    if not isinstance(noise, str) or noise not in NOISES:
        raise ValueError(f"noise must be one of {', '.join(NOISES)}, got {noise!r}")
    mode = f'noise="{noise}"'
    if noise != "gaussian":
        check_unused(denoise, mode, 'noise="gaussian"', sigma=sigma)
    if noise == "poisson":
        check_unused(denoise, mode, "gain", data_range=data_range)
    else:
        check_unused(denoise, mode, 'noise="poisson"', gain=gain)
    settings = check_settings(boundary, tol, debias, n_jobs, device, progress)
    if noise in ("salt_pepper", "outliers"):
        canvas = open_canvas(image, channel_axis=channel_axis, data_range=data_range)
        return answer(*_without_outliers(image, canvas, filters, penalty, noise, settings), begin, return_details)
    subject = open_subject(image, channel_axis, data_range)
    full = 1.0
    if noise == "poisson":
        low, high = subject.canvas.extremes()
        if low < 0:
            raise ValueError("image must not be negative for Poisson noise: these are counts")
        none, most = stabilise(np.array([0.0, high * gain]))
        full = float(most - none) or 1.0

    def stabilised(picture: Picture) -> Picture:
        """Counts as samples with noise of deviation one over the largest; other pictures as they are."""
        if noise == "gaussian":
            return picture
        values = stabilise(picture.planes * picture.scale * gain) / full
        return Picture(values * (picture.weights > 0), picture.weights, full)

    def work(picture: Picture, settings: Settings) -> Recovered:
        working = stabilised(picture)
        recovered = recover(Damaged(*working.signals(bank.shape[1])), bank, value, settings)
        if noise == "gaussian":
            return recovered
        both = (destabilise(working.gather(one) * full) / gain for one in (recovered.signals, recovered.smooth))
        sharp, smooth = (planes / picture.scale for planes in both)
        return replace(recovered, signals=[sharp], smooth=[smooth])

    sample = stabilised(subject.sample)
    bank = choose_filters(filters, sample.shape)
    level = sample.noise(sigma) if noise == "gaussian" else 1 / full
    settings = replace(settings, mu=TUNING.mu)
    damaged = Damaged(*sample.signals(bank.shape[1]))
    value = choose_penalty(penalty, TUNING.per_sigma * max(level, 1e-3), damaged, bank, settings)
    margin, told = 2 * max(bank.shape[2:]), level * sample.scale if noise == "gaussian" else None
    return answer(*subject.restored(work, settings, value, margin=margin, sigma=told), begin, return_details)


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
    return open_canvas(image, mask, channel_axis=channel_axis, data_range=1.0).picture().noise()


def stabilise(counts: NDArray) -> NDArray:
    """Anscombe's transform 2√(x + 3/8): Poisson counts get a deviation of one, nearly, from four counts on."""
    return 2 * np.sqrt(np.maximum(counts, 0) + 0.375)


def destabilise(values: NDArray) -> NDArray:
    """The closed form of the exact unbiased inverse of `stabilise` (Mäkitalo and Foi, 2011), never negative."""
    d = np.maximum(values, 2 * np.sqrt(0.375))
    root = np.sqrt(1.5)
    return np.maximum(d**2 / 4 + root / (4 * d) - 11 / (8 * d**2) + 5 * root / (8 * d**3) - 0.125, 0)


def _without_outliers(
    image: ArrayLike, canvas: Canvas, filters: ArrayLike | None, penalty: Penalty, noise: str, settings: Settings
) -> tuple[NDArray, Details]:
    """Fill in the odd samples and keep the others."""
    bank = choose_filters(filters, canvas.shape)
    parse_penalty(penalty)
    find = find_impulses if noise == "salt_pepper" else find_outliers
    missing = canvas.missing | find(canvas, bank, replace(settings, progress=share_of(settings.progress, 0, 0.7)))
    if np.any(np.all(missing, axis=(1, 2))):
        raise ValueError("image holds nothing but outliers in one of its channels")
    canvas = replace(canvas, missing=missing[:1] if np.all(missing == missing[:1]) else missing)
    restored, target = canvas.copied(image)
    filling = replace(settings, progress=share_of(settings.progress, 0.7, 1))
    return restored, filling_details(canvas, fill(canvas, target, filling, Coding(bank, penalty)))


def find_impulses(canvas: Canvas, filters: NDArray, settings: Settings) -> NDArray:
    """Samples at either end of the picture's range that their neighbours do not predict, (channels, height, width).

    Inside areas that lie at one end, as white skies do, nothing is suspect.
    """
    low, high = canvas.extremes()
    between = (canvas.planes > low) & (canvas.planes < high)
    if not np.all(np.any(between, axis=(1, 2))):
        return ~between & ~canvas.missing
    low, high = low / canvas.scale, high / canvas.scale

    def find(picture: Picture, settings: Settings) -> NDArray:
        suspect = np.zeros(picture.planes.shape, bool)
        for at_end in (picture.planes <= low, picture.planes >= high):
            at_end &= picture.weights > 0
            # White skies and black shadows lie at one end with most of their neighbours.
            suspect |= at_end & (scipy.ndimage.uniform_filter(at_end.astype(np.float32), (0, 5, 5)) < 0.8)
        return _odd(picture, suspect, suspect, filters, TUNING.impulse, settings)

    return _by_tiles(canvas, find, settings)


def find_outliers(canvas: Canvas, filters: NDArray, settings: Settings) -> NDArray:
    """Samples of any value that their neighbours do not predict, and specks of dust, (channels, height, width).

    Samples are odd that a filter of one pixel explains at a smaller price than the filters of the dictionary: it makes a
    Huber loss of the squared one. Those found are left out of a second pass, which shows outliers that others had hidden
    and brings back what was only detail. Specks of dust are too large for it and are found by their shape.
    """
    from pointillist import find_damage  # of `retouch`, which stands on this package

    def find(picture: Picture, settings: Settings) -> NDArray:
        seen = picture.weights > 0
        odd = _odd(picture, seen, np.zeros_like(seen), filters, TUNING.outlier, settings)
        return _odd(picture, seen, odd, filters, TUNING.outlier, settings)

    odd = _by_tiles(canvas, find, settings)
    pixels = np.moveaxis(canvas.planes, 0, -1)
    odd |= find_damage(pixels, "dust", data_range=canvas.scale, n_jobs=settings.n_jobs)
    return odd & ~canvas.missing


def _by_tiles(canvas: Canvas, find: Callable[[Picture, Settings], NDArray], settings: Settings) -> NDArray:
    """Odd samples of a picture, found tile by tile with some context if it is large."""
    odd = np.zeros(canvas.planes.shape, bool)
    boxes = tiles(canvas.shape, SUBJECT.side if odd[0].size >= SUBJECT.large else max(canvas.shape))

    def work(tile: Box, outer: Box, own: Settings) -> None:
        odd[(slice(None), *tile)] = find(canvas.picture(outer), own)[(slice(None), *inside(tile, outer))]

    tile_by_tile(work, canvas.shape, boxes, 32, settings)  # pixels around a tile that are coded with it
    return odd


def _odd(
    picture: Picture, suspect: NDArray, left_out: NDArray, filters: NDArray, least: float, settings: Settings
) -> NDArray:
    """Suspects at least so far from a fit that leaves some samples out; these themselves where nothing is left to fit."""
    good = picture.weights * ~left_out
    if not np.all(np.any(good > 0, axis=(1, 2))):
        return left_out
    planes = [_fit(plane, weights, filters, settings) for plane, weights in zip(picture.planes, good, strict=True)]
    return suspect & (np.abs(picture.planes - planes) > least)


def _fit(plane: NDArray, weights: NDArray, filters: NDArray, settings: Settings) -> NDArray:
    """A plane as the filters explain it; samples that a filter of one pixel explains better are left to it."""
    bank = filters.mean(axis=1, keepdims=True)
    point = np.zeros_like(bank[:1])
    point[(0, 0, *((f - 1) // 2 for f in bank.shape[2:]))] = 1
    prices = np.append(np.full(len(bank), TUNING.price), TUNING.outlier)
    # Pixels far from the median of their neighbours say nothing of the smooth part.
    full = np.where(weights > 0, plane, np.median(plane[weights > 0]))
    near = weights * (np.abs(plane - scipy.ndimage.median_filter(full, 5)) <= 2 * TUNING.outlier)
    settings = replace(settings, boundary="same", debias=False)
    smooth = separate(Damaged([plane[None]], [(near if np.any(near) else weights)[None]]), settings)
    codes = code(Damaged([plane[None]], [weights[None]]), smooth, np.concatenate([bank, point]), prices, settings).codes
    plain = np.concatenate([bank, 0 * point])
    return (smooth[0].sharp + synthesise(codes, plain, [(1, *plane.shape)], NO_BLUR, "same")[0])[0]
