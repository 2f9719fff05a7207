"""Boosted trees as plain arrays, which tell dust from what belongs to a photograph.

They are fitted by ``python -m benchmarks.finding --fit`` to damage painted into development photographs; here they are only
read and evaluated.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.storage import read_arrays, write_arrays

_TREES = 20
"""After every so many trees, rows that are hopeless are left out."""
_HOPELESS = -7.0
"""Log-odds below which a row is hopeless."""


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


def save_forest(path: Path, forest: Forest, facts: Mapping[str, Any]) -> None:
    """Write a forest to a file, with facts of its making (JSON values) in the file's metadata."""
    arrays = {field.name: getattr(forest, field.name) for field in fields(forest) if field.name != "base"}
    write_arrays(path, "forest", {"base": forest.base, **facts}, arrays)


def read_forest(path: str | os.PathLike[str]) -> tuple[Forest, dict[str, Any]]:
    """Read the forest of a file, and the facts of its making."""
    stored = read_arrays(path, "forest")
    facts = dict(stored.metadata)
    return Forest(**stored.arrays, base=facts.pop("base")), facts


@cache
def load_forest(kind: str) -> Forest:
    """The forest of that name that comes with the package: there is one for "dust"."""
    with resources.as_file(resources.files(__package__).joinpath(f"{kind}.safetensors")) as path:
        return read_forest(path)[0]
