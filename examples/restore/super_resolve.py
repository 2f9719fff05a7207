"""Enlarge a photograph twofold, beside bicubic interpolation."""

import numpy as np
from panels import output, photograph, save
from PIL import Image

import pointillist as pt

picture = photograph("camera")
picture = picture[: picture.shape[0] // 2 * 2, : picture.shape[1] // 2 * 2]
rows, columns = (n // 2 for n in picture.shape)
small = np.round(picture.reshape(rows, 2, columns, 2).mean(axis=(1, 3))).astype(np.uint8)
bicubic = np.asarray(Image.fromarray(small).resize(picture.shape[::-1], Image.Resampling.BICUBIC))
nearest = np.repeat(np.repeat(small, 2, axis=0), 2, axis=1)
save(output("super_resolve.png"), picture, seen=nearest, bicubic=bicubic, restored=pt.super_resolve(small, 2))
