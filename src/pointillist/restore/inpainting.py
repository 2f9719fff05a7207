"""Missing pixels filled in from the ones that were seen, tile by tile: only what is damaged is read and worked on.

Each tile gets a first guess without holes, coded with filters where its missing pixels are scattered and interpolated where
they lie together, and from it the conditional mean of its missing pixels (`prediction`). The inside of large holes comes
from the picture at half the size, filled in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.ndimage
from numpy.typing import ArrayLike, NDArray

from pointillist.kernels.compiling import working_time
from pointillist.parallel import parallel
from pointillist.restore.engine import (
    Damaged,
    Penalty,
    Recovered,
    Settings,
    Trial,
    check_settings,
    choose_filters,
    choose_penalty,
    contrast,
    parse_penalty,
    predicted_penalty,
    recover,
    trial_of,
)
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
    widened,
)
from pointillist.restore.prediction import TUNING as PREDICTION
from pointillist.restore.prediction import predicted
from pointillist.restore.smooth import doubled, halved, without_holes
from pointillist.restore.subject import Details, answer, details_of, tile_by_tile
from pointillist.validation import check_arguments

METHODS = ("auto", "neighbours", "codes")


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.fills``."""

    tile: int = 128
    """Side of a tile, in pixels, where missing pixels lie together."""
    large_tile: int = 512
    """Side where they are scattered: coding is faster on large tiles."""
    scattered: float = 0.5
    """Share of the seen pixels with a missing neighbour, from which on missing ones are scattered."""
    tol: float = 0.3
    """Relative duality gap of codes that are the answer."""
    guess_tol: float = 0.8
    """Gap of codes that are first guesses, which one round reaches as a rule: neighbours make no better of a smaller one."""
    sampled: int = 8
    """Damaged tiles that the penalty is chosen on."""
    context: int = 32
    """Pixels around a tile that are coded with it."""


TUNING = Tuning()


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
    check_arguments(texture=texture, keep_seen=keep_seen, deviations=deviations, return_details=return_details)
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
    given = parse_penalty(penalty) is not None or filters is not None or method == "codes"
    usual = TUNING.tol if given else TUNING.guess_tol
    settings = check_settings(boundary, usual if tol is None else tol, debias, n_jobs, device, progress)
    canvas = open_canvas(image, mask, channel_axis=channel_axis, data_range=data_range)
    bank = choose_filters(filters, canvas.shape) if given else None
    coding = None if method == "neighbours" else Coding(bank, penalty)
    mixed = len(canvas.missing) > 1 and bank is not None and bank.shape[1] == 3
    if mixed and (texture or deviations):
        raise ValueError(
            "filters of three channels fill in by codes alone where channels miss different pixels: give grey filters, or "
            "leave out texture and deviations"
        )
    restored, target = canvas.copied(image)
    deviation = np.zeros(canvas.missing.shape) if deviations else None
    if coding is not None and (method == "codes" or mixed):
        coders = _fill_by_codes(canvas, coding, target, settings, keep_seen=keep_seen)
    else:
        coders = fill(canvas, target, settings, coding, everywhere=given, texture=texture, deviation=deviation)
    more = {} if deviation is None else {"deviation": canvas.laid_out(deviation)}
    return answer(restored, filling_details(canvas, coders, **more), begin, return_details)


def filling_details(canvas: Canvas, coders: Sequence[Coder], **more: Any) -> Details:
    """Details of missing pixels that were filled in, with what the codes are worth where there are any."""
    used = [coder for coder in coders if coder.coded]
    found = [coder.coded[corner] for coder in used for corner in sorted(coder.coded)]
    return details_of(found, used[0].penalty if used else float("nan"), canvas, **more)


def _fill_by_codes(
    canvas: Canvas, coding: Coding, target: NDArray, settings: Settings, *, keep_seen: bool
) -> list[Coder]:
    """Write missing pixels, or all pixels, to the target: the sum of smooth part and decoded codes."""
    if not np.any(canvas.missing):
        return []
    coder = coding.coder(canvas, settings, trusted=False)
    assert coder is not None, "filters that are given fit into the picture"
    side = TUNING.large_tile
    boxes = damaged_tiles(np.any(canvas.missing, axis=0), side) if keep_seen else tiles(canvas.shape, side)

    def work(tile: Box, outer: Box, own: Settings) -> None:
        # Inside large holes the context grows until something of every channel is seen.
        while np.any(np.all(canvas.missing[(slice(None), *outer)], axis=(1, 2))):
            outer = widened(outer, outer[0].stop - outer[0].start, canvas.shape)
        planes = coder.recovered(canvas.picture(outer), outer, own)
        made = canvas.in_own_type(planes[(slice(None), *inside(tile, outer))])
        here = (slice(0, len(made)), *tile)
        gone = np.broadcast_to(canvas.missing[(slice(None), *tile)], made.shape)
        target[here] = np.where(gone, made, target[here]) if keep_seen else made

    tile_by_tile(work, canvas.shape, boxes, TUNING.context, settings)
    return [coder]


