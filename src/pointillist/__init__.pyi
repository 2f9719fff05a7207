# The public names and where they live: type checkers read this file, and so does the package when a name is first used.
from . import solvers
from .anomalies import AnomalyScore, anomaly_score, learn_windows, remove_baseline
from .codes import SparseCodes
from .data import (
    as_signals,
    contrast_normalise,
    load_filters,
    load_image,
    load_images,
    load_signals,
    photographs,
    sources,
)
from .data.photofiles import Photograph, read_photograph, write_photograph
from .data.sources import open_source
from .dictionary.constraints import split_channels
from .errors import (
    BlurMisfitWarning,
    CheckpointError,
    FileVersionError,
    ModelFileError,
    PointillistError,
    UnreadableFileError,
    UnusableSignalError,
)
from .learners import BatchCSC, FilterUpdate, OnlineCSC, Ridge, Robust
from .learners.checkpoints import Checkpoints
from .learners.estimators import CodePooling, load, save
from .metrics import Recovery, psnr, recovery_score
from .plot.plots import plot_codes, plot_convergence, plot_filters, plot_reconstruction
from .problem import Problem
from .restore import (
    BlurEstimate,
    Details,
    deblur,
    demosaic,
    denoise,
    estimate_blur,
    estimate_sigma,
    gaussian_kernel,
    inpaint,
    motion_kernel,
    super_resolve,
)
from .retouch.damage import find_damage
from .retouch.marks import find_marks, mark_damage
from .sampling import Draws
from .solvers.base import Result, Status, certify
from .solvers.encoding import PathPoint, decode, encode, max_penalty, penalty_path
from .solvers.explained_variance import ExplainedVariance, explained_variance
from .solvers.on_device import prefetch
from .storage import load_codes, save_codes

__all__ = [
    "anomaly_score",
    "AnomalyScore",
    "as_signals",
    "BatchCSC",
    "BlurEstimate",
    "BlurMisfitWarning",
    "certify",
    "CheckpointError",
    "Checkpoints",
    "CodePooling",
    "contrast_normalise",
    "deblur",
    "decode",
    "demosaic",
    "denoise",
    "Details",
    "Draws",
    "encode",
    "estimate_blur",
    "estimate_sigma",
    "explained_variance",
    "ExplainedVariance",
    "FileVersionError",
    "FilterUpdate",
    "find_damage",
    "find_marks",
    "gaussian_kernel",
    "inpaint",
    "learn_windows",
    "load",
    "load_codes",
    "load_filters",
    "load_image",
    "load_images",
    "load_signals",
    "mark_damage",
    "max_penalty",
    "ModelFileError",
    "motion_kernel",
    "OnlineCSC",
    "open_source",
    "PathPoint",
    "penalty_path",
    "Photograph",
    "photographs",
    "plot_codes",
    "plot_convergence",
    "plot_filters",
    "plot_reconstruction",
    "PointillistError",
    "prefetch",
    "Problem",
    "psnr",
    "read_photograph",
    "Recovery",
    "recovery_score",
    "remove_baseline",
    "Result",
    "Ridge",
    "Robust",
    "save",
    "save_codes",
    "SparseCodes",
    "split_channels",
    "solvers",
    "sources",
    "Status",
    "super_resolve",
    "UnreadableFileError",
    "UnusableSignalError",
    "write_photograph",
]

__version__: str
