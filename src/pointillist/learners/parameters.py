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
        """Parameters by name; with `deep` also the fields of settings and solver objects, as ``update__zero_mean``."""
        parameters: dict[str, Any] = super().get_params(deep=deep)
        for name in list(parameters) if deep else ():
            settings = self._settings(name)
            if settings is not None:
                parameters |= {f"{name}__{one.name}": getattr(settings, one.name) for one in fields(settings)}
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters `params`, also fields of settings by names such as ``robust__alpha``."""
        super().set_params(**{name: value for name, value in params.items() if "__" not in name})
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            owner, separator, field = name.partition("__")
            if separator:
                nested.setdefault(owner, {})[field] = value
        for owner, changes in nested.items():
            if owner not in self.get_params(deep=False):
                raise ValueError(f"{type(self).__name__} has no parameter {owner!r}")
            settings = self._settings(owner)
            known = [] if settings is None else [one.name for one in fields(settings)]
            for field in changes:
                if settings is None:
                    now = getattr(self, owner)
                    raise ValueError(
                        f"{owner}={now!r} has no fields, so {owner}__{field} cannot be set: give an object"
                    )
                if field not in known:
                    raise ValueError(
                        f"{owner}__{field} does not exist: {type(settings).__name__} has {', '.join(known)}"
                    )
            # All at once, because some fields exclude each other.
            setattr(self, owner, replace(settings, **changes))
        return self

    def _settings(self, name: str) -> Any:
        """Settings object of a parameter, the default one where it stands for None; None for a parameter without fields."""
        value = getattr(self, name)
        if value is None and name == "update":
            return FilterUpdate()
        if value is None and name == "learning" and getattr(self, "solver", None) == "cd":
            return Ridge()
        return value if is_dataclass(value) and not isinstance(value, type) else None
