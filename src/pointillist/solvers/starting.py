"""The codes that a descent may start from."""

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.descent import merge
from pointillist.problem import Problem


def allowed_start(
    problem: Problem, codes: NDArray, values: NDArray, dtype: np.dtype, keep_start: bool
) -> tuple[NDArray, NDArray, NDArray]:
    """Those of some ascending codes that the sample and the sign allow, in the order of their positions, with their values.

    With `keep_start` all are allowed that the sign does; those outside the sample come third.
    """
    kept = values > 0 if problem.nonnegative else values != 0
    beside = np.empty(0, np.int64)
    if problem.sample is not None:
        sampled = _among(problem.sample, codes)
        if keep_start:
            beside = codes[kept & ~sampled]
        else:
            kept &= sampled
    codes, values = codes[kept], values[kept].astype(dtype)
    ordered, _ = merge(np.empty(0, np.int64), values[:0], codes, problem.geometry.n_positions, problem.n_filters)
    return ordered, values[np.searchsorted(codes, ordered)], beside


def _among(sample: NDArray, codes: NDArray) -> NDArray:
    """Which codes are in an ascending sample; much faster than sorting both, since codes are few and samples are not."""
    if len(sample) == 0:
        return np.zeros(len(codes), bool)
    place = np.minimum(np.searchsorted(sample, codes), len(sample) - 1)
    return sample[place] == codes
