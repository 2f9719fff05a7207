"""Pixels that somebody painted over to mark them as missing: found by their colour, with soft edges and JPEG's bleeding.

Pixels that surely have the colour come first; then those beside them that look like a mixture of it with the surroundings.
Damage that nobody marked is found in `finding`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import ImageColor
from scipy import ndimage

from pointillist.reprs import shown
from pointillist.restore.picture import LARGEST_SAMPLE
from pointillist.validation import as_numbers, check_arguments, extremes, is_number

Colour = str | tuple[int, int, int]
Levels = tuple[int, int, int]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float32]

KEYS = ("#ff00ff", "#00ff00", "#ff0000", "#00ffff", "#0000ff", "#ffff00")
"""Colours that mark missing pixels by themselves: fully saturated, so that photographs hardly contain them exactly."""

RARE = KEYS[:2]
"""Keys that clipped highlights do not reach either: a few pixels are enough, and JPEG may have blurred them."""

_FEWEST, _LEAST_SHARE = 24, 1e-3  # pixels of a rare key; share of the picture that another key must have
_EXACT = 2  # levels of 255 from the colour, for a pixel that has it
_BLURRED, _JOINED = 48, 100  # the same after JPEG, and for what hangs together with such pixels
_PALEST = 0.2  # the least saturation by which these are multiplied
_JOINED_PLAIN = 24  # the same for white, black and greys, which photographs are full of
_NEAR, _PLAIN_NEAR = 0.35, 0.5  # pixels near the colour for each that has it: with more, the picture was compressed
_REACH = 10  # pixels: chroma at half resolution in blocks of 8 samples rarely carries a visible tint farther
_REACH_PLAIN = 3  # the same for white, black and greys without JPEG: photographs have their mixtures everywhere
_MIXED = (2.5, 0.035, 0.3)  # share of the colour in a mixture: in deviations of the surroundings, at least, at most
_MIXED_BESIDE = (0.5, 0.02, 0.05)  # the same for neighbours of sure pixels, where mixtures are expected
_HALFWAY, _SOFT = (0.15, 0.85), 0.3  # shares of soft edges; the share of all neighbours from which on all are taken
_RINGING = 3  # pixels beside a mark that JPEG disturbs even where they have no tint
_DISTURBED = (2.5, 6.0)  # what else JPEG left there: in deviations of the surroundings, and levels at least
_STRIDE = 2  # of every second row and column the surroundings are made,
_SQUARE, _SQUARES = 2 * _STRIDE, 9  # as averages of such squares, over so many of them
_ROWS = 512


def find_marks(
    image: ArrayLike,
    colour: Colour | None = None,
    *,
    tolerance: float | str = "auto",
    fringe: bool = True,
    grow: int = 0,
) -> NDArray[np.bool_]:
    """Find the pixels that are marked as missing by a colour painted over them.

    Parameters
    ----------
    image : (height, width) or (height, width, 3) array
        uint8, uint16, or floating point from 0 to 1. A fourth channel is ignored.
    colour : str or triple, optional
        A name ("magenta", "white"), "#f0f", "#ff00ff", "rgb(255, 0, 255)", or three numbers from 0 to 255. By default the
        one saturated colour (see `find_key`) that marks anything. White and black mean every pixel that is white or black,
        blown-out sky and deep shadow included: mark in a colour that the photograph does not have.
    tolerance : float or "auto"
        Largest difference from the colour in any channel, as a share of full scale, for a pixel to be marked for sure.
        "auto" asks for the exact colour where the picture has it, and allows for JPEG where it has only neighbours of it.
    fringe : bool
        Also take pixels beside a mark that are mixtures of its colour with their surroundings: the soft edges of brushes
        and text, and colour that JPEG carried outside.
    grow : int
        Rows and columns added on all sides in the end.

    Returns
    -------
    (height, width) array of bool
        True where the picture is marked; all False where a colour that was asked for does not occur.

    Examples
    --------
    >>> import numpy as np
    >>> picture = np.full((32, 32, 3), 90, np.uint8)
    >>> picture[10:14, 4:28] = 255, 0, 255
    >>> picture[14, 4:28] = 130, 67, 130
    >>> int(find_marks(picture, "magenta", fringe=False).sum())
    96
    >>> bool(find_marks(picture, "magenta")[10:15, 4:28].all())
    True
    """
    pixels = checked(image)
    check_arguments(grow=grow, fringe=fringe)
    if not (isinstance(tolerance, str) or is_number(tolerance)):
        raise ValueError(f'tolerance must be "auto" or a number from 0 to 1, got {shown(tolerance)}')
    if colour is None:
        colour = find_key(pixels)
        if colour is None:
            raise ValueError(
                "image has no pixels of a saturated colour: give colour=, or paint what is missing in magenta (#ff00ff)"
            )
    key = parse_colour(colour)
    if pixels.ndim == 2 and len(set(key)) > 1:
        return np.zeros(pixels.shape, bool)
    distance = _distance(pixels, key)
    sure, lossy = _sure(distance, key, tolerance)
    if fringe and sure.any():
        sure = _with_fringe(pixels, key, sure, lossy)
    return grown(sure, int(grow))


def find_key(image: ArrayLike) -> str | None:
    """The saturated colour of `KEYS` that marks pixels of a picture; None without one.

    Parameters
    ----------
    image : (height, width) or (height, width, 3) array
        As in `find_marks`.

    Returns
    -------
    str or None
        Such as "#ff00ff". Raises ValueError where the picture has several of them.

    Examples
    --------
    >>> import numpy as np
    >>> picture = np.full((32, 32, 3), 90, np.uint8)
    >>> picture[10:14, 4:28] = 0, 255, 0
    >>> find_key(picture)
    '#00ff00'
    """
    pixels = checked(image)
    if pixels.ndim == 2:
        return None
    size = pixels.shape[0] * pixels.shape[1]
    exact = {key: int(np.count_nonzero(_distance(pixels, parse_colour(key)) <= _EXACT)) for key in KEYS}
    found = [key for key, count in exact.items() if count >= (_FEWEST if key in RARE else _LEAST_SHARE * size)]
    if not found:
        blurred = {key: int(np.count_nonzero(_distance(pixels, parse_colour(key)) <= _BLURRED)) for key in RARE}
        found = [key for key, count in blurred.items() if count >= 2 * _FEWEST]
    if len(found) > 1:
        raise ValueError(f"image has pixels of {' and '.join(found)}: say by colour= (--key) which of them are missing")
    return found[0] if found else None


def parse_colour(colour: Colour) -> tuple[int, int, int]:
    """A colour as three numbers from 0 to 255.

    Examples
    --------
    >>> parse_colour("#f0f"), parse_colour("white"), parse_colour((1, 2, 3))
    ((255, 0, 255), (255, 255, 255), (1, 2, 3))
    """
    if not isinstance(colour, str):
        given = as_numbers(colour, "colour").ravel().tolist()
        if len(given) != 3 or not all(0 <= value <= 255 for value in given):
            raise ValueError(f"colour must have three numbers from 0 to 255, got {shown(colour)}")
        return int(given[0]), int(given[1]), int(given[2])
    try:
        values = ImageColor.getrgb(colour.strip())
    except ValueError:
        raise ValueError(
            f'colour {colour!r} is not known: give a name such as "magenta", or "#f0f", "#ff00ff", "rgb(255, 0, 255)"'
        ) from None
    return values[0], values[1], values[2]


def mark_damage(image: ArrayLike, mask: ArrayLike, colour: Colour = "magenta", *, opacity: float = 1.0) -> NDArray[Any]:
    """A picture with a mask painted over it, to look at.

    Parameters
    ----------
    image : (height, width) or (height, width, 3) array
        As in `find_marks`.
    mask : (height, width) array of bool
    colour : str or triple
        As in `find_marks`.
    opacity : float
        One covers what lies below; less lets it shine through.

    Returns
    -------
    (height, width, 3) array of the image's dtype

    Examples
    --------
    >>> import numpy as np
    >>> grey = np.full((2, 2), 100, np.uint8)
    >>> mark_damage(grey, [[True, False], [False, False]])[0].tolist()
    [[255, 0, 255], [100, 100, 100]]
    """
    pixels = checked(image)
    missing = as_numbers(mask, "mask", bool)
    if missing.shape != pixels.shape[:2]:
        raise ValueError(f"mask has shape {missing.shape} but image {pixels.shape[:2]}; they must agree")
    check_arguments(opacity=opacity)
    marked = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else np.array(pixels, order="C")
    paint = np.array(parse_colour(colour)) / 255 * full_scale(pixels)
    mixed = (1 - opacity) * marked[missing] + opacity * paint
    marked[missing] = mixed if pixels.dtype.kind == "f" else np.rint(mixed).astype(pixels.dtype)
    return marked


def grey_beside(picture: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
    """The picture as (height, width) where all that is not marked is grey, so that coloured marks make no colour picture."""
    if picture.ndim == 2:
        return picture
    seen = picture[~mask]
    if len(seen) == 0 or not (np.array_equal(seen[:, 0], seen[:, 1]) and np.array_equal(seen[:, 0], seen[:, 2])):
        return picture
    return np.ascontiguousarray(picture[..., 0])


def grown(mask: NDArray[np.bool_], pixels: int) -> NDArray[np.bool_]:
    """Marked pixels and those at most so many rows and columns away."""
    wide = mask.copy()
    for axis in (0, 1):
        reached = 0
        while reached < pixels:  # every step widens by what is reached already, so that wide margins take few steps
            step = min(reached + 1, pixels - reached)
            ahead, behind = ((slice(None),) * axis + (span,) for span in (slice(step, None), slice(None, -step)))
            before = wide.copy()
            wide[ahead] |= before[behind]
            wide[behind] |= before[ahead]
            reached += step
    return wide


def checked(image: ArrayLike) -> NDArray[Any]:
    """A picture as (height, width) or (height, width, 3) samples of a known type; raises for anything else."""
    pixels = as_numbers(image, "image")
    if pixels.dtype not in (np.uint8, np.uint16, np.float16, np.float32, np.float64):
        raise ValueError(f"image must hold uint8, uint16 or floating-point samples, got {pixels.dtype}")
    if pixels.ndim == 3 and pixels.shape[-1] in (1, 2):
        pixels = pixels[..., 0]
    if pixels.size == 0 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[-1] in (3, 4))):
        raise ValueError(f"image must be (height, width) or (height, width, 3), got shape {pixels.shape}")
    if pixels.dtype.kind == "f" and extremes(np.abs(pixels))[1] > LARGEST_SAMPLE:
        raise ValueError(f"image holds samples beyond {LARGEST_SAMPLE:g}: bring it to [0, 1] first")
    return pixels[..., :3] if pixels.ndim == 3 else pixels


def full_scale(pixels: NDArray[Any]) -> float:
    """The largest value of the type; floating point is taken to end at 1."""
    return float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0


def _bands(pixels: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.uint8]]]:
    """Rows of the picture in 8 bits, so that a large one is never copied whole."""
    for start in range(0, len(pixels), _ROWS):
        rows = slice(start, start + _ROWS)
        yield rows, _levels(pixels[rows])


def _levels(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Samples as 8-bit levels (..., 3) or (...); what is not finite counts as black."""
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype == np.uint16:
        return ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)
    return np.rint(np.clip(np.nan_to_num(pixels.astype(np.float32), posinf=1.0), 0, 1) * 255).astype(np.uint8)


