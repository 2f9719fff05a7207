"""Colour from a sensor that saw one channel at each pixel: weights per channel, coded with colour filters.

What a sensor with a Bayer pattern sees of a filter depends on where the filter lies relative to the pattern, and on nothing
else. So the pattern's phases become channels of a picture of half the size, and every filter becomes one for each phase, cut
to what is seen of it: the same problem, with a third of the samples to multiply or less, and no weights.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.codes import SparseCodes
from pointillist.data import load_filters
from pointillist.kernels.compiling import working_time
from pointillist.problem import Geometry
from pointillist.restore.blur import NO_BLUR
from pointillist.restore.engine import (
    Damaged,
    Penalty,
    Recovered,
    Settings,
    check_settings,
    choose_filters,
    choose_penalty,
    contrast,
    encode_details,
    refit,
    separate,
    synthesise,
)
from pointillist.restore.picture import Picture, Progress
from pointillist.restore.subject import answer, open_subject
from pointillist.solvers.encoding import warn_unless_converged
from pointillist.validation import as_numbers, check_arguments

PATTERNS = ("RGGB", "BGGR", "GRBG", "GBRG")

Places = list[tuple[int, int, int]]
"""Channel, row and column of the samples seen in every block of 2×2 pixels."""


def demosaic(
    mosaic: ArrayLike,
    pattern: str = "RGGB",
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    *,
    keep_seen: bool = True,
    debias: bool = False,
    boundary: str = "same",
    tol: float = 0.5,
    n_jobs: int | None = -1,
    device: str = "cpu",
    return_details: bool = False,
    data_range: float | None = None,
    progress: Progress | None = None,
) -> NDArray | Any:
    """Colour picture from a Bayer mosaic.

    Parameters
    ----------
    mosaic : (height, width) array
        uint8, uint16 or float; each pixel holds the one channel that its place in the pattern names. NaN counts as missing.
    pattern : {"RGGB", "BGGR", "GRBG", "GBRG"}
        Channels of the upper left 2×2 pixels, row by row.
    filters : (n_filters, 3, h, w) array, optional
        Colour filters; by default ``load_filters("natural-colour-100")``.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale. "auto" is 0.005 of its contrast.
    keep_seen : bool
        Whether seen samples stay as they are. False replaces them by their fit too.
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
    data_range : float, optional
        Full scale; by default that of the mosaic's type, as in `inpaint`.
    progress : callable, optional
        Called from time to time with the share of the work that is done, from 0 to 1.

    Returns
    -------
    (height, width, 3) array of the mosaic's dtype and scale
        With `return_details` a pair of it and `Details`.

    Examples
    --------
    >>> import numpy as np
    >>> from pointillist.restore import demosaic
    >>> filters = np.random.default_rng(0).standard_normal((4, 3, 5, 5)) / 9
    >>> demosaic(np.full((16, 16), 90, np.uint8), filters=filters)[3, 5].tolist()
    [90, 90, 90]
    """
    begin = working_time()
    check_arguments(keep_seen=keep_seen, return_details=return_details)
    letters = str(pattern).upper()
    if letters not in PATTERNS:
        raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}")
    mosaic = as_numbers(mosaic, "mosaic")
    if mosaic.ndim != 2:
        raise ValueError(f"mosaic must be (height, width), got shape {mosaic.shape}")
    settings = check_settings(boundary, tol, debias, n_jobs, device, progress)
    subject = open_subject(mosaic, None, data_range, period=2, name="mosaic")
    bank = choose_filters(load_filters("natural-colour-100") if filters is None else filters, subject.sample.shape)
    if bank.shape[1] != 3:
        raise ValueError("filters must be colour filters (n_filters, 3, height, width) for a mosaic")
    places = [("RGB".index(letter), i // 2, i % 2) for i, letter in enumerate(letters)]
    damaged = sorted_by_channel(subject.sample, places)
    value = choose_penalty(penalty, 0.005 * contrast(damaged), damaged, bank, settings)

    def work(grey: Picture, settings: Settings) -> Recovered:
        return _recovered(sorted_by_channel(grey, places), places, bank, value, settings)

    # The margin is even, so that all tiles begin with the same place of the pattern.
    image, details = subject.restored(work, settings, value, margin=2 * max(bank.shape[2:]), channels=3)
    if keep_seen:
        for channel, top, left in places:
            samples = subject.canvas.planes[0, top::2, left::2]
            np.copyto(image[top::2, left::2, channel], samples, where=~np.isnan(samples))
    return answer(image, details, begin, return_details)


def sorted_by_channel(grey: Picture, places: Places) -> Damaged:
    """A mosaic as three planes, each seen where the pattern says so."""
    weights = np.zeros((3, *grey.shape))
    for channel, top, left in places:
        weights[channel, top::2, left::2] = grey.weights[0, top::2, left::2]
    if not np.all(np.any(weights > 0, axis=(1, 2))):
        raise ValueError("mosaic has no seen pixel of one of its channels")
    return Damaged([grey.planes * weights], [weights])


def _recovered(damaged: Damaged, places: Places, filters: NDArray, penalty: float, settings: Settings) -> Recovered:
    """Recover one mosaic: its detail is coded as a picture of half the size, with filters for each phase of the pattern."""
    smooth = separate(damaged, settings)
    signal, weights = damaged.signals[0], damaged.weights[0]
    detail, seen = (gathered(x, places) for x in (damaged.details(smooth)[0], weights.astype(np.float32)))
    phases = phase_filters(filters, places)
    result = encode_details([detail], None if np.all(seen == 1) else [seen], phases, penalty, settings)
    warn_unless_converged(result)
    coarse = Geometry(detail.shape[1:], phases.shape[2:], len(detail), settings.boundary)
    codes = fine_codes(result.codes, coarse.offset, filters.shape[2:], signal.shape[1:])
    settings = replace(settings, boundary="full")  # of the codes where they are now
    codes = refit(damaged, smooth, filters, codes, settings) if settings.debias else codes
    more = synthesise(codes, filters, [signal.shape], NO_BLUR, settings.boundary)[0]
    return Recovered([smooth[0].sharp + more], [smooth[0].sharp], smooth[0].unsettled, codes, result)


def gathered(planes: NDArray, places: Places) -> NDArray:
    """Seen samples of planes (3, height, width), a channel of half the size for each place; zero beyond the picture."""
    planes = np.pad(planes, [(0, 0), *((0, n % 2) for n in planes.shape[1:])])
    return np.stack([planes[channel, top::2, left::2] for channel, top, left in places])


def phase_filters(filters: NDArray, places: Places) -> NDArray:
    """Filters (n_filters, 3, height, width) as seen, (4 · n_filters, places, half the height, half the width).

    Those of phase (i, j), which begin i rows and j columns into a block, come together, phase by phase.
    """
    height, width = (2 * -(-(f + 1) // 2) for f in filters.shape[2:])
    out = []
    for i, j in product(range(2), repeat=2):
        ends = [(0, 0), (0, 0), (i, height - i - filters.shape[2]), (j, width - j - filters.shape[3])]
        wide = np.pad(filters, ends)
        out.append(np.stack([wide[:, channel, top::2, left::2] for channel, top, left in places], axis=1))
    return np.concatenate(out)


def fine_codes(
    codes: SparseCodes, offset: tuple[int, ...], size: tuple[int, ...], shape: tuple[int, ...]
) -> SparseCodes:
    """Codes of one picture's phases as codes of the filters of `size`, on the "full" grid of a picture of `shape`.

    `offset` is that of the coarse geometry: how many blocks before the picture the first position lies.
    """
    n_filters = codes.n_filters // 4
    grid = tuple(n + f - 1 for n, f in zip(shape, size, strict=True))
    which, place = np.divmod(codes.indices[0], np.prod(codes.grids[0]))
    phase, which = np.divmod(which, n_filters)
    down = 2 * (place // codes.grids[0][1] - offset[0]) + phase // 2 + size[0] - 1
    right = 2 * (place % codes.grids[0][1] - offset[1]) + phase % 2 + size[1] - 1
    touching = (down >= 0) & (down < grid[0]) & (right >= 0) & (right < grid[1])
    fine = ((which * grid[0] + down) * grid[1] + right)[touching]
    order = np.argsort(fine)
    return SparseCodes.trusted([fine[order]], [codes.values[0][touching][order]], [grid], n_filters)
