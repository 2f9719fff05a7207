"""Measures of agreement: of pictures and signals with their originals, of learned filters with known ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfftn, next_fast_len, rfftn
from scipy.optimize import linear_sum_assignment

from pointillist.reprs import ShortRepr
from pointillist.validation import as_filters, as_numbers, check_arguments


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


@dataclass(frozen=True, eq=False, repr=False)
class Recovery(ShortRepr):
    """Matches of learned filters with true ones, and how good they are.

    Attributes
    ----------
    similarities : (n_true,) float64 array
        The largest absolute cosine between each true filter and its partner over all shifts, from 0 to 1; 0 where there
        are fewer filters than true ones and none is left.
    assignment : (n_true,) int64 array
        The number of each true filter's partner, -1 where none is left.
    shifts : (n_true, ndim) int64 array
        By how many samples the partner is moved along each axis to lie on the true filter.
    signs : (n_true,) int64 array
        1, or -1 where the partner is the true filter upside down.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> truth = np.eye(3, 8)
    >>> _, recovery = pt.recovery_score(-truth[::-1], truth, return_details=True)
    >>> recovery.signs.tolist()
    [-1, -1, -1]
    """

    similarities: NDArray
    assignment: NDArray
    shifts: NDArray
    signs: NDArray


@overload
def recovery_score(
    filters: ArrayLike, truth: ArrayLike, *, channels: bool = ..., return_details: Literal[False] = ...
) -> float: ...


@overload
def recovery_score(
    filters: ArrayLike, truth: ArrayLike, *, channels: bool = ..., return_details: Literal[True]
) -> tuple[float, Recovery]: ...


def recovery_score(
    filters: ArrayLike, truth: ArrayLike, *, channels: bool = False, return_details: bool = False
) -> float | tuple[float, Recovery]:
    """Score filters by how near they come to known ones: 1 where all were found, whatever order, sign and shift.

    Two filters are compared by their cosine at the best shift: the largest absolute value of their cross-correlation over
    the product of their norms, zeros being assumed around both. Every true filter gets a partner of its own, so that the
    cosines are largest in total (Hungarian assignment); the score is their mean over the true filters.

    Parameters
    ----------
    filters : (n_filters, [channels,] *size) array
        What was learned; more or fewer than there are true ones. A filter that is zero everywhere agrees with none.
    truth : (n_true, [channels,] *size) array
        The known filters, perhaps of another size.
    channels : bool
        Whether the axis after the first holds channels, which are not shifted against each other.
    return_details : bool
        Also return which filter was taken for which.

    Returns
    -------
    float, or (float, Recovery) with `return_details`
        From 0 to 1.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> truth = np.random.default_rng(0).standard_normal((3, 20))
    >>> found = np.pad(-2 * truth[[2, 0, 1]], [(0, 0), (4, 7)])
    >>> score, recovery = pt.recovery_score(found, truth, return_details=True)
    >>> round(score, 6), recovery.assignment.tolist(), recovery.shifts[0].tolist()
    (1.0, [1, 2, 0], [-4])
    """
    check_arguments(channels=channels, return_details=return_details)
    bank, known = _unit_filters(filters, "filters", channels), _unit_filters(truth, "truth", channels)
    if bank.ndim != known.ndim:
        raise ValueError(f"truth has {known.ndim} axes, filters have {bank.ndim}: they must agree")
    if channels and bank.shape[1] != known.shape[1]:
        raise ValueError(f"truth has {known.shape[1]} channels, filters have {bank.shape[1]}: they must agree")
    cosines, places = _best_shifts(bank, known)
    rows, columns = linear_sum_assignment(-np.abs(cosines))
    assignment = np.full(len(known), -1)
    assignment[rows] = columns
    found = np.zeros(len(known))
    found[rows] = cosines[rows, columns]
    shifts = np.zeros((len(known), places.shape[-1]), np.int64)
    shifts[rows] = places[rows, columns]
    score = float(np.mean(np.abs(found)))
    if not return_details:
        return score
    return score, Recovery(np.abs(found), assignment, shifts, np.where(found < 0, -1, 1))


def _unit_filters(given: ArrayLike, name: str, channels: bool) -> NDArray:
    """Filters as (n, channels, *size), each of norm one; those that are zero stay so."""
    bank = as_filters(given, channels=channels, name=name).astype(np.float64)
    axes = tuple(range(1, bank.ndim))
    peaks = np.max(np.abs(bank), axis=axes, keepdims=True)
    bank /= np.where(peaks > 0, peaks, 1)  # squares of extreme samples would overflow
    norms = np.sqrt(np.sum(bank**2, axis=axes, keepdims=True))
    return bank / np.where(norms > 0, norms, 1)


def _best_shifts(bank: NDArray, known: NDArray) -> tuple[NDArray, NDArray]:
    """The cosine of the largest magnitude for all pairs (n_true, n_filters), and its shifts (n_true, n_filters, ndim)."""
    size, other = bank.shape[2:], known.shape[2:]
    lengths = [a + b - 1 for a, b in zip(size, other, strict=True)]
    fast = [next_fast_len(length, real=True) for length in lengths]
    axes = tuple(range(2, bank.ndim))
    spectra = np.conj(rfftn(bank, fast, axes))
    cosines = np.zeros((len(known), len(bank)))
    shifts = np.zeros((len(known), len(bank), len(size)), np.int64)
    for i, one in enumerate(known):
        products = np.sum(rfftn(one[None], fast, axes) * spectra, axis=1)
        correlation = irfftn(products, fast, tuple(range(1, products.ndim))).reshape(len(bank), prod(fast))
        best = np.argmax(np.abs(correlation), axis=1)
        cosines[i] = np.clip(np.take_along_axis(correlation, best[:, None], axis=1)[:, 0], -1, 1)
        places = np.stack(np.unravel_index(best, fast), axis=-1)
        # Shifts to the left lie at the end.
        shifts[i] = np.where(places >= other, places - np.array(fast), places)
    return cosines, shifts
