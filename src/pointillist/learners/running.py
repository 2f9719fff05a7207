"""What `fit` is told about a run: the filters that it begins with, and how much it prints."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.constraints import filter_shapes
from pointillist.learners.step import Step
from pointillist.reprs import filters_in_words
from pointillist.validation import check_arguments


def first_step(step: Step, filters: NDArray | None, warm_start: bool, **asked: Any) -> Step:
    """The step that a run begins with: with `warm_start`, `filters` that were learned before, if any, are its first ones.

    What else a run was asked for is checked by the rules for its names.
    """
    check_arguments(warm_start=warm_start, **asked)
    if not warm_start or filters is None:
        return step
    if np.ndim(step.penalty) or isinstance(step.filter_size, list):
        raise ValueError(
            "warm_start needs one penalty and one filter_size for all filters: the learned ones are sorted by use, and no "
            "longer in the order of several"
        )
    ndim = filters.ndim - 1 - step.channels
    shapes = filter_shapes(step.n_filters, step.filter_size, ndim)
    if (len(shapes.sizes), *shapes.box) != (len(filters), *filters.shape[1 + step.channels :]):
        before = filters_in_words(filters.shape, step.channels)
        raise ValueError(
            f"warm_start needs as many filters of the same size as were learned before, {before}, got "
            f"n_filters={step.n_filters} and filter_size={step.filter_size}"
        )
    return replace(step, update=replace(step.update, init=filters))


class PrintedLines:
    """Prints a line about a step's record now and then, as `verbose` of `fit` asks for; close it after the last step.

    Parameters
    ----------
    verbose : bool or int
        0 prints nothing; 1 prints steps 1, 2, 5, 10, 20, 50, … and the last one; 2 and more print every step.
    """

    def __init__(self, verbose: int) -> None:
        check_arguments(verbose=verbose)
        self._verbose = int(verbose)
        self._unsaid: dict[str, Any] | None = None

    def __call__(self, info: dict[str, Any]) -> bool:
        """Take in a step's record; it never asks to stop."""
        self._unsaid = info
        step = str(info["iteration"])
        if self._verbose > 1 or (step[0] in "125" and not step[1:].strip("0")):
            self.close()
        return False

    def close(self) -> None:
        """Print the last record, unless that was done."""
        info, self._unsaid = self._unsaid, None
        if info is None or not self._verbose:
            return
        judged = info.get("validation_objective")
        held_out = "" if judged is None else f", held-out objective {judged:.6g}"
        words = f"objective {info['objective']:.6g}{held_out}, {info['nnz']:,} codes, {info['seconds']:.1f} s"
        print(f"step {info['iteration']}: {words}", flush=True)
