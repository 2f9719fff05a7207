"""Damage found without marks: dust, scratches and writing, which stand out from their surroundings by shape and colour.

Pictures are searched tile by tile, in threads; only tiles are ever converted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.parallel import effective_jobs
from pointillist.restore.picture import Box, Progress, inside, run_all, tiles, widened
from pointillist.retouch.dust import dust_in
from pointillist.retouch.marks import checked, full_scale, grown
from pointillist.retouch.scratches import lines_in, scratch_odds, scratches_of
from pointillist.retouch.text import text_in
from pointillist.validation import check_arguments

KINDS = ("dust", "scratches", "text")
USUAL = ("dust", "scratches")
"""Kinds that are looked for where nothing is said: writing often belongs to a photograph."""

POLARITIES = ("both", "bright", "dark")

NEEDED = {"dust": 0.9, "scratches": 2.5}
"""Log-odds from which on a candidate for dust, or a pixel of a scratch, is taken at the default sensitivity."""

SIDE = 1400
"""Side of a tile in pixels."""


def find_damage(
    image: ArrayLike,
    kind: str | Sequence[str] = USUAL,
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
    if not kinds or any(not isinstance(one, str) or one not in KINDS for one in kinds):
        raise ValueError(f"kind must be one or several of {', '.join(KINDS)}, got {', '.join(map(repr, kinds))}")
    if not isinstance(polarity, str) or polarity not in POLARITIES:
        raise ValueError(f"polarity must be one of {', '.join(POLARITIES)}, got {polarity!r}")
    check_arguments(sensitivity=sensitivity, grow=grow, data_range=data_range, progress=progress)
    pixels = checked(image)
    scale = np.float32(data_range or full_scale(pixels))
    found = np.zeros(pixels.shape[:2], bool)
    shift = 8 * (0.5 - sensitivity)  # log-odds

    def work(tile: Box) -> None:
        outer = widened(tile, 100, found.shape)
        samples = pixels[outer].astype(np.float32).reshape(*found[outer].shape, -1)
        values = np.clip(np.nan_to_num(samples) / scale, 0, 1)
        sides = {"bright": values, "dark": 1 - values}
        odds = dict(zip(sides, scratch_odds(values), strict=True)) if "scratches" in kinds else {}
        parts = [text_in(values, polarity, sensitivity)] if "text" in kinds else []
        for name in sides if polarity == "both" else (polarity,):
            if "dust" in kinds:
                parts.append(dust_in(sides[name], NEEDED["dust"] + shift))
            if odds:
                parts.append(scratches_of(odds[name], NEEDED["scratches"] + shift))
                parts.append(lines_in(sides[name], sensitivity))
        found[tile] = np.any(parts, axis=0)[inside(tile, outer)]

    # Every thread takes some 200 MB.
    run_all(work, tiles(found.shape, SIDE), min(effective_jobs(n_jobs), 4), progress)
    return grown(found, int(grow))
