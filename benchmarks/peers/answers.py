"""Answers of different libraries on one footing: values of subsets at rows, their conditional means, their difference.

An answer is a mapping from subsets of column numbers to values, one a row. Everything is measured from the rows
alone, in the same way whoever gave the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Facts
from exanova import FunctionalANOVA
from exanova.typing import Codes, FloatArray, IntArray, Subset

Answer = Mapping[Subset, FloatArray]
"""(n,) values of each subset at the rows."""


@dataclass(frozen=True)
class Rows:
    """Rows that answers are given at: codes (d, n), probabilities (n,), levels of each feature."""

    codes: Codes
    p: FloatArray
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, codes: Any) -> Rows:
        """Equally likely rows, codes (n, d)."""
        columns = np.ascontiguousarray(np.asarray(codes, dtype=np.int64).T)
        n = columns.shape[1]
        return cls(columns, np.full(n, 1.0 / n), tuple(int(row.max()) + 1 for row in columns))

    def shape(self, subset: Subset) -> tuple[int, ...]:
        """Levels of the features of a subset."""
        return tuple(self.sizes[i] for i in subset)

    def cell(self, subset: Subset) -> IntArray:
        """(n,) which cell of the product of its levels each row falls in."""
        if not subset:
            return np.zeros(len(self.p), dtype=np.int64)
        return np.asarray(np.ravel_multi_index(tuple(self.codes[i] for i in subset), self.shape(subset)))

    def keys(self, codes: Codes) -> IntArray:
        """(k,) one number for each row of codes (d, k): equal rows, equal numbers."""
        return np.asarray(np.ravel_multi_index(tuple(codes), self.sizes))

    def never(self, codes: Codes) -> float:
        """Share of rows of codes (d, k) that are none of these rows."""
        return float(1.0 - np.isin(self.keys(codes), self.keys(self.codes)).mean())


class Tables(Mapping[Subset, FloatArray]):
    """Effect tables over products of levels, read at the rows when a subset is asked for."""

    def __init__(self, tables: Mapping[Subset, FloatArray], rows: Rows) -> None:
        self.tables, self.rows = tables, rows

    def __getitem__(self, subset: Subset) -> FloatArray:
        return np.asarray(self.tables[subset]).ravel()[self.rows.cell(subset)]

    def __iter__(self) -> Any:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)


def tables_of(anova: FunctionalANOVA, rows: Rows) -> dict[Subset, FloatArray]:
    """Our effects of the first output over products of levels, 0 in the cells that never occur."""
    state, found = anova.decomposition_, {}
    for s, subset in enumerate(state.family.subsets):
        values = state.values[state.family.cells_of(s), 0]
        found[subset] = np.zeros(rows.shape(subset))
        found[subset][tuple(state.family.codes_of(s))] = values if subset else values[0]
    return found


def orthogonality(answer: Answer, rows: Rows) -> float:
    """Largest ``|E[f_A 1{x_B = b}]|`` over all A, all B strictly inside A and all b, relative to the largest value."""
    worst, largest = 0.0, 0.0
    for subset, values in answer.items():
        largest = max(largest, float(np.abs(values).max()))
        if subset:
            mass = np.bincount(rows.cell(subset), rows.p * values, minlength=int(np.prod(rows.shape(subset))))
            worst = max(worst, largest_margin(mass.reshape(rows.shape(subset))))
    return worst / largest if largest else 0.0


def largest_margin(mass: FloatArray) -> float:
    """Largest absolute sum over one axis or more."""
    extended = mass
    for axis in range(mass.ndim):
        extended = np.concatenate([extended, extended.sum(axis=axis, keepdims=True)], axis=axis)
    extended[tuple(slice(n) for n in mass.shape)] = 0.0
    return float(np.abs(extended).max())


def total(answer: Answer, n: int) -> FloatArray:
    """(n,) sum of all values of a row."""
    out = np.zeros(n)
    for values in answer.values():
        out += values
    return out


def fit_of(answer: Answer, values: FloatArray, p: FloatArray) -> Facts:
    """How far the sum of an answer is from the model: largest error on the scale of the model, and R2."""
    error = values - total(answer, len(values))
    spread = values - p @ values
    return {
        "reconstruction": float(np.abs(error).max() / np.abs(values).max()),
        "r2": float(1.0 - (p @ error**2) / (p @ spread**2)),
    }


def difference(ours: Answer, theirs: Answer) -> Facts:
    """Largest difference relative to our largest value, and root mean square difference relative to ours.

    A subset one of them does not have counts as 0 there; the mean is left out, since local explanations have none.
    """
    subsets = [s for s in dict.fromkeys([*ours, *theirs]) if s]
    worst = largest = squares = size = 0.0
    for subset in subsets:
        a, b = (np.asarray(found[subset]) if subset in found else np.zeros(1) for found in (ours, theirs))
        worst, largest = max(worst, float(np.abs(a - b).max())), max(largest, float(np.abs(a).max()))
        squares, size = squares + float(np.mean((a - b) ** 2)), size + float(np.mean(a**2))
    return {"difference": worst / largest, "rms_difference": float(np.sqrt(squares / size))}


def store(path: Path, answer: Answer) -> None:
    """Keep an answer for the jobs that compare theirs with it."""
    np.savez(path, **{",".join(map(str, subset)) or "mean": values for subset, values in answer.items()})


def compared(path: Path, answer: Answer, rows: Rows | None = None) -> Facts:
    """Difference from our answer, which ran before; nothing where it is not there.

    Ours may be kept as tables, to be read at ``rows``, or at all rows, of which this answer has the first few.
    """
    if not path.exists():
        return {}
    ours = stored(path)
    if rows is not None:
        return difference(Tables(ours, rows), answer)
    count = len(next(iter(answer.values())))
    return difference({subset: values[:count] for subset, values in ours.items()}, answer)


def stored(path: Path) -> dict[Subset, FloatArray]:
    """An answer that was kept."""
    with np.load(path) as file:
        return {() if key == "mean" else tuple(map(int, key.split(","))): file[key] for key in file.files}
