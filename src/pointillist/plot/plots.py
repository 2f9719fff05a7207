"""Plots of filters, of how learning went, and of signals with their codes, on Axes of matplotlib.

They draw into the caller's Axes or into a new figure, return the Axes, and show nothing by themselves. A new figure is one
of pyplot, so that it is shown as any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.colors import to_rgb
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pointillist.codes import SparseCodes
from pointillist.metrics import psnr
from pointillist.plot.figures import (
    DARK_COLOURS,
    FILE_COLOURS,
    History,
    bare,
    centred_events,
    convergence_chart,
    draw_chart,
    draw_events,
    draw_trace,
    draw_waveforms,
    series_chart,
    signal_trace,
    title,
    waveform_grid,
)
from pointillist.plot.pictures import as_bank, between, contrast_limits, cut_of, see_through
from pointillist.reprs import shown
from pointillist.validation import as_numbers, check_arguments

_PANEL_WIDTH = 3.45
"""Inches of one of several pictures side by side."""


def plot_filters(
    model: Any, *, channels: bool = False, columns: int | None = None, ax: Axes | None = None
) -> Axes | NDArray[np.object_]:
    """Draw filters side by side, each on its own scale.

    Filters of pictures and volumes are drawn as one picture: mid-grey is zero, three channels are colours, other numbers
    of channels are drawn by their mean, and volumes by the three slices through their middle. Filters of signals in time
    are waveforms with their numbers: lines over each other where there are few channels, heat maps where there are many.

    Parameters
    ----------
    model : fitted learner, or array (n_filters, [channels,] *size)
        Whose filters are drawn, of one to three dimensions.
    channels : bool
        Whether the axis after the first of an array holds channels; a learner knows that itself.
    columns : int, optional
        Filters in a row; by default as many as make the picture nearly square.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default. Waveforms are drawn into new Axes in its place.

    Returns
    -------
    Axes, or an array of Axes
        For waveforms (n_filters,).

    Examples
    --------
    >>> import pointillist as pt
    >>> from matplotlib.figure import Figure
    >>> ax = pt.plot_filters(pt.load_filters("natural-100"), ax=Figure().subplots())
    >>> ax.get_xlabel()
    '100 filters of 11×11, each on its own scale'
    """
    check_arguments(channels=channels, columns=columns)
    if isinstance(model, BaseEstimator):
        check_is_fitted(model, "filters_")
        if channels and not model.channels:
            raise ValueError("channels is for arrays of filters; this model has none: leave channels out")
        filters, channels = model.filters_, model.channels
    else:
        filters = as_numbers(model, "model")
    bank = as_bank(filters, channels, "model")
    if bank.ndim == 3:
        rows, columns, size = waveform_grid(len(bank), columns)
        panels = _places(ax, size, rows, columns)
        draw_waveforms(panels, bank, _colours())
        return panels.ravel()[: len(bank)]
    axes = _one_place(ax, 5.0, 5.2)
    bare(axes, "none")
    axes.set_facecolor("none")
    pixels = see_through(bank, columns)
    axes.imshow(pixels if pixels.shape[-1] == 4 else pixels[..., [0, 0, 0, 1]], interpolation="nearest")
    words = f"{len(bank)} filters of {'×'.join(map(str, bank.shape[2:]))}, each on its own scale"
    if bank.ndim == 5:
        words += "\nof each the three slices through its middle"
    if bank.shape[1] not in (1, 3):
        words += f"\nmean of {bank.shape[1]} channels"
    axes.set_xlabel(words, color=_colours()["ink"])
    return axes


def plot_convergence(
    models: Any, *, quantity: str = "objective", against: str = "seconds", ax: Axes | None = None
) -> Axes:
    """Draw how learning went: the objective, or something else of a learner's history, over time or steps.

    The objective of an online learner is that of its current mini-batch. As batches differ, it scatters: then each batch
    is a dot and a running mean shows the trend; of several learners only the running means are drawn.

    Parameters
    ----------
    models : fitted learner, its `history_`, a list of these, or a mapping of names to them
        What is compared; names stand in the legend.
    quantity : str
        What is drawn: "objective", "gap" (on a logarithmic scale), "nnz", or "validation_objective" where held-out
        signals were judged.
    against : {"seconds", "iteration"}
        Seconds of learning, in which held-out signals are not judged, or steps.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> from matplotlib.figure import Figure
    >>> signals = np.random.default_rng(0).standard_normal((4, 100))
    >>> model = pt.OnlineCSC(3, 9, 1.0, random_state=0).fit(signals)
    >>> ax = pt.plot_convergence(model, against="iteration", ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('step', 'objective')
    """
    if not isinstance(against, str) or against not in ("seconds", "iteration"):
        raise ValueError(f'against must be "seconds" or "iteration", got {shown(against)}')
    if not isinstance(quantity, str):
        raise ValueError(f"quantity must be the name of something in the history, got {shown(quantity)}")
    chart = convergence_chart(_histories(models), quantity, against)
    axes = _one_place(ax, 6.4, 4.0)
    colours = _colours()
    draw_chart(axes, chart, colours)
    axes.set_xlim(left=0)
    if len(chart.curves) > 1:
        axes.legend(frameon=False, labelcolor=colours["ink"])
    return axes


def plot_reconstruction(
    signal: ArrayLike,
    model: Any,
    *,
    codes: SparseCodes | None = None,
    depth: int | None = None,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Draw a signal, what its codes make of it, what is left, and the codes.

    Panels of pictures lie side by side, with codes as dots: orange ones are positive, blue ones negative. Those of a
    signal in time lie one below the other: the signal with its reconstruction over it, the codes as spikes in a row for
    each filter, and the residual on the scale of the signal; of many channels the strongest four are drawn.

    Parameters
    ----------
    signal : array ([channels,] *space)
        One signal, with the preparation (`contrast_normalise`) under which it is coded: a picture, three channels being
        colours, a volume, or a recording.
    model : fitted learner, or array of the shape of `signal`
        A learner that codes the signal, or the reconstruction itself, as `decode` gives it.
    codes : SparseCodes, optional
        Codes of this one signal, so that a learner need not solve for them. With an array instead of a learner, pictures
        are drawn without codes where there are none, and signals in time need them.
    depth : int, optional
        The slice of a volume that is drawn; its middle by default.
    ax : matplotlib Axes, or one Axes for each panel, optional
        Where to draw; a new figure by default. One Axes is divided into the panels.

    Returns
    -------
    array of Axes
        Original, reconstruction, residual and codes of a picture; signal, codes and residual of a signal in time.

    Examples
    --------
    >>> import pointillist as pt
    >>> from matplotlib.figure import Figure
    >>> image = pt.contrast_normalise(pt.photographs()["camera"])[100:160, 100:180]
    >>> filters = pt.load_filters("natural-100")
    >>> codes = pt.encode([image], filters).codes
    >>> panels = pt.plot_reconstruction(image, pt.decode(codes, filters)[0], codes=codes, ax=Figure().subplots())
    >>> [ax.get_title(loc="left") for ax in panels]
    ['Original', 'Reconstruction', 'Residual', 'Codes']
    """
    array = _checked_signal(signal)
    fit, codes, axes = _checked_fit(array, model, codes)
    array, colours = np.nan_to_num(array), _colours()
    place, words = cut_of(array, axes, depth)
    if axes == 1:
        if codes is None:
            raise ValueError("codes of a signal in time are drawn beside it: give codes, or a fitted learner as model")
        trace = signal_trace("", array, fit, codes)
        panels = _places(ax, (8.6, sum(trace.heights) + 0.7), 3, 1, trace.heights)[:, 0]
        draw_trace(panels, trace, colours)
        panels[0].set_title(trace.signal.caption, loc="left", fontsize="medium", color=colours["faint"])
        return panels
    seen, made = array[place], fit[place]
    height, width = seen.shape[-2:]
    names = ["Original", "Reconstruction", "Residual", "Codes"][: 3 if codes is None else 4]
    panels = _places(ax, _panels_size(seen.shape, len(names)), 1, len(names))[0]
    low, high = contrast_limits(seen)
    half = (high - low) / 2  # the residual keeps the picture's own contrast, so that its faintness is true
    _draw_picture(panels[0], seen, low, high)
    _draw_picture(panels[1], made, low, high)
    _draw_picture(panels[2], seen - made, -half, half)
    left = 100 * float(np.sum((seen - made) ** 2)) / (float(np.sum(seen**2)) or 1.0)
    details = [f"{width} × {height} pixels", f"PSNR {psnr(array, fit):.1f} dB", f"{left:.1f} % of the energy"]
    if words:
        details[0] += f", {words}"
    if codes is not None:
        space = array.shape[-axes:]
        _draw_points(panels[3], codes, space, place, colours)
        details.append(f"{codes.nnz:,} non-zeros, {100 * codes.nnz / prod(space):.1f} % of the number of pixels")
    for panel, name, detail in zip(panels, names, details, strict=True):
        title(panel, name, detail, colours)
        _label_pixels(panel, colours)
    return panels


def plot_codes(
    codes: SparseCodes, signal: ArrayLike | None = None, *, depth: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the codes of one signal where they are: dots over a picture, or events over a recording.

    Dots and spikes grow with the codes; orange ones are positive, blue ones negative. Events of a recording have a row for
    each filter, at the filter's centre, with the recording above them; of many channels the strongest four are drawn. Of a
    volume one slice is drawn, with the codes in it.

    Parameters
    ----------
    codes : SparseCodes
        Of one signal: index the codes of several, ``codes[0]``.
    signal : array ([channels,] *space), optional
        The signal that was coded, to be drawn faintly below its codes; three channels of a picture are colours.
    depth : int, optional
        The slice of a volume that is drawn; its middle by default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> from matplotlib.figure import Figure
    >>> codes = pt.SparseCodes.from_dense(np.array([[[0, 0, 0, 2.5], [0, -1.0, 0, 0]]]))
    >>> ax = pt.plot_codes(codes, ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('sample', 'filter')
    """
    codes = _one(codes)
    grid = codes.grids[0]
    array = np.nan_to_num(_checked_signal(np.broadcast_to(0.0, grid) if signal is None else signal))
    place, words = cut_of(array, len(grid), depth)
    space = array.shape[-len(grid) :]
    if len(grid) == 1:
        return _draw_recording(codes, None if signal is None else array, ax)
    width, height = _panels_size(space, 1)
    axes = _one_place(ax, 1.4 * width, 1.4 * height + 0.2)
    colours = _colours()
    if signal is not None:
        _draw_picture(axes, array[place], *contrast_limits(array[place]), alpha=0.45)
    number = _draw_points(axes, codes, space, place, colours)
    heading = f"{number:,} code{'s' * (number != 1)}" + (f", {words}" if words else "")
    axes.set_title(heading, loc="left", color=colours["ink"], fontsize="medium")
    _label_pixels(axes, colours)
    return axes


def _draw_recording(codes: SparseCodes, signal: NDArray | None, ax: Any) -> Axes:
    """Draw events in rows, and the strongest channels of the recording above them."""
    axes = _one_place(ax, 8.6, min(1.6 + 0.3 * codes.n_filters, 8.0))
    colours = _colours()
    length = codes.grids[0][0] if signal is None else signal.shape[-1]
    draw_events(axes, centred_events(codes, length), codes.n_filters, colours)
    if signal is not None:
        share = 0.35 if signal.ndim == 1 else 0.5
        axes.set_ylim(top=-0.5 - codes.n_filters * share / (1 - share))
        axes.yaxis.label.set(y=0, ha="left")
        above = axes.inset_axes((0, 1 - share, 1, share), sharex=axes)
        draw_chart(above, series_chart("", {("signal", "c5"): signal}), colours)
        above.set(xlabel="", facecolor="none")
        above.tick_params(labelbottom=False)
    axes.set_xlim(0, max(length - 1, 1))
    axes.set_xlabel("sample")
    return axes


def _one_place(ax: Any, width: float, height: float) -> Axes:
    """The Axes that were given, or those of a new figure of that size in inches."""
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.figure(figsize=(width, height), layout="constrained").add_subplot()
    if not isinstance(ax, Axes):
        raise ValueError(f"ax must be Axes of matplotlib, got {shown(ax)}")
    return ax


def _places(ax: Any, size: tuple[float, float], rows: int, columns: int, heights: Sequence[float] | None = None) -> Any:
    """Axes (rows, columns): those that were given, or new ones in a new figure or in the place of the one that was given.

    Those below each other share what lies across. `size` is that of a new figure, in inches.
    """
    if not isinstance(ax, np.ndarray | list | tuple):
        whole = _one_place(ax, *size)
        whole.set_axis_off()
        place, box = whole.get_subplotspec(), whole.get_position()
        if place is not None:
            grid: Any = place.subgridspec(rows, columns, height_ratios=heights)
        else:
            grid = GridSpec(rows, columns, left=box.x0, right=box.x1, bottom=box.y0, top=box.y1, height_ratios=heights)
        grid.figure = whole.figure  # a grid of the caller's may know none
        return grid.subplots(sharex=rows > 1, squeeze=False)
    several = np.asarray(ax, object)
    if several.size != rows * columns or not all(isinstance(one, Axes) for one in several.flat):
        raise ValueError(f"ax must be one Axes of matplotlib, or {rows * columns} of them, got {shown(ax)}")
    return several.reshape(rows, columns)


def _colours() -> dict[str, str]:
    """Colours that can be read on paper that suits the caller's colour of text, light or dark."""
    return DARK_COLOURS if sum(to_rgb(rcParams["text.color"])) > 1.5 else FILE_COLOURS


def _panels_size(shape: Sequence[int], count: int) -> tuple[float, float]:
    """Width and height in inches of a figure with so many pictures (..., H, W) side by side."""
    height = _PANEL_WIDTH * shape[-2] / shape[-1]
    return count * _PANEL_WIDTH + 1.0, min(max(height, 1.5), 8.0) + 0.8


def _draw_picture(axes: Axes, picture: NDArray, low: float, high: float, alpha: float | None = None) -> None:
    """Draw a picture (H, W) or (3, H, W) that is black at `low` and white at `high`."""
    pixels = picture if picture.ndim == 2 else between(picture, low, high)
    axes.imshow(pixels, cmap="gray", vmin=low, vmax=high, interpolation="antialiased", alpha=alpha)


def _draw_points(
    axes: Axes, codes: SparseCodes, space: Sequence[int], cut: tuple[int | slice, ...], colours: Mapping[str, str]
) -> int:
    """Draw the codes as dots on the pixels of a picture, or of one slice of a volume; returns how many.

    Grids larger or smaller than the picture share its centre.
    """
    grid = codes.grids[0]
    place = np.stack(np.unravel_index(codes.indices[0] % prod(grid), grid), axis=1)
    place = place + (np.array(space) - np.array(grid)) / 2
    values = np.asarray(codes.values[0], np.float64)
    if len(grid) == 3:
        inside = np.floor(place[:, 0]) == cut[-1]
        place, values = place[inside, 1:], values[inside]
    order = np.argsort(-np.abs(values))  # small dots last, on top of the large
    place, values = place[order], values[order]
    typical = np.percentile(np.abs(values), 95) if len(values) else 1.0
    # A dot of typical strength covers three pixels, or more where the picture is large.
    height, width = space[-2:]
    wide = max(3.0, max(height, width) / 120) * np.sqrt(np.clip(np.abs(values) / typical, 0.02, 2))
    look = {"facecolors": np.where(values > 0, colours["c1"], colours["c0"]), "linewidths": 0, "alpha": 0.75}
    where = {"offsets": place[:, ::-1], "offset_transform": axes.transData}
    axes.add_collection(EllipseCollection(wide, wide, np.zeros(len(wide)), units="xy", **where, **look), autolim=False)
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal")
    return len(values)


def _label_pixels(axes: Axes, colours: Mapping[str, str]) -> None:
    """Frame a picture thinly, number its pixels, and say which way they are counted."""
    bare(axes, colours["grid"])
    for axis, name in ((axes.xaxis, "column"), (axes.yaxis, "row")):
        axis.set_major_locator(MaxNLocator(5, integer=True))
        axis.set_label_text(name, color=colours["ink"])
    axes.tick_params(colors=colours["faint"], labelcolor=colours["ink"], labelsize="small", length=3)


def _one(codes: Any) -> SparseCodes:
    """Codes in host memory, if they are those of one signal."""
    if not isinstance(codes, SparseCodes) or len(codes) != 1:
        what = f"those of {len(codes)}: index them, codes[0]" if isinstance(codes, SparseCodes) else shown(codes)
        raise ValueError(f"codes must be SparseCodes of one signal, got {what}")
    return codes.on_host()


def _checked_signal(signal: Any) -> NDArray:
    """A signal in float64 that holds something; NaN marks what was not seen."""
    array = as_numbers(signal, "signal", np.float64)
    if array.size == 0:
        raise ValueError(f"signal is empty, its shape is {array.shape}")
    if np.any(np.isinf(array)):
        raise ValueError("signal must not hold infinity")
    return array


def _histories(models: Any) -> dict[str, History]:
    """Histories by name: of one learner or history, of several, or of those in a mapping."""
    several = isinstance(models, list | tuple) and not all(isinstance(one, Mapping) for one in models)
    given = models if isinstance(models, Mapping) else dict(enumerate(models)) if several else {"": models}
    if not given:
        raise ValueError("models is empty: give at least one fitted learner or history")
    named: dict[str, History] = {}
    for name, model in given.items():
        kind, history = "history", model
        if isinstance(model, BaseEstimator):
            check_is_fitted(model, "history_")
            kind, history = type(model).__name__, model.history_
        if not isinstance(history, list | tuple) or not all(
            isinstance(info, Mapping) and {"iteration", "seconds"} <= info.keys() for info in history
        ):
            raise ValueError(f"models must be fitted learners, or what they have as history_, got {shown(model)}")
        if not history:
            raise ValueError("models has an empty history: nothing was learned yet")
        named[str(name) if isinstance(models, Mapping) else f"{kind} {name}".rstrip()] = list(history)
    return named


def _checked_fit(signal: NDArray, model: Any, codes: SparseCodes | None) -> tuple[NDArray, SparseCodes | None, int]:
    """The reconstruction of a signal, its codes, None where there are none, and the signal's axes but for channels."""
    codes = None if codes is None else _one(codes)
    if isinstance(model, BaseEstimator):
        check_is_fitted(model, "filters_")
        if codes is None:
            codes = model.encode([signal]).codes.on_host()
        fit = np.asarray(model.inverse_transform(codes)[0], np.float64)
        axes = model.filters_.ndim - 1 - int(model.channels)
    else:
        fit = as_numbers(model, "model", np.float64)
        # Where nothing else tells, three planes are a picture in colour.
        axes = len(codes.grids[0]) if codes is not None else signal.ndim - (signal.ndim == 3 == len(signal))
    if fit.shape != signal.shape:
        raise ValueError(f"model must give a reconstruction of the shape of signal, {signal.shape}, got {fit.shape}")
    if not np.all(np.isfinite(fit)):
        raise ValueError("model gives a reconstruction that holds NaN or infinity")
    return fit, codes, axes
