"""What coordinate descent takes of memory, for plans that are made before it begins."""

from pointillist.kernels.sweeps import MEMORY
from pointillist.problem import Geometry
from pointillist.solvers.nearby import NOTES_A_POSITION
from pointillist.solvers.products import product_bytes


def descent_bytes(geometry: Geometry, density: float, itemsize: int) -> int:
    """Bytes that solving for one signal takes: residual, weights, steps, scans, float64 twins, noted codes, working set.

    Parameters
    ----------
    geometry : Geometry
    density : float
        Codes in the working set for each position.
    itemsize : int
        Bytes of a sample.
    """
    padded = geometry.padded_length * ((5 + MEMORY) * itemsize + 16)
    # A noted code: position, box, filter, ratio, and a part of what projections take.
    grid = geometry.n_positions * (4 * itemsize + 24 + NOTES_A_POSITION * (20 + 2 * itemsize))
    # A code in the working set: index, value, box, start, curvature, penalty, order, and copies of some.
    codes = int(density * geometry.n_positions)
    return padded + grid + 48 * codes + product_bytes(geometry, codes, itemsize)
