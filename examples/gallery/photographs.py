"""Filters of photographs.

Sixty-four filters learned from five photographs, and a sixth that they have never seen, written in points of them.
Each dot is one code: which filter, where, how strong. Codes for a sixth of the pixels carry most of the picture.
"""

import matplotlib.pyplot as plt

import pointillist as pt

images = [pt.contrast_normalise(photo) for photo in pt.photographs("train").values()]
model = pt.OnlineCSC(n_filters=64, filter_size=11, penalty=1.0, random_state=0, n_epochs=6).fit(images)

unseen = pt.contrast_normalise(pt.photographs("test")["camera"])
result = model.encode([unseen])
fit = model.inverse_transform(result.codes)[0]
print(f"{result.codes.nnz:,} codes for {unseen.size:,} pixels: {pt.psnr(unseen, fit):.1f} dB")
print(f"at most {100 * result.gap[0]:.2f} % above the best that any codes can do")

figure, panels = plt.subplots(1, 4, figsize=(16, 4.8), layout="constrained")
pt.plot_filters(model, ax=panels[0]).set_title("Filters", loc="left")
for panel, picture, title in zip(panels[1:], [unseen, fit], ["An unseen photograph", "What its codes make"]):
    panel.imshow(picture, cmap="gray", vmin=-2.5, vmax=2.5)
    panel.set_title(title, loc="left")
    panel.axis("off")
pt.plot_codes(result.codes, ax=panels[3]).set_title("The codes", loc="left")
figure.savefig("photographs.png", dpi=110)
