"""From random numbers to the positions that they stand for."""

import numpy as np

from pointillist.kernels.compiling import kernel, spliced


@kernel
def spread(numbers, share, sides, shifts, counts, grid, lasts, steps, rows, found, fill, positions):
    """Choose at most one position of every cell of a grid, for each block: number / share is which, if it has so many.

    `lasts` (n_blocks,) gets where the positions of each block end in `positions`; they ascend.

    Parameters
    ----------
    numbers : (n_blocks, n_cells) array
        From 0 to 1.
    share : number of their type
    sides, counts, grid : (ndim,) int64 arrays
        The sides of a cell, how many cells there are along each axis, and how many positions.
    shifts : (ndim, n_blocks) int64 array
        How far before the grid the first cell of each block begins.
    steps : (2, n_cells) int32 array
        Room for the row within its cell that each number stands for, and the place within that row.
    rows : (n,) int64 array
        Room for the rows of the grid that those of a cell are, for all that a number can stand for.
    found, fill : (n_rows + 1, n) int32 and (n_rows + 1,) int64 arrays
        Room for the places in each row, as they are found, and how many they are; the last is for what is outside.
    positions : (n_blocks n_cells,) int64 array
    """
    # Which numbers stand for a position cannot be foreseen: all are written down, the next ones over those that are none.
    last, end, outside = len(grid) - 1, 0, len(fill) - 1
    n_last, side, length = counts[last], sides[last], grid[last]
    one_side, half, portion = np.int32(side), np.float32(0.5), np.float32(1) / np.float32(side)
    for block in range(len(numbers)):
        for i in range(numbers.shape[1]):
            place = np.int32(numbers[block, i] / share)
            steps[0, i] = np.int32((np.float32(place) + half) * portion)  # place // side
            steps[1, i] = place - steps[0, i] * one_side
        fill[:] = 0
        for line in range(numbers.shape[1] // n_last):
            _rows_of_line(line, block, sides, shifts, counts, grid, outside, rows)
            for n in range(n_last):
                cell = np.uintp(line * n_last + n)
                row = np.uintp(rows[np.uintp(steps[0, cell])])
                at = n * side - shifts[last, block] + np.int64(steps[1, cell])
                found[row, np.uintp(fill[row])] = at
                fill[row] += (row < outside) & (at >= 0) & (at < length)
        for row in range(outside):
            for i in range(fill[row]):
                positions[np.uintp(end + i)] = row * length + found[row, i]
            end += fill[row]
        lasts[block] = end


@spliced
def _rows_of_line(line, block, sides, shifts, counts, grid, outside, rows):
    """Find which rows of the grid the rows of the cells in a line are, `outside` for those that it does not have."""
    last = len(grid) - 1
    for i in range(len(rows)):
        left, rest, row, stride, is_inside = line, i, 0, 1, True
        for axis in range(last - 1, -1, -1):
            at = left % counts[axis] * sides[axis] - shifts[axis, block] + rest % sides[axis]
            is_inside &= (at >= 0) & (at < grid[axis])
            left, rest = left // counts[axis], rest // sides[axis]
            row, stride = row + at * stride, stride * grid[axis]
        rows[i] = row if is_inside and rest == 0 else outside
