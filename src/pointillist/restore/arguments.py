"""Checks of arguments that several restoration functions share."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np


def check_unused(function: Callable[..., Any], mode: str, instead: str, **given: Any) -> None:
    """Raise if an argument that a mode of a function does not use differs from its default."""
    for name, value in given.items():
        default = inspect.signature(function).parameters[name].default
        if value is not default and not (np.isscalar(value) and value == default):
            raise ValueError(f"{name} is not used with {mode}: leave it out, or give {instead}")
