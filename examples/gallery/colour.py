"""Filters in colour.

With `channels=True` a filter has red, green and blue parts that share their codes. Most of what is learned is grey:
edges. Some filters become opponents, blue against orange or green against red.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

import pointillist as pt


def detail(photo):
    """What is left of (height, width, 3) without its smooth part: filters are for detail, not for brightness."""
    return photo - gaussian_filter(photo, (4, 4, 0))


photos = {name: photo for name, photo in pt.photographs(grey=False).items() if np.ptp(photo, axis=-1).max() > 0.1}
test = photos.pop("coffee")
model = pt.OnlineCSC(n_filters=49, filter_size=9, penalty=0.12, channels=True, n_epochs=6, random_state=0)
model.fit(pt.as_signals(detail(photo) for photo in photos.values()))

result = model.encode(pt.as_signals(detail(test)))
fit = model.inverse_transform(result.codes)[0].transpose(1, 2, 0) + gaussian_filter(test, (4, 4, 0))
print(f"{result.codes.nnz:,} codes for {test[..., 0].size:,} pixels of three channels: {pt.psnr(test, fit):.1f} dB")

figure, panels = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained", width_ratios=[1, 1.4, 1.4])
pt.plot_filters(model, ax=panels[0]).set_title("Filters", loc="left")
for panel, picture, title in zip(panels[1:], [test, fit.clip(0, 1)], ["Unseen photograph", "Smooth part and codes"]):
    panel.imshow(picture)
    panel.set_title(title, loc="left")
    panel.axis("off")
figure.savefig("colour.png", dpi=110)
