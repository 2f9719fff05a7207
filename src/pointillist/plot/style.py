"""The look that all figures share, and how a figure becomes a file.

Figures are made without pyplot, so that drawing leaves no global state behind in a user's session.
"""

import os
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray
from PIL import Image

from pointillist.storage import atomic_path

INK = "#2b2b2b"
FAINT = "#8c8c8c"
GRID = "#e6e4df"
BLUE = "#2f5d8a"
ORANGE = "#d9772b"

_DPI = 150
_FIGURE_SUFFIXES = (".png", ".pdf", ".svg")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, laid out so that nothing overlaps."""
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12, wspace=0.02, hspace=0.04)
    figure = Figure(figsize=(width, height), dpi=_DPI, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str], *, crop: bool = False) -> None:
    """Write a figure as .png, .pdf or .svg, completely or not at all; `crop` trims it to what is drawn."""
    suffix = Path(path).suffix.lower()
    if suffix not in _FIGURE_SUFFIXES:
        raise ValueError(f"cannot write {path}: figures end in {', '.join(_FIGURE_SUFFIXES)}")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], bbox_inches="tight" if crop else None, pad_inches=0.15)


def save_image(pixels: NDArray[np.uint8], path: str | os.PathLike[str]) -> None:
    """Write pixels (H, W) or (H, W, 3) in the format that the file name asks for, completely or not at all."""
    suffix = Path(path).suffix.lower()
    if Image.registered_extensions().get(suffix) not in Image.SAVE:
        raise ValueError(f"cannot write {path}: {suffix or 'no suffix'} is no image format; end it in .png")
    with atomic_path(path) as temporary:
        Image.fromarray(pixels).save(temporary)


def render(figure: Figure) -> NDArray[np.uint8]:
    """The pixels (H, W, 3) of a figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def title(axes: Axes, text: str, detail: str = "", *, ink: str = INK, faint: str = FAINT) -> None:
    """A plain heading above a panel, with a fainter line of figures under it."""
    axes.set_title(text, loc="left", fontsize=11, color=ink, pad=20 if detail else 6)
    if detail:
        axes.text(0, 1.02, detail, transform=axes.transAxes, fontsize=8.5, color=faint, va="bottom")


def tidy(axes: Axes, *, ink: str = INK, faint: str = FAINT, grid: str = GRID, label_size: float = 8.5) -> None:
    """Axes of a chart: two spines, a faint grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(faint)
    axes.tick_params(which="both", colors=faint, labelcolor=ink, labelsize=label_size, length=3)
    axes.grid(color=grid, linewidth=0.9)
    axes.set_axisbelow(True)


def bare(axes: Axes, *, frame: str = GRID) -> None:
    """Axes of a picture: a thin frame and nothing else."""
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(color=frame, linewidth=0.8)
