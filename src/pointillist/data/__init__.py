"""Pictures, signals and photographs, in and out.

Image files become pictures (height, width[, 3]); pictures and files become signals ([channels,] *space), which `sources`
hand to learners one by one and `photofiles` has nothing to do with: it keeps photographs with what their files say. Nothing
here knows about codes or solvers.
"""

from pointillist.data import sources
from pointillist.data.images import as_signals, load_filters, load_image, load_images, photographs
from pointillist.data.normalise import contrast_normalise
from pointillist.data.sources import load_signals

__all__ = [
    "as_signals", "contrast_normalise", "load_filters", "load_image", "load_images", "load_signals", "photographs",
    "sources",
]  # fmt: skip