@dataclass(frozen=True, eq=False)
class Coding:
    """Filters (n_filters, 1 or 3, height, width) and the penalty as people give it, of which coders are made.

    None are the shipped filters, which are read once they are needed.
    """

    filters: NDArray | None
    price: Penalty

    def coder(self, canvas: Canvas, settings: Settings, *, trusted: bool) -> Coder | None:
        """Choose a penalty for a picture near its damage, and, for guesses, how much they are to be trusted.

        Pictures smaller than the shipped filters do without codes.
        """
        filters = choose_filters(None) if self.filters is None else self.filters
        if any(n < f for n, f in zip(canvas.shape, filters.shape[2:], strict=True)):
            return None
        boxes: list[Box] = [(slice(0, canvas.shape[0]), slice(0, canvas.shape[1]))]
        if canvas.shape[0] * canvas.shape[1] > 4 * TUNING.tile**2:
            gone = np.any(canvas.missing, axis=0)
            near = damaged_tiles(beside(canvas.missing[0]), TUNING.tile) or damaged_tiles(gone, TUNING.tile)
            chosen = np.unique(np.linspace(0, len(near) - 1, TUNING.sampled).astype(int))
            boxes = [widened(near[i], max(filters.shape[2:]), canvas.shape) for i in chosen]
        pairs = [canvas.picture(box).signals(filters.shape[1]) for box in boxes]
        sample = Damaged([signals[0] for signals, _ in pairs], [weights[0] for _, weights in pairs])
        precise = replace(settings, progress=None, tol=min(settings.tol, TUNING.tol))
        auto = parse_penalty(self.price) is None
        trial = trial_of(sample, filters, precise) if auto or trusted else None
        if auto and trial is not None:
            penalty = predicted_penalty(trial, contrast(sample), filters, precise)
        else:
            penalty = choose_penalty(self.price, 0.0, sample, filters, precise)
        trust = _trust(trial, filters, penalty, precise) if trusted and trial is not None else 0.0
        return Coder(filters, penalty, trust)


def _trust(trial: Trial, filters: NDArray, penalty: float, settings: Settings) -> float:
    """Weight of codes, from 0 to 1, in the mixture with what neighbours predict that comes nearest to hidden pixels."""
    fitted = recover(trial.crops, filters, penalty, settings, trial.smooth).signals

    def work(i: int) -> tuple[float, float]:
        truth, guess = np.mean(trial.crops.signals[i], axis=0), np.mean(fitted[i], axis=0)
        known: NDArray = np.all(trial.crops.weights[i] > 0, axis=0)
        wanted: NDArray = np.any(trial.hidden[i], axis=0)
        full = np.array(np.where(known, truth, guess))
        made = predicted(full[None], wanted, known, full, scattered=True)[0][0]
        away = (guess - made)[wanted]
        return float(np.sum(away * (truth - made)[wanted])), float(np.sum(away**2))

    along, square = np.sum(parallel(work, range(len(fitted)), settings.n_jobs), axis=0)
    return float(np.clip(along / square, 0.0, 1.0)) if square > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Coder:
    """Codes boxes of a picture, all at one penalty, and keeps what the solver says of each by its upper left corner."""

    filters: NDArray
    penalty: float
    trust: float
    coded: dict[tuple[int, int], Recovered] = field(default_factory=dict)

    def recovered(self, picture: Picture, box: Box, settings: Settings) -> NDArray:
        """A box of the picture as smooth part and codes make it: planes (channels, height, width)."""
        recovered = recover(Damaged(*picture.signals(self.filters.shape[1])), self.filters, self.penalty, settings)
        self.coded[box[0].start, box[1].start] = recovered
        return picture.gather(recovered.signals)

    def guess(self, planes: NDArray, seen: NDArray, box: Box, settings: Settings) -> NDArray:
        """The mean of the channels of a box, without holes; grey filters code that mean alone."""
        if self.filters.shape[1] != len(planes):
            planes = np.mean(planes, axis=0, keepdims=True)
        picture = Picture(planes, np.broadcast_to(seen, planes.shape).astype(np.float64), 1.0)
        return np.mean(self.recovered(picture, box, settings), axis=0)


