"""Recordings without what some filters contribute to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lsqr

from pointillist.codes import SparseCodes
from pointillist.mne.activations import only_filters
from pointillist.mne.learning import BOUNDARY
from pointillist.mne.recordings import Windows
from pointillist.mne.settings import chosen_filters
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.solvers.base import Result
from pointillist.solvers.encoding import decode

_REFIT_STEPS = 10
"""Steps of least squares: neighbouring codes of a smooth waveform would run away from each other in many more."""


def removed_filters(
    n_filters: int,
    include: Sequence[int] | int | None,
    exclude: Sequence[int] | int | None,
    always: Sequence[int],
) -> list[int]:
    """Filters that go: all but those of `include`, those of `exclude`, and those of `always`, which is ``csc.exclude``."""
    gone = set(range(n_filters)) - set(chosen_filters(include, n_filters, "include"))
    if exclude is not None:
        gone |= set(chosen_filters(exclude, n_filters, "exclude"))
    return sorted(gone | set(chosen_filters(list(always), n_filters, "csc.exclude")))


def refitted(result: Result, filters: NDArray, weights: Sequence[NDArray] | None) -> SparseCodes:
    """Codes moved towards their least-squares fit, because the penalty has shrunk them and would leave a part behind.

    Parameters
    ----------
    result : Result
        Codes and residuals.
    filters : (n_filters, channels, n_times) array
    weights : sequence of (channels, samples) arrays, or None
        One where a sample was seen, zero elsewhere.
    """
    values = []
    for i, (index, old, residual) in enumerate(
        zip(result.codes.indices, result.codes.values, result.residuals, strict=True)
    ):
        operator = ConvolutionOperator(
            filters, Geometry(residual.shape[1:], filters.shape[2:], len(residual), BOUNDARY)
        )
        seen = np.ones((1, 1), np.float32) if weights is None else weights[i]
        matrix = LinearOperator(
            (residual.size, len(index)),
            matvec=lambda z, o=operator, k=index, w=seen: (w * o.synthesise(k, z)).ravel(),
            rmatvec=lambda y, o=operator, k=index, w=seen, shape=residual.shape: o.correlate(w * y.reshape(shape), k),
            dtype=filters.dtype,
        )
        change = lsqr(matrix, residual.ravel(), iter_lim=_REFIT_STEPS)[0] if len(index) else np.zeros(0)
        values.append((old + change).astype(old.dtype))
    return SparseCodes(result.codes.indices, values, result.codes.grids, result.codes.n_filters)


def cleaned(
    windows: Windows, codes: SparseCodes, filters: NDArray, removed: list[int], *, keep_residual: bool
) -> list[NDArray]:
    """Data of windows without some filters.

    Parameters
    ----------
    windows : Windows
        In physical units, without NaN.
    codes : SparseCodes
        Codes of these windows.
    filters : (n_filters, channels, n_times) array
        In physical units.
    removed : list of int
        Filters that go.
    keep_residual : bool
        Whether what no filter explains stays.

    Returns
    -------
    list of (channels, samples) arrays
    """
    data = [windows.read(i) for i in range(len(windows))]
    if keep_residual:
        gone = decode(only_filters(codes, removed), filters, boundary=BOUNDARY, channels=True)
        return [old - part for old, part in zip(data, gone, strict=True)]
    staying = [k for k in range(len(filters)) if k not in removed]
    mean = np.concatenate(data, axis=1).mean(axis=1, keepdims=True)
    return [part + mean for part in decode(only_filters(codes, staying), filters, boundary=BOUNDARY, channels=True)]
