"""Missing pixels filled in from the ones that were seen."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.kernels.compiling import working_time
from pointillist.parallel import effective_jobs
from pointillist.restore.arguments import check_unused
from pointillist.restore.details import answer, filling_details
from pointillist.restore.engine import Settings, as_bank
from pointillist.restore.filling import LARGE_TILE
from pointillist.restore.guessing import GUESS_TOL, Coder, fill_canvas
from pointillist.restore.penalties import Penalty, parse_penalty
from pointillist.restore.pictures import Canvas, ChannelAxis, check_size, open_canvas
from pointillist.restore.tiling import Box, inside, run_all, tiles, tiles_with, widened
from pointillist.solvers.tiles import Progress
from pointillist.validation import check_arguments

METHODS = ("auto", "neighbours", "codes")
_TOL = 0.3  # of codes that are the answer
_CONTEXT = 32  # pixels around a tile that are coded with it


def inpaint(
    image: ArrayLike,
    mask: ArrayLike | None = None,
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    *,
    method: Literal["auto", "neighbours", "codes"] = "auto",
    texture: float = 0.0,
    keep_seen: bool = True,
    deviations: bool = False,
    debias: bool = False,
    boundary: str = "same",
    tol: float | None = None,
    n_jobs: int | None = -1,
    device: str = "cpu",
    return_details: bool = False,
    channel_axis: ChannelAxis = "auto",
    data_range: float | None = None,
    progress: Progress | None = None,
) -> NDArray | Any:
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
        colour differences. By default ``load_filters()``.
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
        Whether seen pixels stay as they are. False, for ``method="codes"``, replaces them by their fit too.
    deviations : bool
        Whether `Details` shall say by how much each filled pixel is expected to be wrong, which takes somewhat longer.
    debias : bool
        Refit the non-zeros by least squares on their support.
    boundary : {"same", "full"}
        Whether filters are centred on the picture's own pixels, or anywhere they touch it.
    tol : float or None
        Relative duality gap of the codes. None is 0.3, and 0.8 for first guesses with neither filters nor a penalty given:
        below that pictures hardly change.
    n_jobs : int, optional
        Threads: -1 for all cores, None for what the surrounding joblib context says.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve for the codes on a GPU, as in `encode`.
    return_details : bool
        Whether to return `Details` too: codes, gap, penalty used, expected errors, time.
    channel_axis : int, None or "auto"
        Axis of the channels, None for grey; "auto" is None for two axes and -1 for (height, width, 3 or so).
    data_range : float, optional
        Full scale: by default 255 and 65535 for integers, for floats 1 when their range lies in [0.1, 2] and that range
        otherwise.
    progress : callable, optional
        Called from time to time with the share of the work that is done, from 0 to 1.

    Returns
    -------
    array of the image's shape, dtype and scale; with `return_details` a pair of it and `Details`
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
    begin = working_time()
    check_arguments(texture=texture, keep_seen=keep_seen, deviations=deviations, return_details=return_details, tol=tol)
    check_arguments(debias=debias, boundary=boundary, progress=progress)
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if method == "neighbours":
        check_unused(
            inpaint, 'method="neighbours"', 'method="auto"',
            filters=filters, penalty=penalty, debias=debias, boundary=boundary, tol=tol, device=device,
        )  # fmt: skip
    if method == "codes":
        check_unused(inpaint, 'method="codes"', 'method="auto"', texture=texture, deviations=deviations)
    else:
        check_unused(inpaint, f'method="{method}"', 'method="codes"', keep_seen=keep_seen)
    if deviations and not return_details:
        raise ValueError("deviations=True is told in Details: give return_details=True too")
    settings = Settings(boundary, _TOL if tol is None else tol, debias, effective_jobs(n_jobs), device, progress)
    canvas = open_canvas(image, mask, channel_axis=channel_axis, data_range=data_range)
    given = parse_penalty(penalty) is not None or filters is not None
    coder = None
    if method != "neighbours":
        guess_tol = GUESS_TOL if tol is None and not given else None
        coder = _coder(canvas, filters, penalty, settings, guess_tol, needed=given or method == "codes")
    mixed = len(canvas.missing) > 1 and coder is not None and coder.filters.shape[1] == 3
    if mixed and (texture or deviations):
        raise ValueError(
            "filters of three channels fill in by codes alone where channels miss different pixels: give grey filters, or "
            "leave out texture and deviations"
        )
    restored, target = canvas.copied(image)
    deviation = np.zeros(canvas.missing.shape) if deviations else None
    coders: list[Coder] = []
    if coder is not None and (method == "codes" or mixed):
        coders = [coder]
        _by_codes(canvas, coder, target, keep_seen=keep_seen)
    elif np.any(canvas.missing):
        coders = fill_canvas(canvas, coder, target, settings, everywhere=given, texture=texture, deviation=deviation)
    return answer(restored, filling_details(canvas, coders, deviation), begin, return_details)


def _coder(
    canvas: Canvas,
    filters: ArrayLike | None,
    penalty: Penalty,
    settings: Settings,
    guess_tol: float | None,
    *,
    needed: bool,
) -> Coder | None:
    """Make the coder of first guesses; None for pictures smaller than the shipped filters, which can do without."""
    bank = as_bank(filters)
    if not needed and any(n < f for n, f in zip(canvas.shape, bank.shape[2:], strict=True)):
        return None
    check_size(canvas.shape, bank.shape[2:])
    return Coder(canvas, bank, penalty, settings, guess_tol)


def _by_codes(canvas: Canvas, coder: Coder, target: NDArray, *, keep_seen: bool) -> None:
    """Write missing pixels, or all pixels, to the target: the sum of smooth part and decoded codes."""
    missing = np.any(canvas.missing, axis=0)
    if not np.any(missing):
        return
    boxes = tiles_with(missing, LARGE_TILE) if keep_seen else tiles(missing.shape, LARGE_TILE)
    jobs = coder.settings.n_jobs

    def work(tile: Box) -> None:
        outer = _with_seen(tile, canvas)
        planes = coder.picture(outer, jobs if len(boxes) == 1 else 1)
        made = canvas.in_own_type(planes[(slice(None), *inside(tile, outer))])
        here = (slice(0, len(made)), *tile)
        gone = np.broadcast_to(canvas.missing[(slice(None), *tile)], made.shape)
        target[here] = np.where(gone, made, target[here]) if keep_seen else made

    run_all(work, boxes, jobs, coder.settings.progress)


def _with_seen(tile: Box, canvas: Canvas) -> Box:
    """A tile with its context, which grows inside large holes until something of every channel is seen."""
    margin = _CONTEXT
    while True:
        outer = widened(tile, margin, canvas.shape)
        if not np.any(np.all(canvas.missing[(slice(None), *outer)], axis=(1, 2))):
            return outer
        margin *= 2
