"""Effects at rows: the fitted part and the contribution of every subset, with rows outside the support marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.sample import NewRows
from exanova.data.table import frame_of_kind
from exanova.design.continuation import Everywhere
from exanova.design.family import Family
from exanova.effects.effect import GAME, Schema
from exanova.messages import count_of
from exanova.phi.operator import Phi
from exanova.typing import Codes, FloatArray


@dataclass(frozen=True, eq=False)
class Components:
    """Contribution of every subset to every row.

    Attributes:
        values: (n, S, m), or (n, S) for a model with one output; their sum over the subsets is the fitted part.
        subsets: the S subsets by the names of their features, in canonical order.
        outside: (n,) rows with a combination that never occurred: its effect is extrapolated by the prior of a shrunken
            fit, and counts as 0 in an exact one.
        output_names: names of the outputs.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    >>> parts = exanova.FunctionalANOVA(sampled=False).fit(X, np.array([0.0, 1.0, 5.0])).components(X)
    >>> bool(np.allclose(parts.values.sum(axis=1), [0.0, 1.0, 5.0]))
    True
    """

    values: FloatArray
    subsets: tuple[tuple[str, ...], ...]
    outside: NDArray[np.bool_]
    output_names: tuple[str, ...]
    schema: Schema

    def _repr_html_(self) -> str:
        from exanova.report.notebook import contributions_html

        return contributions_html(f"Contributions of {len(self.subsets):,} subsets", self.subsets, self.values)

    def to_frame(self) -> Any:
        """One line per row and subset: ``row``, ``subset``, ``order``, then ``value`` or one column per output."""
        n, count = self.values.shape[:2]
        names = [" x ".join(s) or "(intercept)" for s in self.subsets]
        flat = self.values.reshape(n * count, -1)
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(n), count),
            "subset": names * n,
            "order": np.tile([len(s) for s in self.subsets], n),
        }
        columns.update({name: flat[:, k] for k, name in enumerate(self.schema.value_columns)})
        return frame_of_kind(self.schema.kind, columns)

    def __repr__(self) -> str:
        rows, subsets = count_of(len(self.values), "row"), count_of(len(self.subsets), "subset")
        return f"<Components of {rows}, {subsets}; {GAME}>"


def fitted_part(effects: Everywhere, codes: Codes, threads: int = 1) -> FloatArray:
    """(n, m) sum of all effects at each row; cells never observed add nothing unless they are continued."""
    return Phi(effects.family, NewRows(codes), threads).synthesise(effects.values)


def contributions(family: Family, values: FloatArray, codes: Codes) -> FloatArray:
    """(n, S, m) value of every effect at each row; 0 where it has no cell."""
    out = np.zeros((codes.shape[1], len(family.subsets), values.shape[1]))
    phi = Phi(family, NewRows(codes))
    for s in range(len(family.subsets)):
        cell = phi.cells(s)
        known = cell >= 0
        out[known, s] = values[family.cell_start[s] + cell[known]]
    return out
