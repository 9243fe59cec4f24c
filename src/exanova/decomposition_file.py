"""Conversion of a decomposition to the document and the arrays of a file, and back, with checks of every part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.encoding import Encoding
from exanova.data.feature import FeatureLevels
from exanova.data.link import LINKS
from exanova.data.table import installed_kind
from exanova.decomposition import Decomposition, uncertainty_of
from exanova.design.continuation import Continuation, unobserved_cells
from exanova.design.families import named_family
from exanova.design.family import Family
from exanova.design.passes import Layout
from exanova.effects.certificate import Certificate
from exanova.effects.effect import Schema
from exanova.effects.redundancy import Redundancy
from exanova.errors import FileFormatError
from exanova.explain.mean_shapley import MeanShapley
from exanova.explain.relativities import TariffLoss
from exanova.infer.error_record import Errors
from exanova.infer.level_means import main_cells
from exanova.messages import Words, from_json, to_json
from exanova.provenance import Provenance
from exanova.queries.query import QuerySettings
from exanova.select import record
from exanova.solve.plan import Plan
from exanova.typing import Subset

WHOLE = ("order", "members", "sizes", "chain", "key_start", "cell_start", "cell_key")
REAL = ("weight", "values", "covariance", "variance")
DTYPES = {**dict.fromkeys((*WHOLE, "continued.pairs"), "<i8"), "lookup": "<i4", **dict.fromkeys(REAL, "<f8")}
"""Arrays of a file by the kind of their numbers; those of the certificate and the Shapley values are real too."""

TABLES = ("numpy", "pandas", "polars", "pyarrow", "modin", "cudf")
"""Dataframe libraries that a file may name."""

PARAMETERS: Mapping[str, tuple[type, ...]] = {
    "n_jobs": (int, type(None)),
    "batch_size": (int, type(None)),
    "memory_limit": (int, float, str, type(None)),
    "handle_unknown": (str,),
    "response_method": (str,),
    "strict": (bool,),
    "verbose": (bool, type(None)),
}
"""Parameters that queries depend on, and their types."""


def to_file(
    decomposition: Decomposition, parameters: Mapping[str, Any], covariances: bool | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The document and the arrays of a file, given the parameters of the estimator and which covariances to keep."""
    certificate = decomposition.certificate
    arrays = _arrays(
        decomposition, covariances
    )  # first: cheap standard errors are computed for it, which the document describes
    plain = {f.name: getattr(certificate, f.name) for f in fields(Certificate)}
    measured = {k: v for k, v in plain.items() if isinstance(v, np.ndarray)}
    plain = {k: v for k, v in plain.items() if k not in measured and k != "redundant"}
    plain["notes"] = [to_json(note) for note in certificate.notes]
    document = {
        "parameters": {**parameters, "subsets": _subsets_given(parameters.get("subsets"), decomposition)},
        "encoding": decomposition.encoding.to_json(),
        "schema": asdict(decomposition.schema),
        "plan": asdict(decomposition.plan),
        "certificate": plain,
        "redundant": [[r.features, r.shared_with] for r in certificate.redundant],
        "selected": decomposition.paper_functions,
        "ties": decomposition.ties,
        "link": decomposition.link,
        "losses": [[asdict(loss) for loss in losses] for losses in decomposition.losses],
        "chosen": None if decomposition.selection is None else asdict(decomposition.selection),
        "errors": None if decomposition.uncertainty.summary is None else asdict(decomposition.uncertainty.summary),
        "provenance": None if decomposition.provenance is None else asdict(decomposition.provenance),
    }
    return document, arrays | {f"certificate.{k}": v for k, v in measured.items()}


def _arrays(decomposition: Decomposition, covariances: bool | None) -> dict[str, NDArray[Any]]:
    """The arrays of a file, but for those of the certificate."""
    family, layout = decomposition.family, decomposition.family.layout
    arrays: dict[str, NDArray[Any]] = {
        "order": layout.order,
        "members": layout.members,
        "sizes": layout.sizes,
        "chain": layout.chain,
        "key_start": layout.key_start,
        "lookup": layout.lookup,
        "cell_start": family.cell_start,
        "cell_key": family.cell_key,
        "weight": family.weight,
        "values": decomposition.values,
        "covariance": decomposition.covariance,
        "variance": decomposition.variance,
    }
    if decomposition.mean_shapley.known is not None:
        arrays["shapley"] = decomposition.mean_shapley.known
    arrays |= {f"errors.{name}": array for name, array in decomposition.uncertainty.to_store(covariances).items()}
    if (continuation := decomposition.continuation) is not None:
        arrays |= {"continued.pairs": continuation.pairs, "continued.values": continuation.values}
    return arrays


