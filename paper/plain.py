"""Blocks of a page as JSON, so that a report can be drawn again without its experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from pointillist.plot.figures import Curve
from pointillist.plot.page import Block, Fact, Verdict

_KINDS = {kind.__name__: kind for kind in (*get_args(Block), Curve, Fact, Verdict)}


def to_plain(value: Any) -> Any:
    """A value as JSON can hold it: a block becomes a mapping with its kind, an array a list, inside others too."""
    kind = type(value).__name__
    if kind in _KINDS:
        return {"kind": kind, **{one.name: to_plain(getattr(value, one.name)) for one in fields(value)}}
    if isinstance(value, Mapping):
        return {str(name): to_plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def from_plain(plain: Any) -> Any:
    """The value that `to_plain` was given, with lists for its arrays and tuples.

    Fields with a default may be missing: an earlier version may not have known them. Fields are not checked beyond their
    names: records are our own, and whatever they hold is escaped when it is drawn.
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
