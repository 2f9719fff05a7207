"""The look that all figures share, where a plot goes, and how a figure becomes a file.

Figures for files are made without pyplot, so that drawing leaves no global state behind in a user's session. A plot without
Axes of the caller gets a figure of pyplot, so that it is shown as any other; nothing here shows it, and no setting of
matplotlib is changed.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.gridspec import GridSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray
from PIL import Image

from pointillist.reprs import shown
from pointillist.storage import atomic_path

INK = "#2b2b2b"
FAINT = "#8c8c8c"
GRID = "#e6e4df"
BLUE = "#2f5d8a"
ORANGE = "#d9772b"

COLOURS = (*(f"c{i}" for i in range(8)), *(f"r{i}" for i in range(5)))
_NAMES = (*COLOURS, "ink", "faint", "grid")
PAGE_COLOURS = {name: f"#0102{i:02x}" for i, name in enumerate(_NAMES)}
_PRINTED = (BLUE, ORANGE, "#2a7f72", "#8a4a86", "#8c7320", "#70757c", "#4aa3b5", "#7a5ea8")
_PRINTED_STEPS = ("#12304d", "#27557f", "#3f7fb3", "#6fa8d6", "#a3cbe8")
FILE_COLOURS = dict(zip(_NAMES, (*_PRINTED, *_PRINTED_STEPS, INK, FAINT, GRID), strict=True))
_ON_DARK = ("#7fb2e5", "#f0a061", "#6cc9b9", "#d49bd0", "#d6bd62", "#a2a6ad", "#74cfe0", "#b39be0")
_STEPS_ON_DARK = ("#d3e6f8", "#a9cdef", "#7fb2e5", "#5590c8", "#3a6c9e")
DARK_COLOURS = dict(zip(_NAMES, (*_ON_DARK, *_STEPS_ON_DARK, GRID, "#a2a6ad", "#3a3f45"), strict=True))

_DPI = 150
_FIGURE_SUFFIXES = (".png", ".pdf", ".svg")


def new_figure(width: float, height: float, **pads: Any) -> Figure:
    """An empty figure of that size in inches, laid out so that nothing overlaps; `pads` are those of the layout."""
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12, wspace=0.02, hspace=0.04)
    layout.set(**pads)
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


def title(axes: Axes, text: str, detail: str = "", colours: Mapping[str, str] = FILE_COLOURS) -> None:
    """A plain heading above a panel, with a fainter line of figures under it."""
    axes.set_title(text, loc="left", fontsize=11, color=colours["ink"], pad=20 if detail else 6)
    if detail:
        axes.text(0, 1.02, detail, transform=axes.transAxes, fontsize=8.5, color=colours["faint"], va="bottom")


def tidy(axes: Axes, colours: Mapping[str, str] = FILE_COLOURS, label_size: float = 8.5) -> None:
    """Axes of a chart: two spines, a faint grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(colours["faint"])
    axes.tick_params(which="both", colors=colours["faint"], labelcolor=colours["ink"], labelsize=label_size, length=3)
    axes.grid(color=colours["grid"], linewidth=0.9)
    axes.set_axisbelow(True)


def bare(axes: Axes, frame: str = GRID) -> None:
    """Axes of a picture: a thin frame and nothing else."""
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=frame, linewidth=0.8)


def one_place(ax: Any, width: float, height: float) -> Axes:
    """The Axes that were given, or those of a new figure of that size in inches."""
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.figure(figsize=(width, height), layout="constrained").add_subplot()
    if not isinstance(ax, Axes):
        raise ValueError(f"ax must be Axes of matplotlib, got {shown(ax)}")
    return ax


def several_places(ax: Any, size: tuple[float, float], *, nrows: int, ncols: int, **grid: Any) -> list[Axes]:
    """Axes for each place of a grid: those that were given, or new ones instead of the one that was given.

    Those below each other share what lies across. `size` is that of a new figure, in inches; `grid` is what GridSpec takes.
    """
    if not isinstance(ax, np.ndarray | list | tuple):
        made = divided(one_place(ax, *size), nrows=nrows, ncols=ncols, **grid)
        return list(made.subplots(sharex=nrows > 1, squeeze=False).flat)
    several, count = list(ax.flat if isinstance(ax, np.ndarray) else ax), nrows * ncols
    if len(several) != count or not all(isinstance(one, Axes) for one in several):
        raise ValueError(f"ax must be one Axes of matplotlib, or {count} of them, got {shown(ax)}")
    return several


def divided(ax: Axes, **grid: Any) -> Any:
    """A grid of places instead of Axes, which are emptied but for their title; `grid` is what GridSpec takes."""
    ax.set_axis_off()
    place = ax.get_subplotspec()
    if place is not None:
        made: Any = place.subgridspec(grid.pop("nrows"), grid.pop("ncols"), **grid)
    else:
        box = ax.get_position()
        made = GridSpec(left=box.x0, right=box.x1, bottom=box.y0, top=box.y1, **grid)
    made.figure = ax.figure  # a grid of the caller's may know none
    return made


def colours_on(ax: Axes) -> dict[str, str]:
    """Colours that can be read on the paper of a figure, light or dark."""
    red, green, blue, alpha = to_rgba(ax.figure.figure.get_facecolor())
    if alpha < 0.5:  # the page around it decides; the caller's colour of text suits that
        red, green, blue = (1 - part for part in to_rgba(rcParams["text.color"])[:3])
    return FILE_COLOURS if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.4 else DARK_COLOURS


def text_size() -> float:
    """The size in points of numbers at axes, as the caller's settings have it."""
    return float(FontProperties(size=rcParams["xtick.labelsize"]).get_size_in_points())
