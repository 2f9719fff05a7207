"""Every public name says what it takes, what it gives back, and shows an example."""

import enum
import inspect
import re
from typing import Protocol

import pytest
from tests.public import public_names


def _parameters(value):
    if isinstance(value, type) and (issubclass(value, (enum.Enum, BaseException)) or Protocol in value.__bases__):
        return []
    parameters = inspect.signature(value).parameters
    assert all(one.kind is not one.VAR_KEYWORD for one in parameters.values()), "keywords hide"
    return list(parameters)


@pytest.mark.parametrize("name", public_names())
def test_documented(name):
    value = public_names()[name]
    text = inspect.getdoc(value) or ""
    assert text, f"{name} has no docstring"
    described = " ".join(re.findall(r"^([\w, ]+?)(?: : .*)?$", text, re.M))
    missing = [parameter for parameter in _parameters(value) if not re.search(rf"\b{parameter}\b", described)]
    assert not missing, f"{name} does not describe {', '.join(missing)}"
    assert "Examples\n--------" in text, f"{name} has no example"
    if inspect.isfunction(value) and inspect.signature(value).return_annotation not in (None, "None"):
        returned = "Returns\n-------" in text or "Yields\n------" in text
        assert returned, f"{name} does not say what it returns"
