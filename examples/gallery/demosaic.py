"""Colour from a sensor's mosaic.

A camera's sensor sees one colour in each pixel: red, green, green or blue. `demosaic` codes all three channels with
colour filters and keeps what was seen. Beside it: each channel interpolated by itself, with coloured fringes at edges.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import convolve

import pointillist as pt

photo = np.uint8(255 * pt.photographs("test", grey=False)["coffee"])
place = np.indices(photo.shape[:2]).sum(axis=0) % 2  # 0: red or blue, 1: green
channel = np.where(place == 1, 1, 2 * (np.arange(photo.shape[0])[:, None] % 2))
mosaic = np.take_along_axis(photo, channel[..., None], axis=2)[..., 0]

colour = pt.demosaic(mosaic, "RGGB")

weights = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 4
seen = channel[..., None] == np.arange(3)
sums = [convolve(np.where(seen[..., k], mosaic, 0).astype(float), weights, mode="mirror") for k in range(3)]
counts = [convolve(seen[..., k].astype(float), weights, mode="mirror") for k in range(3)]
plain = np.where(seen, mosaic[..., None], np.stack(sums, -1) / np.stack(counts, -1)).clip(0, 255).astype(np.uint8)

figure, panels = plt.subplots(1, 4, figsize=(16, 4.4), layout="constrained")
crop = np.s_[30:130, 150:250]
pictures = {
    "The mosaic": np.where(seen, photo, 0),
    "Each channel alone": plain,
    "Demosaiced": colour,
    "The truth": photo,
}
for panel, (name, picture) in zip(panels, pictures.items()):
    title = name
    if name in ("Each channel alone", "Demosaiced"):
        title += f", {pt.psnr(photo.astype(float), picture.astype(float)):.1f} dB"
        print(title)
    panel.imshow(picture[crop], interpolation="nearest")
    panel.set_title(title, loc="left")
    panel.axis("off")
figure.savefig("demosaic.png", dpi=110)
