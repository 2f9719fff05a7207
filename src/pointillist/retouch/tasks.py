"""Everything that can be done to a photograph on the page, as calls of the library."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from pointillist.data.photofiles import Photograph
from pointillist.errors import BlurMisfitWarning
from pointillist.retouch.jobs import Progress
from pointillist.retouch.marks import KEYS, find_key, find_marks, grey_beside

TASKS = ("inpaint", "denoise", "deblur", "super_resolve")
BLURS = ("gaussian", "motion")
FACTOR = 2

_COLOURS = dict(zip(KEYS, ("magenta", "green", "red", "cyan", "blue", "yellow"), strict=True))
_LONGEST_BLUR = 100.0


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A task with its settings, as somebody asked for it on the page.

    Parameters
    ----------
    task : {"inpaint", "denoise", "deblur", "super_resolve"}
    texture : float
        inpaint: from 0 to 1, how much of the texture around is carried over.
    sigma : float, optional
        denoise: the noise's deviation in levels of 0 to 255; None measures it.
    blur : {"gaussian", "motion"}
        deblur: what kind of blur it was.
    width : float
        deblur: the deviation of a Gaussian blur, in pixels.
    length, angle : float
        deblur: of a motion blur, in pixels and in degrees anticlockwise from the horizontal.
    force : bool
        deblur: undo the blur even where it does not seem to be the photograph's own.
    """

    task: str
    texture: float = 0.5
    sigma: float | None = None
    blur: str = "gaussian"
    width: float = 1.5
    length: float = 9.0
    angle: float = 0.0
    force: bool = False

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task must be one of {', '.join(TASKS)}, got {self.task!r}")
        if self.blur not in BLURS:
            raise ValueError(f"blur must be one of {', '.join(BLURS)}, got {self.blur!r}")
        if not 0 <= self.texture <= 1:
            raise ValueError(f"The grain must lie between 0 and 1, not at {self.texture}.")
        if self.sigma is not None and not 0 < self.sigma <= 255:
            raise ValueError(f"The strength of the noise must lie between 0 and 255, not at {self.sigma}.")
        if not 0.2 <= self.width <= _LONGEST_BLUR:
            raise ValueError(f"The width of the blur must lie between 0.2 and {_LONGEST_BLUR:g} pixels.")
        if not 1 <= self.length <= _LONGEST_BLUR:
            raise ValueError(f"The length of the blur must lie between 1 and {_LONGEST_BLUR:g} pixels.")
        if not -360 <= self.angle <= 360:
            raise ValueError("The angle of the blur must lie between -360 and 360 degrees.")

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Read the wish that the page sent; what is not named keeps its default."""
        names = ("texture", "sigma", "width", "length", "angle")
        numbers = {name: given[name] for name in names if given.get(name) is not None}
        try:
            values = {name: float(value) for name, value in numbers.items()}
        except (TypeError, ValueError):
            raise ValueError("A setting is not a number.") from None
        blur, force = str(given.get("blur", "gaussian")), given.get("force") is True
        return cls(task=str(given.get("task")), blur=blur, force=force, **values)


def mend(wish: Wish, photograph: Photograph, mask: NDArray[np.bool_] | None, progress: Progress) -> Photograph:
    """The mended photograph; `mask` is for filling in only."""
    pixels, alpha = photograph.pixels, photograph.alpha
    if wish.task == "inpaint":
        if alpha is not None and mask is not None:
            # Holes that were erased to transparency are filled in to be seen.
            alpha = np.where(mask & (alpha == 0), alpha.dtype.type(photograph.peak), alpha)
        return photograph.with_pixels(_filled(wish, pixels, mask, progress), alpha)
    if wish.task == "denoise":
        sigma = None if wish.sigma is None else wish.sigma * photograph.peak / 255
        return photograph.with_pixels(pt.denoise(pixels, sigma, progress=progress))
    if wish.task == "deblur":
        return photograph.with_pixels(_sharpened(wish, pixels, progress))
    if alpha is not None:
        alpha = np.repeat(np.repeat(alpha, FACTOR, axis=0), FACTOR, axis=1)
    return photograph.with_pixels(pt.super_resolve(pixels, FACTOR, progress=progress), alpha)


def _filled(wish: Wish, pixels: NDArray[Any], mask: NDArray[np.bool_] | None, progress: Progress) -> NDArray[Any]:
    """Filled-in pixels; a grey photograph that was marked in colour, or saved in colour, stays without any tint."""
    grey = pixels if mask is None else grey_beside(pixels, mask)
    filled = pt.inpaint(grey, mask, texture=wish.texture, progress=progress)
    return filled if filled.ndim == pixels.ndim else np.stack([filled] * pixels.shape[-1], axis=-1)


def _sharpened(wish: Wish, pixels: NDArray[Any], progress: Progress) -> NDArray[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BlurMisfitWarning)  # the page says it
        mended, details = pt.deblur(pixels, kernel(wish), force=wish.force, progress=progress, return_details=True)
    if details.misfit is not None:
        raise ValueError(
            f"This blur does not seem to be the photograph's own: {details.misfit}. Estimate it, change it, or tick "
            "“Even if it does not seem to fit”."
        )
    return mended


def kernel(wish: Wish) -> NDArray[np.float64]:
    """The blur that a wish describes."""
    return pt.gaussian_kernel(wish.width) if wish.blur == "gaussian" else pt.motion_kernel(wish.length, wish.angle)


def find(pixels: NDArray[Any], sensitivity: float, progress: Progress) -> NDArray[np.bool_]:
    """Mask of dust and scratches; more of them with more sensitivity, from 0 to 1."""
    return pt.find_damage(pixels, sensitivity=sensitivity, progress=progress)


def find_text(pixels: NDArray[Any], sensitivity: float, progress: Progress) -> NDArray[np.bool_]:
    """Mask of writing over the photograph; more of it with more sensitivity, from 0 to 1."""
    return pt.find_damage(pixels, "text", sensitivity=sensitivity, progress=progress)


def marks_key(pixels: NDArray[Any]) -> str | None:
    """The saturated colour that marks pixels of a photograph; None without one, and where several do."""
    try:
        return find_key(pixels)
    except ValueError:
        return None


def find_marked(pixels: NDArray[Any], key: str, progress: Progress) -> NDArray[np.bool_]:
    """Mask of what somebody painted over in a colour, with the soft edges of the paint."""
    progress(0)
    return find_marks(pixels, key)


def colour_name(key: str) -> str:
    """A word for a colour that `marks_key` found."""
    return _COLOURS[key]


def estimate(pixels: NDArray[Any], blur: str, progress: Progress) -> dict[str, float]:
    """Settings of the blur that fits the photograph best: `width`, or `length` and `angle`."""
    if blur not in BLURS:
        raise ValueError(f"blur must be one of {', '.join(BLURS)}, got {blur!r}")
    progress(0)
    found = pt.estimate_blur(pixels, kind=blur)
    if not found.confidence > 0:
        raise ValueError("No blur of this kind was found: the photograph seems to be sharp, or blurred in another way.")
    names = {"width": found.sigma, "length": found.length, "angle": found.angle}
    return {name: round(value, 2 if name == "width" else 1) for name, value in names.items() if value is not None}
