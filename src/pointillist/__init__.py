"""Pointillist: stochastic convolutional sparse coding for images, signals and volumes.

Names are imported when they are first used, so that ``import pointillist`` and ``pointillist --help`` stay quick.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointillist.data import (
        contrast_normalise,
        load_filters,
        load_image,
        load_images,
        load_signals,
        photographs,
    )
    from pointillist.data.photofiles import Photograph, read_photograph, write_photograph
    from pointillist.data.sources import (
        ArraySource,
        CropSource,
        Hdf5Source,
        ImageSource,
        IteratorSource,
        JoinedSource,
        NormalisedSource,
        NpySource,
        TiffSource,
        ZarrSource,
        open_source,
    )
    from pointillist.learners import BatchCSC, OnlineCSC
    from pointillist.learners.checkpoint import Checkpoints
    from pointillist.learners.device import prefetch
    from pointillist.learners.persistence import load, load_codes, save, save_codes
    from pointillist.model.codes import SparseCodes
    from pointillist.model.metrics import psnr
    from pointillist.restore import (
        BlurEstimate,
        BlurMisfitWarning,
        deblur,
        demosaic,
        denoise,
        estimate_blur,
        estimate_sigma,
        find_damage,
        find_marks,
        gaussian_kernel,
        inpaint,
        mark_damage,
        motion_kernel,
        penalty_path,
        super_resolve,
    )
    from pointillist.solvers import CoordinateDescent, FrequencyADMM, SampledADMM
    from pointillist.solvers.base import Result, Status
    from pointillist.solvers.encoding import decode, encode, max_penalty

__version__ = version("pointillist")

__all__ = [
    "BatchCSC",
    "OnlineCSC",
    "Checkpoints",
    "encode",
    "decode",
    "max_penalty",
    "psnr",
    "Result",
    "SparseCodes",
    "Status",
    "CoordinateDescent",
    "SampledADMM",
    "FrequencyADMM",
    "contrast_normalise",
    "load_image",
    "load_images",
    "load_signals",
    "photographs",
    "load_filters",
    "Photograph",
    "read_photograph",
    "write_photograph",
    "open_source",
    "ArraySource",
    "CropSource",
    "Hdf5Source",
    "ImageSource",
    "IteratorSource",
    "JoinedSource",
    "NormalisedSource",
    "NpySource",
    "TiffSource",
    "ZarrSource",
    "inpaint",
    "denoise",
    "deblur",
    "super_resolve",
    "demosaic",
    "find_marks",
    "find_damage",
    "mark_damage",
    "estimate_sigma",
    "estimate_blur",
    "BlurEstimate",
    "BlurMisfitWarning",
    "gaussian_kernel",
    "motion_kernel",
    "penalty_path",
    "prefetch",
    "save",
    "load",
    "save_codes",
    "load_codes",
]

_HOMES = {
    "data": ("contrast_normalise", "load_filters", "load_image", "load_images", "load_signals", "photographs"),
    "data.photofiles": ("Photograph", "read_photograph", "write_photograph"),
    "data.sources": (
        "ArraySource",
        "CropSource",
        "Hdf5Source",
        "ImageSource",
        "IteratorSource",
        "JoinedSource",
        "NormalisedSource",
        "NpySource",
        "TiffSource",
        "ZarrSource",
        "open_source",
    ),
    "learners": ("BatchCSC", "OnlineCSC"),
    "learners.checkpoint": ("Checkpoints",),
    "learners.device": ("prefetch",),
    "learners.persistence": ("load", "load_codes", "save", "save_codes"),
    "model.codes": ("SparseCodes",),
    "model.metrics": ("psnr",),
    "restore": (
        "BlurEstimate",
        "BlurMisfitWarning",
        "deblur",
        "demosaic",
        "denoise",
        "estimate_blur",
        "estimate_sigma",
        "find_damage",
        "find_marks",
        "gaussian_kernel",
        "inpaint",
        "mark_damage",
        "motion_kernel",
        "penalty_path",
        "super_resolve",
    ),
    "solvers": ("CoordinateDescent", "FrequencyADMM", "SampledADMM"),
    "solvers.base": ("Result", "Status"),
    "solvers.encoding": ("decode", "encode", "max_penalty"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
