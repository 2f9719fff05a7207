"""Measures of how near a picture or signal is to another."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pointillist.model.arguments import as_numbers


def psnr(reference: ArrayLike, estimate: ArrayLike) -> float:
    """Peak signal-to-noise ratio in decibels, the peak being the range of the reference.

    Parameters
    ----------
    reference, estimate : array_like
        Arrays of one shape.

    Returns
    -------
    float
        Infinity when they agree exactly.

    Examples
    --------
    >>> import numpy as np
    >>> round(psnr([0.0, 1.0], [0.1, 0.9]), 6)
    20.0
    """
    truth, guess = as_numbers(reference, "reference", np.float64), as_numbers(estimate, "estimate", np.float64)
    if truth.shape != guess.shape:
        raise ValueError(f"reference {truth.shape} and estimate {guess.shape} must have one shape")
    if truth.size == 0:
        raise ValueError("reference is empty")
    with np.errstate(all="ignore"):
        error = float(np.mean((truth - guess) ** 2))
        peak = float(np.ptp(truth))
    if np.isinf(error) or np.isinf(peak):
        raise ValueError("reference or estimate is infinite, or its squares overflow: divide both by some number")
    if peak == 0:
        raise ValueError("reference is constant: its range, the peak, is zero")
    return float("inf") if error == 0 else 10 * float(np.log10(peak**2 / error))
