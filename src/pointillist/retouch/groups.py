"""Pixels that belong to numbered groups, such as islands, and what they have in common: the ground of all features."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Groups:
    """Samples in groups: `owner` (samples,) is the number of each sample's group, from zero to `count` − 1."""

    owner: NDArray[np.integer]
    count: int

    @cached_property
    def size(self) -> NDArray[np.integer]:
        """Samples of every group, counted as one where there are none."""
        return np.maximum(np.bincount(self.owner, minlength=self.count), 1)

    def mean(self, samples: NDArray) -> NDArray:
        """Mean of every group; of samples (samples, channels) that of every channel, (count, channels)."""
        if samples.ndim == 2:
            return np.stack([self.mean(one) for one in samples.T], axis=-1)
        return np.bincount(self.owner, samples, self.count) / self.size

    def spread(self, samples: NDArray) -> NDArray:
        """Standard deviation within every group."""
        return np.sqrt(np.maximum(self.mean(samples.astype(np.float64) ** 2) - self.mean(samples) ** 2, 0))

    def largest(self, samples: NDArray) -> NDArray:
        """Largest sample of every group, at least zero."""
        largest = np.zeros(self.count)
        np.maximum.at(largest, self.owner, samples)
        return largest

    def extent(self, places: NDArray[np.integer]) -> NDArray[np.integer]:
        """Rows or columns from the first to the last of every group."""
        first, last = np.full(self.count, 1 << 30), np.full(self.count, -1)
        np.minimum.at(first, self.owner, places)
        np.maximum.at(last, self.owner, places)
        return last - first + 1
