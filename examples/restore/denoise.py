"""Remove Gaussian noise of unknown level, and salt and pepper, from a photograph."""

import numpy as np
from panels import output, photograph, save

import pointillist as pt

rng = np.random.default_rng(0)
picture = photograph("camera")
noisy = np.clip(np.round(picture + 20 * rng.standard_normal(picture.shape)), 0, 255).astype(np.uint8)
peppered = np.where(rng.random(picture.shape) < 0.1, rng.choice([0, 255], picture.shape), picture).astype(np.uint8)
save(
    output("denoise.png"),
    picture,
    noisy=noisy,
    denoised=pt.denoise(noisy),
    salt_and_pepper=peppered,
    cleaned=pt.denoise(peppered, noise="salt_pepper"),
)
