"""A known blur undone, if it fits."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from pointillist.errors import BlurMisfitWarning
from pointillist.kernels.compiling import working_time
from pointillist.parallel import effective_jobs
from pointillist.restore.blur import Blur, as_kernel
from pointillist.restore.details import Details, answer, coding_details, finish
from pointillist.restore.engine import Damaged, Settings, choose_filters, recover
from pointillist.restore.large import open_subject
from pointillist.restore.misfit import misfit
from pointillist.restore.noise import given_level
from pointillist.restore.penalties import Penalty, choose_penalty, contrast
from pointillist.restore.pictures import ChannelAxis, Picture, check_size
from pointillist.restore.sharpening import sharpen
from pointillist.solvers.tiles import Progress
from pointillist.validation import check_arguments

_LOG = logging.getLogger(__name__)

_PER_SIGMA = 0.17
_SMALLEST = 0.0003
_TRIAL_TOLERANCE = 0.4


def deblur(
    image: ArrayLike,
    psf: ArrayLike,
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    sigma: float | None = None,
    *,
    force: bool = False,
    debias: bool = False,
    boundary: str = "full",
    tol: float = 0.2,
    n_jobs: int | None = -1,
    device: str = "cpu",
    return_details: bool = False,
    channel_axis: ChannelAxis = "auto",
    data_range: float | None = None,
    progress: Progress | None = None,
) -> NDArray | Any:
    """Undo a known blur; `estimate_blur` finds one that is not known.

    A blur that is not the picture's own makes ringing out of it. So the blur is tried first, against the picture's power
    spectrum and on a few crops, and where it does not fit, the picture is returned as it came, with a warning. Only the
    luminance of colour pictures is coded; the colours follow it.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array
        As in `inpaint`; NaN counts as missing and is filled in. What lies outside the image is unknown, not zero.
    psf : (height, width) array
        Point spread function: what the blur makes of a single white pixel, centred at sample (size − 1) // 2. It is
        scaled to sum to one.
    filters : (n_filters, h, w) or (n_filters, 3, h, w) array, optional
        A dictionary for the detail of sharp photographs in [0, 1], as in `inpaint`.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale. "auto" follows the noise: λ = 0.17 σ, and at least
        0.0003 of the picture's contrast.
    sigma : float, optional
        Deviation of the noise in the image's own units; estimated by default.
    force : bool
        Undo the blur without asking whether it fits.
    debias : bool
        Refit the non-zeros by least squares on their support.
    boundary : {"same", "full"}
        Whether filters are centred on the picture's own pixels, or anywhere they touch it.
    tol : float
        Relative duality gap of the codes in every turn.
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
        Objective and gap of the details are those of the last coding of luminance, in which the detail is what the samples
        and the codes before say of it. The picture is the smooth part, the detail of these codes, and what a Wiener filter
        makes of the rest.

    Warns
    -----
    BlurMisfitWarning
        Where the blur does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from pointillist.restore import deblur
    >>> filters = np.random.default_rng(0).standard_normal((4, 5, 5)) / 5
    >>> ramp = np.add.outer(np.arange(32.0), np.arange(32.0)) / 64
    >>> sharp = deblur(ramp, np.ones((3, 3)), filters)
    >>> bool(np.max(np.abs(sharp - ramp)) < 0.05)
    True
    """
    begin = working_time()
    check_arguments(sigma=sigma, force=force, return_details=return_details, progress=progress)
    settings = Settings(boundary, tol, debias, effective_jobs(n_jobs), device, progress)
    subject = open_subject(image, channel_axis, data_range)
    sample = subject.sample
    blur = Blur(as_kernel(psf, sample.shape))
    bank = choose_filters(filters, sample.shape)
    check_size(sample.shape, blur.extended(bank.shape[2:]), "image, blurred by this psf,")
    damaged = Damaged(*sample.signals(bank.shape[1]), blur)
    level = given_level(sigma, sample)
    usual = max(_PER_SIGMA * level, _SMALLEST * contrast(damaged))
    value = choose_penalty(penalty, usual, damaged, bank, settings)
    reason = None if force else _misfit(sample, blur, bank, usual, settings)
    if reason is not None:
        _warn(reason)
        untouched = coding_details([], value, sample.laid_out(sample.weights == 0), len(bank))
        return answer(subject.canvas.copied(image)[0], replace(untouched, misfit=reason), begin, return_details)

    def work(picture: Picture, settings: Settings) -> tuple[NDArray, Details]:
        return _deblurred(picture, blur, bank, value, level, settings)

    margin = max(bank.shape[2:]) + 2 * max(blur.kernel.shape)
    return answer(*subject.restored(work, settings, margin=margin), begin, return_details)


def _deblurred(
    picture: Picture, blur: Blur, filters: NDArray, penalty: float, level: float, settings: Settings
) -> tuple[NDArray, Details]:
    """Undo a blur that fits."""
    damaged = Damaged(*picture.signals(filters.shape[1]), blur)
    if blur.kernel.size == 1 or not (picture.unmixed or len(damaged.signals) == 1):
        recovered = recover(damaged, filters, penalty, settings)
    else:
        recovered = sharpen(damaged, filters, penalty, level, settings)
    return finish(picture, picture.gather(recovered.signals), recovered, penalty, level * picture.scale)


def _warn(reason: str) -> None:
    warnings.warn(
        f"the psf does not seem to be this picture's blur ({reason}); it is returned as it came, "
        "force=True deblurs it all the same",
        BlurMisfitWarning,
        stacklevel=3,
    )


def _misfit(picture: Picture, blur: Blur, filters: NDArray, penalty: float, settings: Settings) -> str | None:
    """Why the blur cannot be the picture's, with a trial on crops of its mean channel."""
    begin = working_time()
    bank = filters if filters.shape[1] == 1 else filters.mean(axis=1, keepdims=True)
    rough = replace(settings, tol=max(settings.tol, _TRIAL_TOLERANCE), debias=False, progress=None)

    def trial(plane: NDArray) -> NDArray:
        seen = Damaged([plane[None]], [np.ones((1, *plane.shape))], blur)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return sharpen(seen, bank, penalty, penalty / _PER_SIGMA, rough, polish=False).signals[0][0]

    reason = misfit(picture.mean(), blur, trial)
    _LOG.debug("blur of %s checked in %.2f s: %s", blur.kernel.shape, working_time() - begin, reason or "it fits")
    return reason