def _distance(pixels: NDArray[Any], key: Levels) -> NDArray[np.uint8]:
    """Largest difference from a colour in any channel, in levels of 255."""
    result = np.empty(pixels.shape[:2], np.uint8)
    for rows, band in _bands(pixels):
        for channel in range(1 if band.ndim == 2 else 3):
            samples, value = band if band.ndim == 2 else band[..., channel], np.uint8(key[channel])
            apart = np.maximum(samples, value) - np.minimum(samples, value)
            result[rows] = apart if channel == 0 else np.maximum(result[rows], apart)
    return result


def _sure(distance: NDArray[np.uint8], key: Levels, tolerance: float | str) -> tuple[Mask, bool]:
    """Pixels that have the colour beyond doubt, and whether they look like those of lossy compression."""
    plain = len(set(key)) == 1
    # Pale colours are near to greys, which photographs are full of: the less saturated, the nearer marks must be.
    saturation = max((max(key) - min(key)) / 255, _PALEST)
    blurred, joined = saturation * _BLURRED, saturation * _JOINED
    widest = _JOINED_PLAIN if plain else blurred
    exact, near = (int(np.count_nonzero(distance <= limit)) for limit in (_EXACT, widest))
    lossy = near - exact > (_PLAIN_NEAR if plain else _NEAR) * exact
    if isinstance(tolerance, str):
        if tolerance != "auto":
            raise ValueError(f'tolerance must be "auto" or a number from 0 to 1, got {tolerance!r}')
        if not lossy:
            return distance <= _EXACT, lossy
        if plain:
            return _connected(distance <= _EXACT, distance <= _JOINED_PLAIN), lossy
        return _connected(distance <= blurred, distance <= joined), lossy
    if not 0 <= tolerance <= 1:
        raise ValueError(f"tolerance must lie between 0 and 1, got {tolerance}")
    return distance <= np.uint8(np.rint(float(tolerance) * 255)), lossy


