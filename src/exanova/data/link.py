"""Links: a monotone function of the output that is decomposed in its place, such as the log of a rate.

For a model every value is linked. Outputs given for rows are averaged over equal rows first, by weight, and the mean is
linked: the rate of a cell is its claims over its exposure, also where most rows have no claim. What the rows of a cell
add to that is kept to first order: y becomes g(mean) + g'(mean) (y - mean), whose mean is g(mean), and whose variance
is that of the linked mean by the delta method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.observe import Reading
from exanova.data.values import ModelValues, average
from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Link:
    """A monotone function g on the open interval (low, high).

    Attributes:
        name: its name.
        low, high: ends of the interval of outputs.
        forward, slope, back: g, its derivative, and its inverse.
    """

    name: str
    low: float
    high: float
    forward: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    back: Callable[[FloatArray], FloatArray]

    def named(self, output: str) -> str:
        """The name of an output on this scale.

        >>> LINKS["log"].named("rate"), LINKS["identity"].named("rate")
        ('log(rate)', 'rate')
        """
        return output if self.name == "identity" else f"{self.name}({output})"

    def outside(self, values: FloatArray) -> NDArray[np.bool_]:
        """(k,) rows with an output that the link is not defined for."""
        return np.asarray(((values <= self.low) | (values >= self.high)).any(axis=1))

    @property
    def domain(self) -> str:
        """The outputs it is defined for, in words."""
        return f"above {self.low:g}" + ("" if np.isinf(self.high) else f" and below {self.high:g}")


def _logistic(values: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))


LINKS: dict[str, Link] = {
    "identity": Link("identity", -np.inf, np.inf, np.array, np.ones_like, np.array),
    "log": Link("log", 0.0, np.inf, np.log, lambda v: 1.0 / v, np.exp),
    "logit": Link("logit", 0.0, 1.0, lambda v: np.log(v / (1.0 - v)), lambda v: 1.0 / (v * (1.0 - v)), _logistic),
}
"""The links by name."""


def linked_rows(rows: Reading, values: ModelValues, name: str) -> ModelValues:
    """The values of a reading on the scale of a link, and the names of the outputs there."""
    link = LINKS[name]
    if name == "identity":
        return values
    kept = np.arange(rows.n_rows) if rows.kept is None else rows.kept
    if values.calls:
        linked = link_each(link, values.values, kept[rows.first])
    else:
        linked = link_means(link, values.values, rows.group[rows.raw_group], rows.weight, kept)
    return replace(values, values=linked, output_names=tuple(map(link.named, values.output_names)))


def link_each(link: Link, values: FloatArray, rows: IntArray) -> FloatArray:
    """(k, m) g of every value of a model, at rows (k,) of the table."""
    outside = link.outside(values)
    if outside.any():
        _refuse(link, f"the model gives {_first(values, outside)}", outside, rows, "")
    return link.forward(values)


def link_means(link: Link, values: FloatArray, group: IntArray, weight: NDArray[Any], rows: IntArray) -> FloatArray:
    """(k, m) outputs given for rows, on the scale of the link around the mean of the rows they equal.

    Args:
        link: the link.
        values: (k, m) outputs.
        group: (k,) which rows are equal.
        weight: (k,) weights.
        rows: (k,) their numbers in the table.
    """
    means = average(values, group, weight, int(group.max()) + 1)[0][group]
    outside = link.outside(means)
    if outside.any():
        remedy = "; merge levels until every combination has some, or decompose a model of it"
        _refuse(link, f"the mean of the outputs of equal rows is {_first(means, outside)}", outside, rows, remedy)
    return np.asarray(link.forward(means) + link.slope(means) * (values - means))


def _first(values: FloatArray, outside: NDArray[np.bool_]) -> str:
    return ", ".join(f"{value:.4g}" for value in values[int(np.flatnonzero(outside)[0])][:4])


def _refuse(link: Link, what: str, outside: NDArray[np.bool_], rows: IntArray, remedy: str) -> None:
    wrong = rows[np.flatnonzero(outside)]
    shown = ", ".join(str(int(row)) for row in wrong[:5]) + (", ..." if len(wrong) > 5 else "")
    raise InputError(
        Parameter("link", link.name),
        f" is defined for outputs {link.domain}, but {what} in row {int(wrong[0])} ({len(wrong):,} of {len(outside):,} "
        f"rows: {shown})",
        remedy=f"Leave such rows out, or choose another link{remedy}",
    )
