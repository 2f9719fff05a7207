"""Missing pixels filled in from the ones that were seen."""

from __future__ import annotations

import time
from typing import Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.restore.engine import Detailed, Details, Options, Plain, Settings, as_bank
from pointillist.restore.filling import LARGE_TILE
from pointillist.restore.guessing import Coder, fill_canvas
from pointillist.restore.penalties import Penalty, parse_penalty
from pointillist.restore.pictures import Canvas, check_size, open_canvas
from pointillist.restore.reporting import details_of
from pointillist.restore.tiling import Box, cells, cells_with, inside, run_all, widened
from pointillist.solvers.base import effective_jobs

METHODS = ("auto", "neighbours", "codes")
_CONTEXT = 32  # pixels around a tile that are coded with it

Method = Literal["auto", "neighbours", "codes"]


@overload
def inpaint(
    image: ArrayLike,
    mask: ArrayLike | None = ...,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    *,
    method: Method = ...,
    texture: float = ...,
    keep_seen: bool = ...,
    deviations: bool = ...,
    **options: Unpack[Plain],
) -> NDArray: ...
@overload
def inpaint(
    image: ArrayLike,
    mask: ArrayLike | None = ...,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    *,
    method: Method = ...,
    texture: float = ...,
    keep_seen: bool = ...,
    deviations: bool = ...,
    **options: Unpack[Detailed],
) -> tuple[NDArray, Details]: ...
def inpaint(
    image: ArrayLike,
    mask: ArrayLike | None = None,
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    *,
    method: Method = "auto",
    texture: float = 0.0,
    keep_seen: bool = True,
    deviations: bool = False,
    **options: Unpack[Options],
) -> NDArray | tuple[NDArray, Details]:
    """Fill in the missing pixels of a photograph; only what lies around them is read and worked on.

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
        λ of the codes, for the picture divided by its full scale (`data_range`); a percentage is relative to λ_max near
        the damage. "auto" hides a quarter of the seen pixels of a few crops there and takes the λ that predicts them best.
    method : {"auto", "neighbours", "codes"}
        "neighbours": each missing pixel is the conditional mean, given the seen pixels around it, of a Gaussian field with
        the covariances of its surroundings in a first guess. That guess is interpolated from coarser pictures. "auto": the
        same, but where missing pixels are scattered (most seen pixels have a missing neighbour) the guess is sparse codes of
        the filters, and the answer the mixture of both that predicts hidden pixels best; with filters or a penalty given
        the guess is coded everywhere. "codes": smooth part and sparse codes alone, with their certificate.
    texture : float
        From 0 to 1: how much of the texture that conditional means lack is added, taken from nearby. Zero comes nearest to
        the truth; one looks most like it, in gravel, grass or grain, where the mean is calmer than its surroundings.
    keep_seen : bool
        Whether seen pixels stay as they are. False replaces them by their fit too, and codes alone make the picture, as
        with ``method="codes"``.
    deviations : bool
        Whether `Details` shall say by how much each filled pixel is expected to be wrong, which takes somewhat longer.
    debias : bool
        Refit the non-zeros by least squares on their support.
    boundary : {"same", "full"}
        Whether filters are centred on the picture's own pixels, or anywhere they touch it.
    tol : float
        Relative duality gap of the codes. The picture hardly changes below 0.3.
    n_jobs : int or None
        Threads, as in `encode`; -1 is all cores.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve for the codes on a GPU, as in `encode`.
    return_details : bool
        Whether to return `Details` as well: codes, gap, penalty used, expected errors, time.
    channel_axis : int, optional
        Where the channels lie; by default the last of three axes.
    data_range : float, optional
        Full scale: by default 255 and 65535 for integers, for floats 1 when their range lies in [0.1, 2] and that range
        otherwise.
    progress : callable, optional
        Called from time to time with the part of the work that is done, from 0 to 1.

    Returns
    -------
    array of the image's shape, dtype and scale; with `Details` if asked for
        Seen pixels are bit for bit those of the image. Without missing pixels a copy of the image.

    Examples
    --------
    >>> import numpy as np
    >>> from pointillist.restore import inpaint
    >>> y, x = np.mgrid[:32, :32]
    >>> picture = (100 + 3 * x).astype(np.uint8)
    >>> mask = np.random.default_rng(0).random(picture.shape) < 0.3
    >>> mended = inpaint(picture, mask, method="neighbours")
    >>> mended.dtype.name, int(np.max(np.abs(mended.astype(int) - picture)))
    ('uint8', 0)
    """
    begin = time.perf_counter()
    settings = Settings.given(options)
    canvas = open_canvas(image, mask, channel_axis=settings.channel_axis, data_range=settings.data_range)
    given = parse_penalty(penalty) is not None or filters is not None
    _check_method(method, given, keep_seen)
    if not 0 <= texture <= 1:
        raise ValueError(f"texture must lie between 0 and 1, got {texture}")
    if deviations and (not settings.return_details or method == "codes" or not keep_seen):
        raise ValueError(
            'deviations=True is told in Details and by neighbours: give return_details=True, not method="codes"'
        )
    coder = (
        None
        if method == "neighbours"
        else _coder(canvas, filters, penalty, settings, needed=given or method == "codes" or not keep_seen)
    )
    answer = np.array(image)
    target = answer[None] if canvas.axis is None else np.moveaxis(answer, canvas.axis, 0)
    target = target[: len(canvas.planes)]
    deviation = np.zeros(canvas.missing.shape) if deviations else None
    mixed = len(canvas.missing) > 1 and coder is not None and coder.filters.shape[1] == 3
    coders = [] if coder is None else [coder]
    if not np.any(canvas.missing):
        coders = []
    elif coder is not None and (method == "codes" or not keep_seen or mixed):
        _by_codes(canvas, coder, target, keep_seen=keep_seen)
        deviation = None
    else:
        coders = fill_canvas(canvas, coder, target, settings, everywhere=given, texture=texture, deviation=deviation)
    if not settings.return_details:
        return answer
    return answer, details_of(canvas, coders, begin, deviation)


