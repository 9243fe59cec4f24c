"""Importances of groups of features, each group as one, as a section of the report."""

from __future__ import annotations

from exanova.decomposition import Decomposition
from exanova.report.explorer import GivenRows
from exanova.show.error_bars import can_compute_importance, known
from exanova.show.records import Record, columns_of


def domains(decomposition: Decomposition, given: GivenRows, kind: str) -> Record | None:
    """``members`` of every group and the importance of each; ``None`` where no groups were given."""
    if given.groups is None:
        return None
    with_errors = can_compute_importance(decomposition)
    columns = columns_of(decomposition.importance(kind, groups=given.groups, stderr=with_errors))
    count = len(columns["group"])
    outputs = columns.get("output", decomposition.schema.outputs * count)
    errors = columns["stderr"] if with_errors else [float("nan")] * count
    lines = zip(columns["group"], outputs, columns["value"], errors, strict=True)
    return {
        "members": [{"group": str(name), "features": list(features)} for name, features in given.groups.items()],
        "records": [{"group": str(g), "output": str(o), "value": float(v), "stderr": known(e)} for g, o, v, e in lines],
    }
