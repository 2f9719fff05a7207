"""Pictures seen on a regular pattern of pixels only, as smaller pictures that are seen everywhere.

What a sensor with a Bayer pattern sees of a filter depends on where the filter lies relative to the pattern, and on nothing
else. So the pattern's phases become channels at a coarser grid, and every filter becomes one for each phase, cut to what is
seen of it: the same problem, with a third of the samples to multiply or less, and no weights.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes


@dataclass(frozen=True, eq=False)
class Lattice:
    """Which samples are seen: `places` lists (channel, row, column) within every block of period × period pixels."""

    period: int
    places: tuple[tuple[int, int, int], ...]

    def coarse(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Blocks along each axis."""
        return tuple(-(-n // self.period) for n in shape)

    def gathered(self, planes: NDArray) -> NDArray:
        """Seen samples of planes (channels, height, width), a channel for each place; zero beyond the picture."""
        rows, columns = self.coarse(planes.shape[1:])
        out = np.zeros((len(self.places), rows, columns), planes.dtype)
        for plane, (channel, top, left) in zip(out, self.places, strict=True):
            found = planes[channel, top :: self.period, left :: self.period]
            plane[: found.shape[0], : found.shape[1]] = found
        return out

    def filters(self, filters: NDArray) -> NDArray:
        """Filters (n_filters, channels, height, width) as seen, (period² · n_filters, places, coarse height, coarse width).

        Those of phase (i, j), which begin i rows and j columns into a block, come together, phase by phase.
        """
        n, period = len(filters), self.period
        sizes = self.coarse([f + period - 1 for f in filters.shape[2:]])  # type: ignore[arg-type]
        out = np.zeros((period**2, n, len(self.places), *sizes), filters.dtype)
        wide = np.zeros((n, filters.shape[1], *(period * s for s in sizes)), filters.dtype)
        for phase, (i, j) in enumerate(product(range(period), repeat=2)):
            wide[...] = 0
            wide[:, :, i : i + filters.shape[2], j : j + filters.shape[3]] = filters
            for place, (channel, top, left) in enumerate(self.places):
                out[phase, :, place] = wide[:, channel, top::period, left::period]
        return out.reshape(period**2 * n, *out.shape[2:])

    def fine(
        self, codes: SparseCodes, offset: tuple[int, ...], size: tuple[int, ...], shape: tuple[int, ...]
    ) -> SparseCodes:
        """Codes of the phases' filters as codes of the filters of `size`, on the "full" grid of a picture of `shape`.

        `offset` is that of the coarse geometry: how many blocks before the picture the first position lies.
        """
        period, n_filters = self.period, codes.n_filters // self.period**2
        grid = tuple(n + f - 1 for n, f in zip(shape, size, strict=True))
        indices, values = [], []
        for index, value, (rows, columns) in zip(codes.indices, codes.values, codes.grids, strict=True):
            which, place = np.divmod(index, rows * columns)
            phase, which = np.divmod(which, n_filters)
            down = period * (place // columns - offset[0]) + phase // period + size[0] - 1
            right = period * (place % columns - offset[1]) + phase % period + size[1] - 1
            touching = (down >= 0) & (down < grid[0]) & (right >= 0) & (right < grid[1])
            fine = ((which * grid[0] + down) * grid[1] + right)[touching]
            order = np.argsort(fine)
            indices.append(fine[order])
            values.append(value[touching][order])
        return SparseCodes(indices, values, [grid] * len(indices), n_filters)
