"""A shaken camera.

The photograph was moved by nine pixels while it was taken. `estimate_blur` reads length and direction off its power
spectrum, and `deblur` undoes them. A blur that does not fit the picture is refused with a warning, since it would only
make ringing.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import convolve

import pointillist as pt

rng = np.random.default_rng(0)
photo = pt.photographs("test", grey=False)["coffee"]
motion = pt.motion_kernel(9, 30)
shaken = np.stack([convolve(channel, motion) for channel in np.moveaxis(photo, -1, 0)], axis=-1)
shaken = np.uint8(np.clip(255 * shaken + rng.standard_normal(photo.shape), 0, 255))

found = pt.estimate_blur(shaken, "motion")
print(f"found a motion of {found.length:.1f} pixels at {found.angle:.0f}°; it was 9 pixels at 30°")
sharp = pt.deblur(shaken, found.kernel)

before, after = (pt.psnr(photo, picture / 255) for picture in (shaken, sharp))
print(f"{before:.1f} dB shaken, {after:.1f} dB sharpened")

figure, panels = plt.subplots(1, 3, figsize=(15, 3.9), layout="constrained")
titles = [f"Shaken, {before:.1f} dB", f"Sharpened, {after:.1f} dB", "The truth"]
for panel, picture, title in zip(panels, [shaken, sharp, photo], titles):
    panel.imshow(picture)
    panel.set_title(title, loc="left")
    panel.axis("off")
figure.savefig("deblur.png", dpi=110)
