"""Boosted trees as plain arrays, which tell dust and scratches from what belongs to a photograph.

They are fitted by ``python -m benchmarks.finding --fit`` to damage painted into development photographs; here they are only
read and evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from pointillist.storage import atomic_path

_KEY, _FORMAT, _VERSION = "pointillist", "pointillist-forest", 1
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


def save_forest(path: Path, forest: Forest, facts: Mapping[str, Any]) -> None:
    """Write a forest as a safetensors file, with facts of its making (JSON values) in the file's metadata."""
    tensors = {field.name: getattr(forest, field.name) for field in fields(forest) if field.name != "base"}
    header = {"format": _FORMAT, "format_version": _VERSION, "base": forest.base, "metadata": dict(facts)}
    content = safetensors.numpy.save(tensors, {_KEY: json.dumps(header, allow_nan=False)})
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def read_forest(content: bytes) -> tuple[Forest, dict[str, Any]]:
    """The forest of a file's bytes, and the facts of its making."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_KEY])
    if (header["format"], header["format_version"]) != (_FORMAT, _VERSION):
        raise ValueError(f"a forest must be in format {_FORMAT} {_VERSION}, got {header['format']}: fit it again")
    return Forest(**safetensors.numpy.load(content), base=header["base"]), header["metadata"]


@cache
def load_forest(kind: str) -> Forest:
    """The forest for "dust" or "scratches" that comes with the package."""
    return read_forest(resources.files(__package__).joinpath(f"{kind}.safetensors").read_bytes())[0]
