"""Motion in a video.

A video is a signal with axes time, height and width, so its filters are little films. Here soft dots drift in four
directions in noise. The filters become dots that move; each code is a stretch of one dot's way, and its filter says
where the dot is going.
"""

import matplotlib.pyplot as plt
import numpy as np

import pointillist as pt

FRAMES, SIDE = 40, 72
DIRECTIONS = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])
rng = np.random.default_rng(0)

t, y, x = np.mgrid[:FRAMES, :SIDE, :SIDE]
film = 0.05 * rng.standard_normal(t.shape)
for i in range(40):
    (dy, dx), (y0, x0) = DIRECTIONS[i % 4], rng.uniform(0, SIDE, 2)
    film += np.exp(-(((y - y0 - dy * t) % SIDE - SIDE / 2) ** 2 + ((x - x0 - dx * t) % SIDE - SIDE / 2) ** 2) / 4)

model = pt.BatchCSC(
    n_filters=6,
    filter_size=(5, 9, 9),
    penalty=0.6,
    nonnegative=True,
    learning=0.1,
    update=pt.FilterUpdate(init="patches"),
    max_iter=40,
    random_state=0,
).fit(film[None])
result = model.encode(film[None])
print(
    f"{result.codes.nnz:,} codes for {film.size:,} samples: {pt.psnr(film, model.inverse_transform(result.codes)[0]):.1f} dB"
)


def course(filter_):
    """Where a filter's dot is in the middle frame, from the middle of the box, and its pixels a frame: (down, right)."""
    mass = filter_.clip(0).sum(axis=(1, 2))
    centres = [(filter_.clip(0) * grid).sum(axis=(1, 2)) / mass for grid in np.mgrid[-4:5, -4:5]]
    velocity, place = np.polyfit(np.arange(-2, 3), np.transpose(centres), 1)
    return place, velocity


places, velocities = np.array([course(one) for one in model.filters_]).swapaxes(0, 1)
print("velocities of the first four filters (down, right):", (velocities[:4].round(1) + 0).tolist())

figure = plt.figure(figsize=(13, 5.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1.1, 1])
stage = left.subplots()
stage.imshow(film[20], cmap="gray")
kinds, when, row, column = np.unravel_index(result.codes.indices[0], (6, *result.codes.grids[0]))
# A filter lasts five frames: codes of the frames around this one tell of it too, moved on by what lies between.
now = (np.abs(when - 20) <= 2) & (result.codes.values[0] > 0.5)
down, across = velocities[kinds[now]].T
y, x = np.stack([row, column])[:, now] + places[kinds[now]].T + (20 - when[now]) * velocities[kinds[now]].T
stage.quiver(
    x, y, across, down, kinds[now],
    angles="xy", cmap="Set2", clim=(0, 7), scale=14, width=0.007,
)  # fmt: skip
stage.set_title("Frame 20, with the ways that its codes tell", loc="left")
stage.axis("off")
panels = right.subplots(4, 5)
for kind, row_of_panels in enumerate(panels):
    for frame, panel in enumerate(row_of_panels):
        panel.imshow(model.filters_[kind, frame], cmap="gray", vmin=0, vmax=model.filters_[kind].max())
        panel.set_xticks([])
        panel.set_yticks([])
        for spine in panel.spines.values():
            spine.set(color=plt.get_cmap("Set2")(kind / 7), linewidth=2.5)
right.suptitle("The four filters used most, five frames each", fontsize=12)
figure.savefig("video.png", dpi=110)
