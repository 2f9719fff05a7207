"""A known blur undone, if it fits."""

from __future__ import annotations

import logging
import time
import warnings
from dataclasses import dataclass, replace
from typing import Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from pointillist.errors import BlurMisfitWarning
from pointillist.restore.blur import Blur, as_kernel
from pointillist.restore.denoising import noise_level
from pointillist.restore.engine import Damaged, Detailed, Details, Options, Plain, Settings, choose_filters, mend
from pointillist.restore.misfit import misfit
from pointillist.restore.penalties import Penalty, contrast, given_penalty
from pointillist.restore.pictures import Picture, check_size, open_picture
from pointillist.restore.pieces import Large, as_large
from pointillist.restore.reporting import finish, untouched
from pointillist.restore.sharpening import sharpen

_LOG = logging.getLogger(__name__)

_PER_SIGMA = 0.22
_SMALLEST = 0.001
_TRIAL_TOLERANCE = 0.4


@dataclass(frozen=True, eq=False)
class BlurDetails(Details):
    """`Details` of a deblurred picture.

    Attributes
    ----------
    misfit : str or None
        Why the blur was found not to fit; the picture was returned as it came, and there are no codes.
    """

    misfit: str | None = None


@overload
def deblur(
    image: ArrayLike,
    psf: ArrayLike,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    sigma: float | None = ...,
    *,
    force: bool = ...,
    **options: Unpack[Plain],
) -> NDArray: ...
@overload
def deblur(
    image: ArrayLike,
    psf: ArrayLike,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    sigma: float | None = ...,
    *,
    force: bool = ...,
    **options: Unpack[Detailed],
) -> tuple[NDArray, BlurDetails]: ...
def deblur(
    image: ArrayLike,
    psf: ArrayLike,
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    sigma: float | None = None,
    *,
    force: bool = False,
    **options: Unpack[Options],
) -> NDArray | tuple[NDArray, Details]:
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
        Of sharp detail, as in `inpaint`.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale. "auto" follows the noise: λ = 0.22 σ, and at least
        0.001 of the picture's contrast.
    sigma : float, optional
        Deviation of the noise in the image's own units; estimated by default.
    force : bool
        Undo the blur without asking whether it fits.
    debias, boundary, tol, n_jobs, device, return_details, channel_axis, data_range
        As in `inpaint`, but `tol` is 0.3 and `boundary` "full": codes sit wherever their blurred filter touches the image.

    Returns
    -------
    array of the image's shape, dtype and scale; with `BlurDetails` if asked for
        Their gap is that of the codes of luminance. The picture is the smooth part, the detail of these codes, and what a
        Wiener filter makes of the rest.

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
    begin = time.perf_counter()
    if sigma is not None and not (np.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"sigma must be finite and not negative, got {sigma}")
    settings = Settings.given(options, boundary="full", tol=0.3)
    large = as_large(image, settings)
    if large is None:
        picture = open_picture(image, channel_axis=settings.channel_axis, data_range=settings.data_range)
    else:  # noise, penalty and whether the blur fits are then found on crops from all over it
        picture = open_picture(large.montage(), data_range=settings.data_range)
    blur = Blur(as_kernel(psf, picture.shape))
    bank = choose_filters(filters, "natural-100", picture.shape)
    check_size(picture.shape, blur.extended(bank.shape[2:]), "image, blurred by this psf,")
    damaged = Damaged(*picture.signals(bank.shape[1]), blur)
    level = noise_level(picture) if sigma is None else sigma / picture.scale
    usual = max(_PER_SIGMA * level, _SMALLEST * contrast(damaged))
    value = given_penalty(penalty, damaged, bank, settings)
    value = usual if value is None else value
    reason = None if force else _misfit(picture, blur, bank, usual, settings)
    if reason is not None:
        _warn(reason)
        return _with_misfit(untouched(image, picture, bank, value, begin, settings), reason)
    if large is None:
        return _with_misfit(_deblurred(picture, blur, bank, value, level, settings), None)
    return _with_misfit(_in_pieces(large, picture.scale, blur, bank, value, level, settings), None)


def _deblurred(
    picture: Picture, blur: Blur, filters: NDArray, penalty: float, level: float, settings: Settings
) -> NDArray | tuple[NDArray, Details]:
    """Undo a blur that fits."""
    begin = time.perf_counter()
    damaged = Damaged(*picture.signals(filters.shape[1]), blur)
    if blur.kernel.size == 1 or not (picture.unmixed or len(damaged.signals) == 1):
        mended = mend(damaged, filters, penalty, settings)
    else:
        mended = sharpen(damaged, filters, penalty, level, settings)
    return finish(picture, picture.gather(mended.signals), mended, penalty, begin, settings, level * picture.scale)


def _in_pieces(
    large: Large, full: float, blur: Blur, filters: NDArray, penalty: float, level: float, settings: Settings
) -> NDArray | tuple[NDArray, Details]:
    """Undo a blur that fits, piece by piece; `full` is the picture's full scale."""

    def restore(crop: NDArray, n_jobs: int) -> tuple[NDArray, Details]:
        own = replace(settings, n_jobs=n_jobs, return_details=True, progress=None)
        answer = _deblurred(open_picture(crop, data_range=full), blur, filters, penalty, level, own)
        assert isinstance(answer, tuple)
        return answer

    return large.restored(restore, settings, margin=max(filters.shape[2:]) + 2 * max(blur.kernel.shape))


def _warn(reason: str) -> None:
    warnings.warn(
        f"the psf does not seem to be this picture's blur ({reason}); it is returned as it came, "
        "force=True deblurs it all the same",
        BlurMisfitWarning,
        stacklevel=3,
    )


def _misfit(picture: Picture, blur: Blur, filters: NDArray, penalty: float, settings: Settings) -> str | None:
    """Why the blur cannot be the picture's, with a trial on crops of its mean channel."""
    begin = time.perf_counter()
    bank = filters if filters.shape[1] == 1 else filters.mean(axis=1, keepdims=True)
    rough = replace(settings, tol=max(settings.tol, _TRIAL_TOLERANCE), debias=False, progress=None)

    def trial(plane: NDArray) -> NDArray:
        seen = Damaged([plane[None]], [np.ones((1, *plane.shape))], blur)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return sharpen(seen, bank, penalty, penalty / _PER_SIGMA, rough, polish=False).signals[0][0]

    plane = np.where(np.all(picture.weights > 0, axis=0), np.mean(picture.planes, axis=0), np.nan)
    reason = misfit(plane, blur, trial)
    _LOG.debug("blur of %s checked in %.2f s: %s", blur.kernel.shape, time.perf_counter() - begin, reason or "it fits")
    return reason


def _with_misfit(
    answer: NDArray | tuple[NDArray, Details], reason: str | None
) -> NDArray | tuple[NDArray, BlurDetails]:
    if not isinstance(answer, tuple):
        return answer
    return answer[0], BlurDetails(**vars(answer[1]), misfit=reason)
