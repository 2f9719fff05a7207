"""The sparse coding problem of the paper's Eq. 1 for signals of one shape, and certificates of its answers.

    minimise over z   ½ Σ_i w_i (x_i − (D z)_i)² + Σ_j λ_j |z_j|

`Problem` gathers filters, penalties, weights, boundary and sample; `certificate` evaluates an answer: its objective and
how far from the optimum it can be at most. Solvers import from here, never the other way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lsqr

from pointillist.codes import SparseCodes
from pointillist.kernels import convolution
from pointillist.kernels.convolution import SPARE_SAMPLES, Layout, Pairs, make_layout, make_pairs
from pointillist.sampling import Sample
from pointillist.validation import as_numbers, check_arguments


@dataclass(frozen=True)
class Geometry:
    """Shapes that follow from a signal's shape, a filter size and a boundary.

    Parameters
    ----------
    signal : tuple of int
        Spatial shape of one signal.
    filter : tuple of int
        Spatial shape of the (largest) filter.
    channels : int
        Channels that share one set of codes; 1 for plain signals.
    boundary : {"valid", "same", "full", "circular"}

    Attributes
    ----------
    grid : tuple of int
        Shape of the positions that a filter's codes can take; `n_positions` is their number.
    padded : tuple of int
        Shape of the padded signal: every filter at every grid position fits in. A flat one with all its channels and its
        spare end has `padded_length` samples.
    offset : tuple of int
        Place of the signal's first sample in the padded signal; `middle` are the slices that cut the signal out.
    """

    signal: tuple[int, ...]
    filter: tuple[int, ...]
    channels: int = 1
    boundary: str = "same"
    grid: tuple[int, ...] = field(init=False, repr=False, compare=False)
    padded: tuple[int, ...] = field(init=False, repr=False, compare=False)
    offset: tuple[int, ...] = field(init=False, repr=False, compare=False)
    middle: tuple[slice, ...] = field(init=False, repr=False, compare=False)
    n_positions: int = field(init=False, repr=False, compare=False)
    padded_length: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_arguments(boundary=self.boundary)
        if len(self.signal) != len(self.filter):
            raise ValueError(
                f"signals have {len(self.signal)} dimensions and filters {len(self.filter)}; they must agree "
                "(channels=True says that the axis after the first holds channels)"
            )
        grid, padded, offset, middle = [], [], [], [slice(None)]
        for s, f in zip(self.signal, self.filter, strict=True):
            if f > s:
                raise ValueError(
                    f"filters, of filter_size {self.filter}, are larger than the signals, {self.signal}; use smaller filters"
                )
            g = s + {"valid": 1 - f, "same": 0, "full": f - 1, "circular": 0}[self.boundary]
            grid.append(g)
            padded.append(g + f - 1)
            o = {"valid": 0, "full": f - 1}.get(self.boundary, (f - 1) // 2)
            offset.append(o)
            middle.append(slice(o, o + s))
        vars(self).update(  # whose class is frozen
            grid=tuple(grid),
            padded=tuple(padded),
            offset=tuple(offset),
            middle=tuple(middle),
            n_positions=prod(grid),
            padded_length=self.channels * prod(padded) + SPARE_SAMPLES,
        )

    def spread(self, signal: NDArray) -> NDArray:
        """Lay a signal (channels, *signal) into a flat padded one: zeros around it, or itself when circular."""
        flat = np.zeros(self.padded_length, signal.dtype)
        if self.boundary == "circular":
            margins = [(o, f - 1 - o) for o, f in zip(self.offset, self.filter, strict=True)]
            self._box(flat)[...] = np.pad(signal, [(0, 0), *margins], mode="wrap")
        else:
            self.inside(flat)[...] = signal
        return flat

    def inside(self, flat: NDArray) -> NDArray:
        """The part of a flat padded signal that is the signal itself, a view."""
        return self._box(flat)[self.middle]

    def gather(self, flat: NDArray) -> NDArray:
        """The adjoint of `spread`: cut the signal out of a flat padded one, or fold it when circular."""
        if self.boundary != "circular":
            return self.inside(flat).copy()
        folded = self._box(flat)
        for axis, (o, n, f) in enumerate(zip(self.offset, self.signal, self.filter, strict=True), start=1):
            along = np.moveaxis(folded, axis, 0)
            middle = along[o : o + n].copy()
            middle[n - o :] += along[:o]
            middle[: f - 1 - o] += along[o + n :]
            folded = np.moveaxis(middle, 0, axis)
        return np.ascontiguousarray(folded)

    def _box(self, flat: NDArray) -> NDArray:
        return flat[: self.padded_length - SPARE_SAMPLES].reshape(self.channels, *self.padded)


class ConvolutionOperator:
    """D: codes → signal and Dᵀ: signal → codes.

    Parameters
    ----------
    filters : (n_filters, channels, *size) array
    geometry : Geometry
    """

    def __init__(self, filters: NDArray, geometry: Geometry) -> None:
        self.filters, self.geometry = np.ascontiguousarray(filters), geometry

    @cached_property
    def layout(self) -> Layout:
        return make_layout(self.filters, self.geometry.grid, self.geometry.padded)

    @cached_property
    def pairs(self) -> Pairs:
        """The filters as they are correlated with a signal at scattered positions."""
        return make_pairs(self.filters, self.geometry.padded)

    @property
    def n_codes(self) -> int:
        return len(self.filters) * self.geometry.n_positions

    def curvatures(self, indices: NDArray, weights: NDArray, clean: NDArray) -> NDArray:
        """Σ w d² of some codes, for flat padded weights; those that are `clean` meet weights of one only."""
        squares = self.filters.reshape(len(self.filters), -1)
        found = np.einsum("kt,kt->k", squares, squares)[indices // self.geometry.n_positions]
        if not clean.all():
            weighted = np.empty(len(indices) - np.count_nonzero(clean), self.filters.dtype)
            convolution.curvatures(self.layout, indices[~clean], weights, weighted)
            found[~clean] = weighted
        return found

    def synthesise(self, indices: NDArray, values: NDArray, dtype: Any = None) -> NDArray:
        """D z for sparse codes (flat indices and values), a signal (channels, *space)."""
        return self.geometry.gather(self.synthesise_padded(indices, values, dtype))

    def synthesise_padded(self, indices: NDArray, values: NDArray, dtype: Any = None) -> NDArray:
        """The flat padded signal of sparse codes, before the boundary cuts or folds it."""
        flat = np.zeros(self.geometry.padded_length, dtype or self.filters.dtype)
        convolution.synthesise(self.layout, indices, values.astype(flat.dtype, copy=False), flat)
        return flat

    def synthesise_dense(self, codes: NDArray) -> NDArray:
        """D z for dense codes (n_filters, *grid)."""
        values = np.ascontiguousarray(codes, self.filters.dtype).reshape(-1)
        indices = np.flatnonzero(values)
        return self.synthesise(indices, values[indices])

    def correlate(self, signal: NDArray, indices: NDArray | None = None) -> NDArray:
        """Dᵀ of a signal (channels, *space): (n_filters, *grid), or one value for each of `indices`."""
        flat = self.geometry.spread(np.ascontiguousarray(signal, self.filters.dtype))
        if indices is not None:
            out = np.empty(len(indices), flat.dtype)
            convolution.correlate(self.layout, indices, flat, out)
            return out
        rows = len(self.layout.row_bases)
        padded_filters = len(self.layout.blocks) // len(self.layout.taps)
        out = np.empty(padded_filters * self.geometry.n_positions, flat.dtype)
        convolution.correlate_dense(self.layout, flat, 0, rows, out)
        return out[: self.n_codes].reshape(len(self.filters), *self.geometry.grid)

    def refit(self, indices: NDArray, values: NDArray, signal: NDArray, root: NDArray, steps: int) -> NDArray:
        """Values of some codes after steps of LSQR towards their least-squares fit of a signal (channels, *space).

        `root` holds the roots of the samples' weights. The penalty has shrunk the values; few steps, because neighbouring
        codes of smooth filters would run away from each other in many.
        """
        if len(indices) == 0:
            return values
        matrix = LinearOperator(
            (signal.size, len(indices)),
            matvec=lambda z: (root * self.synthesise(indices, z)).ravel(),
            rmatvec=lambda y: self.correlate(root * y.reshape(signal.shape), indices),
            dtype=np.float64,
        )
        return lsqr(matrix, (root * signal).ravel(), x0=values.astype(np.float64), iter_lim=steps)[0].astype(
            values.dtype
        )


def synthesise(
    codes: SparseCodes, filters: NDArray, shapes: Sequence[tuple[int, ...]], channels: int, boundary: str
) -> list[NDArray]:
    """Signals (channels, *space) of sparse codes, one for each of the spatial `shapes`."""
    filters = filters.astype(np.result_type(filters, codes.dtype), copy=False)
    operators: dict[tuple[int, ...], ConvolutionOperator] = {}
    signals = []
    for index, value, shape in zip(codes.indices, codes.values, shapes, strict=True):
        if shape not in operators:
            geometry = Geometry(shape, filters.shape[2:], channels, boundary)
            operators[shape] = ConvolutionOperator(filters, geometry)
        signals.append(operators[shape].synthesise(index, value))
    return signals


def signal_shape(grid: tuple[int, ...], filter_size: tuple[int, ...], boundary: str) -> tuple[int, ...]:
    """The signal's shape that a grid of codes belongs to."""
    check_arguments(boundary=boundary)
    change = {"valid": 1, "same": 0, "full": -1, "circular": 0}[boundary]
    return tuple(g + change * (f - 1) for g, f in zip(grid, filter_size, strict=True))


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
        """True if every signal has weights of its own."""
        return self.weights is not None and self.weights.ndim == len(self.geometry.signal) + 2

    def weights_of(self, i: int) -> NDArray | None:
        """Weights (channels, *space) of signal `i`, or None for all ones."""
        if self.weights is None:
            return None
        return self.weights[i] if self.has_own_weights else self.weights

    def constant_of(self, i: int) -> float:
        """Constant that the objective of signal `i` has besides."""
        return 0.0 if self.constants is None else float(self.constants[i])

    def penalty_at(self, indices: NDArray | None) -> NDArray:
        """λ at flat code `indices`, or broadcast against (n_filters, n_positions) for None."""
        if indices is None:
            return self.penalty
        filters = indices // self.geometry.n_positions
        if self.penalty.shape[1] == 1:
            return self.penalty[filters, 0]
        return self.penalty[filters, indices % self.geometry.n_positions]

    def price(self, indices: NDArray, values: NDArray) -> float:
        """Σ λ |z| of codes, given by their flat `indices` and `values`: the objective without its loss and constant."""
        return inner(self.penalty_at(indices), np.abs(values))


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
    """Worth of an answer: the optimum lies in [objective · (1 − gap), objective]."""

    objective: float
    gap: float  # relative to the objective
    residual: NDArray  # w · (x − D z), (channels, *space), float64


