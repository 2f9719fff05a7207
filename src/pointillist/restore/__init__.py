"""Pictures mended with the same engine: each damage is a weighted coding problem with (blurred) filters."""

from pointillist.restore.deblurring import deblur
from pointillist.restore.demosaicing import demosaic
from pointillist.restore.denoising import denoise
from pointillist.restore.details import Details
from pointillist.restore.enlarging import super_resolve
from pointillist.restore.estimating import BlurEstimate, estimate_blur
from pointillist.restore.finding import find_damage
from pointillist.restore.inpainting import inpaint
from pointillist.restore.kernels import gaussian_kernel, motion_kernel
from pointillist.restore.marks import find_key, find_marks, grey_beside, mark_damage
from pointillist.restore.noise import estimate_sigma

__all__ = [
    "inpaint", "denoise", "deblur", "super_resolve", "demosaic", "estimate_sigma", "find_marks", "find_damage",
    "mark_damage", "find_key", "grey_beside", "estimate_blur", "BlurEstimate", "gaussian_kernel", "motion_kernel",
    "Details",
]  # fmt: skip
