"""A kernel for the largest magnitude of many numbers, in one pass over them."""

import numpy as np

from pointillist.kernels.compiling import kernel

_BITS = {4: np.int32, 8: np.int64}


def largest_magnitude(array):
    """The largest |x| of a contiguous array of float32 or float64; NaN where one is NaN, infinity where one is infinite."""
    bits = array.reshape(-1).view(_BITS[array.dtype.itemsize])
    found = _largest_bits(bits, bits.dtype.type(np.iinfo(bits.dtype).max))
    return float(bits.dtype.type(found).view(array.dtype))


@kernel
def _largest_bits(bits, all_but_sign):
    """The largest of numbers without their sign: as integers, magnitudes have the order that they have as numbers."""
    largest = np.int64(0)
    for i in range(len(bits)):
        size = bits[i] & all_but_sign
        largest = size if size > largest else largest
    return largest