def certificate(problem: Problem, i: int, signal: NDArray, indices: NDArray, values: NDArray) -> Certificate:
    """Evaluate the codes of signal i in float64, over the sampled codes where the problem has a sample.

    With r = w (x − D z) the point s · r / √w is dual feasible for s ≤ min_j λ_j / |D_jᵀ r|; the difference of the two
    objectives bounds the distance to the optimum.
    """
    x, weights, constant = signal.astype(np.float64), problem.weights_of(i), problem.constant_of(i)
    difference = x - problem.exact_operator.synthesise(indices, values)
    residual = difference if weights is None else weights * difference
    loss = 0.5 * inner(residual, difference)
    objective = loss + problem.price(indices, values)
    correlations = problem.exact_operator.correlate(residual, problem.sample)
    gap = relative_gap(objective, loss, inner(residual, x), worst_ratio(problem, correlations), constant)
    return Certificate(objective + constant, gap, residual)


def relative_gap(
    objective: Values, loss: Values, energy: Values, ratio: Values, constant: float | Values = 0.0
) -> Values:
    """The duality gap over the objective, for one signal or an array of them.

    `loss` is ½ Σ w (x − Dz)², `energy` Σ w x (x − Dz) and `ratio` an upper bound of max_j |D_jᵀ r| / λ_j: r divided by it
    is dual feasible. `constant` is what both objectives have besides, so that `objective` comes without it.
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
    size = correlations if problem.nonnegative else np.abs(correlations)
    return float(np.max(size / problem.penalty_at(problem.sample), initial=0.0))


def lambda_max(problem: Problem, signals: Sequence[NDArray]) -> NDArray:
    """Smallest factor of `problem.penalty`, for each signal, with which all codes are zero.

    With a penalty of one everywhere that is λ_max itself.
    """
    factors = []
    for i, signal in enumerate(signals):
        weights = problem.weights_of(i)
        x = signal.astype(np.float64)
        correlations = problem.exact_operator.correlate(x if weights is None else weights * x, problem.sample)
        factors.append(worst_ratio(problem, correlations))
    return np.array(factors)


def inner(a: NDArray, b: NDArray) -> float:
    """Σ a b without BLAS, whose threads would let the bits depend on how many there are."""
    return float(np.einsum("i,i->", a.ravel(), b.ravel(), dtype=np.float64))
