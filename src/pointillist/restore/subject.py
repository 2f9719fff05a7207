"""Images opened for restoration: small ones whole, large ones tile by tile, with margins that tiles share.

What holds for a whole large picture (the strength of its noise, the penalty) is found on a montage of crops first, so that
all tiles are treated alike. Memory is that of the picture, the answer and a few tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.codes import SparseCodes
from pointillist.kernels.compiling import working_time
from pointillist.reprs import ShortRepr
from pointillist.restore.engine import Recovered, Settings
from pointillist.restore.picture import Box, Canvas, ChannelAxis, Picture, inside, open_canvas, run_all, tiles, widened
from pointillist.solvers.base import Status, worst_status


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers that bound memory to some 200 MB a thread; ``python -m benchmarks.restoration`` shows no seams."""

    large: int = 2**21
    """Pixels from which on a picture is restored tile by tile."""
    side: int = 512
    """Side of a tile of the answer, in pixels."""
    smallest: int = 64
    """Side of a tile of an image that is enlarged, at least."""
    crops: int = 4
    """Crops along each side of a montage."""
    crop: int = 256
    """Their side in pixels."""


TUNING = Tuning()

Work = Callable[[Picture, Settings], Recovered]
"""A function that recovers the signals, or the planes, of a picture with the settings that it is handed.

It is called for each tile of a large picture, in threads, without progress. Whatever all tiles must share it knows already,
from the subject's `sample`.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Details(ShortRepr):
    """Parts of a restoration and their worth, as returned with ``return_details=True``.

    Attributes
    ----------
    penalty : float
        λ that was used, for the picture divided by its full scale; NaN where nothing was coded.
    codes : SparseCodes
        Codes of the detail: one signal for each channel that was coded on its own (luminance and two colour differences
        for colour pictures and grey filters) and, in inpainting, for each tile that was coded; refitted if ``debias=True``.
    objective : float
        Sum over these signals, before refitting.
    gap : float
        The largest relative duality gap among them: how far the objective can be from the optimum.
    status : Status
        The worst among them.
    unsettled : float
        By how much the last step of the smooth part's solver moved a sample that was not seen, at most, in units of full
        scale: how well holes are solved for.
    missing : (height, width) or image-shaped bool array
        Samples of the image that were not used: missing, or found to be outliers.
    smooth : array of the answer's shape (without alpha), float64, or None
        The smooth part, in the image's own units; None in inpainting and for large pictures, restored tile by tile.
    deviation : (height, width) or image-shaped float64 array or None
        With ``inpaint(deviations=True)``, by how much each filled pixel is expected to be wrong (one standard deviation, in
        the image's own units, for the mean of its channels); zero where nothing was missing. Too small where surroundings
        are known less well: among scattered pixels, and inside holes of more than 20 pixels, where it is that of the
        picture at half the size or less.
    sigma : float or None
        Deviation of the noise, given or estimated, in the image's own units; None where noise played no role.
    misfit : str or None
        Why `deblur` found that the blur does not fit and returned the image as it came; None where it fits.
    seconds : float
        Time that the restoration took.

    Examples
    --------
    >>> import numpy as np
    >>> import pointillist as pt
    >>> noisy = 90 + np.random.default_rng(0).normal(0, 8, (64, 64))
    >>> clean, details = pt.denoise(noisy, sigma=8, data_range=255, return_details=True)
    >>> details.sigma, round(details.penalty, 3), details.gap <= 0.3
    (8.0, 0.069, True)
    """

    penalty: float
    codes: SparseCodes
    objective: float
    gap: float
    status: Status
    unsettled: float
    missing: NDArray
    smooth: NDArray | None = None
    deviation: NDArray | None = None
    sigma: float | None = None
    misfit: str | None = None
    seconds: float = 0.0


def details_of(found: Sequence[Recovered], penalty: float, canvas: Canvas, **more: Any) -> Details:
    """Details of all that was recovered of a photograph, which may be nothing."""
    return Details(
        penalty=float(penalty),
        codes=SparseCodes.concatenate([one.codes for one in found] or [SparseCodes([], [], [], 0)]),
        objective=float(sum(np.sum(one.result.objective) for one in found)),
        gap=float(max((np.max(one.result.gap) for one in found), default=0.0)),
        status=worst_status({one.result.status for one in found}),
        unsettled=float(max((one.unsettled for one in found), default=0.0)),
        missing=canvas.laid_out(canvas.missing),
        **more,
    )


def answer(image: NDArray, details: Details, begin: float, return_details: bool) -> Any:
    """The image, or the image and its details with the time since `begin`, as a restoration function returns them."""
    return (image, replace(details, seconds=working_time() - begin)) if return_details else image


@dataclass(frozen=True, eq=False)
class Subject:
    """An image to be restored.

    Attributes
    ----------
    canvas : Canvas
        The image.
    sample : Picture
        All of it, or for large ones a montage: crops from all over it side by side, a small picture with the same noise
        and contrasts.
    tiled : bool
        True for large images, which are restored tile by tile.
    """

    canvas: Canvas
    sample: Picture
    tiled: bool

    def restored(
        self,
        work: Work,
        settings: Settings,
        penalty: float,
        *,
        margin: int,
        factor: int = 1,
        channels: int | None = None,
        sigma: float | None = None,
    ) -> tuple[NDArray, Details]:
        """The restored image and its details: all of it at once, or all tiles, each with a margin, side by side.

        `factor` is how many times larger the answer is; `channels` how many it has where that is not as in the image.
        """
        canvas = self.canvas if channels is None else replace(self.canvas, axis=2)
        if not self.tiled:
            recovered = work(self.sample, settings)
            planes, smooth = (self.sample.gather(signals) for signals in (recovered.signals, recovered.smooth))
            more = {"smooth": canvas.laid_out(smooth * canvas.scale), "sigma": sigma}
            samples = canvas.in_own_type(planes)
            return canvas.photograph(samples, factor), details_of([recovered], penalty, self.canvas, **more)
        samples = np.empty((channels or len(canvas.planes), *(factor * n for n in canvas.shape)), canvas.planes.dtype)
        boxes = tiles(canvas.shape, _side(factor))
        found: dict[tuple[int, int], Recovered] = {}

        def scaled(box: Box) -> tuple[slice, ...]:
            return (slice(None), *(slice(factor * ends.start, factor * ends.stop) for ends in box))

        def restore_tile(tile: Box, outer: Box, own: Settings) -> None:
            picture = canvas.picture(outer)
            recovered = work(picture, own)
            planes = picture.gather(recovered.signals)[scaled(inside(tile, outer))]
            samples[scaled(tile)] = canvas.in_own_type(planes)
            found[tile[0].start, tile[1].start] = replace(recovered, signals=[], smooth=[])

        tile_by_tile(restore_tile, canvas.shape, boxes, margin, settings)
        details = details_of([found[corner] for corner in sorted(found)], penalty, self.canvas, sigma=sigma)
        return canvas.photograph(samples, factor), details


def tile_by_tile(
    work: Callable[[Box, Box, Settings], None],
    shape: tuple[int, int],
    boxes: list[Box],
    margin: int,
    settings: Settings,
) -> None:
    """Do work on boxes of a picture, each with a margin around it, in threads; one box alone has all threads."""
    own = replace(settings, n_jobs=settings.n_jobs if len(boxes) == 1 else 1, progress=None)
    run_all(lambda tile: work(tile, widened(tile, margin, shape), own), boxes, settings.n_jobs, settings.progress)


def open_subject(
    image: ArrayLike,
    channel_axis: ChannelAxis,
    data_range: float | None,
    *,
    factor: int = 1,
    period: int = 1,
    name: str = "image",
) -> Subject:
    """Check an image, and find out whether it is large: it, or the answer that is `factor` times as high and wide.

    Images with holes as large as a tile are restored whole, since nothing was seen there to restore the tile from. Crops of
    a montage begin at multiples of `period` rows and columns.
    """
    canvas = open_canvas(image, channel_axis=channel_axis, data_range=data_range, name=name)
    tiled = canvas.planes[0].size * factor**2 >= TUNING.large
    if tiled and np.any(canvas.missing):
        boxes = tiles(canvas.shape, _side(factor))
        tiled = not any(np.any(np.all(canvas.missing[(slice(None), *box)], axis=(1, 2))) for box in boxes)
    if not tiled:
        return Subject(canvas, canvas.picture(), False)
    side = TUNING.crop
    tops, lefts = (np.linspace(0, n - min(side, n), TUNING.crops).astype(int) // period * period for n in canvas.shape)

    def montage(planes: NDArray) -> NDArray:
        return np.block([[planes[:, t : t + side, s : s + side] for s in lefts] for t in tops])

    crops = replace(canvas, planes=montage(canvas.planes), missing=montage(canvas.missing))
    return Subject(canvas, crops.picture(), True)


def _side(factor: int) -> int:
    """Side of a tile of a picture that is enlarged so many times."""
    return max(TUNING.side // factor, TUNING.smallest)
