"""Interaction indices of rows, sparse: only the subsets that exist in the decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.argument_checks import output_number
from exanova.design.family import Family
from exanova.effects.at_rows import contributions
from exanova.effects.effect import GAME, Schema, frame_with_game, free_name
from exanova.explain.value_intervals import value_intervals
from exanova.messages import count_of
from exanova.progress import Progress
from exanova.typing import Codes, FloatArray

CHUNK_BYTES = 64_000_000
"""Memory of the contributions of one chunk of rows."""


@dataclass(frozen=True, eq=False)
class Interactions:
    """An interaction index of rows, for every subset up to its order.

    Attributes:
        values: (n, k), or (n, k, m) for a model with several outputs.
        subsets: the k subsets by the names of their features, in canonical order.
        index: name of the index.
        order: largest size of a subset.
        base_values: (n,) or (n, m), the weighted mean of the model.
        outside: (n,) rows with a combination that never occurred.
        game: the game these values belong to.
        stderr: standard errors of ``values``, of the same shape, if they were requested.
        freedom: their degrees of freedom, of the same shape.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
    >>> anova = exanova.FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
    >>> index = anova.interactions(X[:1], index="k-SII", order=2)
    >>> index.subsets, index.values.round(12).tolist()
    ((('x0',), ('x1',), ('x0', 'x1')), [[-1.0, -1.0, 0.5]])
    """

    values: FloatArray
    subsets: tuple[tuple[str, ...], ...]
    index: str
    order: int
    base_values: FloatArray
    outside: NDArray[np.bool_]
    schema: Schema
    game: str = GAME
    stderr: FloatArray | None = None
    freedom: FloatArray | None = None

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of confidence intervals of ``values``, which need ``stderr=True``.

        Args:
            level: confidence level of each interval alone; Student's t.
        """
        return value_intervals(self.values, self.stderr, self.freedom, level)

    def _repr_html_(self) -> str:
        from exanova.report.notebook import contributions_html

        return contributions_html(f"{self.index} up to order {self.order}", self.subsets, self.values)

    def to_frame(self) -> Any:
        """Long table: ``row``, ``subset``, ``order``, ``index``, ``value`` (or one column per output)."""
        n, k = self.values.shape[:2]
        flat = self.values.reshape(n * k, len(self.schema.value_columns))
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(n), k),
            "subset": [" x ".join(s) for s in self.subsets] * n,
            "order": np.tile([len(s) for s in self.subsets], n),
            "index": [self.index] * (n * k),
        }
        for j, name in enumerate(self.schema.value_columns):
            columns[free_name(name, columns)] = flat[:, j]
        if self.stderr is not None:
            errors = self.stderr.reshape(n * k, -1)
            columns.update({name: errors[:, j] for j, name in enumerate(self.schema.stderr_columns)})
        return frame_with_game(self.schema.kind, columns)

    def to_shapiq(self, output: str | int | None = None) -> list[Any]:
        """One ``shapiq.InteractionValues`` per row; a model with several outputs needs ``output``."""
        from shapiq import InteractionValues

        values, base = self._of_output(output)
        position = {name: i for i, name in enumerate(self.schema.features)}
        lookup = {tuple(position[f] for f in subset): j for j, subset in enumerate(self.subsets, start=1)}
        return [
            InteractionValues(
                values=np.concatenate([[base[row]], values[row]]),
                index=self.index,
                max_order=self.order,
                min_order=0,
                n_players=len(position),
                interaction_lookup={(): 0, **lookup},
                estimated=False,
                baseline_value=float(base[row]),
            )
            for row in range(len(values))
        ]

    def _of_output(self, output: str | int | None) -> tuple[FloatArray, FloatArray]:
        k = output_number(output, self.schema.outputs)
        return (self.values, self.base_values) if self.schema.single else (self.values[:, :, k], self.base_values[:, k])

    def __repr__(self) -> str:
        rows, subsets = count_of(len(self.values), "row"), count_of(len(self.subsets), "subset")
        return f"<Interactions: {self.index} up to order {self.order} of {rows}, {subsets}; {self.game}>"


def interaction_values(
    family: Family,
    values: FloatArray,
    codes: Codes,
    matrix: Any,
    progress: Progress | None = None,
) -> FloatArray:
    """(n, k, m) the index with the sparse ``matrix`` (k, S) from effects to the index, at each row."""
    n, m = codes.shape[1], values.shape[1]
    out = np.empty((n, matrix.shape[0], m))
    chunk = max(1, CHUNK_BYTES // (8 * max(1, len(family.subsets) * m)))
    if progress:
        progress.phase("interactions of rows", n)
    for a in range(0, n, chunk):
        rows = slice(a, min(n, a + chunk))
        parts = contributions(family, values, codes[:, rows])
        for o in range(m):
            out[rows, :, o] = (matrix @ parts[:, :, o].T).T
        if progress:
            progress.step(rows.stop - rows.start)
    return out
