"""Names such as ``update__zero_mean`` for the fields of frozen settings that are parameters of an estimator."""

from dataclasses import fields, is_dataclass, replace
from inspect import signature
from typing import Any, Self

from sklearn import get_config
from sklearn.base import BaseEstimator

from pointillist.dictionary.update import FilterUpdate
from pointillist.learners.coding import Ridge
from pointillist.reprs import is_same, short


class NestedParameters(BaseEstimator):
    """An estimator whose settings and solver objects can be searched over field by field, though they are frozen."""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters that differ from their defaults, on one line; arrays by their shapes."""
        defaults = {name: one.default for name, one in signature(type(self)).parameters.items()}
        every = not get_config()["print_changed_only"]
        given = {name: getattr(self, name) for name in defaults}
        parts = [f"{k}={short(v)}" for k, v in given.items() if every or not is_same(v, defaults[k])]
        return f"{type(self).__name__}({', '.join(parts)})"[:N_CHAR_MAX]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters, as scikit-learn's `clone` and searches do.

        Parameters
        ----------
        deep : bool
            Whether the fields of settings and solver objects come too, as ``update__zero_mean``.

        Returns
        -------
        dict from str to any
        """
        parameters: dict[str, Any] = super().get_params(deep=deep)
        for name, value in list(parameters.items()) if deep else ():
            settings = self._settings(name, value)
            if settings is not None:
                parameters |= _nested(name, settings)
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also fields of settings and solver objects by names such as ``update__robust__alpha``.

        Parameters
        ----------
        **params : any
            New values by name. Settings are frozen: a changed copy takes their place.

        Returns
        -------
        self
        """
        super().set_params(**{name: value for name, value in params.items() if "__" not in name})
        for owner, changes in _by_owner(params).items():
            if owner not in self.get_params(deep=False):
                raise ValueError(f"{type(self).__name__} has no parameter {owner!r}")
            now = getattr(self, owner)
            setattr(self, owner, _changed(owner, now, self._settings(owner, now), changes))
        return self

    def _settings(self, name: str, value: Any) -> Any:
        """The settings object of a parameter, the default one for None; None for a parameter without fields."""
        if value is None and name == "update":
            return FilterUpdate()
        if value is None and name == "learning" and getattr(self, "solver", None) == "cd":
            return Ridge()
        return value if _has_fields(value) else None


def _has_fields(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _nested(name: str, settings: Any) -> dict[str, Any]:
    """The fields of settings, and of settings in these, by names such as ``update__robust__alpha``."""
    found = {}
    for one in fields(settings):
        value = getattr(settings, one.name)
        found[f"{name}__{one.name}"] = value
        if _has_fields(value):
            found |= _nested(f"{name}__{one.name}", value)
    return found


def _by_owner(params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Values of nested names by what stands before their first double underscore, and then by what stands after it."""
    owners: dict[str, dict[str, Any]] = {}
    for name, value in params.items():
        owner, separator, field = name.partition("__")
        if separator:
            owners.setdefault(owner, {})[field] = value
    return owners


def _changed(name: str, now: Any, settings: Any, changes: dict[str, Any]) -> Any:
    """A copy of settings with other values of some fields, all changed at once because some exclude each other.

    `name` is what errors call the settings by, and `now` the value that the user gave.
    """
    if settings is None:
        field = next(iter(changes))
        raise ValueError(f"{name}={now!r} has no fields, so {name}__{field} cannot be set: give {name} an object")
    known = [one.name for one in fields(settings)]
    for field in changes:
        if field.partition("__")[0] not in known:
            raise ValueError(f"{name}__{field} does not exist: {type(settings).__name__} has {', '.join(known)}")
    values = {field: value for field, value in changes.items() if "__" not in field}
    for field, inner in _by_owner(changes).items():
        old = values.get(field, getattr(settings, field))
        values[field] = _changed(f"{name}__{field}", old, old if _has_fields(old) else None, inner)
    return replace(settings, **values)
