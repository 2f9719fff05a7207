"""Kernels for the dictionary's statistics: pairs of neighbouring codes, and products with block-Toeplitz blocks."""

from numba import njit

from pointillist.backends.convolution import base_of
from pointillist.backends.vectors import dot_runs


@njit(cache=True, nogil=True)
def add_pairs(filters, columns, row_starts, row_coordinates, grid, size, half, weighted, weight, out):
    """Add weight · z_i z_j for every pair of codes closer than a filter.

    Codes are sorted by grid position: `filters` and `columns` (last coordinate) hold one entry a code, codes of row r are
    row_starts[r] … row_starts[r + 1] − 1, `row_coordinates[r]` its leading coordinates. `half` lists the leading offsets
    that come first or not at all in lexicographic order, so that each pair is met once. `out[pair(k ≤ l)]` is the block of
    shifts δ = (position of l) − (position of k), flat, of shape (2·size − 1); `weighted` are the codes' values.
    """
    n_filters = int((2 * out.shape[0] + 0.25) ** 0.5)
    last = len(size) - 1
    reach = size[last] - 1
    for row in range(len(row_starts) - 1):
        if row_starts[row] == row_starts[row + 1]:
            continue
        for h in range(len(half)):
            other_row = row
            stride = 1
            inside = True
            forward = 0
            for axis in range(last - 1, -1, -1):
                at = row_coordinates[row, axis] + half[h, axis]
                inside &= 0 <= at < grid[axis]
                other_row += half[h, axis] * stride
                stride *= grid[axis]
            if not inside or row_starts[other_row] == row_starts[other_row + 1]:
                continue
            # Flat index of the shift (half[h], 0) in a block, before the last coordinate is added.
            for axis in range(last):
                forward = forward * (2 * size[axis] - 1) + half[h, axis] + size[axis] - 1
            forward = forward * (2 * size[last] - 1) + reach
            whole = out.shape[1] - 1  # shift −δ is at whole − (index of δ)
            begin = row_starts[other_row]
            for i in range(row_starts[row], row_starts[row + 1]):
                if other_row == row:
                    begin = i
                while begin < row_starts[other_row + 1] and columns[begin] < columns[i] - reach:
                    begin += 1
                for j in range(begin, row_starts[other_row + 1]):
                    shift = columns[j] - columns[i]
                    if shift > reach:
                        break
                    k, m = filters[i], filters[j]
                    place = forward + shift
                    product = weight * weighted[i] * weighted[j]
                    if k > m:
                        k, m = m, k
                        place = whole - place
                    pair = k * n_filters - k * (k - 1) // 2 + m - k
                    out[pair, place] += product
                    if k == m and i != j:
                        out[pair, whole - place] += product


@njit(cache=True, nogil=True)
def toeplitz_product(plain, flipped, blocks, block_size, k, first, backward, forward):
    """(C d)_k split in two: Σ_{l ≥ k} into `forward`, Σ_{l < k} reversed into `backward`, both (channels, *size) flat.

    `plain` and `flipped` are layouts of the filters and of the mirrored filters with channels laid out as filters of
    their own, on a grid of the filter's size over a block's shape. `blocks` is flat with spare room, `first[k]` the pair
    (k, k).
    """
    n_channels = len(forward) // (len(plain.row_bases) * plain.row_length)
    n_filters = plain.n_filters // n_channels
    positions = len(plain.row_bases) * plain.row_length
    step = len(plain.run_offsets) * len(plain.run_lanes)
    for m in range(n_filters):
        if m >= k:
            block = (first[k] + m - k) * block_size
            for c in range(n_channels):
                start = (m * n_channels + c) * step
                for position in range(positions):
                    at = block + base_of(flipped, position)
                    forward[c * positions + position] += dot_runs(
                        flipped.run_lanes, blocks, at, flipped.runs, start, flipped.run_offsets
                    )
        else:
            block = (first[m] + k - m) * block_size
            for c in range(n_channels):
                start = (m * n_channels + c) * step
                for position in range(positions):
                    at = block + base_of(plain, position)
                    backward[c * positions + position] += dot_runs(
                        plain.run_lanes, blocks, at, plain.runs, start, plain.run_offsets
                    )
