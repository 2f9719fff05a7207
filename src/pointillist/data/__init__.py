"""Reading signals into arrays and preparing them for learning.

Image and ``.npy`` files, contrast normalisation, and the photographs and dictionaries shipped with the package live here.
Nothing here knows about codes or solvers.
"""

from pointillist.data.images import load_image
from pointillist.data.library import load_filters
from pointillist.data.loading import Loaded, load_images, load_signals, read_images, read_signals
from pointillist.data.normalise import contrast_normalise
from pointillist.data.shipped import photographs

__all__ = [
    "contrast_normalise",
    "load_image",
    "load_images",
    "load_signals",
    "read_images",
    "read_signals",
    "Loaded",
    "load_filters",
    "photographs",
]
