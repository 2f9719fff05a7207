"""A photograph enlarged twofold.

Each pixel of the small picture is the mean of four. `super_resolve` looks for the sharp picture that has these means
and few codes. Beside it: cubic interpolation, which can only be smooth.
"""

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import pointillist as pt

photo = np.uint8(255 * pt.photographs("test")["camera"])
height, width = photo.shape
small = np.uint8(photo.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3)).round())

large = pt.super_resolve(small, 2)
cubic = np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))

figure, panels = plt.subplots(1, 4, figsize=(16, 4.4), layout="constrained")
crop = np.s_[40:190, 110:260]
seen = small.repeat(2, axis=0).repeat(2, axis=1)
for panel, (name, picture) in zip(
    panels, {"Seen": seen, "Cubic": cubic, "Enlarged": large, "The truth": photo}.items()
):
    title = name
    if picture is not photo:
        title += f", {pt.psnr(photo.astype(float), picture.astype(float)):.1f} dB"
        print(title)
    panel.imshow(picture[crop], cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    panel.set_title(title, loc="left")
    panel.axis("off")
figure.savefig("super_resolve.png", dpi=110)
