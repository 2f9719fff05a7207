"""What a page is made of, as plain values: text, charts, tables, pictures, sliders and verdicts.

Blocks hold numbers and encoded pictures, never markup, so that a page can be kept as JSON and drawn again; `page` draws.
"""

from __future__ import annotations

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


@dataclass(frozen=True)
class Chart:
    """Curves over one pair of axes; `levels` are labelled horizontal lines."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    levels: Mapping[str, float] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False
    caption: str = ""


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


@dataclass(frozen=True)
class Compare:
    """Two pictures of one size under a slider that uncovers either."""

    before: Picture
    after: Picture
    title: str
    caption: str = ""


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


Block = Text | Chart | Table | Picture | Compare | Facts | NamedValues | Verdicts | SideBySide


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
    for kind in (Text, Curve, Chart, Table, Picture, Compare, Fact, Facts, NamedValues, Verdict, Verdicts, SideBySide)
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
    """The value that `to_plain` was given, with lists for its arrays and tuples."""
    if isinstance(plain, list):
        return [from_plain(one) for one in plain]
    if not isinstance(plain, Mapping):
        return plain
    contents = {name: from_plain(one) for name, one in plain.items() if name != "kind"}
    kind = plain.get("kind")
    if kind is None:
        return contents
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}")
    return _KINDS[kind](**contents)
