"""Text and lost pixels filled in.

Words are printed over a photograph, and of another copy 70 % of the pixels are lost. `inpaint` takes the picture and a
mask of what is missing. Pixels that were seen stay as they are, to the bit.
"""

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw

import pointillist as pt

photo = np.uint8(255 * pt.photographs("test", grey=False)["coffee"])
height, width = photo.shape[:2]

printed = Image.new("1", (width, height))
pen = ImageDraw.Draw(printed)
for line in range(9):
    pen.text((6, 26 * line), "Pikolo Espresso Bar, a flat white, please. " * 2, fill=1, font_size=17)
text = np.asarray(printed)
lost = np.random.default_rng(0).random((height, width)) < 0.7

figure, panels = plt.subplots(2, 2, figsize=(13, 9.2), layout="constrained")
for row, (name, missing) in zip(panels, {"Text": text, "70 % of the pixels lost": lost}.items()):
    damaged = np.where(missing[..., None], 0, photo).astype(np.uint8)
    mended = pt.inpaint(damaged, missing)
    assert np.array_equal(mended[~missing], photo[~missing])
    quality = pt.psnr(photo[missing].astype(float), mended[missing].astype(float))
    print(f"{name}: {missing.mean():.0%} missing, {quality:.1f} dB on the missing pixels")
    for panel, picture, title in zip(row, [damaged, mended], [name, f"Filled in, {quality:.1f} dB"]):
        panel.imshow(picture)
        panel.set_title(title, loc="left")
        panel.axis("off")
figure.savefig("inpaint.png", dpi=110)
