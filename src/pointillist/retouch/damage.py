"""Damage found without marks: dust, scratches and writing, which stand out from their surroundings by shape and colour.

Candidates for dust come from `specks`, and `forest` judges them; `network` says of every pixel whether it belongs to a
scratch, and `lines` finds scratches that are opaque and hard-edged; `text` finds writing. Pictures are searched tile by
tile, in threads; only tiles are ever converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from pointillist.parallel import effective_jobs
from pointillist.restore.picture import Box, inside, run_all, widened
from pointillist.retouch.forest import load_forest
from pointillist.retouch.lines import lines_in
from pointillist.retouch.marks import checked, full_scale, grown
from pointillist.retouch.network import load_network
from pointillist.retouch.specks import speck_candidates
from pointillist.retouch.text import text_in
from pointillist.solvers.tiles import Progress
from pointillist.validation import check_arguments

KINDS = ("dust", "scratches", "text")
USUAL = ("dust", "scratches")
"""What is looked for where nothing is said: writing often belongs to a photograph."""

POLARITIES = ("both", "bright", "dark")

NEEDED = {"dust": 0.9, "scratches": 2.5}
"""Log-odds from which on a candidate for dust, or a pixel of a scratch, is taken at the default sensitivity."""

_STEEPNESS = 8.0  # log-odds between a sensitivity of zero and one
_SIDE, _MARGIN = 1400, 100  # pixels of a tile, and around it
_MOST_JOBS = 4  # tiles searched at a time, each of which takes some 200 MB
_LOWER = 1.5  # log-odds below those needed, from which on pixels beside sure ones belong to the same scratch
_FEWEST = 50  # sure pixels that a scratch has
_SOFTNESS, _PALENESS = 0.7, 0.6  # blur in pixels and contrast of a second look
_DOUBT = 2.0  # log-odds taken off there


def find_damage(
    image: ArrayLike,
    kind: str | tuple[str, ...] = USUAL,
    *,
    polarity: str = "both",
    sensitivity: float = 0.5,
    grow: int = 1,
    data_range: float | None = None,
    n_jobs: int | None = -1,
    progress: Progress | None = None,
) -> NDArray[np.bool_]:
    """Find dust, scratches or writing in a photograph, as a mask for `inpaint`.

    Parameters
    ----------
    image : (height, width) or (height, width, 3) array
        uint8, uint16, or floating point from 0 to `data_range`. NaN counts as black; a fourth channel is ignored.
    kind : {"dust", "scratches", "text"} or several of them
        "dust": specks of 1 to 12 pixels across. "scratches": scratches and hairs of 1 to 8 pixels width, straight or curved.
        "text": captions, dates and marks over the photograph, in rows of at least four letters of one flat colour that are
        5 to 120 pixels high, with strokes of 2 to 16 pixels, perhaps with a rim or shadow in a second colour.
    polarity : {"both", "bright", "dark"}
        What the damage is, compared with its surroundings.
    sensitivity : float
        From 0, which takes only what is beyond doubt, to 1, which takes much that belongs to the photograph too.
    grow : int
        Rows and columns added on all sides, for soft edges.
    data_range : float, optional
        Full scale: by default that of the integer type, and 1 for floating point.
    n_jobs : int, optional
        Threads: -1 for all cores, None for what the surrounding joblib context says. At most four are used, each of which
        takes up to 350 MB. The answer does not depend on their number.
    progress : callable, optional
        Called from time to time with the share of the work that is done, from 0 to 1.

    Returns
    -------
    (height, width) array of bool
        True where damage was found. What looks like damage and is none (a distant bird, a cable, a blade of grass, a sign)
        can be found too: look at the mask, with `mark_damage`, before using it.

    Examples
    --------
    >>> import numpy as np
    >>> rows, columns = np.mgrid[:96, :96]
    >>> picture = (100 + 0.4 * rows + 0.2 * columns).astype(np.uint8)
    >>> picture[40:44, 50:54] = 250
    >>> mask = find_damage(picture, "dust")
    >>> bool(mask[40:44, 50:54].all()), int(mask.sum()) < 50
    (True, True)
    """
    kinds = (kind,) if isinstance(kind, str) or not isinstance(kind, Sequence) else tuple(kind)
    _check(kinds, polarity, sensitivity, grow)
    pixels = checked(image)
    check_arguments(data_range=data_range, progress=progress)
    return damage_in(
        pixels, data_range or full_scale(pixels), kinds, polarity, sensitivity, grow, effective_jobs(n_jobs), progress
    )


def damage_in(
    pixels: NDArray,
    scale: float = 1.0,
    kinds: tuple[str, ...] = USUAL,
    polarity: str = "both",
    sensitivity: float = 0.5,
    grow: int = 1,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> NDArray[np.bool_]:
    """Find damage in pixels (height, width[, channels]) from 0 to `scale`; the arguments were checked by `find_damage`."""
    found = np.zeros(pixels.shape[:2], bool)
    shift = _STEEPNESS * (0.5 - sensitivity)

    def work(tile: Box) -> None:
        outer = widened(tile, _MARGIN, found.shape)
        inner = inside(tile, outer)
        samples = pixels[outer].astype(np.float32).reshape(*found[outer].shape, -1)[..., :3]
        values = np.clip(np.nan_to_num(samples) / np.float32(scale), 0, 1)
        if "dust" in kinds:
            found[tile] |= specks_in(values, polarity, NEEDED["dust"] + shift)[inner]
        if "scratches" in kinds:
            found[tile] |= scratches_in(values, polarity, NEEDED["scratches"] + shift)[inner]
            found[tile] |= lines_in(values, polarity, sensitivity)[inner]
        if "text" in kinds:
            found[tile] |= text_in(values, polarity, sensitivity)[inner]

    run_all(work, _tiles(found.shape), min(n_jobs, _MOST_JOBS), progress)
    return grown(found, int(grow))


def specks_in(values: NDArray[np.float32], polarity: str = "both", needed: float = NEEDED["dust"]) -> NDArray[np.bool_]:
    """Dust in (height, width, channels) values from 0 to 1, of at least such log-odds."""
    found = np.zeros(values.shape[:2], bool)
    forest = load_forest("dust")
    for side in _sides(values, polarity):
        for candidates in speck_candidates(side):
            taken = np.append(False, forest.log_odds(candidates.features) > needed)
            found |= taken[candidates.labels]
    return found


def scratches_in(
    values: NDArray[np.float32], polarity: str = "both", needed: float = NEEDED["scratches"]
) -> NDArray[np.bool_]:
    """Scratches in (height, width, channels) values from 0 to 1, of at least such log-odds."""
    found = np.zeros(values.shape[:2], bool)
    for name, odds in zip(("bright", "dark"), scratch_odds(values), strict=True):
        if polarity in ("both", name):
            found |= scratches_of(odds, needed)
    return found


def scratch_odds(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log-odds (2, height, width) of bright and of dark scratches in (height, width, channels) values from 0 to 1.

    The network has learned from scratches with soft edges that let something shine through. It looks at a softer and paler
    copy too, in which hard and opaque ones resemble those, and has to be surer of what it sees there alone.
    """
    colours = np.broadcast_to(values, (*values.shape[:2], 3))
    network = load_network()
    softer = ndimage.gaussian_filter(colours, (_SOFTNESS, _SOFTNESS, 0))
    odds = network.log_odds(np.float32(_PALENESS) * (softer - np.float32(0.5)) + np.float32(0.5)) - np.float32(_DOUBT)
    return np.maximum(odds, network.log_odds(colours), out=odds)


