"""Contents of a page as plain values: text, charts, tables, pictures, sliders and verdicts.

Blocks hold numbers and encoded pictures, never markup, so that a page can be kept as JSON and drawn again; `page` draws.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cell = str | float | int | None


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Curve:
    """One line of a chart.

    Parameters
    ----------
    label : str
        Its name in the legend.
    x, y : sequences of float
    colour : str
        "c0" to "c7" for things that differ in kind, "r0" to "r4" for steps of one quantity.
    style : {"line", "dashed", "dots", "bars"}
    """

    label: str
    x: Sequence[float] | NDArray
    y: Sequence[float] | NDArray
    colour: str = "c0"
    style: str = "line"

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"curve {self.label!r} must have as many x as y, got {len(self.x)} and {len(self.y)}")


@dataclass(frozen=True)
class Chart:
    """Curves over one pair of axes; `levels` are labelled horizontal lines, `rows` names on the y axis."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    levels: Mapping[str, float] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False
    caption: str = ""
    rows: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Waveforms:
    """Filters of one dimension as small multiples; `filters` is (n_filters, channels, length)."""

    filters: Sequence[Sequence[Sequence[float]]] | NDArray
    caption: str = ""


@dataclass(frozen=True)
class Trace:
    """A signal in time, what its codes make of it, when which filter occurs, and what is left.

    Parameters
    ----------
    title : str
    first : int
        Number of the first sample that is shown.
    signal, fit : (channels, length)
        Samples of the channels that are shown.
    channels : sequence of int
        Numbers of these channels.
    events : sequence of (sample, filter, amplitude)
        Samples are those of the filters' centres.
    n_filters : int
    caption : str
    """

    title: str
    first: int
    signal: Sequence[Sequence[float]] | NDArray
    fit: Sequence[Sequence[float]] | NDArray
    channels: Sequence[int]
    events: Sequence[Sequence[float]] | NDArray
    n_filters: int
    caption: str = ""

    def __post_init__(self) -> None:
        shapes = {tuple(map(len, rows)) for rows in (self.signal, self.fit)}
        if len(shapes) > 1 or len(self.channels) != len(self.signal):
            raise ValueError(f"signal and fit of {self.title!r} must have one shape, and a number for each channel")


@dataclass(frozen=True)
class Table:
    """Rows under named columns; a missing cell (None) shows as a dash. Rows whose first cell is in `strong` stand out."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""
    strong: Sequence[str] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"rows of {self.title!r} must have {len(self.columns)} cells, got {len(row)}")


@dataclass(frozen=True)
class Picture:
    """An encoded picture; `source` is a data URI, `crisp` keeps its samples square when it is enlarged."""

    source: str
    width: int
    height: int
    alt: str
    caption: str = ""
    crisp: bool = False
    title: str = ""

    def __post_init__(self) -> None:
        if re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/=]*", self.source) is None:
            raise ValueError(f"source of a picture must be a PNG as a data URI, got {self.source[:40]!r}")


@dataclass(frozen=True)
class Compare:
    """Two pictures of one size under a slider that uncovers either; `label` is what the first one is called."""

    before: Picture
    after: Picture
    title: str
    caption: str = ""
    label: str = "original"


@dataclass(frozen=True)
class Fact:
    """A number that leads: its value, what it is, and a little more."""

    value: str
    name: str
    detail: str = ""


@dataclass(frozen=True)
class Facts:
    """The numbers at the top of a page."""

    facts: Sequence[Fact]


@dataclass(frozen=True)
class NamedValues:
    """Names and values in two columns."""

    items: Mapping[str, str]


@dataclass(frozen=True)
class Verdict:
    """A claim, what was claimed and found, and whether it holds; `because` gives the numbers that decided."""

    claim: str
    paper: str
    ours: str
    holds: bool
    because: str


@dataclass(frozen=True)
class Verdicts:
    """Claims, one after the other; `brief` leaves out the reasons."""

    verdicts: Sequence[Verdict]
    brief: bool = False


@dataclass(frozen=True)
class SideBySide:
    """Blocks beside each other where there is room, one under the other on a phone."""

    blocks: Sequence[Block]


Block = Text | Chart | Waveforms | Trace | Table | Picture | Compare | Facts | NamedValues | Verdicts | SideBySide


@dataclass(frozen=True)
class Section:
    """A heading with blocks under it; `folded` shows only the heading until it is opened."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    summary: str
    sections: Sequence[Section]


_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(Text, Curve, Chart, Waveforms, Trace, Table, Picture, Compare, Fact, Facts, NamedValues),
        *(Verdict, Verdicts, SideBySide),
    )
}


def to_plain(value: Any) -> Any:
    """A value as JSON can hold it: a block becomes a mapping with its kind, an array a list, inside others too."""
    if type(value).__name__ in _KINDS:
        contents = {one.name: to_plain(getattr(value, one.name)) for one in fields(value)}
        return {"kind": type(value).__name__, **contents}
    if isinstance(value, Mapping):
        return {str(name): to_plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def from_plain(plain: Any) -> Any:
    """The value that `to_plain` was given, with lists for its arrays and tuples.

    Fields with a default may be missing: an earlier version of the package may not have known them. Fields are not checked
    beyond their names: records are this package's own, and whatever they hold is escaped when it is drawn.
    """
    if isinstance(plain, list):
        return [from_plain(one) for one in plain]
    if not isinstance(plain, Mapping):
        return plain
    contents = {name: from_plain(one) for name, one in plain.items() if name != "kind"}
    if "kind" not in plain:
        return contents
    try:
        return _KINDS[plain["kind"]](**contents)
    except (KeyError, TypeError) as error:
        raise ValueError(f"kind must be one of {', '.join(_KINDS)} with its own fields: {error}") from error
