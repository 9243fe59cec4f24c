"""``Parametrised``: constructor arguments as scikit-learn expects them: read, changed, copied, printed.

Also ``forwarded``: methods that another object has.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.tags import sklearn_tags
from exanova.warned import warn

P = ParamSpec("P")
R = TypeVar("R")

RENAMED = {"interactions": "subsets"}
"""Parameters that had another name, which is still accepted."""


class Parametrised:
    """An estimator whose constructor takes keyword arguments and stores each under its name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments, as scikit-learn expects them."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **parameters: Any) -> Self:
        """Change constructor arguments."""
        for old in RENAMED.keys() & parameters.keys():
            given = parameters.pop(old)
            parameters[RENAMED[old]] = renamed(old, given, parameters.get(RENAMED[old]))
        unknown = set(parameters) - set(self._parameters())
        if unknown:
            raise InputError(
                f"there is no parameter {sorted(unknown)[0]!r}; the parameters are {', '.join(self._parameters())}."
            )
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def _kept_params(self) -> dict[str, Any]:
        """The parameters that a file keeps: the engine that read the rows is not among them."""
        return {name: value for name, value in self.get_params().items() if name != "engine"}

    def __sklearn_clone__(self) -> Self:
        """An estimator with the same parameters, not fitted; the engine is the same and not a copy of it."""
        copied = {name: value if name == "engine" else deepcopy(value) for name, value in self.get_params().items()}
        return type(self)(**copied)

    def __sklearn_tags__(self) -> Any:
        """The tags that scikit-learn's tools expect: see :mod:`exanova.tags`."""
        return sklearn_tags()

    def __repr__(self) -> str:
        defaults = self.__init__.__kwdefaults__  # type: ignore[misc]
        changed = {name: value for name, value in self.get_params().items() if repr(value) != repr(defaults[name])}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    @classmethod
    @cache
    def _parameters(cls) -> tuple[str, ...]:
        return tuple(sorted((cls.__init__.__kwdefaults__ or {}).keys() - RENAMED.keys()))


def renamed(old: str, value: Any, other: Any) -> Any:
    """The value given under a former name, with a warning; refused beside the new name."""
    new = RENAMED[old]
    if other is not None:
        raise InputError(Parameter(old), " is the old name of ", Parameter(new), remedy="give only the new one")
    warn(f"{old}= is now called {new}=; the old name will be removed in 1.0.", FutureWarning)
    return value


def forwarded(query: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A query of the decomposition as a method of the estimator, with the same signature and docstring."""

    @wraps(query)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return query(self.decomposition_, *args, **kwargs)

    return method


def former_attribute(fitted: Any, old: str, new: str) -> Any:
    """The value of the attribute ``new``, asked for by its former name, with a warning."""
    value = getattr(fitted, new)
    warn(f"{old} is now called {new}; the old name will be removed in 1.0.", FutureWarning)
    return value
