"""Importances of subsets and features: norms, mean absolute Shapley values, variance shares, Shapley effects.

Under dependence the share of a subset is Cov(f_A, f) / Var f, the sum of a structural part Var f_A / Var f and a
covariance part Cov(f_A, f - f_A) / Var f. Shares add up to R2 and may be negative; tables name both parts.
None of them depends on the coding of levels: splitting a level into two identical ones changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.argument_checks import check_choice
from exanova.design.family import Family
from exanova.effects.effect import Schema, frame_with_game
from exanova.effects.norms import absolute_norms, squared_norms, strongest_first
from exanova.errors import InputError
from exanova.explain.grouping import Grouping, equal_shares
from exanova.messages import Parameter
from exanova.typing import FloatArray, Subset

KINDS = ("l1", "l2", "shapley", "variance", "shapley-effects")


def check_importance(kind: str, by: str) -> None:
    """Refuse unknown kinds of importances."""
    check_choice("kind", kind, KINDS)
    check_choice("by", by, ("feature", "subset"))
    if by == "subset" and kind in ("shapley", "shapley-effects"):
        raise InputError(
            f"kind={kind!r} belongs to features",
            remedy=["leave ", Parameter("by"), " out, or use 'l1', 'l2' or 'variance'"],
        )


def importance_amounts(
    family: Family, values: FloatArray, covariance: FloatArray, variance: FloatArray, kind: str
) -> dict[str, FloatArray]:
    """Named (S, m) amounts of every subset; ``value`` is the importance itself.

    Args:
        family: cells of every subset.
        values: (cells, m) effects.
        covariance: (S, m) Cov(f_A, f).
        variance: (m,) Var f.
        kind: any but "shapley", whose amounts are those of features.
    """
    if kind == "l1":
        return {"value": _without_intercept(absolute_norms(family, values))}
    squared = _without_intercept(squared_norms(family, values))
    if kind == "l2":
        return {"value": squared}
    varies, scale = _varies(values, variance), divisor(values, variance)
    share = np.where(varies, covariance / scale, 0.0)
    if kind == "shapley-effects":
        return {"value": share}
    structural = np.where(varies, squared / scale, 0.0)
    return {"value": share, "structural": structural, "covariance": share - structural}


def divisor(values: FloatArray, variance: FloatArray) -> FloatArray:
    """(m,) variances to divide by: 1 for an output that is constant."""
    return np.where(_varies(values, variance), variance, 1.0)


@dataclass(frozen=True, eq=False)
class Division:
    """How the amounts of the subsets are divided: among subsets, features, groups, or sets of groups.

    Attributes:
        by: ``"feature"`` or ``"subset"``.
        owners: the features or groups, alone or together, one per amount; the first of subsets is the empty one.
        parts: (S, f) share of every subset in each amount, sparse.
        grouping: the groups, if there are any.
    """

    by: str
    owners: tuple[Subset, ...]
    parts: Any
    grouping: Grouping | None = None

    @classmethod
    def of(cls, family: Family, by: str, grouping: Grouping | None = None) -> Division:
        """The division among features or subsets, or among groups."""
        subsets = family.subsets
        if by == "feature":
            count = len(family.sizes) if grouping is None else len(grouping.names)
            parts = equal_shares(subsets, count) if grouping is None else grouping.shares(subsets)
            return cls(by, tuple((i,) for i in range(count)), parts, grouping)
        if grouping is None:
            nobody: list[Subset] = [()]
            return cls(by, subsets, equal_shares(nobody + [(s,) for s in range(1, len(subsets))], len(subsets)))
        owners, matrix = grouping.quotient(subsets)
        return cls(by, owners, matrix.T, grouping)


def importance_table(schema: Schema, division: Division, amounts: dict[str, FloatArray]) -> Any:
    """The table of ``Decomposition.importance``, from (f, m) amounts; the intercept has no line."""
    grouping = division.grouping
    schema = schema if grouping is None else grouping.schema(schema)
    names = [" x ".join(schema.names(owner)) for owner in division.owners]
    if division.by == "feature":
        return _long(schema, "feature" if grouping is None else "group", names, None, amounts)
    orders = [len(owner) for owner in division.owners[1:]]
    return _long(schema, "subset", names[1:], orders, {name: amount[1:] for name, amount in amounts.items()})


def _varies(values: FloatArray, variance: FloatArray) -> NDArray[np.bool_]:
    """(m,) outputs that are not constant up to the rounding of their mean; the others have no variance to divide."""
    return np.asarray(variance > (tolerances.EPS * np.abs(values[0])) ** 2)


def _without_intercept(amounts: FloatArray) -> FloatArray:
    amounts = amounts.copy()
    amounts[0] = 0.0
    return amounts


def _long(schema: Schema, by: str, names: list[str], orders: list[int] | None, columns: dict[str, FloatArray]) -> Any:
    """One line for each feature (or subset) and output, the largest first."""
    value = columns["value"]
    rank = strongest_first(np.abs(value).sum(axis=1))
    m = value.shape[1]
    out: dict[str, Any] = {by: [names[k] for k in rank for _ in range(m)]}
    if orders is not None:
        out["order"] = np.repeat(np.array(orders, dtype=np.int64)[rank], m)
    if not schema.single:
        out["output"] = list(schema.outputs) * len(rank)
    out.update({name: amounts[rank].ravel() for name, amounts in columns.items()})
    total = np.abs(value).sum(axis=0)
    percent = 100.0 * value / np.where(total > 0, total, 1.0)
    out["percent"] = percent[rank].ravel()
    return frame_with_game(schema.kind, out)
