"""The public names of the package, those of its public modules among them."""

import inspect
from functools import cache

import pointillist as pt


@cache
def public_names():
    """Values by name; `ArraySource` is what users call `pt.sources.ArraySource`."""
    found = {}
    for name in pt.__all__:
        value = getattr(pt, name)
        found |= {one: getattr(value, one) for one in value.__all__} if inspect.ismodule(value) else {name: value}
    return found
