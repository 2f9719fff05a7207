"""Fill in a photograph of which four fifths of the pixels are lost, and a scratched one."""

import numpy as np
from panels import output, photograph, save

import pointillist as pt


def scratches(shape: tuple[int, int], count: int = 12) -> np.ndarray:
    """Straight scratches three pixels wide, at random."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    mask = np.zeros(shape, bool)
    for angle, place in zip(rng.uniform(0, np.pi, count), rng.uniform(-0.4, 0.4, count), strict=True):
        along = (rows - shape[0] / 2) * np.sin(angle) + (columns - shape[1] / 2) * np.cos(angle)
        mask |= np.abs(along - place * shape[1]) < 1.5
    return mask


picture = photograph("camera")
missing = np.random.default_rng(0).random(picture.shape) < 0.8
scratched = scratches(picture.shape)
save(
    output("inpaint.png"),
    picture,
    four_fifths_missing=np.where(missing, 0, picture).astype(np.uint8),
    filled_in=pt.inpaint(picture, missing),
    scratched=np.where(scratched, 255, picture).astype(np.uint8),
    mended=pt.inpaint(picture, scratched),
)
