"""Dust and scratches found and mended.

`find_damage` looks for specks and lines that do not belong to a photograph, so that nobody has to mark them. `inpaint`
fills in what was found, which is shown in magenta. Look at it before you trust it: some damage is missed, more in
small pictures such as this one than in large ones. With more `sensitivity` more is found, at last also what belongs to
the photograph.
"""

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw, ImageFilter

import pointillist as pt

rng = np.random.default_rng(4)
photo = np.uint8(255 * pt.photographs("test", grey=False)["coffee"])
height, width = photo.shape[:2]

scars = Image.new("L", (4 * width, 4 * height))  # drawn four times as large, for soft edges
pen = ImageDraw.Draw(scars)
for x, y, radius in zip(rng.uniform(0, 4 * width, 40), rng.uniform(0, 4 * height, 40), rng.uniform(4, 9, 40)):
    pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill=255)
for x, y, angle in zip((150, 500, 900), rng.uniform(100, 400, 3), rng.uniform(0.2, 1.3, 3)):
    pen.line([x, y, x + 500 * np.cos(angle), y + 500 * np.sin(angle)], fill=255, width=7)
cover = np.asarray(scars.filter(ImageFilter.GaussianBlur(2)).resize((width, height), Image.Resampling.BOX)) / 255
damaged = np.uint8(photo * (1 - cover[..., None]) + 245 * cover[..., None])

found = pt.find_damage(damaged, polarity="bright", sensitivity=0.75)
mended = pt.inpaint(damaged, found)
caught, taken = found[cover > 0.3].mean(), found[cover == 0].mean()
print(f"found {caught:.0%} of the damaged pixels; {taken:.1%} of the sound ones were taken too")
before, after = (pt.psnr(photo.astype(float), picture.astype(float)) for picture in (damaged, mended))
print(f"whole picture: {before:.1f} dB damaged, {after:.1f} dB mended")

figure, panels = plt.subplots(1, 3, figsize=(15, 3.9), layout="constrained")
titles = [f"Damaged, {before:.1f} dB", "What was found", f"Mended, {after:.1f} dB"]
for panel, picture, title in zip(panels, [damaged, pt.mark_damage(damaged, found), mended], titles):
    panel.imshow(picture)
    panel.set_title(title, loc="left")
    panel.axis("off")
figure.savefig("dust.png", dpi=110)
