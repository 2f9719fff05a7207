"""How many filters kernels take at once. Nothing here loads a compiler, so that what is drawn by blocks loads quickly."""

FILTERS_A_BLOCK = 8
