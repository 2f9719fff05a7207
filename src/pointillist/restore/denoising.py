"""Noise removed: Gaussian of known or estimated strength, outliers such as salt and pepper, and Poisson counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.kernels.compiling import working_time
from pointillist.parallel import effective_jobs
from pointillist.restore.arguments import check_unused
from pointillist.restore.details import Details, answer, filling_details, finish
from pointillist.restore.engine import Damaged, Settings, choose_filters, recover
from pointillist.restore.guessing import Coder, fill_canvas
from pointillist.restore.large import open_subject
from pointillist.restore.noise import destabilise, given_level, stabilise
from pointillist.restore.outliers import find_impulses, find_outliers
from pointillist.restore.penalties import Penalty, choose_penalty, parse_penalty
from pointillist.restore.pictures import Canvas, ChannelAxis, Picture, open_canvas
from pointillist.restore.tiling import share_of
from pointillist.solvers.tiles import Progress
from pointillist.validation import check_arguments

NOISES = ("gaussian", "salt_pepper", "outliers", "poisson")

PER_SIGMA = 2.2
"""λ / σ: within 0.1 dB of the best for σ from 15 to 50 of 255."""

_NOISY_MU = 10.0  # averages over more pixels than elsewhere; worth 0.1 dB

_QUIET = 1e-3
_FINDING = 0.7  # share of the work of removing outliers that is finding them


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
    check_arguments(sigma=sigma, gain=gain, return_details=return_details, data_range=data_range, progress=progress)
    if not isinstance(noise, str) or noise not in NOISES:
        raise ValueError(f"noise must be one of {', '.join(NOISES)}, got {noise!r}")
    if noise != "gaussian":
        check_unused(denoise, f'noise="{noise}"', 'noise="gaussian"', sigma=sigma)
    if noise == "poisson":
        check_unused(denoise, 'noise="poisson"', "gain", data_range=data_range)
    else:
        check_unused(denoise, f'noise="{noise}"', 'noise="poisson"', gain=gain)
    settings = Settings(boundary, tol, debias, effective_jobs(n_jobs), device, progress)
    if noise in ("salt_pepper", "outliers"):
        canvas = open_canvas(image, channel_axis=channel_axis, data_range=data_range)
        return answer(*_without_outliers(image, canvas, filters, penalty, noise, settings), begin, return_details)
    subject = open_subject(image, channel_axis, data_range)
    counts = Counts.of(subject.canvas, gain) if noise == "poisson" else None
    sample = subject.sample if counts is None else counts.stabilised(subject.sample)
    bank = choose_filters(filters, sample.shape)
    level = given_level(sigma, sample) if counts is None else 1 / counts.full
    settings = replace(settings, mu=_NOISY_MU)
    damaged = Damaged(*sample.signals(bank.shape[1]))
    value = choose_penalty(penalty, PER_SIGMA * max(level, _QUIET), damaged, bank, settings)

    def work(picture: Picture, settings: Settings) -> tuple[NDArray, Details]:
        return _smoothed(picture, bank, value, level, counts, settings)

    return answer(*subject.restored(work, settings, margin=2 * max(bank.shape[2:])), begin, return_details)


@dataclass(frozen=True)
class Counts:
    """The transform of counts to samples with noise of deviation one: `gain` counts in a unit of the image, up to `full`."""

    gain: float
    full: float

    @classmethod
    def of(cls, canvas: Canvas, gain: float) -> Self:
        low, high = canvas.extremes()
        if low < 0:
            raise ValueError("image must not be negative for Poisson noise: these are counts")
        none, most = stabilise(np.array([0.0, high * gain]))
        return cls(gain, float(most - none) or 1.0)

    def stabilised(self, picture: Picture) -> Picture:
        values = stabilise(picture.planes * picture.scale * self.gain) / self.full
        return replace(picture, planes=values * (picture.weights > 0), scale=self.full, bounded=False)

    def destabilised(self, planes: NDArray, scale: float) -> NDArray:
        """Planes in units of the picture's full scale from restored stabilised ones."""
        return destabilise(planes * self.full) / self.gain / scale


def _smoothed(
    picture: Picture, filters: NDArray, penalty: float, level: float, counts: Counts | None, settings: Settings
) -> tuple[NDArray, Details]:
    """Code a picture, or its stabilised counts."""
    working = picture if counts is None else counts.stabilised(picture)
    recovered = recover(Damaged(*working.signals(filters.shape[1])), filters, penalty, settings)
    planes = working.gather(recovered.signals)
    if counts is None:
        return finish(picture, planes, recovered, penalty, level * picture.scale)
    return finish(picture, counts.destabilised(planes, picture.scale), recovered, penalty)


def _without_outliers(
    image: ArrayLike, canvas: Canvas, filters: ArrayLike | None, penalty: Penalty, noise: str, settings: Settings
) -> tuple[NDArray, Details]:
    """Fill in the odd samples and keep the others."""
    bank = choose_filters(filters, canvas.shape)
    parse_penalty(penalty)
    find = find_impulses if noise == "salt_pepper" else find_outliers
    missing = canvas.missing | find(canvas, bank, replace(settings, progress=share_of(settings.progress, 0, _FINDING)))
    if np.any(np.all(missing, axis=(1, 2))):
        raise ValueError("image holds nothing but outliers in one of its channels")
    if np.all(missing == missing[:1]):
        missing = missing[:1]
    canvas = replace(canvas, missing=missing)
    restored, target = canvas.copied(image)
    coders: list[Coder] = []
    if np.any(missing):
        filling = replace(settings, progress=share_of(settings.progress, _FINDING, 1))
        coders = fill_canvas(canvas, Coder(canvas, bank, penalty, filling), target, filling)
    return restored, filling_details(canvas, coders)
