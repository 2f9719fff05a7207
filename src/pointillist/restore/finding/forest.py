"""Boosted trees as plain arrays, which tell dust and scratches from what belongs to a photograph.

They are fitted by ``python -m benchmarks.finding --fit`` to damage painted into development photographs; here they are only
read and evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

_TREES = 20  # after so many trees
_HOPELESS = -7.0  # what has less is given up


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose leaves add up to log-odds.

    Attributes
    ----------
    roots : (trees,) int array
        Node at which each tree begins.
    feature, threshold, left, right, value : (nodes,) arrays
        A row goes left where its feature is at most the threshold; a leaf has itself on both sides.
    base : float
        Log-odds before any tree.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    base: float

    def log_odds(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Log-odds of every row (rows, features) to be damage.

        Rows that are hopeless after some of the trees keep what they have then, which saves most of the time.
        """
        total = np.full(len(rows), self.base, np.float32)
        for start in range(0, len(self.roots), _TREES):
            open_ = np.nonzero(total > _HOPELESS)[0] if start else np.arange(len(rows))
            total[open_] += self._leaves(rows[open_], self.roots[start : start + _TREES])
        return total

    def _leaves(self, rows: NDArray[np.float32], roots: NDArray[np.int32]) -> NDArray[np.float32]:
        """Sum of the leaves in which every row ends."""
        total = np.zeros(len(rows), np.float32)
        everyone = np.arange(len(rows))
        for root in roots:
            node = np.full(len(rows), root, np.int32)
            while True:
                below = rows[everyone, self.feature[node]] <= self.threshold[node]
                after = np.where(below, self.left[node], self.right[node])
                if np.array_equal(after, node):
                    break
                node = after
            total += self.value[node]
        return total


@cache
def load_forest(kind: str) -> Forest:
    """The forest for "dust" or "scratches" that comes with the package."""
    with resources.files(__package__).joinpath(f"{kind}.npz").open("rb") as stream:
        arrays = np.load(stream, allow_pickle=False)
        return Forest(**{name: arrays[name] for name in arrays.files if name != "base"}, base=float(arrays["base"]))
