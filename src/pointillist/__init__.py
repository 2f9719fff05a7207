"""Pointillist: stochastic convolutional sparse coding for images, signals and volumes."""

from importlib.metadata import version

from pointillist.data import contrast_normalise, load_image, load_images, load_signals, photographs
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.model.codes import SparseCodes
from pointillist.model.metrics import psnr
from pointillist.solvers import CoordinateDescent, FrequencyADMM, SampledADMM
from pointillist.solvers.base import Result, Status
from pointillist.solvers.encoding import decode, encode, max_penalty

__version__ = version("pointillist")

__all__ = [
    "BatchCSC",
    "OnlineCSC",
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
]