def _with_fringe(pixels: NDArray[Any], key: Levels, sure: Mask, lossy: bool) -> Mask:
    """Marks with the pixels beside them that look like mixtures of their colour with the surroundings."""
    tint = len(set(key)) > 1
    zone, beside = grown(sure, _REACH if tint or lossy else _REACH_PLAIN), grown(sure, 1)
    means, spreads = _surroundings(pixels, zone, tint)
    target = _samples(np.array(key, np.uint8)[: means.shape[-1]], tint)
    allowed = sure.copy()
    halfway = 0
    for start in range(0, len(zone), _ROWS):
        rows, columns = np.nonzero(zone[start : start + _ROWS])
        here = rows + start, columns
        square = here[0] // _SQUARE, here[1] // _SQUARE
        values = _samples(pixels[here], tint).reshape(len(rows), means.shape[-1])
        share, doubt = _shares(values, target, means[square], spreads[square])
        halfway += int(np.count_nonzero((share > _HALFWAY[0]) & (share < _HALFWAY[1]) & beside[here] & ~sure[here]))
        mixed = share > np.where(beside[here], _bounded(doubt, _MIXED_BESIDE), _bounded(doubt, _MIXED))
        if lossy:
            apart = np.abs(values - means[square]) > np.maximum(_DISTURBED[0] * spreads[square], _DISTURBED[1])
            mixed |= apart.any(axis=-1)
        allowed[here] |= mixed
    taken = _connected(sure, allowed)
    if halfway > _SOFT * np.count_nonzero(beside & ~sure):
        taken |= beside
    return taken | grown(sure, _RINGING) if lossy else taken


