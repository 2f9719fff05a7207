"""Noise removed.

Gaussian noise of a level that `denoise` estimates itself, and salt and pepper, where sound pixels stay as they are.
For strong Gaussian noise BM3D and trained networks do better; see the benchmarks.
"""

import matplotlib.pyplot as plt
import numpy as np

import pointillist as pt

rng = np.random.default_rng(0)
photo = np.uint8(255 * pt.photographs("test", grey=False)["coffee"])
noisy = np.uint8(np.clip(photo + 20 * rng.standard_normal(photo.shape), 0, 255))
wrong = rng.random(photo.shape[:2]) < 0.1
peppered = np.where(wrong[..., None], rng.choice([0, 255], wrong.shape)[..., None], photo).astype(np.uint8)

pictures = {
    "Gaussian noise": noisy,
    "Denoised": pt.denoise(noisy),
    "Salt and pepper": peppered,
    "Cleaned": pt.denoise(peppered, noise="salt_pepper"),
}
print(f"the noise is estimated at {pt.estimate_sigma(noisy):.1f} levels; it was 20")

figure, panels = plt.subplots(2, 2, figsize=(13, 9.2), layout="constrained")
for panel, (name, picture) in zip(panels.flat, pictures.items()):
    quality = pt.psnr(photo.astype(float), picture.astype(float))
    print(f"{name}: {quality:.1f} dB")
    panel.imshow(picture)
    panel.set_title(f"{name}, {quality:.1f} dB", loc="left")
    panel.axis("off")
figure.savefig("denoise.png", dpi=110)
