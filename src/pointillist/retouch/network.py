"""A small convolutional network that says of every pixel how likely it belongs to a scratch, as plain arrays.

It is fitted by ``scripts/learn_scratches.py`` to scratches painted into photographs; here it is only read and evaluated.
Pictures go through four sizes, from a half to a sixteenth, and back. Planes of one size lie in one matrix (pixels, channels)
with a border of zeros, so that the neighbours of all pixels in one direction are a slice of it and a convolution is nine
products of matrices.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import sgemm

from pointillist.storage import read_arrays, write_arrays

GRID = 16
"""Pixels by which a picture may be shifted without changing the answer, away from its borders."""

_LEVELS = 4
_ROWS = 4096  # pixels whose products stay in the cache
_LARGEST = 127  # of whole numbers that weights are stored as

Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Layer:
    """A convolution: `taps` (side², inputs, outputs) in the order of rows and columns, and `biases` (outputs,)."""

    taps: NDArray[np.float32]
    biases: NDArray[np.float32]

    def __call__(self, planes: Planes) -> Planes:
        """The convolution of planes, in which zeros surround the picture."""
        answer = Planes.empty(planes.height, planes.width, len(self.biases))
        across = planes.width + 2
        reach = 1 if len(self.taps) == 9 else 0
        shifts = [row * across + column for row in range(-reach, reach + 1) for column in range(-reach, reach + 1)]
        first, last = across + 1, (planes.height + 1) * across - 1
        for start in range(first, last, _ROWS):
            stop = min(start + _ROWS, last)
            part = answer.matrix[start:stop]
            part[:] = self.biases
            for tap, shift in zip(self.taps, shifts, strict=True):
                sgemm(1.0, tap.T, planes.matrix[start + shift : stop + shift].T, 1.0, part.T, overwrite_c=1)
        return answer.bordered()


@dataclass(frozen=True, eq=False)
class Planes:
    """Planes of a picture as `matrix` ((height + 2) · (width + 2), channels), with a border of zeros."""

    matrix: Matrix
    height: int
    width: int

    @classmethod
    def empty(cls, height: int, width: int, channels: int) -> Planes:
        """Planes whose values are still to be written."""
        return cls(np.empty(((height + 2) * (width + 2), channels), np.float32), height, width)

    @classmethod
    def of(cls, values: NDArray[np.float32]) -> Planes:
        """Planes of values (height, width, channels)."""
        planes = cls.empty(*values.shape)
        planes.bordered().values[:] = values
        return planes

    @property
    def values(self) -> NDArray[np.float32]:
        """The picture without its border, (height, width, channels)."""
        return self._whole[1:-1, 1:-1]

    @property
    def _whole(self) -> NDArray[np.float32]:
        return self.matrix.reshape(self.height + 2, self.width + 2, -1)

    def bordered(self) -> Planes:
        """The same planes, with zeros written to their border."""
        for border in (self._whole[0], self._whole[-1], self._whole[:, 0], self._whole[:, -1]):
            border[:] = 0
        return self

    def plus(self, other: Planes) -> Planes:
        """The same planes after others were added and what is negative was cut off."""
        np.add(self.matrix, other.matrix, out=self.matrix)
        return self.positive()

    def positive(self) -> Planes:
        """The same planes after what is negative was cut off."""
        np.maximum(self.matrix, 0, out=self.matrix)
        return self

    def halved(self) -> Planes:
        """The largest of each two by two pixels."""
        v = self.values
        largest = np.maximum(np.maximum(v[::2, ::2], v[1::2, ::2]), np.maximum(v[::2, 1::2], v[1::2, 1::2]))
        return Planes.of(largest)

    def doubled(self) -> Planes:
        """Every pixel two by two times."""
        planes = Planes.empty(2 * self.height, 2 * self.width, self.matrix.shape[1]).bordered()
        for row in (0, 1):
            for column in (0, 1):
                planes.values[row::2, column::2] = self.values
        return planes


@dataclass(frozen=True, eq=False)
class Network:
    """The layers by name, as ``scripts/learn_scratches.py`` calls them."""

    layers: Mapping[str, Layer]

    def log_odds(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Log-odds of scratches in values (height, width, 3) from 0 to 1.

        Returns
        -------
        (2, height, width) array
            For scratches that are brighter than what they cover, and for those that are darker.
        """
        height, width = values.shape[:2]
        ends = [(0, -length % GRID) for length in (height, width)]
        picture = np.pad(values, [*ends, (0, 0)], mode="edge") - np.float32(0.5)
        answer = self._walked(Planes.of(_quartered(picture))).values
        rows, columns = answer.shape[:2]
        pixels = answer.reshape(rows, columns, 2, 2, 2).transpose(2, 0, 3, 1, 4)
        return pixels.reshape(2, 2 * rows, 2 * columns)[:, :height, :width]

    def _walked(self, planes: Planes) -> Planes:
        layers, kept = self.layers, []
        for level in range(_LEVELS):
            planes = layers[f"down.{level}"](planes.halved() if level else planes).positive()
            planes = layers[f"keep.{level}"](planes).plus(planes)
            kept.append(planes)
        planes = layers["last"](planes).plus(planes)
        for level in reversed(range(_LEVELS - 1)):
            planes = layers[f"join.{level}"](layers[f"lift.{level}"](planes).doubled().plus(kept.pop(level))).positive()
            planes = layers[f"end.{level}"](planes).plus(planes)
        return layers["head"](planes)


def _quartered(picture: NDArray[np.float32]) -> NDArray[np.float32]:
    """Two by two pixels as channels of one: (height, width, 3) becomes (height / 2, width / 2, 12), by colours first."""
    height, width = picture.shape[:2]
    blocks = picture.reshape(height // 2, 2, width // 2, 2, 3)
    return blocks.transpose(0, 2, 4, 1, 3).reshape(height // 2, width // 2, 12)


def save_network(path: str | os.PathLike[str], arrays: Mapping[str, NDArray], facts: Mapping[str, Any]) -> None:
    """Write weights (outputs, inputs, side, side) and biases by name to a file, with facts of their making.

    Weights are rounded to whole numbers, with a factor for each output.
    """
    stored: dict[str, NDArray] = {}
    for name, array in arrays.items():
        if name.endswith(".biases"):
            stored[name] = array.astype(np.float32)
            continue
        factor = np.maximum(np.abs(array).max(axis=(1, 2, 3)), 1e-12) / _LARGEST
        stored[name] = np.rint(array / factor[:, None, None, None]).astype(np.int8)
        stored[f"{name[: -len('.weights')]}.factors"] = factor.astype(np.float32)
    write_arrays(path, "network", dict(facts), stored)


def read_network(path: str | os.PathLike[str]) -> tuple[Network, dict[str, Any]]:
    """Read the network of a file, and the facts of its making."""
    stored = read_arrays(path, "network")
    layers = {}
    for name in sorted({name.rsplit(".", 1)[0] for name in stored.arrays}):
        weights = stored.arrays[f"{name}.weights"] * stored.arrays[f"{name}.factors"][:, None, None, None]
        outputs, inputs = weights.shape[:2]
        taps = np.ascontiguousarray(weights.reshape(outputs, inputs, -1).T.astype(np.float32))
        layers[name] = Layer(taps, stored.arrays[f"{name}.biases"])
    return Network(layers), dict(stored.metadata)


@cache
def load_network() -> Network:
    """The network that comes with the package."""
    with resources.as_file(resources.files(__package__).joinpath("scratches.safetensors")) as path:
        return read_network(path)[0]
