"""The outputs of a classifier with their names: of two classes the second, of several targets those of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

ROUNDED = 0.02
"""How far the probabilities of two classes may be from adding up to 1: twice what two decimals leave. Those of labels
that exclude nothing add up to anything."""


def class_outputs(returned: Any, classes: Any, every: bool = False) -> tuple[Any, tuple[str, ...] | None]:
    """What is explained of the probabilities that a classifier returned, and their names; ``None`` without any.

    Two probabilities add up to one, so that the second says it all; ``every`` keeps both. Where they do not, they are
    of labels that a row may have together, and both are kept. Classifiers of several targets return one matrix each.

    Args:
        returned: (n, k) probabilities, a list of such matrices, or anything else, which is returned as it is.
        classes: (k,) classes, or a list of them, one array per target.
        every: whether no output is left out.

    >>> half = np.full((3, 2), 0.5)
    >>> class_outputs(half, ["no", "yes"])[1], class_outputs(half, ["no", "yes"], every=True)[1]
    (('P(yes)',), ('no', 'yes'))
    >>> class_outputs([half, half], [["no", "yes"], [0, 1]])[1]
    ('P(target 0 = yes)', 'P(target 1 = 1)')
    """
    if is_of_targets(returned):
        return _of_targets([np.asarray(one) for one in returned], classes, every)
    names = _names(classes)
    if names is None or every or len(names) != 2 or np.ndim(returned) != 2:
        return returned, names
    if not _add_up(returned):
        return returned, tuple(f"P({name})" for name in names)
    return np.ascontiguousarray(np.asarray(returned)[:, 1]), (f"P({names[1]})",)


def is_of_targets(returned: Any) -> bool:
    """Whether a model returned a list of matrices, as classifiers of several targets do."""
    return isinstance(returned, list) and bool(returned) and all(getattr(one, "ndim", 0) == 2 for one in returned)


def own_names(returned: Any, taken: Collection[str]) -> tuple[str, ...] | None:
    """The name of a Series or the columns of a dataframe, if they are text; a name already ``taken`` says nothing new.

    >>> import pandas as pd
    >>> own_names(pd.Series([0.5], name="risk"), ()), own_names(pd.Series([0.5], name="age"), ["age"])
    (('risk',), None)
    """
    columns = getattr(returned, "columns", None)
    given = [getattr(returned, "name", None)] if columns is None else list(columns)
    names = tuple(name for name in given if isinstance(name, str) and name and name not in taken)
    return names if len(set(names)) == len(given) else None


def _of_targets(matrices: list[Any], classes: Any, every: bool) -> tuple[Any, tuple[str, ...] | None]:
    chosen = [matrix if every or matrix.shape[1] != 2 else matrix[:, 1:] for matrix in matrices]
    outputs = np.concatenate(chosen, axis=1)
    if classes is None or len(classes) != len(matrices):
        return outputs, None
    names = []
    for k, (own, matrix, kept) in enumerate(zip(classes, matrices, chosen, strict=True)):
        if len(own) != matrix.shape[1]:
            return outputs, None
        names += [f"P(target {k} = {label})" for label in list(own)[-kept.shape[1] :]]
    return outputs, tuple(names)


def _names(classes: Any) -> tuple[str, ...] | None:
    """Classes as text; ``None`` if there are none, or if each is a list of them."""
    nested = classes is None or any(
        isinstance(one, Sequence | np.ndarray) and not isinstance(one, str | bytes) for one in classes
    )
    return None if nested else tuple(map(str, classes))


def _add_up(returned: Any) -> bool:
    """Whether numbers (n, 2) are probabilities of two classes, one of which is right."""
    try:
        sums = np.asarray(returned, dtype=np.float64).sum(axis=1)
    except (TypeError, ValueError):  # what is not a number is refused later
        return False
    return not bool((np.abs(sums - 1.0) > ROUNDED).any())
