"""Hard problems: those of `benchmarks.problems`, made adversarial by twists.

A twist takes the arguments of a call of `encode` and makes one thing extreme: duplicated filters, a signal of one sample, a
penalty at which the optimum is just zero, magnitudes near the end of a precision. Several may meet in one problem.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from benchmarks.problems import Problem
from numpy.typing import NDArray

import pointillist as pt
from benchmarks import problems
from pointillist.problem import Geometry
from pointillist.solvers.large_signals import TiledDescent

Rng = np.random.Generator
Twist = Callable[[Rng, Problem], None]
REACH = {"float32": 30.0, "float64": 150.0}
"""Powers of ten that samples may lie away from one."""


def draw(seed: int) -> tuple[Problem, list[str]]:
    """The arguments of a call of `encode`, and the names of the twists that were made."""
    rng = np.random.default_rng([seed, 17])
    problem = problems.draw(seed)
    _normalise(problem)
    names = []
    for name, (chance, twist) in TWISTS.items():
        if rng.random() < chance:
            with suppress(ValueError):  # what is refused here is refused again when the problem is solved
                twist(rng, problem)
            names.append(name)
    return problem, names


def _normalise(problem: Problem) -> None:
    """Bring signals to a largest sample near one; what `benchmarks.problems` draws as a magnitude is drawn anew."""
    power = np.frexp(np.max(np.abs(problem["signals"])))[1]
    problem["signals"] = np.ldexp(problem["signals"], -power)
    problem["penalty"] = np.ldexp(problem["penalty"], -power)


def _space(problem: Problem) -> tuple[int, ...]:
    return tuple(problem["signals"].shape[1 + problem["channels"] :])


def _size(problem: Problem) -> tuple[int, ...]:
    return tuple(problem["filters"].shape[1 + problem["channels"] :])


def one_sample(rng: Rng, problem: Problem) -> None:
    """Signals of a single sample, perhaps smaller than the filters where the boundary allows it."""
    axes = len(_space(problem))
    corner = (Ellipsis, *[slice(1)] * axes)
    problem["signals"] = np.ascontiguousarray(problem["signals"][corner]) + problem["signals"].dtype.type(1)
    problem["weights"] = None
    if problem["boundary"] not in ("full", "same"):
        problem["filters"] = np.ascontiguousarray(problem["filters"][corner]) + problem["filters"].dtype.type(0.5)


def constant(rng: Rng, problem: Problem) -> None:
    """Signals that are the same everywhere; some are zero."""
    problem["signals"][...] = 1
    if rng.random() < 0.3:
        problem["signals"][0] = 0


def duplicated(rng: Rng, problem: Problem) -> None:
    """Filters that occur twice, up to sign or to a little."""
    filters = problem["filters"]
    factor = (1.0, -1.0, 1 + 1e-6, 0.5)[rng.integers(4)]
    twice = np.concatenate([filters, (factor * filters[:1]).astype(filters.dtype)])
    problem["filters"] = twice
    if np.ndim(problem["penalty"]):
        problem["penalty"] = np.append(problem["penalty"], problem["penalty"][0])


def unequal_norms(rng: Rng, problem: Problem) -> None:
    """Filters whose norms differ by some powers of ten."""
    powers = rng.choice([-6, 0, 0, 6], len(problem["filters"]))
    factors = (10.0**powers).reshape(-1, *[1] * (problem["filters"].ndim - 1))
    problem["filters"] = (problem["filters"] * factors).astype(problem["filters"].dtype)
    if rng.random() < 0.7:  # else the faint are never used and the loud ones explain all
        problem["penalty"] = np.broadcast_to(problem["penalty"], len(powers)) * 10.0**powers


def low_rank(rng: Rng, problem: Problem) -> None:
    """Many channels, of which each filter has one pattern."""
    colours = int(rng.integers(4, 9))
    filters, signals = problem["filters"], problem["signals"]
    shapes = filters[:, 0] if problem["channels"] else filters
    spatial = signals[:, 0] if problem["channels"] else signals
    patterns = rng.standard_normal((int(rng.integers(1, 3)), colours))
    chosen = patterns[rng.integers(len(patterns), size=len(shapes))]
    expand = (slice(None), slice(None), *[None] * len(_space(problem)))
    problem["filters"] = (chosen[expand] * shapes[:, None]).astype(filters.dtype)
    noise = 0.1 * rng.standard_normal((len(spatial), colours, *spatial.shape[1:]))
    problem["signals"] = (
        patterns[rng.integers(len(patterns), size=len(spatial))][expand] * spatial[:, None] + noise
    ).astype(signals.dtype)
    if problem["weights"] is not None:
        weights = problem["weights"][:, 0] if problem["channels"] else problem["weights"]
        problem["weights"] = np.repeat(weights[:, None], colours, axis=1)
    problem["channels"] = True


def mask_channels(rng: Rng, problem: Problem) -> None:
    """One channel that was not seen, or one signal without channels of which half was not seen."""
    signals = problem["signals"]
    weights = np.ones(signals.shape, signals.dtype)
    if problem["channels"] and signals.shape[1] > 1:
        weights[:, int(rng.integers(signals.shape[1]))] = 0
    elif signals.shape[-1] > 1:
        weights[..., : signals.shape[-1] // 2] = 0
    problem["weights"] = weights


def by_position(rng: Rng, problem: Problem) -> None:
    """A penalty for each filter and position."""
    channels = problem["signals"].shape[1] if problem["channels"] else 1
    grid = Geometry(_space(problem), _size(problem), channels, problem["boundary"]).grid
    n_filters = len(problem["filters"])
    own = np.broadcast_to(problem["penalty"], n_filters).reshape(-1, *[1] * len(grid))
    problem["penalty"] = own * 10 ** rng.uniform(-1, 1, (n_filters, *grid))


def at_zero(rng: Rng, problem: Problem) -> None:
    """A penalty at which the optimum is zero, or all but."""
    given = {key: problem[key] for key in ("signals", "filters", "weights", "boundary", "channels", "nonnegative")}
    largest = float(np.max(pt.max_penalty(**given)))
    if largest > 0:
        problem["penalty"] = largest * (1.0, 1 + 1e-12, 1 - 1e-6, 0.9, 10.0)[rng.integers(5)]


def small_tiles(rng: Rng, problem: Problem) -> None:
    """Descent in tiles of a signal that is not large."""
    side, coder = int(rng.choice([4, 8, 16])), problem["solver"]
    if not isinstance(coder, pt.solvers.CoordinateDescent):
        return
    if problem["boundary"] != "circular":
        problem["sampling"] = 1.0
        # Every tile may have all its rounds in each of many passes: hopeless problems end sooner with fewer.
        few = pt.solvers.CoordinateDescent(tol=coder.tol, max_iter=min(coder.max_iter, 50))
        problem["solver"] = TiledDescent(coder=few, side=side)


def other_solver(rng: Rng, problem: Problem) -> None:
    """The paper's ADMM, or the one by transforms for circular problems."""
    tol = max(problem["solver"].tol, 1e-6)
    if problem["boundary"] == "circular" and problem["weights"] is None and problem["sampling"] == 1:
        problem["solver"] = pt.solvers.FrequencyADMM(max_iter=100, tol=tol)
    else:
        problem["solver"] = pt.solvers.SampledADMM(max_iter=100, tol=tol)