def _subsets_given(given: Any, decomposition: Decomposition) -> Any:
    """The parameter ``subsets`` as a list: unchanged if it is a list of tuples, else the names of its pairs."""
    if given is None or (isinstance(given, list) and all(isinstance(s, tuple) for s in given)):
        return given
    subsets = named_family(given, decomposition.schema.features, decomposition.family.sizes.tolist())
    return [decomposition.schema.names(subset) for subset in subsets if len(subset) > 1]


def from_file(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> tuple[Decomposition, dict[str, Any]]:
    """The decomposition and the parameters that :func:`to_file` wrote.

    Raises:
        FileFormatError: if something is missing or inconsistent.
    """
    if isinstance(document, Mapping) and document.get("kind") == "moments":
        raise FileFormatError("the file holds moments, not a decomposition; explain it with `exanova explain`.")
    try:
        parameters = _parameters(document["parameters"])
        decomposition = _decomposition(document, arrays, parameters)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise FileFormatError(f"the file does not contain a whole decomposition ({error}); save it again.") from error
    return decomposition, parameters


def _decomposition(
    document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], parameters: Mapping[str, Any]
) -> Decomposition:
    wrong = [k for k, array in arrays.items() if array.dtype != DTYPES.get(k, "<f8")]
    if wrong:
        raise ValueError(f"array {wrong[0]!r} is of dtype {arrays[wrong[0]].dtype}")
    family, values, schema = _family(arrays), arrays["values"], _schema(document["schema"])
    certificate = _certificate(document, arrays)
    stored, summary = _named_arrays(arrays, "errors."), _summary(document.get("errors"))
    selected = document["selected"]
    decomposition = Decomposition(
        schema=schema,
        encoding=Encoding.from_json(document["encoding"]),
        family=family,
        values=values,
        uncertainty=uncertainty_of(family, values, schema, certificate, stored=stored, summary=summary),
        settings=QuerySettings(**{f.name: parameters[f.name] for f in fields(QuerySettings) if f.name in parameters}),
        covariance=arrays["covariance"],
        variance=arrays["variance"],
        mean_shapley=MeanShapley(family, values, None, arrays.get("shapley")),
        certificate=certificate,
        plan=Plan(**_record(Plan, document["plan"])),
        ties=document.get("ties", parameters.get("ties", "share")),
        link=str(document.get("link", "identity")),
        losses=tuple(tuple(TariffLoss(**loss) for loss in losses) for losses in document.get("losses", ())),
        selection=_selection(document.get("chosen")),
        paper_functions=None if selected is None else tuple((tuple(f), tuple(z)) for f, z in selected),
        provenance=_provenance(document.get("provenance")),
        continuation=_continuation(arrays),
    )
    _check(decomposition, stored)
    return decomposition


def _schema(entry: Mapping[str, Any]) -> Schema:
    labels = tuple(tuple(levels) for levels in entry["labels"])
    kind = str(entry["kind"])
    kind = installed_kind(kind) if kind in TABLES else kind  # any other is refused below
    return Schema(tuple(entry["features"]), labels, tuple(entry["outputs"]), kind, bool(entry["single"]))


