"""Filters of photographs.

Sixty-four filters learned from five photographs, and a sixth that they have never seen, written in points of them.
Each dot is one code: which filter, where, how strong. Codes for a sixth of the pixels carry most of the picture.
"""

import matplotlib.pyplot as plt
import numpy as np

import pointillist as pt
from pointillist.report import mosaic

images = [pt.contrast_normalise(photo) for photo in pt.photographs("train").values()]
model = pt.OnlineCSC(n_filters=64, filter_size=11, penalty=1.0, random_state=0).fit(images, n_epochs=6)

unseen = pt.contrast_normalise(pt.photographs("test")["camera"])
result = model.encode([unseen])
fit = model.inverse_transform(result.codes)[0]
print(f"{result.codes.nnz:,} codes for {unseen.size:,} pixels: {pt.psnr(unseen, fit):.1f} dB")
print(f"at most {100 * result.gap[0]:.2f} % above the best that any codes can do")

places = np.unravel_index(result.codes.indices[0], (64, *unseen.shape))
strength = result.codes.values[0]

figure, panels = plt.subplots(1, 4, figsize=(16, 4.3), layout="constrained")
panels[0].imshow(mosaic(model.filters_), cmap="gray")
panels[1].imshow(unseen, cmap="gray", vmin=-2.5, vmax=2.5)
panels[2].imshow(fit, cmap="gray", vmin=-2.5, vmax=2.5)
panels[3].scatter(
    places[2], places[1], s=2.5 * np.abs(strength), c=np.where(strength > 0, "#d9772b", "#2f5d8a"), linewidths=0
)
panels[3].set(xlim=(0, unseen.shape[1]), ylim=(unseen.shape[0], 0), aspect="equal")
for panel, title in zip(panels, ["Filters", "An unseen photograph", "What its codes make", "The codes"]):
    panel.set_title(title, loc="left")
    panel.set_xticks([])
    panel.set_yticks([])
figure.savefig("photographs.png", dpi=110)
