"""`Details` of a restoration, and how they are made from what the solvers say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.kernels.compiling import working_time
from pointillist.reprs import ShortRepr
from pointillist.restore.engine import Recovered
from pointillist.restore.guessing import Coder
from pointillist.restore.pictures import Canvas, Picture
from pointillist.solvers.base import Status, worst_status


@dataclass(frozen=True, eq=False, repr=False)
class Details(ShortRepr):
    """What a restoration was made of and what it is worth, as returned with ``return_details=True``.

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
    missing : (height, width) or image-shaped bool array or None
        Samples that were not used: missing, or found to be outliers; None for large pictures, restored tile by tile.
    smooth : array of the image's shape (without alpha), float64, or None
        The smooth part, in the image's own units; None in inpainting and for large pictures.
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
    missing: NDArray | None
    smooth: NDArray | None = None
    deviation: NDArray | None = None
    sigma: float | None = None
    misfit: str | None = None
    seconds: float = 0.0


def answer(image: NDArray, details: Details, begin: float, return_details: bool) -> Any:
    """What a restoration function returns: the image, or the image and its details with the time since `begin`."""
    return (image, replace(details, seconds=working_time() - begin)) if return_details else image


def finish(
    picture: Picture, planes: NDArray, recovered: Recovered, penalty: float, sigma: float | None = None
) -> tuple[NDArray, Details]:
    """The photograph of restored planes, and its details."""
    smooth = picture.laid_out(picture.gather(recovered.smooth) * picture.scale)
    missing = picture.laid_out(picture.weights == 0)
    details = coding_details([recovered], penalty, missing, len(recovered.codes))
    return picture.photograph(planes), replace(details, smooth=smooth, sigma=sigma)


def filling_details(canvas: Canvas, coders: Sequence[Coder], deviation: NDArray | None = None) -> Details:
    """Details of missing pixels that were filled in, with what the codes are worth where there are any."""
    used = [coder for coder in coders if coder.coded]
    found = [coder.coded[corner] for coder in used for corner in sorted(coder.coded)]
    penalty, n_filters = (used[0].penalty, len(used[0].filters)) if used else (float("nan"), 0)
    details = coding_details(found, penalty, canvas.laid_out(canvas.missing), n_filters)
    return details if deviation is None else replace(details, deviation=canvas.laid_out(deviation))


def coding_details(found: Sequence[Recovered], penalty: float, missing: NDArray, n_filters: int) -> Details:
    """Details of all signals that were recovered, perhaps of none."""
    return Details(
        penalty=float(penalty),
        codes=SparseCodes.concatenate([one.codes for one in found] or [SparseCodes([], [], [], n_filters)]),
        objective=float(sum(np.sum(one.result.objective) for one in found)),
        gap=float(max((np.max(one.result.gap) for one in found), default=0.0)),
        status=worst_status({one.result.status for one in found}),
        unsettled=float(max((one.unsettled for one in found), default=0.0)),
        missing=missing,
    )


def joined_details(found: Sequence[Details]) -> Details:
    """Details of a picture that was restored tile by tile; they have neither a smooth part nor the tiles' masks."""
    return replace(
        found[0],
        codes=SparseCodes.concatenate([details.codes for details in found]),
        objective=sum(details.objective for details in found),
        gap=max(details.gap for details in found),
        status=worst_status({details.status for details in found}),
        unsettled=max(details.unsettled for details in found),
        missing=None,
        smooth=None,
    )