def _certificate(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Certificate:
    measured: dict[str, Any] = _named_arrays(arrays, "certificate.")
    redundant = tuple(
        Redundancy(tuple(features), tuple(tuple(s) for s in shared)) for features, shared in document["redundant"]
    )
    entries = _record(Certificate, _with_sentences(document["certificate"]))
    return Certificate(**entries, **measured, redundant=redundant)


def _named_arrays(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with a prefix, by their names without the prefix."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _with_sentences(entries: Mapping[str, Any]) -> dict[str, Any]:
    """A certificate with its notes converted back to messages; ``_record`` refuses notes that are not a list."""
    notes = entries["notes"]
    return {**entries, "notes": [from_json(note) for note in notes] if isinstance(notes, list) else notes}


def _record(kind: type[Certificate | Plan | Errors | Provenance], entries: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of a record, with lists as tuples, checked against the types of its fields."""
    out = {k: _as_tuples(v) for k, v in entries.items()}
    wrong = [f.name for f in fields(kind) if f.name in out and not _is_a(out[f.name], str(f.type))]
    if wrong:
        raise ValueError(f"{wrong[0]!r} of the {kind.__name__.lower()} is {out[wrong[0]]!r}")
    return out


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _is_a(value: Any, annotation: str) -> bool:
    """Whether a value read from JSON has the annotated type of a field."""
    if annotation.startswith("tuple["):
        member = annotation[6:-1].removesuffix(", ...")
        return isinstance(value, tuple) and all(_is_a(v, member) for v in value)
    options = annotation.replace("float", "float | int").split(" | ")
    name = "str" if isinstance(value, Words) else type(value).__name__
    return name in options or (value is None and "None" in options)


def _parameters(entries: Mapping[str, Any]) -> dict[str, Any]:
    wrong = [k for k, kinds in PARAMETERS.items() if k in entries and type(entries[k]) not in kinds]
    if wrong:
        raise ValueError(f"the parameter {wrong[0]!r} is {entries[wrong[0]]!r}")
    subsets = entries.get("subsets", entries.get("interactions"))  # its name in 0.1
    kept = {name: value for name, value in entries.items() if name != "interactions"}
    return {**kept, "subsets": None if subsets is None else [tuple(subset) for subset in subsets]}


def _selection(entry: Mapping[str, Any] | None) -> record.Selection | None:
    if entry is None:
        return None
    rounds = tuple(record.Round(**r) for r in entry["rounds"])
    trials = tuple(record.Trial(**t) for t in entry.get("trials", ()))
    return record.Selection(str(entry["method"]), entry["budget"], rounds, str(entry["stopped"]), trials)


def _summary(entry: Mapping[str, Any] | None) -> Errors | None:
    return None if entry is None else Errors(**_record(Errors, entry))


def _provenance(entry: Mapping[str, Any] | None) -> Provenance | None:
    if entry is None:
        return None
    provenance = Provenance(**_record(Provenance, entry))
    if {len(pair) for pair in provenance.settings} - {2} or {len(file) for file in provenance.files} - {3}:
        raise ValueError("the provenance has settings or files that cannot be read")
    return provenance


def _family(arrays: Mapping[str, NDArray[Any]]) -> Family:
    layout = Layout(*(arrays[name] for name in ("order", "members", "sizes", "chain", "key_start", "lookup")))
    subsets = tuple(
        tuple(members[:order]) for order, members in zip(layout.order.tolist(), layout.members.tolist(), strict=True)
    )
    return Family(
        layout.sizes,
        subsets,
        layout,
        arrays["cell_start"],
        arrays["cell_key"],
        arrays["weight"],
        {subset: k for k, subset in enumerate(subsets)},
    )


def _continuation(arrays: Mapping[str, NDArray[Any]]) -> Continuation | None:
    """The effects in cells never observed; files of exanova 0.1 and of fits that are not shrunk have none."""
    if "continued.pairs" not in arrays:
        return None
    return Continuation(arrays["continued.pairs"], arrays["continued.values"])


def _check(decomposition: Decomposition, stored: Mapping[str, NDArray[Any]]) -> None:
    """Check that every position is within bounds; each condition may rely on the previous ones."""
    parts, errors = _conditions_of_parts(decomposition), _conditions_of_errors(decomposition, stored)
    features, continued = decomposition.encoding.features, _conditions_of_continuation(decomposition)
    conditions = (*parts, *errors, *map(_feature_fits, features), *continued)
    if not all(conditions):
        raise ValueError(f"its parts do not fit together (check {conditions.index(False)})")
    for k, condition in enumerate(_conditions_of_cells(decomposition.family), start=len(conditions)):
        if not condition:
            raise ValueError(f"its parts do not fit together (check {k})")


def _conditions_of_parts(decomposition: Decomposition) -> Iterator[bool]:
    family, schema, encoding = decomposition.family, decomposition.schema, decomposition.encoding
    layout, values = family.layout, decomposition.values
    s, d, m, cells = len(family.subsets), len(schema.features), len(schema.outputs), len(family.cell_key)
    certificate, shapley = decomposition.certificate, decomposition.mean_shapley.known
    covariance, variance = decomposition.covariance, decomposition.variance
    yield layout.key_start.shape == family.cell_start.shape == (s + 1,) and layout.order.shape == (s,)
    yield layout.members.shape == layout.chain.shape and layout.members.shape[0] == s
    yield layout.sizes.shape == (d,) and encoding.sizes == tuple(layout.sizes.tolist())
    yield layout.lookup.ndim == family.cell_key.ndim == 1 and family.weight.shape == (cells,)
    yield values.shape == (cells, m) and covariance.shape == (s, m) and variance.shape == (m,)
    yield shapley is None or shapley.shape == (d, m)
    measured = [getattr(certificate, f.name) for f in fields(Certificate) if "FloatArray" in str(f.type)]
    yield all(array is None or array.shape == (m,) for array in measured)
    yield encoding.names == schema.features and encoding.labels == schema.labels and len(set(encoding.names)) == d
    yield all(_is_a(names, "tuple[str, ...]") for names in (schema.features, schema.outputs, *_named(decomposition)))
    yield schema.kind in TABLES and m >= 1 and (m == 1 or not schema.single)
    yield bool(np.isfinite(values).all() and np.isfinite(covariance).all())
    yield bool(np.isfinite(family.weight).all() and (family.weight > 0).all() and (variance >= 0).all())
    link, losses = decomposition.link, decomposition.losses
    yield decomposition.ties in ("share", "first") and link in LINKS and len(losses) in (0, m)


def _conditions_of_errors(decomposition: Decomposition, stored: Mapping[str, NDArray[Any]]) -> Iterator[bool]:
    (cells, m), s = decomposition.values.shape, len(decomposition.family.subsets)
    shapes = {
        "stderr": (cells, m),
        "rows": (cells,),
        "clusters": (cells,),
        "freedom": (cells,),
        "certain": (s, m),
        "identified": (s,),
        "means": (main_cells(decomposition.family), m),
        "covariance": (m, cells * (cells + 1) // 2),
    }
    yield all(shapes.get(name) == array.shape for name, array in stored.items())
    yield (decomposition.uncertainty.summary is None) == ("stderr" not in stored)
    yield all(bool((~(array < 0)).all()) for name, array in stored.items() if name not in ("covariance", "means"))
    yield "covariance" not in stored or bool(np.isfinite(stored["covariance"]).all())


def _conditions_of_continuation(decomposition: Decomposition) -> Iterator[bool]:
    family, continuation = decomposition.family, decomposition.continuation
    if continuation is None:
        return
    pairs, values = continuation.pairs, continuation.values
    count, m = len(family.subsets), len(decomposition.schema.outputs)
    inside = pairs.ndim == 1 and bool((np.diff(pairs) > 0).all() and ((pairs > 0) & (pairs < count)).all())
    yield inside and all(len(family.subsets[s]) == 2 for s in pairs.tolist())
    unseen = sum(unobserved_cells(family, s) for s in pairs.tolist()) if inside else -1
    yield values.shape == (unseen, m) and bool(np.isfinite(values).all())


def _named(decomposition: Decomposition) -> Iterator[tuple[str, ...]]:
    """Every tuple of names in the evidence."""
    for redundancy in decomposition.certificate.redundant:
        yield from (redundancy.features, *redundancy.shared_with)
    for function in decomposition.paper_functions or ():
        yield from function


def _feature_fits(feature: FeatureLevels) -> bool:
    """Whether every raw value or bin maps to an existing level."""
    known = len(set(feature.values)) == len(feature.codes) if not (feature.edges or feature.is_left_out) else True
    bins = len(feature.codes) >= max(1, len(feature.edges) - 1) if feature.edges else True
    return (
        known
        and bins
        and feature.has_increasing_edges
        and len(feature.labels) == len(feature.levels) == len(set(feature.levels)) > 0
        and all(-1 <= code < len(feature.levels) for code in feature.codes)
    )


def _conditions_of_cells(family: Family) -> Iterator[bool]:
    """The family is closed downward; keys, lookups and cells are consistent for every subset."""
    layout, cell_key, cell_start = family.layout, family.cell_key, family.cell_start
    yield _inside(layout.order, layout.members.shape[1] + 1) and _inside(layout.members, len(family.sizes))
    yield family.subsets[:1] == ((),) and len(family.position) == len(family.subsets)
    yield bool((np.diff(layout.order) >= 0).all()) and all(_is_closed(family, s) for s in family.subsets)
    yield _rises(layout.key_start, len(layout.lookup)) and _rises(cell_start, len(cell_key))
    yield cell_start[1] == layout.key_start[1] == 1
    yield bool(layout.lookup.min() >= -1) and np.array_equal(cell_key, np.flatnonzero(layout.lookup >= 0))
    yield np.array_equal(cell_start, np.searchsorted(cell_key, layout.key_start))
    own = np.arange(len(cell_key)) - np.repeat(cell_start[:-1], np.diff(cell_start))
    yield np.array_equal(layout.lookup[cell_key], own)
    yield all(_keys_fit(family, s) for s in range(1, len(family.subsets)))


def _is_closed(family: Family, subset: Subset) -> bool:
    """Whether the members are increasing and every subset with one member fewer is in the family."""
    return all(a < b for a, b in pairwise(subset)) and all(
        subset[:k] + subset[k + 1 :] in family.position for k in range(len(subset))
    )


def _keys_fit(family: Family, s: int) -> bool:
    """Whether a subset has (cells of its prefix) x (levels) keys, and the chain of its prefixes."""
    layout, subset = family.layout, family.subsets[s]
    prefix = family.cells_of(family.position[subset[:-1]])
    keys = (prefix.stop - prefix.start) * int(family.sizes[subset[-1]])
    chain = [int(layout.key_start[family.position[subset[: j + 1]]]) for j in range(1, len(subset) - 1)]
    return bool(
        layout.key_start[s + 1] - layout.key_start[s] == keys and layout.chain[s, 1 : len(subset) - 1].tolist() == chain
    )


def _rises(starts: NDArray[Any], last: int) -> bool:
    return bool(starts[0] == 0 and starts[-1] == last and (np.diff(starts) > 0).all())


def _inside(positions: NDArray[Any], size: int) -> bool:
    return bool(positions.size == 0 or (positions.min() >= 0 and positions.max() < size))
