"""From random numbers to the positions that they stand for."""

import numpy as np

from pointillist.backends.compiling import kernel


@kernel
def spread(numbers, share, sides, units, shifts, counts, grid, lasts, found, rows, begins, corner, positions):
    """Choose at most one position of every cell of a grid, for each block: number / share is which, if it has so many.

    `lasts` (n_blocks,) gets where the positions of each block end in `positions`; they ascend.

    Parameters
    ----------
    numbers : (n_blocks, n_cells) array
        From 0 to 1.
    share : number of their type
    sides, units, counts, grid : (ndim,) int64 arrays
        The sides of a cell and how many of its positions a step along each takes, how many cells there are along each axis,
        and how many positions.
    shifts : (ndim, n_blocks) int64 array
        How far before the grid the first cell of each block begins.
    found, rows : (n_cells,) int64 arrays
        Room for the positions of a block and their rows, as they are found.
    begins, corner : (n_rows + 1,) and (ndim,) int64 arrays
        Room for where the positions of each row belong, and for where a cell begins.
    positions : (n_blocks n_cells,) int64 array
    """
    last, end = len(grid) - 1, 0
    inside = sides[0] * units[0]
    for block in range(len(numbers)):
        n, cell = 0, 0
        begins[:] = 0
        for line in range(numbers.shape[1] // counts[last]):
            left = line
            for axis in range(last - 1, -1, -1):
                corner[axis] = left % counts[axis] * sides[axis] - shifts[axis, block]
                left //= counts[axis]
            corner[last] = -shifts[last, block]
            for _ in range(counts[last]):
                place = np.int32(numbers[np.uintp(block), np.uintp(cell)] / share)
                cell += 1
                if place < inside:
                    rest, row, is_inside = np.uint32(place), 0, True
                    for axis in range(last):
                        steps = rest // np.uint32(units[axis])
                        rest -= steps * np.uint32(units[axis])
                        at = corner[axis] + np.int64(steps)
                        is_inside &= (at >= 0) & (at < grid[axis])
                        row = row * grid[axis] + at
                    at = corner[last] + np.int64(rest)
                    if is_inside and at >= 0 and at < grid[last]:
                        found[np.uintp(n)], rows[np.uintp(n)] = row * grid[last] + at, row
                        begins[np.uintp(row + 1)] += 1
                        n += 1
                corner[last] += sides[last]
        for row in range(len(begins) - 1):
            begins[row + 1] += begins[row]
        for i in range(n):  # cells of a row come in its order
            row = np.uintp(rows[np.uintp(i)])
            positions[np.uintp(end + begins[row])] = found[np.uintp(i)]
            begins[row] += 1
        end += n
        lasts[block] = end
