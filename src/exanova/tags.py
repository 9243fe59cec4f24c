"""The tags that scikit-learn expects of every estimator, without inheriting from it: its import takes a second."""

from __future__ import annotations

from functools import cache
from typing import Any

from exanova.errors import NotFittedError


def sklearn_tags() -> Any:
    """The tags of :class:`FunctionalANOVA`: a regressor of one or more outputs on columns of any kind."""
    from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

    return Tags(
        estimator_type="regressor",
        target_tags=TargetTags(required=True, multi_output=True),
        regressor_tags=RegressorTags(poor_score=True),  # a sum of effects of categories, not of slopes
        input_tags=InputTags(categorical=True, string=True, allow_nan=True),
    )


def not_fitted(message: str) -> NotFittedError:
    """The error for an object that is not fitted, which is also scikit-learn's error.

    >>> from sklearn.exceptions import NotFittedError as Theirs
    >>> isinstance(not_fitted("fit it first."), NotFittedError) and isinstance(not_fitted("fit it first."), Theirs)
    True
    """
    return _both_errors()(message)


@cache
def _both_errors() -> type[NotFittedError]:
    from sklearn.exceptions import NotFittedError as Theirs

    def reduced(self: NotFittedError) -> tuple[type[NotFittedError], tuple[Any, ...]]:
        return NotFittedError, self.args  # a class made here cannot be found again by a pickle

    return type("NotFittedError", (NotFittedError, Theirs), {"__reduce__": reduced, "__doc__": NotFittedError.__doc__})
