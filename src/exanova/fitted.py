"""The fitted state: everything a decomposition needs to answer, as one record that goes to a file and comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.encoding import Encoding
from exanova.design.cells import CellIndex
from exanova.design.passes import Layout
from exanova.effects.certificate import Certificate, Redundancy
from exanova.effects.tables import Schema
from exanova.errors import FileFormatError
from exanova.explain.importance import Described
from exanova.explain.shapley import CHUNK, shapley_values
from exanova.solve.plan import Plan
from exanova.typing import Codes, FloatArray

Selection = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


@dataclass(frozen=True, eq=False)
class Fitted(Described):
    """A decomposition with its names, its evidence and what importances need of the rows.

    Attributes:
        encoding: levels of every feature, to encode new rows.
        certificate, plan: evidence.
        support: codes and probabilities of the distinct rows; not kept in files, which hold no rows.
        selected: functions kept by the paper's algorithm, if that was asked for.
    """

    encoding: Encoding
    certificate: Certificate
    plan: Plan
    support: tuple[Codes, FloatArray] | None
    selected: Selection | None

    def with_shapley(self, threads: int = 1) -> Fitted:
        """The same with mean absolute Shapley values, computed from the rows if they are not known yet."""
        if self.shapley is not None or self.support is None:
            return self
        codes, probability = self.support
        total = np.zeros((codes.shape[0], self.values.shape[1]))
        step = CHUNK * max(1, threads)
        for a in range(0, codes.shape[1], step):
            rows = slice(a, min(codes.shape[1], a + step))
            values = shapley_values(self.index, self.values, codes[:, rows], threads)
            total += np.einsum("n,ndm->dm", probability[rows], np.abs(values))
        return replace(self, shapley=total)


def to_file(fitted: Fitted, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The document and the arrays of a file."""
    layout, certificate = fitted.index.layout, fitted.certificate
    plain = {f.name: getattr(certificate, f.name) for f in fields(Certificate)}
    measured = {k: v for k, v in plain.items() if isinstance(v, np.ndarray)}
    plain = {k: v for k, v in plain.items() if k not in measured and k != "redundant"}
    document = {
        "parameters": dict(parameters),
        "encoding": fitted.encoding.to_json(),
        "schema": asdict(fitted.schema),
        "plan": asdict(fitted.plan),
        "certificate": plain,
        "redundant": [[r.features, r.shared_with] for r in certificate.redundant],
        "selected": fitted.selected,
    }
    arrays: dict[str, NDArray[Any]] = {
        "order": layout.order,
        "members": layout.members,
        "sizes": layout.sizes,
        "chain": layout.chain,
        "key_start": layout.key_start,
        "lookup": layout.lookup,
        "cell_start": fitted.index.cell_start,
        "cell_key": fitted.index.cell_key,
        "weight": fitted.index.weight,
        "values": fitted.values,
        "covariance": fitted.covariance,
        "variance": fitted.variance,
        **{f"certificate.{k}": v for k, v in measured.items()},
    }
    if fitted.shapley is not None:
        arrays["shapley"] = fitted.shapley
    return document, arrays


def from_file(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> tuple[Fitted, dict[str, Any]]:
    """The fitted state and the parameters that :func:`to_file` wrote.

    Raises:
        FileFormatError: if something is missing or does not fit together.
    """
    try:
        fitted = _fitted(document, arrays)
        parameters = dict(document["parameters"])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"the file does not hold a whole decomposition ({error}); save it again.") from error
    return fitted, parameters


