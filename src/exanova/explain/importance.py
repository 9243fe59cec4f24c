"""Importances of subsets and features: norms, mean absolute Shapley values, variance shares, Shapley effects.

Under dependence the share of a subset is Cov(f_A, f) / Var f, the sum of a structural part Var f_A / Var f and a
covariance part Cov(f_A, f - f_A) / Var f. Shares add up to R2 and may be negative; they are labelled as what they are.
None of them depends on how levels are named or cut: splitting a level in two identical ones changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.data.sample import Sample
from exanova.data.table import frame_of_kind
from exanova.design.family import Family
from exanova.effects.summary import squared_norms
from exanova.effects.tables import Schema
from exanova.errors import InputError
from exanova.phi.operator import Phi
from exanova.solve.evidence import Solved
from exanova.typing import FloatArray

KINDS = ("l1", "l2", "shapley", "variance", "shapley-effects")


@dataclass(frozen=True, eq=False)
class Described:
    """A decomposition with what importances need of the rows, so that nothing here needs the rows again.

    Attributes:
        schema: names of everything.
        index: cells of every subset.
        values: (cells, m) effects.
        covariance: (S, m) Cov(f_A, f).
        variance: (m,) Var f.
        shapley: (d, m) mean absolute Shapley values, once they were asked for.
    """

    schema: Schema
    index: Family
    values: FloatArray
    covariance: FloatArray
    variance: FloatArray
    shapley: FloatArray | None


def absolute_norms(index: Family, values: FloatArray) -> FloatArray:
    """(S, m) E|f_A| of every subset."""
    weighted = (index.weight / index.weight[0])[:, None] * np.abs(values)
    return np.asarray(np.add.reduceat(weighted, index.cell_start[:-1], axis=0))


def covariances(index: Family, values: FloatArray, sums: FloatArray) -> FloatArray:
    """(S, m) Cov(f_A, f) from the (cells, m) expectations E[f 1{x_A = cell}]; 0 for the intercept."""
    out = np.add.reduceat(values * sums, index.cell_start[:-1], axis=0)
    mean = np.add.reduceat((index.weight / index.weight[0])[:, None] * values, index.cell_start[:-1], axis=0)
    out -= mean * sums[0]
    out[0] = 0.0
    return np.asarray(out)


def rolled_up(index: Family, by_subset: FloatArray, d: int) -> FloatArray:
    """(d, m) every subset's amount divided equally among its features."""
    out = np.zeros((d, by_subset.shape[1]))
    for s, subset in enumerate(index.subsets):
        for i in subset:
            out[i] += by_subset[s] / len(subset)
    return out


def moments_with_model(sample: Sample, found: Solved, threads: int = 1) -> tuple[FloatArray, FloatArray]:
    """(S, m) covariance of every effect with the model, and (m,) variance of the model as given."""
    sums = Phi(found.index, sample, threads).analyse(sample.weighted_values)
    squares = (sample.values - sums[0]) ** 2 + (0.0 if sample.within is None else sample.within)
    return covariances(found.index, found.values, sums), sample.probability @ squares


def check_importance(kind: str, by: str) -> None:
    """Refuse kinds of importances that do not exist."""
    if kind not in KINDS:
        raise InputError(f"kind={kind!r} was given; expected one of {', '.join(KINDS)}.")
    if by not in ("feature", "subset"):
        raise InputError(f"by={by!r} was given; expected 'feature' or 'subset'.")
    if by == "subset" and kind in ("shapley", "shapley-effects"):
        raise InputError(f"kind={kind!r} belongs to features; leave by= out, or ask for 'l1', 'l2' or 'variance'.")


def importance_table(
    state: Described,
    kind: str,
    by: str,
    stderr: FloatArray | None = None,
    bias: FloatArray | None = None,
) -> Any:
    """The table of ``FunctionalANOVA.importance``.

    ``stderr`` holds standard errors of the values, (d, m) or (S, m) as ``by`` says; ``bias`` (S, m) what squared norms
    are too large by.
    """
    check_importance(kind, by)
    index, schema = state.index, state.schema
    columns = _amounts(state, kind)
    if bias is not None:
        columns["debiased"] = columns["value"] - (bias if kind == "l2" else bias / _positive(state))
    if by == "feature":
        if kind != "shapley":
            columns = {k: rolled_up(index, v, len(schema.features)) for k, v in columns.items()}
        if stderr is not None:
            columns["stderr"] = stderr
        return _long(schema, by, list(schema.features), None, columns)
    if stderr is not None:
        columns["stderr"] = stderr
    columns = {k: v[1:] for k, v in columns.items()}
    names = [" x ".join(schema.names(s)) for s in index.subsets[1:]]
    return _long(schema, by, names, [len(s) for s in index.subsets[1:]], columns)


def _amounts(state: Described, kind: str) -> dict[str, FloatArray]:
    """Named (S, m) amounts of every subset, or (d, m) of every feature for Shapley values."""
    index, values = state.index, state.values
    if kind == "l1":
        return {"value": _without_intercept(absolute_norms(index, values))}
    if kind == "l2":
        return {"value": _without_intercept(squared_norms(index, values))}
    if kind == "shapley":
        assert state.shapley is not None
        return {"value": state.shapley}
    varies, scale = _varies(state), _positive(state)
    share = np.where(varies, state.covariance / scale, 0.0)
    if kind == "shapley-effects":
        return {"value": share}
    structural = np.where(varies, _without_intercept(squared_norms(index, values)) / scale, 0.0)
    return {"value": share, "structural": structural, "covariance": share - structural}


def _varies(state: Described) -> NDArray[np.bool_]:
    """(m,) outputs that are not constant up to the rounding of their own mean; others have no variance to share."""
    return np.asarray(state.variance > (tolerances.EPS * np.abs(state.values[0])) ** 2)


def _positive(state: Described) -> FloatArray:
    """(m,) variances to divide by."""
    return np.where(_varies(state), state.variance, 1.0)


def _without_intercept(amounts: FloatArray) -> FloatArray:
    amounts = amounts.copy()
    amounts[0] = 0.0
    return amounts


def _long(schema: Schema, by: str, names: list[str], orders: list[int] | None, columns: dict[str, FloatArray]) -> Any:
    """One line for each feature (or subset) and output, the largest first."""
    value = columns["value"]
    rank = np.argsort(-np.abs(value).sum(axis=1), kind="stable")
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
    out["game"] = ["joint distribution"] * (len(rank) * m)
    return frame_of_kind(schema.kind, out)
