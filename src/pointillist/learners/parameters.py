"""Names such as ``update__zero_mean`` for the fields of frozen settings that are parameters of an estimator."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator

from pointillist.dictionary.update import FilterUpdate
from pointillist.learners.coding import Ridge


class NestedParameters(BaseEstimator):
    """An estimator whose settings and solver objects can be searched over field by field, though they are frozen."""

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
                parameters |= {f"{name}__{one.name}": getattr(settings, one.name) for one in fields(settings)}
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also fields of settings and solver objects by names such as ``learning__strength``.

        Parameters
        ----------
        **params : any
            New values by name. Settings are frozen: a changed copy takes their place.

        Returns
        -------
        self
        """
        super().set_params(**{name: value for name, value in params.items() if "__" not in name})
        for name, value in params.items():
            owner, _, field = name.partition("__")
            if field:
                self._set_field(owner, field, value)
        return self

    def _set_field(self, owner: str, field: str, value: Any) -> None:
        if owner not in self.get_params(deep=False):
            raise ValueError(f"{type(self).__name__} has no parameter {owner!r}")
        now = getattr(self, owner)
        settings = self._settings(owner, now)
        if settings is None:
            raise ValueError(
                f"{owner}={now!r} has no fields, so {owner}__{field} cannot be set: give {owner} an object"
            )
        known = [one.name for one in fields(settings)]
        if field not in known:
            raise ValueError(f"{owner}__{field} does not exist: {type(settings).__name__} has {', '.join(known)}")
        setattr(self, owner, replace(settings, **{field: value}))

    def _settings(self, name: str, value: Any) -> Any:
        """The settings object of a parameter, the default one for None; None for a parameter without fields."""
        if value is None and name == "update":
            return FilterUpdate()
        if value is None and name == "learning" and getattr(self, "solver", None) == "cd":
            return Ridge()
        return value if is_dataclass(value) and not isinstance(value, type) else None
