"""The last step that all tasks share: planes back to a photograph, and the details beside it."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.model.codes import SparseCodes
from pointillist.restore.engine import Details, Mended, Settings
from pointillist.restore.pictures import Picture
from pointillist.solvers.base import Status


def finish(
    picture: Picture,
    planes: NDArray,
    mended: Mended,
    penalty: float,
    begin: float,
    settings: Settings,
    sigma: float | None = None,
    missing: NDArray | None = None,
) -> NDArray | tuple[NDArray, Details]:
    """The photograph of restored planes, with its `Details` if asked for."""
    image = picture.photograph(planes)
    if not settings.return_details:
        return image
    result = mended.result
    details = Details(
        penalty=float(penalty),
        codes=mended.codes,
        objective=float(np.sum(result.objective)),
        gap=float(np.max(result.gap)),
        status=result.status,
        seconds=time.perf_counter() - begin,
        smooth=picture.laid_out(picture.gather(mended.smooth) * picture.scale),
        sigma=sigma,
        missing=picture.laid_out(picture.weights == 0 if missing is None else missing),
    )
    return image, details


def untouched(
    image: ArrayLike, picture: Picture, filters: NDArray, penalty: float | None, begin: float, settings: Settings
) -> NDArray | tuple[NDArray, Details]:
    """A copy of the image, with details that say that nothing was done."""
    copy = np.array(image)
    if not settings.return_details:
        return copy
    nothing = SparseCodes([np.empty(0, np.int64)], [np.empty(0, filters.dtype)], [picture.shape], len(filters))
    details = Details(
        penalty=float("nan") if penalty is None else penalty,
        codes=nothing,
        objective=0.0,
        gap=0.0,
        status=Status.CONVERGED,
        seconds=time.perf_counter() - begin,
        smooth=picture.laid_out(picture.planes * picture.scale),
        sigma=None,
        missing=picture.laid_out(picture.weights == 0),
    )
    return copy, details
