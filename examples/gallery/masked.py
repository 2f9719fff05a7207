"""Learning from damaged images.

Half of all training pixels are missing (NaN). Missing pixels have weight zero and are never guessed, so the filters
come out nearly as from whole images. Left: one of the training images as the learner sees it.
"""

import matplotlib.pyplot as plt
import numpy as np

import pointillist as pt

rng = np.random.default_rng(0)
whole = [pt.contrast_normalise(photo) for photo in pt.photographs("train").values()]
damaged = [np.where(rng.random(image.shape) < 0.5, np.nan, image) for image in whole]
unseen = [pt.contrast_normalise(photo) for photo in pt.photographs("test").values()]

settings = {"n_filters": 49, "filter_size": 9, "penalty": 1.0, "random_state": 0}
models = {}
for name, images in {"whole images": whole, "half of the pixels": damaged}.items():
    models[name] = pt.OnlineCSC(**settings, n_epochs=20).fit(images)
    objective = models[name].encode(unseen).objective.sum()
    print(f"learned from {name}: objective of whole unseen images {objective:,.0f}")

figure, panels = plt.subplots(1, 3, figsize=(13, 4.9), layout="constrained")
gaps = plt.get_cmap("gray").with_extremes(bad="#d9772b")
panels[0].imshow(damaged[2], cmap=gaps, vmin=-2.5, vmax=2.5)
panels[0].set_title("A training image, gaps in orange", loc="left")
for panel, (name, model) in zip(panels[1:], models.items()):
    pt.plot_filters(model, ax=panel).set_title(f"Filters from {name}", loc="left")
panels[0].axis("off")
figure.savefig("masked.png", dpi=110)
