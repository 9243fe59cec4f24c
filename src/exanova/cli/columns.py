"""Which columns of a table are features, predictions and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from exanova.cli.kinds import as_numbers
from exanova.cli.text import listed, nearest, split_names
from exanova.errors import InputError


@dataclass(frozen=True)
class Choice:
    """What was asked for, as text of the command line.

    Attributes:
        features: lists of names, or empty for every column that is nothing else.
        ignore: lists of names that are no features.
        prediction: names of the columns that hold what the model says.
        weight: the column of weights, or ``None``.
    """

    features: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    prediction: tuple[str, ...] = ()
    weight: str | None = None


@dataclass(frozen=True)
class Data:
    """A table in its parts.

    Attributes:
        features: a pyarrow table.
        predictions: (n,) or (n, m) numbers, or ``None``.
        weight: (n,) numbers, or ``None``.
        names: names of the predictions.
    """

    features: Any
    predictions: Any
    weight: Any
    names: tuple[str, ...]

    def counted(self) -> Data:
        """The rows of positive weight, which are those that were learned from."""
        if self.weight is None or self.weight.all():
            return self
        kept = self.weight > 0
        predictions = None if self.predictions is None else self.predictions[kept]
        return Data(self.features.filter(kept), predictions, self.weight[kept], self.names)


def divide(table: Any, choice: Choice, where: str, wanted: Sequence[str] | None = None) -> Data:
    """Divide a table into its parts.

    Args:
        table: as it was read.
        choice: what was asked for.
        where: the name of the file, for errors.
        wanted: the features the model itself asks for, in its order, if it does.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": ["u", "v"], "colour": ["red", "blue"], "p": [0.5, 0.25]})
    >>> data = divide(table, Choice(ignore=("id",), prediction=("p",)), "t.csv")
    >>> data.features.column_names, data.predictions.tolist()
    (['colour'], [0.5, 0.25])
    """
    known = table.column_names
    for name in (*choice.prediction, *([choice.weight] if choice.weight else ())):
        _check_known(name, known, where)
    features = _features(choice, known, where, wanted)
    predictions = [as_numbers(table, name, "--prediction") for name in choice.prediction]
    weight = None if choice.weight is None else as_numbers(table, choice.weight, "--weight")
    return Data(table.select(features), _beside(predictions), weight, choice.prediction)


def check_columns(table: Any, names: Sequence[str], where: str) -> None:
    """Refuse a table without one of these columns, with the name that was probably meant."""
    for name in names:
        _check_known(name, table.column_names, where)


def _features(choice: Choice, known: Sequence[str], where: str, wanted: Sequence[str] | None) -> list[str]:
    ignored = _named(choice.ignore, known, where)
    apart = {*ignored, *choice.prediction, *([choice.weight] if choice.weight else ())}
    asked = _named(choice.features, known, where)
    both = [name for name in asked if name in apart]
    if both:
        raise InputError(f"{listed(both)} cannot be a feature: it is also a prediction, the weight or ignored.")
    if wanted is not None:
        return _wanted(wanted, asked, apart, known, where)
    features = list(dict.fromkeys(asked)) or [name for name in known if name not in apart]
    if not features:
        raise InputError(f"no column of {where} is left to be a feature; it has {listed(known)}.")
    return features


def _wanted(
    wanted: Sequence[str], asked: Sequence[str], apart: set[str], known: Sequence[str], where: str
) -> list[str]:
    """The features of the model, which has to get all of them and no other."""
    for name in wanted:
        _check_known(name, known, f"{where}, which the model needs")
    kept_away = [name for name in wanted if name in apart or (asked and name not in asked)]
    if kept_away:
        raise InputError(f"the model needs {listed(kept_away)}, which is left out or is no feature.")
    other = [name for name in asked if name not in wanted]
    if other:
        raise InputError(f"the model does not know {listed(other)}; its features are {listed(list(wanted))}.")
    return list(wanted)


def _named(texts: Sequence[str], known: Sequence[str], where: str) -> list[str]:
    names = [name for text in texts for name in split_names(text, known, ",")]
    for name in names:
        _check_known(name, known, where)
    return names


def _check_known(name: str, known: Sequence[str], where: str) -> None:
    if name not in known:
        hint = nearest(name, known)
        raise InputError(f"there is no column {name!r} in {where}.{hint or f' Its columns are {listed(known)}.'}")


def _beside(predictions: list[Any]) -> Any:
    """One array, with an axis for the outputs if there are several."""
    if not predictions:
        return None
    import numpy as np

    return predictions[0] if len(predictions) == 1 else np.stack(predictions, axis=1)