def fill(
    canvas: Canvas,
    target: NDArray,
    settings: Settings,
    coding: Coding | None = None,
    *,
    everywhere: bool = False,
    texture: float = 0.0,
    deviation: NDArray | None = None,
) -> list[Coder]:
    """Write the missing samples of a canvas to the target, all channels together or each with its own mask.

    Parameters
    ----------
    canvas : Canvas
    target : (channels, height, width) array of the canvas's type
    settings : Settings
    coding : Coding or None
        First guesses where missing pixels are scattered.
    everywhere : bool
        True for first guesses that are coded in all damaged tiles.
    texture : float
        How much of the texture that conditional means lack is taken from nearby, from 0 to 1.
    deviation : (1 or channels, height, width) array, optional
        Gets the deviations that are to be expected, in the canvas's own units.

    Returns
    -------
    list of Coder
        Coders of the masks whose first guesses were coded.
    """
    how: dict[str, Any] = {"everywhere": everywhere, "texture": texture}
    coders: list[Coder] = []
    damaged = [c for c, missing in enumerate(canvas.missing) if np.any(missing)]
    if len(canvas.missing) > 1:
        for number, c in enumerate(damaged):
            one = slice(c, c + 1)
            channel = replace(canvas, planes=canvas.planes[one], missing=canvas.missing[one])
            part = share_of(settings.progress, number / len(damaged), (number + 1) / len(damaged))
            spread = None if deviation is None else deviation[one]
            coders += fill(channel, target[one], replace(settings, progress=part), coding, **how, deviation=spread)
        return coders
    if not damaged:
        return coders
    missing, shape = canvas.missing[0], canvas.shape
    # Pixels that lie deeper in a hole than the neighbourhood reaches come from the picture at half the size.
    reach = 2 * PREDICTION.deepest + 1
    deep = scipy.ndimage.minimum_filter(missing.view(np.uint8), reach, mode="constant", cval=1).view(bool)
    coarse, coarse_spread, begin = np.empty(0), None, 0.0
    if np.any(deep):
        begin = 0.1
        bands = [(slice(top, min(top + 256, shape[0])), slice(0, shape[1])) for top in range(0, shape[0], 256)]
        halves = [halved(canvas.picture(band).planes.astype(np.float32), ~missing[None, band[0]]) for band in bands]
        coarse, known = (np.concatenate(parts, axis=1) for parts in zip(*halves, strict=True))
        coarse_spread = None if deviation is None else np.zeros(known.shape, np.float32)
        own = replace(settings, progress=share_of(settings.progress, 0.0, begin))
        fill(Canvas(coarse, ~known), coarse, own, texture=texture, deviation=coarse_spread)
    boxes = damaged_tiles(missing, TUNING.large_tile if coding is not None and scattered(missing) else TUNING.tile)
    margin = PREDICTION.surroundings
    alone = any(scattered(missing[widened(tile, margin, shape)]) for tile in boxes)
    coder = None
    if coding is not None and (everywhere or alone):
        coder = coding.coder(canvas, settings, trusted=alone)

    def work(tile: Box, outer: Box, own: Settings) -> None:
        core, lone = inside(tile, outer), scattered(missing[outer])
        planes, gone, lost = canvas.picture(outer).planes, missing[outer], deep[outer]
        if np.any(lost):
            planes[:, lost] = doubled(coarse, outer)[:, lost]
        known = ~gone | lost
        wanted = np.zeros_like(gone)
        wanted[core] = ~known[core]
        light = np.mean(planes, axis=0)
        if coder is not None and (everywhere or lone):
            guess = coder.guess(planes, ~gone, outer, own)
        else:
            guess = without_holes(light[None], known[None])[0]
        guess = np.where(known, light, guess)
        values, spread = predicted(
            planes, wanted, known, guess,
            texture=texture, scattered=lone, n_jobs=own.n_jobs, deviations=deviation is not None,
        )  # fmt: skip
        if coder is not None and lone:
            values[:, wanted] += coder.trust * (guess[wanted] - np.mean(values[:, wanted], axis=0))
        here = gone[core]
        target[(slice(None), *tile)][:, here] = canvas.in_own_type(values[(slice(None), *core)][:, here])
        if deviation is not None:
            if coarse_spread is not None and np.any(lost):
                spread[lost] = doubled(coarse_spread, outer)[0, lost]
            deviation[0][tile][here] = canvas.scale * spread[core][here]

    tile_by_tile(work, shape, boxes, margin, replace(settings, progress=share_of(settings.progress, begin, 1.0)))
    return [] if coder is None else [coder]


def damaged_tiles(mask: NDArray, side: int) -> list[Box]:
    """Tiles that hold a true pixel of the mask (height, width), in raster order."""
    return [box for box in tiles(mask.shape, side) if np.any(mask[box])]


def scattered(missing: NDArray) -> bool:
    """True where most of the seen pixels have a missing neighbour, as when pixels are lost one by one."""
    return bool(np.count_nonzero(beside(missing)) > TUNING.scattered * np.count_nonzero(~missing))


def beside(missing: NDArray) -> NDArray:
    """Seen pixels (height, width) with a missing one among their eight neighbours."""
    return scipy.ndimage.maximum_filter(missing, 3) & ~missing
