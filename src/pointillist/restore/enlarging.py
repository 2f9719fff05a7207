"""Pictures enlarged: super-resolution undoes a blur that was seen at every n-th pixel of the fine grid only."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.restore.blur import Blur, decimation_kernel, first_sample
from pointillist.restore.engine import Damaged, Detailed, Details, Options, Plain, Settings, choose_filters, mend
from pointillist.restore.penalties import Penalty, contrast, given_penalty, parse_penalty
from pointillist.restore.pictures import Picture, check_size, open_picture
from pointillist.restore.pieces import Large, as_large
from pointillist.restore.reporting import finish

_PENALTY = 0.005  # of the contrast


@overload
def super_resolve(
    image: ArrayLike,
    factor: int = ...,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    *,
    kernel: str | ArrayLike = ...,
    **options: Unpack[Plain],
) -> NDArray: ...
@overload
def super_resolve(
    image: ArrayLike,
    factor: int = ...,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    *,
    kernel: str | ArrayLike = ...,
    **options: Unpack[Detailed],
) -> tuple[NDArray, Details]: ...
def super_resolve(
    image: ArrayLike,
    factor: int = 2,
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    *,
    kernel: str | ArrayLike = "box",
    **options: Unpack[Options],
) -> NDArray | tuple[NDArray, Details]:
    """Enlarge a photograph, with the detail that filters and sparsity suggest.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array
        As in `inpaint`; NaN counts as missing. Alpha is repeated, not interpolated.
    factor : int
        How many times as high and wide the answer shall be.
    filters : (n_filters, h, w) or (n_filters, 3, h, w) array, optional
        Of sharp detail, as in `inpaint`.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale. "auto" is 0.005 of its contrast.
    kernel : {"box", "bicubic"} or (height, width) array
        How the fine picture became coarse. "box": each pixel is the mean of the factor × factor fine pixels it covers, as
        in a sensor or ``skimage.transform.downscale_local_mean``. "bicubic": the antialiased cubic of image editors. An
        array on the fine grid must be as even or odd as the factor, so that nothing shifts by half a pixel.
    debias, boundary, tol, n_jobs, device, return_details, channel_axis, data_range
        As in `inpaint`, but `tol` is 0.2 and `boundary` "full".

    Returns
    -------
    (factor · height, factor · width[, channels]) array of the image's dtype and scale; with `Details` if asked for

    Examples
    --------
    >>> import numpy as np
    >>> from pointillist.restore import super_resolve
    >>> filters = np.random.default_rng(0).standard_normal((4, 5, 5)) / 5
    >>> super_resolve(np.full((16, 20), 90, np.uint8), 2, filters).shape
    (32, 40)
    """
    begin = time.perf_counter()
    if isinstance(factor, bool) or not isinstance(factor, (int, np.integer)) or factor < 1:
        raise ValueError(f"factor must be a whole number of at least 1, got {factor!r}")
    settings = Settings.given(options, boundary="full", tol=0.2)
    blur = Blur(decimation_kernel(kernel, int(factor)))
    if (large := as_large(image, settings, int(factor))) is not None:
        return _in_pieces(large, int(factor), blur, filters, penalty, settings)
    coarse = open_picture(image, channel_axis=settings.channel_axis, data_range=settings.data_range)
    bank = choose_filters(filters, "natural-100", _times(coarse.shape, factor))
    return _enlarged(coarse, int(factor), blur, bank, penalty, settings, begin)


def _enlarged(
    coarse: Picture, factor: int, blur: Blur, filters: NDArray, penalty: Penalty, settings: Settings, begin: float
) -> NDArray | tuple[NDArray, Details]:
    check_size(_times(coarse.shape, factor), blur.extended(filters.shape[2:]), f"image, enlarged by factor={factor},")
    picture = _on_fine_grid(coarse, blur.kernel, factor)
    damaged = Damaged(*picture.signals(filters.shape[1]), blur)
    value = given_penalty(penalty, damaged, filters, settings)
    value = _PENALTY * contrast(damaged) if value is None else value
    mended = mend(damaged, filters, value, settings)
    return finish(picture, picture.gather(mended.signals), mended, value, begin, settings)


def _in_pieces(
    large: Large, factor: int, blur: Blur, filters: ArrayLike | None, penalty: Penalty, settings: Settings
) -> NDArray | tuple[NDArray, Details]:
    """Enlarge a large picture, everywhere at the penalty that a montage of it tells."""
    montage = open_picture(large.montage(), data_range=settings.data_range)
    bank = choose_filters(filters, "natural-100", _times(montage.shape, factor))
    if parse_penalty(penalty) is None:
        value = _PENALTY * contrast(Damaged(*montage.signals(bank.shape[1])))
    else:
        fine = _on_fine_grid(montage, blur.kernel, factor)
        given = given_penalty(penalty, Damaged(*fine.signals(bank.shape[1]), blur), bank, settings)
        assert given is not None
        value = given

    def restore(crop: NDArray, n_jobs: int) -> tuple[NDArray, Details]:
        own = replace(settings, n_jobs=n_jobs, return_details=True, progress=None)
        coarse = open_picture(crop, data_range=montage.scale)
        answer = _enlarged(coarse, factor, blur, bank, value, own, time.perf_counter())
        assert isinstance(answer, tuple)
        return answer

    margin = -(-(2 * max(bank.shape[2:]) + max(blur.kernel.shape)) // factor)
    return large.restored(restore, settings, margin=margin, factor=factor)


def _times(shape: tuple[int, int], factor: int) -> tuple[int, int]:
    return factor * shape[0], factor * shape[1]


def _on_fine_grid(coarse: Picture, kernel: NDArray, factor: int) -> Picture:
    """The coarse samples where their kernels are centred on the fine grid, with weight zero in between."""
    top, left = first_sample(kernel, factor)
    shape = (len(coarse.planes), *(factor * n for n in coarse.shape))
    planes, weights = np.zeros(shape), np.zeros(shape)
    planes[:, top::factor, left::factor] = coarse.planes
    weights[:, top::factor, left::factor] = coarse.weights
    alpha = coarse.alpha
    if alpha is not None:
        alpha = np.repeat(np.repeat(alpha, factor, axis=1), factor, axis=2)
    return replace(coarse, planes=planes, weights=weights, alpha=alpha)
