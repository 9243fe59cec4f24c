"""Significance of effects: tests of zero effects, as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova.data.table import frame_of_kind
from exanova.design.family import Family
from exanova.effects.effect import Schema
from exanova.infer.uncertainty import Uncertainty


def significance_table(schema: Schema, family: Family, uncertainty: Uncertainty, level: float) -> Any:
    """One line per subset and output: statistic, degrees of freedom, p-value, adjusted p-value, verdict."""
    subsets, m = family.subsets, uncertainty.outputs
    tests = {name: numbers[1:].ravel() for name, numbers in uncertainty.tests().items()}
    identified = [uncertainty.identified(s) is not False for s in range(1, len(subsets)) for _ in range(m)]
    names = [" x ".join(schema.names(subset)) for subset in subsets[1:] for _ in range(m)]
    order = np.lexsort((-tests["statistic"], np.where(np.isnan(tests["p"]), 2.0, tests["p"])))
    columns: dict[str, Any] = {"subset": [names[k] for k in order]}
    columns |= _outputs(schema, len(subsets) - 1, order)
    columns["order"] = np.repeat([len(s) for s in subsets[1:]], m).astype(np.int64)[order]
    columns |= {name: tests[name][order] for name in ("statistic", "df", "p", "q")}
    columns["significant"] = np.nan_to_num(tests["q"], nan=1.0)[order] <= level
    columns["identified"] = np.array(identified, dtype=bool)[order]
    return frame_of_kind(schema.kind, columns)


def _outputs(schema: Schema, count: int, order: Any) -> dict[str, list[str]]:
    names = list(schema.outputs) * count
    return {} if schema.single else {"output": [names[k] for k in order]}