def started(rng: Rng, problem: Problem) -> None:
    """A start from codes of another penalty, or from codes that are far off."""
    if not getattr(problem["solver"], "takes_start", False):
        return
    first = pt.encode(
        **{**problem, "penalty": np.asarray(problem["penalty"]) * 0.5, "solver": pt.solvers.CoordinateDescent(tol=0.5)}
    )
    factor = (1.0, 1e3, 1e-3)[rng.integers(3)]
    codes = first.codes
    values = [value * value.dtype.type(factor) for value in codes.values]
    problem["start"] = pt.SparseCodes(codes.indices, values, codes.grids, codes.n_filters)


def several_sizes(rng: Rng, problem: Problem) -> None:
    """Signals of different sizes in one call."""
    if "start" in problem or np.ndim(problem["penalty"]) > 1:
        return
    signals, least = problem["signals"], _size(problem)[-1]
    length = max(signals.shape[-1] - 3, least)
    problem["signals"] = [signals[0], *(np.ascontiguousarray(one[..., :length]) for one in signals)]
    weights = problem["weights"]
    if weights is not None:
        problem["weights"] = [weights[0], *(np.ascontiguousarray(one[..., :length]) for one in weights)]


def magnitudes(rng: Rng, problem: Problem) -> None:
    """Signals, and perhaps filters and weights, of any magnitude that their precision holds."""
    reach = REACH[problem["filters"].dtype.name]
    power = rng.uniform(-reach, reach)
    room = (reach - abs(power)) / 3
    of_filters = rng.uniform(-room, room) if rng.random() < 0.4 else 0.0
    of_weights = float(rng.integers(-4, 5)) if problem["weights"] is not None and abs(power) < reach - 8 else 0.0
    problem["signals"] = _times(problem["signals"], power)
    problem["filters"] = _times(problem["filters"], of_filters)
    problem["weights"] = None if problem["weights"] is None else _times(problem["weights"], of_weights)
    problem["penalty"] = _times(np.asarray(problem["penalty"], np.float64), power + of_filters + of_weights)
    if problem.get("start") is not None:
        start = problem["start"]
        values = [_times(value, power - of_filters) for value in start.values]
        problem["start"] = pt.SparseCodes(start.indices, values, start.grids, start.n_filters)


def _times(array: Any, power: float) -> Any:
    """Arrays times a power of ten, in their own precision, in two steps so that the factor itself can be held."""
    if isinstance(array, list):
        return [_times(one, power) for one in array]
    half: NDArray = array.astype(np.float64) * 10 ** (power / 2)
    return (half * 10 ** (power / 2)).astype(array.dtype)


TWISTS: dict[str, tuple[float, Twist]] = {
    "one sample": (0.04, one_sample),
    "constant": (0.05, constant),
    "duplicated filters": (0.15, duplicated),
    "low rank": (0.1, low_rank),
    "unequal norms": (0.1, unequal_norms),
    "masked by channel": (0.1, mask_channels),
    "optimum at zero": (0.08, at_zero),
    "penalty of each position": (0.1, by_position),
    "other solver": (0.12, other_solver),
    "tiles": (0.15, small_tiles),
    "start": (0.15, started),
    "several sizes": (0.1, several_sizes),
    "magnitudes": (0.6, magnitudes),
}
"""How often each twist is made, in the order in which they are made."""
