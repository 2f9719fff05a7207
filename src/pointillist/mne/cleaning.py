"""Recordings without what some filters contribute to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pointillist.mne.activations import only_filters
from pointillist.mne.learning import BOUNDARY
from pointillist.mne.recordings import Windows
from pointillist.mne.settings import chosen_filters
from pointillist.model.codes import SparseCodes
from pointillist.solvers.decoding import decode


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
