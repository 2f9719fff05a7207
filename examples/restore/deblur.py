"""Undo a Gaussian blur of a photograph with a little noise on top."""

import numpy as np
from panels import output, photograph, save
from scipy.ndimage import convolve

import pointillist as pt

picture = photograph("camera")
line = np.exp(-0.5 * (np.arange(-6, 7) / 1.8) ** 2)
psf = np.outer(line, line) / line.sum() ** 2
blurred = convolve(picture.astype(float), psf) + 2 * np.random.default_rng(0).standard_normal(picture.shape)
blurred = np.clip(np.round(blurred), 0, 255).astype(np.uint8)
save(output("deblur.png"), picture, blurred=blurred, sharpened=pt.deblur(blurred, psf))