def _fitted(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Fitted:
    index = _index(arrays)
    schema = document["schema"]
    measured: dict[str, Any] = {k.partition(".")[2]: v for k, v in arrays.items() if k.startswith("certificate.")}
    certificate = Certificate(
        **_tuples(document["certificate"]),
        **measured,
        redundant=tuple(
            Redundancy(tuple(features), tuple(tuple(s) for s in shared)) for features, shared in document["redundant"]
        ),
    )
    selected = document["selected"]
    fitted = Fitted(
        encoding=Encoding.from_json(document["encoding"]),
        schema=Schema(
            tuple(schema["features"]),
            tuple(tuple(labels) for labels in schema["labels"]),
            tuple(schema["outputs"]),
            str(schema["kind"]),
            bool(schema["single"]),
        ),
        index=index,
        values=arrays["values"],
        certificate=certificate,
        plan=Plan(**_tuples(document["plan"])),
        covariance=arrays["covariance"],
        variance=arrays["variance"],
        shapley=arrays.get("shapley"),
        support=None,
        selected=None if selected is None else tuple((tuple(f), tuple(z)) for f, z in selected),
    )
    _check(fitted)
    return fitted


def _tuples(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in entries.items()}


def _index(arrays: Mapping[str, NDArray[Any]]) -> CellIndex:
    layout = Layout(*(arrays[name] for name in ("order", "members", "sizes", "chain", "key_start", "lookup")))
    subsets = tuple(
        tuple(members[:order]) for order, members in zip(layout.order.tolist(), layout.members.tolist(), strict=True)
    )
    return CellIndex(
        layout.sizes,
        subsets,
        layout,
        arrays["cell_start"],
        arrays["cell_key"],
        arrays["weight"],
        {subset: k for k, subset in enumerate(subsets)},
    )


def _check(fitted: Fitted) -> None:
    """Everything that is used as a position lies inside what it points to."""
    index, layout = fitted.index, fitted.index.layout
    s, d, m = len(index.subsets), len(fitted.schema.features), len(fitted.schema.outputs)
    conditions = (
        s >= 1 and index.subsets[0] == () and len(index.position) == s,
        layout.key_start.shape == (s + 1,) and index.cell_start.shape == (s + 1,),
        layout.sizes.shape == (d,) and fitted.encoding.sizes == tuple(layout.sizes.tolist()),
        _rises(layout.key_start, len(layout.lookup)) and _rises(index.cell_start, len(index.cell_key)),
        _inside(layout.members, d) and _inside(layout.chain, max(1, len(layout.lookup))),
        _inside(index.cell_key, len(layout.lookup)) and layout.lookup.min(initial=0) >= -1,
        layout.members.shape == layout.chain.shape and layout.members.shape[0] == s,
        layout.order.shape == (s,) and _inside(layout.order, layout.members.shape[1] + 1),
        fitted.values.shape == (len(index.cell_key), m) and index.weight.shape == (len(index.cell_key),),
        fitted.covariance.shape == (s, m) and fitted.variance.shape == (m,),
        fitted.shapley is None or fitted.shapley.shape == (d, m),
        fitted.encoding.names == fitted.schema.features and len(fitted.schema.labels) == d,
        fitted.certificate.r2.shape == (m,),
        _lookups_fit(index),
    )
    if not all(conditions):
        raise ValueError(f"its parts do not fit together (check {conditions.index(False)})")


def _rises(starts: NDArray[Any], last: int) -> bool:
    return bool(starts[0] == 0 and starts[-1] == last and (np.diff(starts) >= 0).all())


def _inside(positions: NDArray[Any], size: int) -> bool:
    return bool(positions.size == 0 or (positions.min() >= 0 and positions.max() < size))


def _lookups_fit(index: CellIndex) -> bool:
    """Every chain of keys stays inside its piece of the key space and every cell inside its subset."""
    cells = np.diff(index.cell_start)
    largest = np.maximum.reduceat(index.layout.lookup, index.layout.key_start[:-1])
    if not bool((largest < cells).all()):
        return False
    for s, subset in enumerate(index.subsets[1:], start=1):
        prefix = index.position[subset[:-1]]
        wanted = int(cells[prefix]) * int(index.sizes[subset[-1]])
        if int(index.layout.key_start[s + 1] - index.layout.key_start[s]) != wanted:
            return False
        before = [index.layout.key_start[index.position[subset[: j + 1]]] for j in range(1, len(subset) - 1)]
        if index.layout.chain[s, 1 : len(subset) - 1].tolist() != [int(b) for b in before]:
            return False
    return True