def scratches_of(odds: NDArray[np.float32], needed: float) -> NDArray[np.bool_]:
    """Islands of pixels of nearly the log-odds needed (height, width) that hold enough pixels of as much."""
    labels, count = ndimage.label(odds > needed - _LOWER, np.ones((3, 3)))
    sure = np.bincount(labels[odds > needed], minlength=count + 1) >= _FEWEST
    sure[0] = False
    return sure[labels]


def _check(kinds: tuple[str, ...], polarity: str, sensitivity: float, grow: int) -> None:
    if not kinds or any(not isinstance(one, str) or one not in KINDS for one in kinds):
        raise ValueError(f"kind must be one or several of {', '.join(KINDS)}, got {', '.join(map(repr, kinds))}")
    if not isinstance(polarity, str) or polarity not in POLARITIES:
        raise ValueError(f"polarity must be one of {', '.join(POLARITIES)}, got {polarity!r}")
    check_arguments(sensitivity=sensitivity, grow=grow)


def _sides(values: NDArray[np.float32], polarity: str) -> Iterator[NDArray[np.float32]]:
    """The picture where bright damage is looked for, and its negative where dark is."""
    if polarity != "dark":
        yield values
    if polarity != "bright":
        yield 1 - values


def _tiles(shape: tuple[int, ...]) -> list[Box]:
    """Tiles of nearly the same size that cover a picture."""
    spans = []
    for length in shape:
        count = max(1, round(length / _SIDE))
        spans.append([slice(length * i // count, length * (i + 1) // count) for i in range(count)])
    return [(rows, columns) for rows in spans[0] for columns in spans[1]]
