"""Which columns of a table reach the last step of a scikit-learn pipeline unchanged, and which do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exanova.data.splits import ModelSplits


def follow_pipeline(
    steps: Sequence[tuple[str, Any]], names: Sequence[str | None], splits: ModelSplits
) -> list[str | None]:
    """The column behind each feature after the steps, ``None`` if derived; ``splits`` records changed columns."""
    columns = list(names)
    for name, step in steps:
        if _is_identity(step):
            continue
        if hasattr(step, "output_indices_"):
            columns = _follow_columns(step, columns, splits)
        else:
            _note(columns, f"the step {name!r} of the pipeline changes it", splits)
            columns = [None] * _width(step, len(columns))
    return columns


def preprocessed(transformer: Any, names: Sequence[str | None], splits: ModelSplits) -> list[str | None]:
    """The columns in the order in which histogram gradient boosting puts them: categories first, numbers unchanged."""
    placed: list[str | None] = [None] * len(names)
    for name, _, columns in transformer.transformers_:
        own = _chosen(columns, names)
        for place, column in zip(range(*transformer.output_indices_[name].indices(len(names))), own, strict=False):
            placed[place] = column
            if name == "encoder" and column is not None:
                splits.unreadable[column] = "the model reads its values as categories"
    return placed


def _follow_columns(transformer: Any, names: list[str | None], splits: ModelSplits) -> list[str | None]:
    """A ``ColumnTransformer``: the columns it passes through, at the places where it puts them."""
    given = [str(name) for name in getattr(transformer, "feature_names_in_", range(len(names)))]
    places = transformer.output_indices_
    placed: list[str | None] = [None] * max(place.stop for place in places.values())
    for name, step, columns in transformer.transformers_:
        own = _chosen(columns, names, given)
        if isinstance(step, str) and step == "drop":
            continue
        if _is_identity(step):
            placed[places[name]] = own
        else:
            _note(own, f"the transformer {name!r} of the pipeline changes it", splits)
    return placed


def _chosen(columns: Any, names: Sequence[str | None], given: Sequence[str] = ()) -> list[str | None]:
    """The columns that a transformer was given: by name, position, slice or mask."""
    if isinstance(columns, str):
        columns = [columns]
    if isinstance(columns, slice):
        return list(names[columns]) if not isinstance(columns.start or columns.stop, str) else list(names)
    listed = np.asarray(columns)
    if listed.dtype == bool:
        return [name for name, is_own in zip(names, listed, strict=True) if is_own]
    if listed.dtype.kind in "iu":
        return [names[k] for k in np.atleast_1d(listed)]
    position = {name: k for k, name in enumerate(given)}
    return [names[position[str(name)]] for name in np.atleast_1d(listed)]


def _is_identity(step: Any) -> bool:
    """Whether a fitted step returns every non-missing value unchanged, in the same order."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return True
    if hasattr(step, "steps"):
        return all(_is_identity(inner) for _, inner in step.steps)
    kind = type(step).__name__
    if kind == "FunctionTransformer":
        return step.func is None
    if kind == "SimpleImputer":  # a missing value is a level of its own, whatever takes its place
        kept = len(step.statistics_) == step.n_features_in_ and not _is_nan(step.statistics_).any()
        return step.indicator_ is None and kept
    return False


def _is_nan(values: Any) -> Any:
    return np.array([isinstance(value, float) and value != value for value in np.ravel(values)])


def _width(step: Any, width: int) -> int:
    try:
        return len(step.get_feature_names_out())
    except Exception:  # not every transformer has feature names; every feature is derived, however many there are
        return max(width, 2**16)


def _note(columns: Sequence[str | None], reason: str, splits: ModelSplits) -> None:
    for column in columns:
        if column is not None:
            splits.unreadable.setdefault(column, reason)
