"""Pixels that somebody painted over to mark them as missing: found by their colour, with soft edges and JPEG's bleeding.

Pixels that surely have the colour come first; then those beside them that look like a mixture of it with the surroundings.
Damage that nobody marked is found in `finding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
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


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured on marks painted into photographs; levels are of 255, in the channel that differs most."""

    fewest: int = 24
    """Pixels of a rare key that are marks."""
    exact: int = 2
    """Levels from the colour of a pixel that has it."""
    blurred: int = 48
    """Levels from it after JPEG."""
    joined: int = 100
    """Levels from it of what hangs together with such pixels."""
    joined_plain: int = 24
    """Levels of these for white, black and greys, which photographs are full of."""
    near: tuple[float, float] = (0.35, 0.5)
    """Pixels near the colour, of a tint or plain, for each that has it, above which the picture was compressed."""
    reach: int = 10
    """Pixels beyond a mark: chroma at half resolution in blocks of 8 rarely carries a visible tint farther."""
    mixed: tuple[float, float, float] = (2.5, 0.035, 0.3)
    """Share of the colour in a mixture: in deviations of the surroundings, at least, at most."""
    disturbed: tuple[float, float] = (2.5, 6.0)
    """Disturbance of JPEG elsewhere: in deviations of the surroundings, and levels at least."""


TUNING = Tuning()

_ROWS = 512
_SQUARE = 4


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
    if not (tolerance == "auto" if isinstance(tolerance, str) else is_number(tolerance) and 0 <= tolerance <= 1):
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
    levels = _levels(pixels)
    distance, plain = _distance(levels, key), len(set(key)) == 1
    saturation = max((max(key) - min(key)) / 255, 0.2)  # pale colours are near to greys
    blurred, joined = saturation * TUNING.blurred, saturation * TUNING.joined
    if plain:
        blurred, joined = TUNING.exact, TUNING.joined_plain
    exact, near = (int(np.count_nonzero(distance <= most)) for most in (TUNING.exact, joined if plain else blurred))
    lossy = near - exact > TUNING.near[plain] * exact
    if not isinstance(tolerance, str):
        sure = distance <= round(255 * float(tolerance))
    elif lossy:
        sure = connected(distance <= blurred, distance <= joined)
    else:
        sure = distance <= TUNING.exact
    if fringe and sure.any():
        sure = _with_fringe(levels, key, sure, lossy)
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
    levels = _levels(checked(image))
    if levels.ndim == 2:
        return None

    def marked(keys: tuple[str, ...], most: int) -> dict[str, int]:
        return {key: int(np.count_nonzero(_distance(levels, parse_colour(key)) <= most)) for key in keys}

    many = 1e-3 * levels[..., 0].size  # share of the picture that another key must have
    exact = marked(KEYS, TUNING.exact)
    found = [key for key, count in exact.items() if count >= (TUNING.fewest if key in RARE else many)]
    if not found:
        found = [key for key, count in marked(RARE, TUNING.blurred).items() if count >= 2 * TUNING.fewest]
    if len(found) > 1:
        raise ValueError(f"image has pixels of {' and '.join(found)}: say by colour= which of them are missing")
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
    if picture.ndim == 3 and not mask.all() and np.all(picture[~mask] == picture[~mask][:, :1]):
        return np.ascontiguousarray(picture[..., 0])
    return picture


def grown(mask: NDArray[np.bool_], pixels: int) -> NDArray[np.bool_]:
    """Marked pixels and those at most so many rows and columns away."""
    return ndimage.maximum_filter(mask, 2 * pixels + 1, mode="constant")


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


