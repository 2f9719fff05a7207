"""Everything public that can be called, found by the names that the package and its reference export.

Functions, constructors and methods of public classes are `Target`s. A new one is found by itself; `tests/attack` says when
the table of usual values must learn a new name.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import Any

import pointillist as pt

REFERENCE = Path(__file__).parents[1] / "docs" / "api"
UNTOUCHED = {
    "prefetch": "it does nothing without a device",
    "Problem": "the package makes problems from arguments that it has checked; solvers are given them",
    "Result": "solvers make results, by certify",
    "Details": "restoration makes them", "BlurEstimate": "estimate_blur makes it",
    "AnomalyScore": "anomaly_score makes it", "ExplainedVariance": "explained_variance makes it",
    "Recovery": "recovery_score makes it", "PathPoint": "penalty_path makes it",
    "Problem.weights_of": "solvers call it with numbers of their own signals",
    "Problem.constant_of": "solvers call it with numbers of their own signals",
    "Problem.penalty_at": "solvers call it with indices of their own codes",
    "Problem.price": "solvers call it with their own codes",
    "SparseCodes.trusted": "solvers call it with their own codes",
    "SparseCodes.replaced": "the package calls it with codes of its own",
    "CoordinateDescent.solve": "encode calls it, with what it has checked", "SampledADMM.solve": "encode calls it",
    "FrequencyADMM.solve": "encode calls it", "CoordinateDescent.prepare": "encode calls it",
    "SampledADMM.prepare": "encode calls it", "FrequencyADMM.prepare": "encode calls it",
    "CoordinateDescent.rescaled": "encode calls it", "SampledADMM.rescaled": "encode calls it",
    "FrequencyADMM.rescaled": "encode calls it",
    "Checkpoints.begin": "learners call it",
}  # fmt: skip
"""What is public by its name, but gets what it is given from the package itself, and why."""
HANDED_ON = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)


@dataclass(frozen=True)
class Target:
    """A public function, a class that is made, or a method of an object of such a class."""

    name: str
    """As users write it behind ``pointillist.``."""
    function: Callable[..., Any]
    owner: type | None = None
    """The class of the object that a method is called on; None for functions, constructors and class methods."""

    @property
    def parameters(self) -> dict[str, Parameter]:
        """What it takes, without the object and without what is only handed on."""
        found = inspect.signature(self.function).parameters
        return {name: one for name, one in found.items() if name != "self" and one.kind not in HANDED_ON}

    @property
    def method(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


@functools.cache
def targets(recordings: bool = True) -> tuple[Target, ...]:
    """All that can be attacked, by name; without `recordings` nothing that needs MNE."""
    found = [one for name, value in exported(recordings) for one in of(name, value)]
    return tuple(sorted((one for one in found if one.name not in UNTOUCHED), key=lambda one: one.name))


def exported(recordings: bool) -> Iterator[tuple[str, Any]]:
    """Names that the package exports, and those of its submodules that the reference shows, with their values."""
    names: dict[str, Any] = {}
    for name in pt.__all__:
        value = getattr(pt, name)
        names |= {one: getattr(value, one) for one in value.__all__} if inspect.ismodule(value) else {name: value}
    yield from sorted(names.items())
    shown = {
        name
        for page in REFERENCE.glob("*.md")
        for name in re.findall(r"^::: pointillist\.(\S+)", page.read_text(), re.M)
    }
    for name in sorted(one for one in shown if one.rpartition(".")[2] not in names) if recordings else ():
        module, _, last = name.rpartition(".")
        yield name, getattr(importlib.import_module(f"pointillist.{module}"), last)


def of(name: str, value: Any) -> Iterator[Target]:
    """A function; or a class, which is made, and its methods."""
    if not isinstance(value, type):
        yield Target(name, value)
        return
    if issubclass(value, BaseException | enum.Enum) or getattr(value, "_is_protocol", False):
        return
    if inspect.signature(value).parameters:
        yield Target(name, value)
    for method, one in inspect.getmembers(value, lambda one: inspect.isfunction(one) or inspect.ismethod(one)):
        if not method.startswith("_") and one.__module__.startswith("pointillist."):
            yield Target(f"{name}.{method}", one, None if inspect.ismethod(one) else value)
