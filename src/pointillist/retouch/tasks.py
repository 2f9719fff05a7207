"""The tasks that somebody can ask for on the page, each one call of the library."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from pointillist.data.photofiles import Photograph
from pointillist.errors import BlurMisfitWarning
from pointillist.restore.picture import Progress
from pointillist.retouch.marks import grey_beside

NAMES = {"inpaint": "inpainted", "denoise": "denoised", "deblur": "deblurred", "super_resolve": "enlarged"}
"""Tasks, and what is added to the names of files."""

BLURS = ("gaussian", "motion")

_RANGES = {
    "texture": (0, 1, "The grain must lie between 0 and 1."),
    "sigma": (1e-9, 255, "The strength of the noise must lie between 0 and 255."),
    "width": (0.2, 100, "The width of the blur must lie between 0.2 and 100 pixels."),
    "length": (1, 100, "The length of the blur must lie between 1 and 100 pixels."),
    "angle": (-360, 360, "The angle of the blur must lie between -360 and 360 degrees."),
}


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
    texture: float = 0.0
    sigma: float | None = None
    blur: str = "gaussian"
    width: float = 1.5
    length: float = 9.0
    angle: float = 0.0
    force: bool = False

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Read and check the wish that the page sent; settings that are not named keep their default."""
        try:
            values = {name: float(given[name]) for name in _RANGES if given.get(name) is not None}
        except (TypeError, ValueError):
            raise ValueError("A setting is not a number.") from None
        for name, value in values.items():
            least, most, sentence = _RANGES[name]
            if not least <= value <= most:
                raise ValueError(sentence)
        task, blur = str(given.get("task")), str(given.get("blur", "gaussian"))
        if task not in NAMES:
            raise ValueError(f"task must be one of {', '.join(NAMES)}, got {task!r}")
        if blur not in BLURS:
            raise ValueError(f"blur must be one of {', '.join(BLURS)}, got {blur!r}")
        return cls(task=task, blur=blur, force=given.get("force") is True, **values)

    def kernel(self) -> NDArray[np.float64]:
        """The blur that is to be undone."""
        return pt.gaussian_kernel(self.width) if self.blur == "gaussian" else pt.motion_kernel(self.length, self.angle)


def mend(wish: Wish, photograph: Photograph, mask: NDArray[np.bool_] | None, progress: Progress) -> Photograph:
    """The mended photograph; `mask` is for filling in only."""
    pixels, alpha = photograph.pixels, photograph.alpha
    if wish.task == "inpaint" and mask is not None:
        # A grey photograph that was marked in colour, or saved in colour, stays without any tint.
        mended = pt.inpaint(grey_beside(pixels, mask), mask, texture=wish.texture, progress=progress)
        if alpha is not None:  # holes that were erased to transparency are filled in to be seen
            alpha = np.where(mask & (alpha == 0), alpha.dtype.type(photograph.peak), alpha)
    elif wish.task == "denoise":
        mended = pt.denoise(pixels, wish.sigma and wish.sigma * photograph.peak / 255, progress=progress)
    elif wish.task == "deblur":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BlurMisfitWarning)  # the page says it
            mended, details = pt.deblur(pixels, wish.kernel(), force=wish.force, progress=progress, return_details=True)
        if details.misfit is not None:
            raise ValueError(
                f"This blur does not seem to be the photograph's own: {details.misfit}. Estimate it, change it, or tick "
                "“Even if it does not seem to fit”."
            )
    else:
        mended = pt.super_resolve(pixels, 2, progress=progress)
        alpha = None if alpha is None else alpha.repeat(2, axis=0).repeat(2, axis=1)
    return photograph.with_pixels(mended, alpha)


def estimate(pixels: NDArray[Any], blur: str, progress: Progress) -> dict[str, float]:
    """Settings of the blur that fits the photograph best: `width`, or `length` and `angle`."""
    if blur not in BLURS:
        raise ValueError(f"blur must be one of {', '.join(BLURS)}, got {blur!r}")
    progress(0)
    found = pt.estimate_blur(pixels, kind=blur)
    if not found.confidence > 0:
        raise ValueError("No blur of this kind was found: the photograph seems to be sharp, or blurred in another way.")
    settings = {"width": found.sigma, "length": found.length, "angle": found.angle}
    return {name: round(value, 2 if name == "width" else 1) for name, value in settings.items() if value is not None}