def _levels(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Samples as 8-bit levels, band by band; what is not finite counts as black."""
    if pixels.dtype == np.uint8:
        return pixels
    levels = np.empty(pixels.shape, np.uint8)
    for start in range(0, len(pixels), _ROWS):
        band = pixels[start : start + _ROWS].astype(np.float32) * np.float32(255 / full_scale(pixels))
        levels[start : start + _ROWS] = np.rint(np.clip(np.nan_to_num(band, copy=False, posinf=255.0), 0, 255))
    return levels


def _distance(levels: NDArray[np.uint8], key: Levels) -> NDArray[np.uint8]:
    """Largest difference from a colour in any channel, in levels of 255."""
    channels = levels[None] if levels.ndim == 2 else np.moveaxis(levels, -1, 0)
    pairs = zip(channels, np.array(key, np.uint8), strict=False)  # grey has the first value alone
    apart = (np.maximum(channel, value) - np.minimum(channel, value) for channel, value in pairs)
    return reduce(np.maximum, apart)


def _with_fringe(levels: NDArray[np.uint8], key: Levels, sure: Mask, lossy: bool) -> Mask:
    """Marks with the pixels beside them that look like mixtures of their colour with the surroundings."""
    tint = len(set(key)) > 1
    zone, beside = grown(sure, TUNING.reach if tint or lossy else 3), grown(sure, 1)
    means, spreads = _surroundings(levels, zone, tint)
    target = _samples(np.array(key, np.uint8)[: means.shape[-1]], tint)
    allowed = sure.copy()
    halfway = 0
    for start in range(0, len(zone), _ROWS):
        rows, columns = np.nonzero(zone[start : start + _ROWS])
        here = rows + start, columns
        square = here[0] // _SQUARE, here[1] // _SQUARE
        below, spread = means[square], spreads[square]
        values = _samples(levels[here], tint).reshape(below.shape)
        # Share of the colour in each pixel, and the deviation that this share would have without any of it.
        towards = target - below
        length = np.maximum(np.sum(towards**2, axis=-1), np.float32(1))
        share = np.sum((values - below) * towards, axis=-1) / length
        doubt = np.sqrt(np.sum((spread * towards) ** 2, axis=-1)) / length
        halfway += int(np.count_nonzero((share > 0.15) & (share < 0.85) & beside[here] & ~sure[here]))
        times, low, high = TUNING.mixed
        mixed = share > np.clip(times * doubt, low, high)
        if lossy:
            deviations, at_least = TUNING.disturbed
            mixed |= np.any(np.abs(values - below) > np.maximum(deviations * spread, at_least), axis=-1)
        allowed[here] |= mixed
    taken = connected(sure, allowed)
    if halfway > 0.3 * np.count_nonzero(beside & ~sure):
        taken |= beside
    return taken | grown(sure, 3) if lossy else taken


def connected(sure: Mask, allowed: Mask) -> Mask:
    """Allowed pixels that a path of allowed ones joins to sure ones, diagonals included."""
    labels, count = ndimage.label(allowed, np.ones((3, 3), int))
    keep = np.zeros(count + 1, bool)
    keep[labels[sure]] = True
    keep[0] = False
    return keep[labels]


def _samples(levels: NDArray[np.uint8], tint: bool) -> Floats:
    """Levels as numbers; their differences from grey where it is the tint that counts, so that light and shade do not."""
    samples = levels.astype(np.float32)
    if tint:
        samples -= (samples[..., :1] + samples[..., 1:2] + samples[..., 2:]) / np.float32(3)
    return samples


def _surroundings(levels: NDArray[np.uint8], zone: Mask, tint: bool) -> tuple[Floats, Floats]:
    """Mean and deviation of what lies outside the zone, for every square of 4×4 pixels: (rows, columns, channels).

    A pixel of each square tells them, in nine by nine squares; where none of these was outside, in six times as many rows
    and columns, and where none of those was either, in all of the picture.
    """
    seen = ~zone[::_SQUARE, ::_SQUARE, None]
    band = _samples(levels[::_SQUARE, ::_SQUARE], tint).reshape(*seen.shape[:2], -1) * seen
    sums = np.concatenate([band, band**2, seen], axis=-1).astype(np.float32)
    total = sums.mean(axis=(0, 1))
    near, far = (ndimage.uniform_filter(sums, (side, side, 1), mode="constant") for side in (9, 54))
    near = np.where(near[..., -1:] > 0.1, near, np.where(far[..., -1:] > 0.02, far, total))
    means, squared = np.split(near[..., :-1] / np.maximum(near[..., -1:], 1e-6), 2, axis=-1)
    return means, np.sqrt(np.maximum(squared - means**2, 0))
