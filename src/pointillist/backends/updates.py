"""The update of one code: it moves to its minimum while all others stay, and the residual follows."""

from typing import NamedTuple

import numpy as np

from pointillist.backends.compiling import spliced
from pointillist.backends.vectors import add_runs, add_runs_weighted, close_seam, dot_runs


class Places(NamedTuple):
    """Where each code lies.

    The runs of code i lie at bases[i] + offsets[ways[i] + n] for n from 0 on: around a circle the offsets differ. There the
    first `doubled` samples of a row of `length` stand behind its end again, so that no run is cut in two. A code that
    changes some of them has a seam: of its row's first samples, so many were changed behind the end, and all others in
    front. Codes without one have −1.
    """

    bases: np.ndarray  # where a code's box begins in the padded signal
    starts: np.ndarray  # where its filter begins in the runs
    ways: np.ndarray
    offsets: np.ndarray
    seams: np.ndarray
    columns: np.ndarray  # how far from the beginning of its row each code begins
    runs_a_row: int
    length: int
    doubled: int


@spliced
def update_code(
    layout,
    places,
    curvatures,
    penalties,
    ridge,
    clean,
    weights,
    nonnegative,
    values,
    residual,
    i,
    step,
    first,
):
    """Move code i to its minimum; returns its curvature times the square of its change.

    Unless it is empty, `step` takes up how x − Dz changes, with its seam left open; it begins at sample `first` of the
    residual.
    """
    offsets = offsets_of(layout, places, i)
    base, start = places.bases[i], places.starts[i]
    slope = dot_runs(layout.run_lanes, residual, base, layout.runs, start, offsets)
    old = values[i]
    new = minimum_of(old, slope, curvatures[i], penalties[i], ridge, nonnegative)
    change = old - new
    if new != old:
        values[i] = new
        if clean[i]:
            add_code(layout, places, i, residual, 0, change)
        else:
            add_runs_weighted(layout.run_lanes, residual, base, layout.runs, start, offsets, change, weights)
            close(layout, places, i, residual, base)
        if len(step) > 0:
            add_runs(layout.run_lanes, step, base - first, layout.runs, start, offsets, change)
    return change * change * curvatures[i]


@spliced
def minimum_of(old, slope, curvature, penalty, ridge, nonnegative):
    """The best value of a code whose filter has the inner product `slope` with the residual."""
    target = old * curvature + slope
    size = (target if nonnegative else abs(target)) - penalty
    # No branches by signs, which no processor foretells.
    return (size if target > 0 else -size) / (curvature + ridge) if size > 0 else target * 0


@spliced
def offsets_of(layout, places, i):
    """Where the runs of a code lie relative to its base."""
    return places.offsets[places.ways[i] : places.ways[i] + len(layout.run_offsets)]


@spliced
def add_code(layout, places, i, signal, first, change):
    """Add a code's filter to a signal that begins at sample `first`."""
    base = places.bases[i] - first
    add_runs(layout.run_lanes, signal, base, layout.runs, places.starts[i], offsets_of(layout, places, i), change)
    close(layout, places, i, signal, base)


@spliced
def close(layout, places, i, signal, base):
    """Make what a circle holds twice alike again, after a code was added whose box begins at `base`."""
    if places.seams[i] >= 0:
        close_seam(
            layout.run_lanes, signal, base - places.columns[i], offsets_of(layout, places, i), places.runs_a_row,
            places.length, places.doubled, places.seams[i],
        )  # fmt: skip
