"""How surprising a number is among many of its kind, in nats, by statistics that a share of outliers cannot move."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter
from scipy.special import log_ndtr

_NORMAL_MAD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""


def surprise(deviations: NDArray) -> NDArray:
    """−log of the probability that a standard normal variable is at least so large, in nats."""
    return -log_ndtr(-np.asarray(deviations, np.float64))


def surprise_of_both_sides(deviations: NDArray) -> NDArray:
    """−log of the probability that a standard normal variable lies at least so far from zero, in nats."""
    return np.maximum(surprise(np.abs(deviations)) - np.log(2), 0)


def standardise(values: NDArray, least: float) -> tuple[float, float]:
    """The median of values and their spread by the median absolute deviation, which is at least `least`."""
    middle = float(np.median(values))
    return middle, max(_NORMAL_MAD * float(np.median(np.abs(values - middle))), least)


def running_median(values: NDArray, step: int, size: int) -> NDArray:
    """The median around each entry of a series, taken over `size` entries that lie `step` apart."""
    coarse = median_filter(values[::step], size, mode="reflect")
    return np.interp(np.arange(len(values)), np.arange(0, len(values), step), coarse)
