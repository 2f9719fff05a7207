"""SPORCO's coder at its best for one problem: the ρ that needs the fewest iterations to a true excess, and threads.

The objective is that of its sparse variable, evaluated in float64 after every iteration, with no clock running. How many
iterations suffice is known only because the optimum is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from paper.rivals import FIXED

from benchmarks.peers import Coding

SHARES = (0.2, 0.1, 0.4, 0.05, 1.0, 0.02, 2.0)
"""Of SPORCO's usual ρ = 50 λ + 1, the likely ones first: what needs more iterations than the best so far is cut short."""
_FIXED_RHO = "ADMM, ρ = "
STEP = 1.5
"""Between values of ρ around the best of these, which are tried until none is better."""


class Tuned(NamedTuple):
    """Settings that may be the quickest, with their iterations to the excess, and what was tried.

    The first has a fixed ρ. AutoRho comes second if it needs fewer iterations, since each of them takes longer. In `tried`
    are the iterations of all settings, None for those that need more than the best before them.
    """

    settings: list[tuple[Coding, int]]
    tried: dict[str, int | None]
    reached: bool


def tune(
    image: NDArray, filters: NDArray, penalty: float, level: float, limit: int, shares: Sequence[float] = SHARES
) -> Tuned:
    """Find the settings that bring the objective of an image (*space) to a level in the fewest iterations."""
    usual = usual_rho(penalty)
    best, found = quickest(
        lambda rho, most: iterations_to(_fixed(rho), image, filters, penalty, level, most), usual, limit, shares
    )
    tried = {f"{_FIXED_RHO}{rho}": count for rho, count in found.items()}
    automatic = Coding("ADMM, AutoRho", options={"rho": usual, "AutoRho": {"Enabled": True}})
    most = limit if best is None else best[1] - 1
    count = tried[automatic.name] = iterations_to(automatic, image, filters, penalty, level, most)
    settings = [(_fixed(best[0]), best[1])] if best else []
    settings += [(automatic, count)] if count else []
    return Tuned(settings or [(_fixed(shares[0] * usual), limit)], tried, bool(settings))


def usual_rho(penalty: float) -> float:
    """What SPORCO takes where no ρ is given."""
    return 50 * penalty + 1


def best_rho(tried: Mapping[str, int | None]) -> float | None:
    """The ρ that needed the fewest iterations of those that `Tuned.tried` has; None if none sufficed."""
    counts = {name: count for name, count in tried.items() if name.startswith(_FIXED_RHO) and count is not None}
    return float(min(counts, key=lambda name: counts[name]).removeprefix(_FIXED_RHO)) if counts else None


def quickest(
    needed: Callable[[float, int], int | None], usual: float, limit: int, shares: Sequence[float] = SHARES
) -> tuple[tuple[float, int] | None, dict[str, int | None]]:
    """Find the ρ that needs the fewest iterations, with these, and what was tried, by ρ to three digits.

    `needed` says how many iterations a ρ needs if that is at most so many, None otherwise. Shares of the usual ρ come
    first, then neighbours of the best by factors of `STEP` for as long as one is better. None if no ρ suffices.
    """
    tried: dict[str, int | None] = {}
    best: tuple[float, int] | None = None

    def attempt(rho: float) -> bool:
        nonlocal best
        name = f"{rho:.3g}"
        if name in tried:
            return False
        count = tried[name] = needed(rho, limit if best is None else best[1] - 1)
        if count is not None:
            best = rho, count
        return count is not None

    for share in shares:
        attempt(share * usual)
    while best is not None:
        rho = best[0]
        if not attempt(rho / STEP) and not attempt(rho * STEP):
            break
    return best, tried


def _fixed(rho: float) -> Coding:
    return Coding(f"{_FIXED_RHO}{rho:.3g}", options={"rho": rho, **FIXED})


def iterations_to(
    coding: Coding, image: NDArray, filters: NDArray, penalty: float, level: float, limit: int
) -> int | None:
    """Iterations until the objective of an image (*space) is at most `level`; None if it is not within the limit."""
    if limit < 1:
        return None
    signal = image.astype(np.float64)
    axes = tuple(range(1, image.ndim + 1))
    spectra = np.moveaxis(scipy.fft.rfftn(filters.astype(np.float64), image.shape, axes), 0, -1)
    found: list[int] = []

    def value(solver: Any) -> bool:
        if objective(signal, spectra, np.squeeze(solver.Y, (image.ndim, image.ndim + 1)), penalty) <= level:
            found.append(solver.k + 1)
        return bool(found)

    coding.solver(image[None], filters, limit, penalty=penalty, Callback=value).solve()
    return found[0] if found else None


def objective(signal: NDArray, spectra: NDArray, codes: NDArray, penalty: float) -> float:
    """The circular objective in float64, of codes (*space, n_filters) and the filters' spectra (those of `rfftn`)."""
    axes = tuple(range(signal.ndim))
    transformed = scipy.fft.rfftn(codes.astype(np.float64), axes=axes, workers=-1)
    fit = scipy.fft.irfftn(np.einsum("...k,...k->...", transformed, spectra), signal.shape, axes)
    return 0.5 * float(np.sum((signal - fit) ** 2)) + penalty * float(np.sum(np.abs(codes), dtype=np.float64))


def use_threads(count: int) -> None:
    """Give SPORCO so many threads, for its transforms and its arithmetic."""
    import_module("sporco.fft").pyfftw_threads = count  # type: ignore[attr-defined]
    if find_spec("numexpr") is not None:
        import_module("numexpr").set_num_threads(count)


def plan_quickly() -> None:
    """Let SPORCO guess how to transform, for smoke tests: measuring takes it seconds for each new shape."""
    import_module("sporco.fft").pyfftw_planner_effort = "FFTW_ESTIMATE"  # type: ignore[attr-defined]
