"""The sparse coding problem of the paper's Eq. 1 for signals of one shape, and certificates of its answers.

    minimise over z   ½ Σ_i w_i (x_i − (D z)_i)² + Σ_j λ_j |z_j|

`Problem` gathers filters, penalties, weights, boundary and sample; `certificate` evaluates an answer: its objective and
how far from the optimum it can be at most. Solvers import from here, never the other way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pointillist.model.arguments import as_numbers
from pointillist.model.geometry import Geometry
from pointillist.model.operators import ConvolutionOperator
from pointillist.model.sampling import Sample

Values = TypeVar("Values", float, NDArray)

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """One sparse coding problem, shared by signals of one shape: what a solver's `prepare` is given.

    Besides what it holds, ``operator`` has D and its adjoint: ``synthesise_dense(codes)`` gives the signal of codes
    (n_filters, *grid), ``correlate(signal)`` the correlations (n_filters, *grid) of a signal (channels, *space).

    Parameters
    ----------
    filters : (n_filters, channels, *size) array
        The dictionary, in the precision that is worked in.
    geometry : Geometry
        Shapes: ``signal`` (*space), ``grid``, the positions that a filter can take, and ``n_positions``, their number.
    penalty : (n_filters, 1) or (n_filters, n_positions) float64 array
        λ, positive everywhere; see `broadcast_penalty`.
    weights : None, (channels, *space) or (n_signals, channels, *space) array
        w ≥ 0, multiplying the squared error; None is all ones.
    drawn : None or Sample
        The codes that may be non-zero, as they were drawn; None is all of them. ``sample`` has their flat indices.
    nonnegative : bool
        Restrict the codes to z ≥ 0.
    constants : None or (n_signals,) float64 array
        What the objective of each signal has besides, whatever the codes; None is nothing.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> class Curious:
    ...     takes_start = False
    ...     def prepare(self, problem):
    ...         print(problem.filters.shape, problem.geometry.grid, problem.penalty.ravel(), problem.weights)
    ...         return problem
    ...     def solve(self, state, signals, *, n_jobs=1, start=None):
    ...         nothing = np.zeros((len(signals), state.n_filters, *state.geometry.grid))
    ...         return pt.certify(state, signals, pt.SparseCodes.from_dense(nothing))
    >>> result = pt.encode(np.eye(1, 30, 9), [[0.6, 0.8], [0.8, 0.6]], penalty=2.0, solver=Curious())
    (2, 1, 2) (30,) [2. 2.] None
    """

    filters: NDArray
    geometry: Geometry
    penalty: NDArray
    weights: NDArray | None = None
    drawn: Sample | None = None
    nonnegative: bool = False
    constants: NDArray | None = None

    @cached_property
    def operator(self) -> ConvolutionOperator:
        return ConvolutionOperator(self.filters, self.geometry)

    @cached_property
    def exact_operator(self) -> ConvolutionOperator:
        """The operator D in float64, for evaluations."""
        if self.filters.dtype == np.float64:
            return self.operator
        return ConvolutionOperator(self.filters.astype(np.float64), self.geometry)

    @property
    def n_filters(self) -> int:
        return len(self.filters)

    @cached_property
    def smallest_penalty(self) -> float:
        return float(np.min(self.penalty))

    @cached_property
    def largest_norm(self) -> float:
        """‖d‖ of the largest filter."""
        flat = self.filters.reshape(self.n_filters, -1).astype(np.float64)
        return float(np.sqrt(np.max(np.einsum("kt,kt->k", flat, flat))))

    @property
    def sample(self) -> NDArray | None:
        """Flat indices of the codes that may be non-zero, ascending; None is all of them."""
        return None if self.drawn is None else self.drawn.indices

    @property
    def has_own_weights(self) -> bool:
        """Whether every signal has weights of its own."""
        return self.weights is not None and self.weights.ndim == len(self.geometry.signal) + 2

    def weights_of(self, i: int) -> NDArray | None:
        """Weights (channels, *space) of signal `i`, or None for all ones."""
        if self.weights is None:
            return None
        return self.weights[i] if self.has_own_weights else self.weights

    def constant_of(self, i: int) -> float:
        """What the objective of signal `i` has besides."""
        return 0.0 if self.constants is None else float(self.constants[i])

    def penalty_at(self, indices: NDArray | None) -> NDArray:
        """λ at flat code `indices`, or broadcast against (n_filters, n_positions) for None."""
        if indices is None:
            return self.penalty
        filters = indices // self.geometry.n_positions
        if self.penalty.shape[1] == 1:
            return self.penalty[filters, 0]
        return self.penalty[filters, indices % self.geometry.n_positions]


def check_penalty(penalty: float | NDArray) -> NDArray:
    """A penalty of any shape as a float64 array, finite and positive everywhere."""
    value = as_numbers(penalty, "penalty", np.float64)
    if value.size == 0:
        raise ValueError("penalty is empty: give one number, or one for each filter")
    if not np.all(np.isfinite(value)) or np.any(value <= 0):
        raise ValueError(
            "penalty must be finite and positive everywhere: without it there is no certificate "
            f"(smallest value given: {np.min(value):g})"
        )
    return value


def broadcast_penalty(penalty: float | NDArray, n_filters: int, geometry: Geometry) -> NDArray:
    """Check a penalty and give it the shape that `Problem` wants.

    A number serves all codes, ``(n_filters,)`` gives each filter its own, and anything that broadcasts against
    ``(n_filters, *grid)`` each code.
    """
    value = check_penalty(penalty)
    if value.ndim == 0:
        return np.full((n_filters, 1), float(value))
    if value.shape == (n_filters,):
        return value[:, None].copy()
    try:
        full = np.broadcast_to(value, (n_filters, *geometry.grid))
    except ValueError:
        raise ValueError(
            f"penalty of shape {value.shape} must be a number, ({n_filters},) or broadcast against "
            f"{(n_filters, *geometry.grid)}"
        ) from None
    return np.ascontiguousarray(full.reshape(n_filters, -1))


@dataclass(frozen=True)
class Certificate:
    """What an answer is worth: the optimum lies in [objective · (1 − gap), objective]."""

    objective: float
    gap: float  # relative to the objective
    residual: NDArray  # w · (x − D z), (channels, *space), float64


def certificate(problem: Problem, i: int, signal: NDArray, indices: NDArray, values: NDArray) -> Certificate:
    """Evaluate the codes of signal i in float64, over the sampled codes where the problem has a sample.

    With r = w (x − D z) the point s · r / √w is dual feasible for s ≤ min_j λ_j / |D_jᵀ r|; the difference of the two
    objectives bounds the distance to the optimum.
    """
    x = signal.astype(np.float64)
    weights = problem.weights_of(i)
    fit = problem.exact_operator.synthesise(indices, values.astype(np.float64))
    difference = x - fit
    residual = difference if weights is None else weights * difference
    loss = 0.5 * inner(residual, difference)
    objective = loss + inner(problem.penalty_at(indices), np.abs(values))
    correlations = problem.exact_operator.correlate(residual, problem.sample)
    energy = inner(residual, x)
    constant = problem.constant_of(i)
    gap = relative_gap(objective, loss, energy, worst_ratio(problem, correlations), constant)
    return Certificate(objective + constant, gap, residual)


def relative_gap(
    objective: Values, loss: Values, energy: Values, ratio: Values, constant: float | Values = 0.0
) -> Values:
    """The duality gap over the objective, for one signal or an array of them.

    `loss` is ½ Σ w (x − Dz)², `energy` Σ w x (x − Dz) and `ratio` an upper bound of max_j |D_jᵀ r| / λ_j: r divided by it
    is dual feasible. `constant` is what both objectives have besides.
    """
    # The dual objective s · energy − s² · loss peaks at s = energy / (2 loss); feasibility asks for s ≤ 1 / ratio.
    peak = np.maximum(energy, 0.0) / np.maximum(2 * loss, _TINY)  # without loss there is no energy either
    scale = np.minimum(peak, 1 / np.maximum(ratio, _TINY))
    gap = objective - (scale * energy - scale * scale * loss)
    return np.maximum(gap, 0.0) / np.maximum(objective + constant, _TINY)


def worst_ratio(problem: Problem, correlations: NDArray) -> float:
    """max_j |D_jᵀ r| / λ_j, of positive correlations only for non-negative codes."""
    if problem.sample is None:
        correlations = correlations.reshape(problem.n_filters, -1)
    if correlations.size == 0:
        return 0.0
    size = correlations if problem.nonnegative else np.abs(correlations)
    if problem.penalty.shape[1] == 1 and problem.sample is None:
        return float(np.max(np.max(size, axis=1) / problem.penalty[:, 0]))
    return float(np.max(size / problem.penalty_at(problem.sample)))


def lambda_max(problem: Problem, signals: Sequence[NDArray]) -> NDArray:
    """Smallest factor of `problem.penalty`, for each signal, with which all codes are zero.

    With a penalty of one everywhere that is λ_max itself.
    """
    factors = []
    for i, signal in enumerate(signals):
        weights = problem.weights_of(i)
        x = signal.astype(np.float64)
        correlations = problem.exact_operator.correlate(x if weights is None else weights * x, problem.sample)
        factors.append(max(worst_ratio(problem, correlations), 0.0))
    return np.array(factors)


def inner(a: NDArray, b: NDArray) -> float:
    """Σ a b without BLAS, whose threads would let the bits depend on how many there are."""
    return float(np.einsum("i,i->", a.ravel(), b.ravel(), dtype=np.float64))
