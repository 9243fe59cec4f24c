"""Significance of effects: tests of zero effects, as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova.basis.functions import pure_basis
from exanova.data.table import frame_of_kind
from exanova.design.family import Family
from exanova.effects.effect import Schema
from exanova.infer.bands import adjusted, wald
from exanova.infer.linear import LinearErrors
from exanova.infer.uncertainty import Uncertainty
from exanova.typing import FloatArray


def significance_table(schema: Schema, family: Family, uncertainty: Uncertainty, level: float) -> Any:
    """One line per subset and output: statistic, degrees of freedom, p-value, adjusted p-value, verdict."""
    subsets, m = family.subsets, uncertainty.outputs
    tests = {name: numbers[1:].ravel() for name, numbers in zero_tests(family, uncertainty).items()}
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


def zero_tests(family: Family, uncertainty: Uncertainty) -> dict[str, FloatArray]:
    """(S, m) Wald statistics, degrees of freedom, p-values and adjusted p-values."""
    shape = (len(family.subsets), uncertainty.outputs)
    out = {name: np.full(shape, np.nan) for name in ("statistic", "df", "p")}
    effects = uncertainty.fitted.without_rounding(uncertainty.fitted.effects)
    units = float(uncertainty.freedom[0]) + 1.0  # the noise estimated from residuals
    as_it_is = uncertainty.is_shrunken or (
        isinstance(uncertainty.engine, LinearErrors) and uncertainty.engine.free is None
    )
    free = None if as_it_is else uncertainty.freedom  # without a prior, cells of few rows know little of their noise
    for s in range(1, shape[0]):
        if s in uncertainty.without_stderr:
            continue
        own, table = family.cells_of(s), pure_basis(family, [s])[0]
        assert isinstance(table, np.ndarray)
        for o, block in enumerate(uncertainty.engine.block(own)):
            weight, known = family.probability_of(s), None if free is None else free[own]
            test = wald(effects[own, o], block, weight, table, units, known)
            out["statistic"][s, o], out["df"][s, o], out["p"][s, o] = test
    out["q"] = adjusted(out["p"].ravel()).reshape(shape)
    return out


def _outputs(schema: Schema, count: int, order: Any) -> dict[str, list[str]]:
    names = list(schema.outputs) * count
    return {} if schema.single else {"output": [names[k] for k in order]}
