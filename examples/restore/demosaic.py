"""A colour photograph from a sensor that saw one colour in each pixel."""

import numpy as np
from panels import output, photograph, save

import pointillist as pt

picture = photograph("coffee", grey=False)[:256, :256]
mosaic = picture[..., 1].copy()  # RGGB: red, green / green, blue
mosaic[0::2, 0::2] = picture[0::2, 0::2, 0]
mosaic[1::2, 1::2] = picture[1::2, 1::2, 2]
seen = np.stack([mosaic] * 3, axis=-1)
save(output("demosaic.png"), picture, mosaic=seen, demosaiced=pt.demosaic(mosaic, "RGGB"))
