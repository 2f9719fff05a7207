"""Where coding fails.

Filters learned from a sound surface explain it well; what they cannot explain stays in the residual. Its local energy
is a score for every pixel: a map of defects, learned without a single example of one. A piece of the wall itself,
turned, shows the limit: its parts are familiar, only its seams stand out.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter, rotate
from sklearn.metrics import roc_auc_score

import pointillist as pt

photos = pt.photographs("train")
wall, gravel = (pt.contrast_normalise(photos[name]) for name in ("brick", "gravel"))
half = len(wall) // 2
sound, inspected = wall[:half], wall[half:].copy()

# Three defects: a scratch, a stain of another texture, and a piece of the wall itself, turned.
y, x = np.mgrid[: inspected.shape[0], : inspected.shape[1]]
scratch = (np.abs(y - 20 - 0.45 * (x - 30)) < 2) & (x > 30) & (x < 120)
stain = np.hypot(y - 60, x - 180) < 24
turned = np.hypot(y - 100, x - 260) < 26
inspected[scratch] += 2.5
inspected[stain] = gravel[y[stain], x[stain]]
inspected[turned] = rotate(inspected, 90, reshape=False, mode="mirror")[turned]
defect = scratch | stain | turned

model = pt.OnlineCSC(n_filters=32, filter_size=11, penalty=1.0, random_state=0, n_epochs=30).fit([sound])
result = model.encode([inspected])
score = gaussian_filter(result.residuals[0][0] ** 2, 5)
print(f"area under the ROC curve, pixel by pixel: {roc_auc_score(defect.ravel(), score.ravel()):.3f}")

figure, panels = plt.subplots(2, 2, figsize=(12, 6.6), layout="constrained")
panels = panels.ravel()
for panel, picture in zip(panels, [sound, inspected, inspected, inspected]):
    panel.imshow(picture, cmap="gray", vmin=-4, vmax=4)
    panel.axis("off")
panels[2].imshow(score, cmap="inferno", alpha=np.clip(score / np.percentile(score, 98), 0, 0.9))
panels[3].contour(score > np.percentile(score, 100 * (1 - defect.mean())), [0.5], colors="#ff8c2b", linewidths=2)
panels[3].contour(defect, [0.5], colors="#39c2d7", linewidths=1.2)
titles = [
    "Learned from: a sound wall",
    "Inspected: three defects",
    "Score: energy left over",
    "Found (orange), true (blue)",
]
for panel, title in zip(panels, titles):
    panel.set_title(title, loc="left")
figure.savefig("anomaly.png", dpi=110)
