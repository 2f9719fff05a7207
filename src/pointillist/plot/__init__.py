"""Pictures and pages of what was learned: mosaics, convergence curves, reconstructions, self-contained HTML reports.

Everything here draws into files or arrays and prints nothing; what to draw, and where, is up to the caller.
"""

from pointillist.plot.page import render_page, write_page
from pointillist.plot.pictures import mosaic, save_mosaic
from pointillist.plot.reports import Example, write_learning_report

__all__ = [
    "mosaic",
    "save_mosaic",
    "Example",
    "write_learning_report",
    "render_page",
    "write_page",
]
