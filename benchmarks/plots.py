"""Figures as values, and their pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Figure:
    """Curves over one pair of axes; `levels` are horizontal lines."""

    name: str
    title: str
    x: str
    y: str
    curves: dict[str, tuple[list[float], list[float]]]
    levels: dict[str, float] = field(default_factory=dict)
    log_x: bool = True
    log_y: bool = False


def save(figure: Figure, folder: Path) -> Path:
    """Write a figure as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for label, (xs, ys) in figure.curves.items():
        axes.plot(xs, ys, marker="o", markersize=3, linewidth=1.2, label=label)
    for label, level in figure.levels.items():
        axes.axhline(level, color="grey", linewidth=0.8, linestyle="--")
        axes.annotate(label, (0.01, level), xycoords=("axes fraction", "data"), fontsize=7, va="bottom")
    axes.set(title=figure.title, xlabel=figure.x, ylabel=figure.y)
    if figure.log_x:
        axes.set_xscale("log")
    if figure.log_y:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    if len(figure.curves) > 1:
        axes.legend(fontsize=8)
    path = folder / f"{figure.name}.png"
    picture.savefig(path, dpi=130)
    plt.close(picture)
    return path
