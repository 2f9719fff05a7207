"""Pictures mended with the same engine: each damage is a weighted coding problem with (blurred) filters."""

from pointillist.restore.blur import BlurEstimate, estimate_blur, gaussian_kernel, motion_kernel
from pointillist.restore.deblurring import deblur
from pointillist.restore.demosaicing import demosaic
from pointillist.restore.denoising import denoise, estimate_sigma
from pointillist.restore.inpainting import inpaint
from pointillist.restore.subject import Details
from pointillist.restore.super_resolution import super_resolve

__all__ = [
    "inpaint", "denoise", "deblur", "super_resolve", "demosaic", "estimate_sigma", "estimate_blur", "BlurEstimate",
    "gaussian_kernel", "motion_kernel", "Details",
]  # fmt: skip