def _bounded(doubt: Floats, limits: tuple[float, float, float]) -> Floats:
    return np.clip(limits[0] * doubt, limits[1], limits[2])


def _connected(sure: Mask, allowed: Mask) -> Mask:
    """Allowed pixels that a path of allowed ones joins to sure ones, diagonals included."""
    labels, count = ndimage.label(allowed, np.ones((3, 3), int))
    keep = np.zeros(count + 1, bool)
    keep[labels[sure]] = True
    keep[0] = False
    return keep[labels]


def _samples(pixels: NDArray[Any], tint: bool) -> Floats:
    """Levels as numbers; their differences from grey where it is the tint that counts, so that light and shade do not."""
    levels = _levels(pixels).astype(np.float32)
    if tint:
        levels -= (levels[..., :1] + levels[..., 1:2] + levels[..., 2:]) / np.float32(3)
    return levels


def _surroundings(pixels: NDArray[Any], zone: Mask, tint: bool) -> tuple[Floats, Floats]:
    """Mean and deviation of what lies outside the zone, for every square of 4×4 pixels: (rows, columns, channels)."""
    height, width = zone.shape
    shape = -(-height // _SQUARE), -(-width // _SQUARE)
    channels = 1 if pixels.ndim == 2 else 3
    sums = np.zeros((*shape, 2 * channels + 1), np.float32)
    for start in range(0, height, _ROWS):
        picked = np.s_[start : start + _ROWS : _STRIDE, ::_STRIDE]
        seen = ~zone[picked][..., None]
        band = _samples(pixels[picked], tint).reshape(*seen.shape[:2], channels) * seen
        stack = np.concatenate([band, band**2, seen], axis=-1, dtype=np.float32)
        stack = np.pad(stack, ((0, len(stack) % 2), (0, 2 * shape[1] - stack.shape[1]), (0, 0)))
        halves = stack[::2] + stack[1::2]
        squares = halves[:, ::2] + halves[:, 1::2]
        sums[start // _SQUARE : start // _SQUARE + len(squares)] = squares
    total = sums.reshape(-1, sums.shape[-1]).sum(axis=0, dtype=np.float64).astype(np.float32)
    near = ndimage.uniform_filter(sums, (_SQUARES, _SQUARES, 1), mode="constant")
    far = ndimage.uniform_filter(sums, (6 * _SQUARES, 6 * _SQUARES, 1), mode="constant")
    near = np.where(near[..., -1:] > 0.5, near, np.where(far[..., -1:] > 0.1, far, total / max(total[-1], 1)))
    count = np.maximum(near[..., -1:], 1e-6)
    means = near[..., :channels] / count
    spreads = np.sqrt(np.maximum(near[..., channels:-1] / count - means**2, 0))
    return means, spreads


def _shares(values: Floats, key: Floats, below: Floats, spreads: Floats) -> tuple[Floats, Floats]:
    """Share of the colour in each pixel, and the deviation that this share would have without any of it."""
    towards = key - below
    length = np.maximum(np.sum(towards**2, axis=-1), np.float32(1))
    share = np.sum((values - below) * towards, axis=-1) / length
    deviation = np.sqrt(np.sum((spreads * towards) ** 2, axis=-1)) / length
    return share.astype(np.float32, copy=False), deviation.astype(np.float32, copy=False)
