"""Descent on the inner products of codes, for signals of one dimension whose codes are few beside the samples of a filter.

An update of a code changes the correlations of the codes that overlap with it. With long filters these are far fewer than
the samples that the code reaches, so that it is cheaper to keep the correlations up to date than the residual.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.products import descend_on_products, fill_products
from pointillist.problem import Geometry

_WORTH = 0.5
"""Neighbours of a code, beside the samples of a filter, up to which products are worth their time: making them costs too."""
_MOST_PAIRS, _MOST_PRODUCTS = 2**22, 2**24
"""Entries of the table of filters, and inner products of codes, that are kept at most."""


def overlap_table(filters: NDArray) -> NDArray:
    """Inner products of filters (n_filters, channels, taps) at all shifts: (n_filters, n_filters, 2 taps − 1), float64.

    Entry δ + taps − 1 of (k, l) belongs to filter l shifted by δ against filter k.
    """
    taps = filters.shape[2]
    spectra = np.fft.rfft(filters.astype(np.float64), 2 * taps, axis=2)
    pairs = np.einsum("kcf,lcf->klf", spectra, spectra.conj())
    around = np.fft.irfft(pairs, 2 * taps, axis=2)
    return np.concatenate([around[..., taps + 1 :], around[..., :taps]], axis=2)


def neighbours(positions: NDArray, taps: int) -> tuple[NDArray, NDArray]:
    """The first code that overlaps with each of some codes, sorted by position, and the one after the last."""
    first = np.searchsorted(positions, positions - taps + 1, "left")
    return first, np.searchsorted(positions, positions + taps - 1, "right")


def are_worth(geometry: Geometry, n_filters: int, positions: NDArray) -> bool:
    """Whether descent on products is cheaper for codes at sorted positions, by counts alone."""
    if len(geometry.grid) != 1 or geometry.boundary == "circular" or len(positions) == 0:
        return False
    taps = geometry.filter[0]
    if n_filters**2 * (2 * taps - 1) > _MOST_PAIRS:
        return False
    first, last = neighbours(positions, taps)
    count = int(np.sum(last - first))
    return count <= min(_WORTH * geometry.channels * taps * len(positions), _MOST_PRODUCTS)


def product_bytes(geometry: Geometry, n_codes: int, itemsize: int) -> int:
    """Bytes that the products of codes take at most."""
    if len(geometry.grid) != 1 or geometry.boundary == "circular":
        return 0
    return itemsize * min(int(_WORTH * geometry.channels * geometry.filter[0] * n_codes), _MOST_PRODUCTS)


def descend(
    table: NDArray,
    filters: NDArray,
    geometry: Geometry,
    codes: NDArray,
    *,
    values: NDArray,
    slopes: NDArray,
    curvatures: NDArray,
    penalties: NDArray,
    clean: NDArray,
    weights: NDArray,
    **settings: Any,
) -> NDArray:
    """The values of codes after descent.

    Parameters
    ----------
    table : array
        What `overlap_table` makes of the filters.
    filters : (n_filters, channels, taps) array
    geometry : Geometry
    codes : (n,) int array
        Flat indices, sorted by position.
    values, slopes, curvatures, penalties : (n,) arrays
        Of each code its value, the residual's correlation with it, Σ w d² and λ.
    clean : (n,) bool array
        Codes that meet weights of one only.
    weights : (channels · padded samples,) array
    **settings
        ridge, nonnegative, target, extra and max_sweeps of `descend_on_products`.
    """
    owners, positions = np.divmod(codes, geometry.n_positions)
    first, last = neighbours(positions, geometry.filter[0])
    offsets = np.concatenate([[0], np.cumsum(last - first)])
    products = np.empty(offsets[-1], values.dtype)
    seen = weights[: geometry.channels * geometry.padded[0]].reshape(geometry.channels, -1)
    exact = filters.astype(np.float64)
    fill_products(owners, positions, clean, first, last, offsets, table, exact, seen, products)
    found, slopes = values.astype(np.float64), slopes.astype(np.float64)
    descend_on_products(
        first, last, offsets, products, curvatures.astype(np.float64), penalties.astype(np.float64),
        float(settings["ridge"]), settings["nonnegative"], found, slopes, settings["target"], settings["extra"],
        settings["max_sweeps"],
    )  # fmt: skip
    return found.astype(values.dtype)
