"""Pictures of what was learned: mosaics of filters, convergence curves, reconstructions with their codes.

Everything here draws into files or arrays and prints nothing; what to draw, and where, is up to the caller.
"""

from pointillist.report.convergence import plot_convergence
from pointillist.report.mosaics import mosaic, save_mosaic
from pointillist.report.reconstruction import plot_reconstruction

__all__ = ["mosaic", "save_mosaic", "plot_convergence", "plot_reconstruction"]
