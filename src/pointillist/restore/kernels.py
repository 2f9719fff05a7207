"""Blur kernels by their parameters: arrays of sum one, centred, that `deblur` takes as `psf`."""

from __future__ import annotations

from math import ceil, cos, radians, sin

import numpy as np
from numpy.typing import NDArray

from pointillist.reprs import shown
from pointillist.validation import check_arguments, is_number

_STEPS = 32  # points drawn per pixel of a motion blur
_LARGEST = 1000.0


def gaussian_kernel(sigma: float) -> NDArray[np.float64]:
    """A Gaussian blur, cut off at three deviations.

    Parameters
    ----------
    sigma : float
        Deviation in pixels.

    Returns
    -------
    (size, size) array of odd size that sums to one

    Examples
    --------
    >>> from pointillist.restore import gaussian_kernel
    >>> gaussian_kernel(1.6).shape
    (11, 11)
    """
    if not (is_number(sigma) and 0 < sigma <= _LARGEST):
        raise ValueError(f"sigma must be positive and at most {_LARGEST:g} pixels, got {shown(sigma)}")
    sigma = float(sigma)
    radius = max(1, ceil(3 * sigma))
    line = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    kernel = np.outer(line, line)
    return kernel / kernel.sum()


def motion_kernel(length: float, angle: float) -> NDArray[np.float64]:
    """The blur of a straight motion at constant speed.

    Parameters
    ----------
    length : float
        Length of the line that a point leaves, in pixels, at least 1.
    angle : float
        Its direction in degrees, anticlockwise from the horizontal.

    Returns
    -------
    (size, size) array of odd size that sums to one
        The line, each of its points shared out between the four pixels around it.

    Examples
    --------
    >>> from pointillist.restore import motion_kernel
    >>> motion_kernel(3, 0)[2].round(2).tolist()
    [0.04, 0.29, 0.33, 0.29, 0.04]
    """
    check_arguments(angle=angle)
    if not (is_number(length) and 1 <= length <= _LARGEST):
        raise ValueError(f"length must lie in [1, {_LARGEST:g}] pixels, got {shown(length)}")
    radius = ceil(length / 2)
    kernel = np.zeros((2 * radius + 1, 2 * radius + 1))
    along = (np.arange(ceil(_STEPS * length)) + 0.5) / _STEPS
    along = along[along < length] - length / 2
    rows, columns = radius - along * sin(radians(angle)), radius + along * cos(radians(angle))
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, right = rows - top, columns - left
    for row, column, share in (
        (top, left, (1 - down) * (1 - right)),
        (top, left + 1, (1 - down) * right),
        (top + 1, left, down * (1 - right)),
        (top + 1, left + 1, down * right),
    ):
        inside = (row >= 0) & (row < len(kernel)) & (column >= 0) & (column < len(kernel))
        np.add.at(kernel, (row[inside], column[inside]), share[inside])
    return kernel / kernel.sum()
