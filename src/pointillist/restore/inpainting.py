"""Missing pixels filled in from the ones that were seen."""

from __future__ import annotations

import time
from typing import Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.restore.engine import Damaged, Detailed, Details, Options, Plain, Settings, choose_filters, mend
from pointillist.restore.penalties import Penalty, given_penalty, predicted_penalty
from pointillist.restore.pictures import open_picture
from pointillist.restore.reporting import finish, untouched


@overload
def inpaint(
    image: ArrayLike,
    mask: ArrayLike | None = ...,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    *,
    keep_seen: bool = ...,
    **options: Unpack[Plain],
) -> NDArray: ...
@overload
def inpaint(
    image: ArrayLike,
    mask: ArrayLike | None = ...,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    *,
    keep_seen: bool = ...,
    **options: Unpack[Detailed],
) -> tuple[NDArray, Details]: ...
def inpaint(
    image: ArrayLike,
    mask: ArrayLike | None = None,
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    *,
    keep_seen: bool = True,
    **options: Unpack[Options],
) -> NDArray | tuple[NDArray, Details]:
    """Fill in the missing pixels of a photograph.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array
        uint8, uint16 or float, in its own scale; 3 channels are colour, a fourth (or second) is alpha, which is given back
        unchanged. NaN counts as missing.
    mask : (height, width) or image-shaped bool array, optional
        True marks missing pixels, beside those that are NaN.
    filters : (n_filters, h, w) or (n_filters, 3, h, w) array, optional
        A dictionary for the detail of photographs in [0, 1]. Grey filters serve colour pictures too, for luminance and
        colour differences. By default a dictionary that ships with the package.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale (`data_range`); a percentage is relative to the picture's λ_max.
        "auto" hides a quarter of the seen pixels of a few crops and takes the λ that predicts them best.
    keep_seen : bool
        Whether seen pixels stay as they are, instead of being replaced by their fit too.
    debias : bool
        Refit the non-zeros by least squares on their support.
    boundary : {"same", "full"}
        Whether filters are centred on the picture's own pixels, or anywhere they touch it.
    tol : float
        Relative duality gap of the codes. The picture hardly changes below 0.3.
    n_jobs : int, optional
        Threads; None is all cores.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve for the codes on a GPU, as in `encode`.
    return_details : bool
        Whether to return `Details` (codes, gap, penalty used, time) as well.
    channel_axis : int, optional
        Where the channels lie; by default the last of three axes.
    data_range : float, optional
        Full scale: by default 255 and 65535 for integers, for floats 1 when their range lies in [0.1, 2] and that range
        otherwise.

    Returns
    -------
    array of the image's shape, dtype and scale; with `Details` if asked for
        Without missing pixels a copy of the image.

    Examples
    --------
    >>> import numpy as np
    >>> from pointillist.restore import inpaint
    >>> y, x = np.mgrid[:32, :32]
    >>> picture = (100 + 3 * x).astype(np.uint8)
    >>> mask = np.random.default_rng(0).random(picture.shape) < 0.3
    >>> filters = np.random.default_rng(1).standard_normal((4, 5, 5)) / 5
    >>> mended = inpaint(picture, mask, filters)
    >>> mended.dtype.name, int(np.max(np.abs(mended.astype(int) - picture))) <= 2
    ('uint8', True)
    """
    begin = time.perf_counter()
    settings = Settings.given(options)
    picture = open_picture(image, mask, channel_axis=settings.channel_axis, data_range=settings.data_range)
    bank = choose_filters(filters, "natural-100", picture.shape)
    damaged = Damaged(*picture.signals(bank.shape[1]))
    value = given_penalty(penalty, damaged, bank, settings)
    if np.all(picture.weights > 0):
        return untouched(image, picture, bank, value, begin, settings)
    if value is None:
        value = predicted_penalty(damaged, bank, settings)
    mended = mend(damaged, bank, value, settings)
    planes = picture.gather(mended.signals)
    if keep_seen:
        planes = np.where(picture.weights > 0, picture.planes, planes)
    return finish(picture, planes, mended, value, begin, settings)