def _coder(
    canvas: Canvas, filters: ArrayLike | None, penalty: Penalty, settings: Settings, *, needed: bool
) -> Coder | None:
    """What codes first guesses; None for pictures smaller than the shipped filters, which can do without."""
    bank = as_bank(filters, "natural-100")
    if not needed and any(n < f for n, f in zip(canvas.shape, bank.shape[2:], strict=True)):
        return None
    check_size(canvas.shape, bank.shape[2:])
    return Coder(canvas, bank, penalty, settings)


def _check_method(method: str, given: bool, keep_seen: bool) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if method == "neighbours" and given:
        raise ValueError('method="neighbours" uses neither filters nor a penalty: leave them out, or take "auto"')
    if method == "neighbours" and not keep_seen:
        raise ValueError('keep_seen=False replaces seen pixels by their codes: take method="codes"')


def _by_codes(canvas: Canvas, coder: Coder, target: NDArray, *, keep_seen: bool) -> None:
    """Write the missing pixels, or all of them, to the target as smooth part and codes make them."""
    missing = np.any(canvas.missing, axis=0)
    tiles = cells_with(missing, LARGE_TILE) if keep_seen else cells(missing.shape, LARGE_TILE)
    jobs = effective_jobs(coder.settings.n_jobs)

    def work(tile: Box) -> None:
        outer = _with_seen(tile, canvas)
        planes = coder.coded(outer, jobs if len(tiles) == 1 else 1)
        made = canvas.in_own_type(planes[(slice(None), *inside(tile, outer))])
        here = (slice(0, len(made)), *tile)
        gone = np.broadcast_to(canvas.missing[(slice(None), *tile)], made.shape)
        target[here] = np.where(gone, made, target[here]) if keep_seen else made

    run_all(work, tiles, jobs, coder.settings.progress)


def _with_seen(tile: Box, canvas: Canvas) -> Box:
    """A tile with its context, which grows inside large holes until something of every channel is seen."""
    margin = _CONTEXT
    while True:
        outer = widened(tile, margin, canvas.shape)
        if not np.any(np.all(canvas.missing[(slice(None), *outer)], axis=(1, 2))):
            return outer
        margin *= 2
