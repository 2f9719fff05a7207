"""Beads in a volume.

A microscope's volume with beads and short rods, blurred along the axis, in noise; made here. Three-dimensional
filters are learned from it without labels. Their codes are detections: which shape, and where.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import center_of_mass, gaussian_filter

import pointillist as pt

rng = np.random.default_rng(1)
shape, size = (36, 80, 80), (9, 11, 11)

bead, rod = np.zeros(size), np.zeros(size)
bead[4, 5, 5] = 1
rod[4, 5, 2:9] = 1
shapes = np.stack([gaussian_filter(one, (1.5, 1, 1)) for one in (bead, rod)])
shapes /= np.linalg.norm(shapes.reshape(2, -1), axis=1)[:, None, None, None]

volume = 0.08 * rng.standard_normal(shape)
truth = np.column_stack([rng.integers(2, size=60), *(rng.integers(6, n - 6, 60) for n in shape)])
for kind, z, y, x in truth:
    volume[z - 4 : z + 5, y - 5 : y + 6, x - 5 : x + 6] += 3 * shapes[kind]

model = pt.BatchCSC(
    n_filters=2, filter_size=size, penalty=0.8, nonnegative=True, learning=0.1, max_iter=30, random_state=3
)
model.fit(volume[None])
codes = model.transform(volume[None])
strong = codes.values[0] > 1
kinds, *places = np.array(np.unravel_index(codes.indices[0], (2, *codes.grids[0])))[:, strong]
# A filter may sit off the middle of its box: look where its mass is.
shift = np.array([center_of_mass(one.clip(0)) for one in model.filters_]) - (np.array(size) - 1) / 2
places = np.stack(places, axis=1) + shift[kinds]
apart = np.abs(places[None] - truth[:, None, 1:]).max(axis=2)
print(f"{np.mean(apart.min(axis=1) <= 2):.0%} of the {len(truth)} objects found within two voxels")
print(f"{np.mean(apart.min(axis=0) <= 2):.0%} of the {len(places)} strong codes are at an object")

figure, panels = plt.subplots(1, 4, figsize=(15, 4.6), layout="constrained", width_ratios=[1, 1, 0.4, 0.4])
for panel in panels[:2]:
    panel.imshow(volume.max(axis=0), cmap="magma")
panels[0].set_title("The volume, brightest along z", loc="left")
panels[1].set_title("What each filter found", loc="left")
for kind, colour in enumerate(["#39c2d7", "#a5e65a"]):
    found = places[kinds == kind]
    panels[1].scatter(found[:, 2], found[:, 1], s=90, facecolors="none", edgecolors=colour, linewidths=1.6)
    panels[2 + kind].imshow(
        np.vstack([model.filters_[kind].max(axis=0), model.filters_[kind].max(axis=1)]), cmap="magma"
    )
    panels[2 + kind].set_title(f"Filter {kind + 1}: xy, xz", loc="left", color=colour)
for panel in panels:
    panel.axis("off")
figure.savefig("volume.png", dpi=110)
