"""Pictures enlarged: super-resolution undoes a blur that was seen at every n-th pixel of the fine grid only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.kernels.compiling import working_time
from pointillist.reprs import shown
from pointillist.restore.blur import Blur
from pointillist.restore.engine import (
    Damaged,
    Penalty,
    Recovered,
    Settings,
    check_settings,
    choose_filters,
    choose_penalty,
    contrast,
    parse_penalty,
    recover,
)
from pointillist.restore.picture import ChannelAxis, Picture, Progress, check_size
from pointillist.restore.subject import answer, open_subject
from pointillist.validation import as_numbers, check_arguments, is_integer

_LARGEST_FACTOR = 1000


def super_resolve(
    image: ArrayLike,
    factor: int = 2,
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    *,
    kernel: str | ArrayLike = "box",
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
    """Enlarge a photograph, with the detail that filters and sparsity suggest.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array
        As in `inpaint`; NaN counts as missing. Alpha is repeated, not interpolated.
    factor : int
        How many times as high and wide the answer shall be.
    filters : (n_filters, h, w) or (n_filters, 3, h, w) array, optional
        A dictionary for the detail of sharp photographs in [0, 1], as in `inpaint`.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale. "auto" is 0.005 of its contrast.
    kernel : {"box", "bicubic"} or (height, width) array
        How the fine picture became coarse. "box": each pixel is the mean of the factor × factor fine pixels it covers, as
        in a sensor or ``skimage.transform.downscale_local_mean``. "bicubic": the antialiased cubic of image editors. An
        array on the fine grid must be as even or odd as the factor, so that nothing shifts by half a pixel.
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
    (factor · height, factor · width[, channels]) array of the image's dtype and scale
        With `return_details` a pair of it and `Details`.

    Examples
    --------
    >>> import numpy as np
    >>> from pointillist.restore import super_resolve
    >>> filters = np.random.default_rng(0).standard_normal((4, 5, 5)) / 5
    >>> super_resolve(np.full((16, 20), 90, np.uint8), 2, filters).shape
    (32, 40)
    """
    begin = working_time()
    check_arguments(return_details=return_details)
    if not is_integer(factor) or not 1 <= factor <= _LARGEST_FACTOR:
        raise ValueError(f"factor must be a whole number of at least 1, {_LARGEST_FACTOR} at most, got {shown(factor)}")
    factor = int(factor)
    settings = check_settings(boundary, tol, debias, n_jobs, device, progress)
    blur = Blur(decimation_kernel(kernel, factor))
    subject = open_subject(image, channel_axis, data_range, factor=factor)
    sample = subject.sample
    fine = factor * sample.shape[0], factor * sample.shape[1]
    bank = choose_filters(filters, fine)
    check_size(fine, blur.extended(bank.shape[2:]), f"image, enlarged by factor={factor},")
    if parse_penalty(penalty) is not None:
        sample = on_fine_grid(sample, blur, factor)
    damaged = Damaged(*sample.signals(bank.shape[1]), blur)
    value = choose_penalty(penalty, 0.005 * contrast(damaged), damaged, bank, settings)

    def work(coarse: Picture, settings: Settings) -> Recovered:
        picture = on_fine_grid(coarse, blur, factor)
        return recover(Damaged(*picture.signals(bank.shape[1]), blur), bank, value, settings)

    margin = -(-(2 * max(bank.shape[2:]) + max(blur.kernel.shape)) // factor)
    return answer(*subject.restored(work, settings, value, margin=margin, factor=factor), begin, return_details)


def decimation_kernel(kernel: str | ArrayLike, factor: int) -> NDArray:
    """The blur before decimation by `factor`, on the fine grid, summing to one.

    ``"box"`` is the mean of the factor × factor fine pixels under a coarse one; ``"bicubic"`` the antialiased cubic
    of image editors (Keys' with a = −½), 4 · factor wide. An array is used as it is; its centre is that of the coarse pixel
    where its size has the parity of the factor.
    """
    if isinstance(kernel, str):
        if kernel not in ("box", "bicubic"):
            raise ValueError(f'kernel must be "box", "bicubic" or an array, got {kernel!r}')
        if kernel == "box":
            return np.full((factor, factor), 1 / factor**2)
        length = 4 * factor - factor % 2
        t = np.abs(np.arange(length) - (length - 1) / 2) / factor
        far = np.where(t < 2, -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2, 0.0)
        taps = np.where(t <= 1, 1.5 * t**3 - 2.5 * t**2 + 1, far)
        return np.outer(taps, taps) / np.sum(taps) ** 2
    array = as_numbers(kernel, "kernel", np.float64)
    if array.ndim != 2 or not np.all(np.isfinite(array)) or not np.sum(array) > 0:
        raise ValueError("kernel must be a finite array (height, width) with a positive sum")
    if any((size - factor) % 2 for size in array.shape):
        raise ValueError(f"kernel of shape {array.shape} must be as even or odd as factor={factor}, or it would shift")
    return array / np.sum(array)


def on_fine_grid(coarse: Picture, blur: Blur, factor: int) -> Picture:
    """The coarse samples where their kernels are centred on the fine grid, with weight zero in between.

    A kernel's middle, (size − 1) / 2 past its start, must meet the middle of the coarse pixel, (factor − 1) / 2; a sample is
    written where the kernel's centre sample lies. For kernels of the factor's parity both are whole: no half-pixel shift.
    """
    top, left = ((factor + size) // 2 - 1 - (size - 1) // 2 for size in blur.kernel.shape)
    shape = (len(coarse.planes), *(factor * n for n in coarse.shape))
    planes, weights = np.zeros(shape), np.zeros(shape)
    planes[:, top::factor, left::factor] = coarse.planes
    weights[:, top::factor, left::factor] = coarse.weights
    return Picture(planes, weights, coarse.scale)
