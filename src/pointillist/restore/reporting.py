"""The last step that all tasks share: planes back to a photograph, and the details beside it."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.model.codes import SparseCodes
from pointillist.restore.engine import Details, Mended, Settings
from pointillist.restore.guessing import Coder
from pointillist.restore.pictures import Canvas, Picture
from pointillist.solvers.base import Status


def finish(
    picture: Picture,
    planes: NDArray,
    mended: Mended,
    penalty: float,
    begin: float,
    settings: Settings,
    sigma: float | None = None,
) -> NDArray | tuple[NDArray, Details]:
    """The photograph of restored planes, with its `Details` if asked for."""
    image = picture.photograph(planes)
    if not settings.return_details:
        return image
    smooth = picture.laid_out(picture.gather(mended.smooth) * picture.scale)
    missing = picture.laid_out(picture.weights == 0)
    return image, _details([mended], penalty, begin, missing, len(mended.codes), smooth=smooth, sigma=sigma)


def untouched(
    image: ArrayLike, picture: Picture, filters: NDArray, penalty: float, begin: float, settings: Settings
) -> NDArray | tuple[NDArray, Details]:
    """A copy of the image, with details that say that nothing was done."""
    copy = np.array(image)
    if not settings.return_details:
        return copy
    return copy, _details([], penalty, begin, picture.laid_out(picture.weights == 0), len(filters))


def details_of(canvas: Canvas, coders: Sequence[Coder], begin: float, deviation: NDArray | None = None) -> Details:
    """What was filled in, and what the codes are worth where there are any."""
    used = [coder for coder in coders if coder.parts]
    parts = [coder.parts[place] for coder in used for place in sorted(coder.parts)]
    penalty = used[0].penalty if used else float("nan")
    missing = _laid_out(canvas, canvas.missing)
    spread = None if deviation is None else _laid_out(canvas, deviation)
    return _details(parts, penalty, begin, missing, len(used[0].filters) if used else 0, deviation=spread)


def _laid_out(canvas: Canvas, planes: NDArray) -> NDArray:
    """One plane as (height, width), several on the photograph's own axis."""
    return planes[0] if len(planes) == 1 or canvas.axis is None else np.moveaxis(planes, 0, canvas.axis)


def _details(
    parts: Sequence[Mended],
    penalty: float,
    begin: float,
    missing: NDArray,
    n_filters: int,
    *,
    smooth: NDArray | None = None,
    sigma: float | None = None,
    deviation: NDArray | None = None,
) -> Details:
    codes = [part.codes for part in parts] or [SparseCodes([], [], [], n_filters)]
    statuses = {part.result.status for part in parts}
    return Details(
        penalty=float(penalty),
        codes=SparseCodes.concatenate(codes),
        objective=float(sum(np.sum(part.result.objective) for part in parts)),
        gap=float(max((np.max(part.result.gap) for part in parts), default=0.0)),
        status=_worst(statuses),
        seconds=time.perf_counter() - begin,
        smooth=smooth,
        unsettled=float(max((part.unsettled for part in parts), default=0.0)),
        deviation=deviation,
        sigma=sigma,
        missing=missing,
    )


def joined_details(found: Sequence[Details]) -> Details:
    """Details of a picture that was restored in pieces; they have neither a smooth part nor the pieces' masks."""
    statuses = {details.status for details in found}
    return replace(
        found[0],
        codes=SparseCodes.concatenate([details.codes for details in found]),
        objective=sum(details.objective for details in found),
        gap=max(details.gap for details in found),
        status=_worst(statuses),
        seconds=sum(details.seconds for details in found),
        smooth=None,
        unsettled=max(details.unsettled for details in found),
        missing=None,
    )


def _worst(statuses: Collection[Status]) -> Status:
    return next((s for s in (Status.DIVERGED, Status.ITERATION_LIMIT) if s in statuses), Status.CONVERGED)
