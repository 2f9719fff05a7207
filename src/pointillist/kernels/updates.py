"""The update of one code: it moves to its minimum while all others stay, and the residual follows."""

from typing import NamedTuple

import numpy as np

from pointillist.kernels.compiling import routine, spliced
from pointillist.kernels.vectors import add_runs, add_runs_weighted, close_seam, dot_changed_runs, dot_runs


class Circle(NamedTuple):
    """What else there is to know of codes around a circle.

    The first `doubled` samples of a row of `length` stand behind its end again, so that no run is cut in two. A code that
    changes some of them has a seam: of its row's first samples, so many were changed behind the end, and all others in
    front. Codes without one have −1.
    """

    ways: np.ndarray  # where the offsets of a code's runs begin among all
    offsets: np.ndarray
    seams: np.ndarray
    columns: np.ndarray  # how far from the beginning of its row each code begins
    runs_a_row: int
    length: int
    doubled: int


class Places(NamedTuple):
    """Where each code lies; the offsets of runs from their bases are those of the layout, unless there is a circle."""

    bases: np.ndarray  # where a code's box begins in the padded signal
    starts: np.ndarray  # where its filter begins in the runs
    circle: Circle | None = None


class Boxes(NamedTuple):
    """What the update of a code reads of a layout and of places: all of it and nothing else, for less is compiled then."""

    lanes: tuple[None, ...]
    runs: np.ndarray
    offsets: np.ndarray  # (n_runs,) from bases, as far as there is no circle
    bases: np.ndarray
    starts: np.ndarray


@spliced
def update_code(
    boxes,
    circle,
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
):
    """Move code i to its minimum; returns its curvature times the square of its change.

    Unless it is empty, `step` takes up how x − Dz changes, and the residual is left as it is: what a code meets is their
    sum. Where there is no `circle`, what is only for one is not compiled.
    """
    offsets = offsets_of(boxes, circle, i)
    base, start, recorded = boxes.bases[i], boxes.starts[i], len(step) > 0
    if not recorded:
        slope = dot_runs(boxes.lanes, residual, base, boxes.runs, start, offsets)
    elif clean[i]:
        slope = dot_changed_runs(boxes.lanes, residual, step, base, boxes.runs, start, offsets, None)
    else:
        slope = dot_changed_runs(boxes.lanes, residual, step, base, boxes.runs, start, offsets, weights)
    old = values[i]
    new = minimum_of(old, slope, curvatures[i], penalties[i], ridge, nonnegative)
    change = old - new
    if new != old:
        values[i] = new
        target = step if recorded else residual
        if recorded or clean[i]:
            add_runs(boxes.lanes, target, base, boxes.runs, start, offsets, change)
        else:
            add_runs_weighted(boxes.lanes, residual, base, boxes.runs, start, offsets, change, weights)
        close(boxes, circle, i, target, base)
    return change * change * curvatures[i]


@spliced
def minimum_of(old, slope, curvature, penalty, ridge, nonnegative):
    """The best value of a code whose filter has the inner product `slope` with the residual."""
    target = old * curvature + slope
    size = (target if nonnegative else abs(target)) - penalty
    # No branches by signs, which no processor foretells.
    return (size if target > 0 else -size) / (curvature + ridge) if size > 0 else target * 0


@spliced
def offsets_of(boxes, circle, i):
    """Where the runs of a code lie relative to its base."""
    if circle is None:
        return boxes.offsets
    return circle.offsets[circle.ways[i] : circle.ways[i] + len(boxes.offsets)]


@routine
def add_code(boxes, circle, weighted, weights, i, signal, change):
    """Add a code's filter to a signal, `weighted` or as it is."""
    base, start, offsets = boxes.bases[i], boxes.starts[i], offsets_of(boxes, circle, i)
    if weighted:
        add_runs_weighted(boxes.lanes, signal, base, boxes.runs, start, offsets, change, weights)
    else:
        add_runs(boxes.lanes, signal, base, boxes.runs, start, offsets, change)
    close(boxes, circle, i, signal, base)


@spliced
def close(boxes, circle, i, signal, base):
    """Make what a circle holds twice alike again, after a code was added whose box begins at `base`."""
    if circle is not None and circle.seams[i] >= 0:
        close_seam(
            boxes.lanes, signal, base - circle.columns[i], offsets_of(boxes, circle, i), circle.runs_a_row,
            circle.length, circle.doubled, circle.seams[i],
        )  # fmt: skip
