"""Every public name says what it gives back, and shows an example; `tests/test_arguments.py` has what it takes."""

import inspect

import pytest
from tests.public import public_names


@pytest.mark.parametrize("name", public_names())
def test_documented(name):
    value = public_names()[name]
    text = inspect.getdoc(value) or ""
    assert text, f"{name} has no docstring"
    assert "Examples\n--------" in text, f"{name} has no example"
    if inspect.isfunction(value) and inspect.signature(value).return_annotation not in (None, "None"):
        returned = "Returns\n-------" in text or "Yields\n------" in text
        assert returned, f"{name} does not say what it returns"
