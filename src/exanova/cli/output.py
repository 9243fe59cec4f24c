"""Machine-readable results: files and standard output, JSON documents, tables of values.

Files are checked before the work begins, written completely at its end, and never replaced without ``--force``.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exanova import __version__
from exanova.atomic_files import write_whole
from exanova.cli.option_names import with_options
from exanova.effects.certificate import Certificate
from exanova.effects.effect import GAME, Effect, Schema, free_name
from exanova.effects.norms import shown_norms
from exanova.errors import ExanovaError, FileWriteError, InputError
from exanova.explain.comparison import Comparison
from exanova.explain.explanation import Explanation
from exanova.explain.importance_errors import importance_stderr
from exanova.explain.interactions import Interactions
from exanova.export.harmless import harmless_table
from exanova.packages import check_installed, package
from exanova.report import FORMATS
from exanova.report.words import verdicts
from exanova.show.error_bars import can_compute
from exanova.show.records import importance_records
from exanova.solve.plan import Plan
from exanova.typing import FloatArray

STDOUT = "-"
TABLES = (".csv", ".tsv", ".parquet", ".feather")
INTERCEPT = "(intercept)"


@dataclass(frozen=True)
class Target:
    """A file to write.

    Attributes:
        option: the option that names it.
        path: its path.
        suffixes: allowed suffixes; empty for any.
        is_folder: whether a folder is written.
    """

    option: str
    path: str
    suffixes: tuple[str, ...] = ()
    is_folder: bool = False


class Targets:
    """All files of one run."""

    def __init__(self, targets: Iterable[Target], inputs: Sequence[str | None], force: bool) -> None:
        self._targets = tuple(targets)
        self._force = force
        self._done: list[str] = []
        self._check_apart([path for path in inputs if path is not None])
        for target in self._targets:
            _check_suffix(target)
            self._check_place(target)
            _check_writable(target)

    def write(self, option: str, write: Callable[[str], None]) -> None:
        """Let ``write`` make the file of an option, if it was given; an error lists the files written before."""
        target = next((t for t in self._targets if t.option == option), None)
        if target is None:
            return
        try:
            self._check_place(target)
            write(target.path)
        except ExanovaError as error:
            done = f" Written before that: {', '.join(map(repr, self._done))}." if self._done else ""
            raise FileWriteError(f"{option}: ", error.message, done) from error
        self._done.append(target.path)

    def _check_apart(self, inputs: Sequence[str]) -> None:
        """Refuse to read and write one file in the same run, or to write it twice."""
        taken = {_identity(path): f"{path!r} is read" for path in inputs}
        for target in self._targets:
            identity = _identity(target.path)
            if identity in taken:
                raise InputError(
                    f"{target.option} {target.path!r} cannot be written: {taken[identity]} in the same run."
                )
            taken[identity] = f"{target.option.removeprefix('--')} is written there"

    def _check_place(self, target: Target) -> None:
        path = Path(target.path)
        if path.is_dir() and not target.is_folder:
            raise FileWriteError(f"{target.option} {target.path!r} is a folder; give a file name.")
        if not os.path.lexists(path):
            return
        if not self._force:
            raise FileWriteError(f"{target.option} {target.path!r} exists; add --force to replace it.")
        if path.exists() and not path.is_file() and not target.is_folder:
            raise FileWriteError(f"{target.option} {target.path!r} is a device or a pipe; give a file name.")


def report_targets(path: str | None, option: str = "--report") -> list[Target]:
    """The report, if one was requested; refused if a package for it is missing."""
    if path is None:
        return []
    if Path(path).suffix.lower() in (".html", ".htm"):
        check_installed(("jinja2",), f"{option} {path}")
    return [Target(option, path, tuple(FORMATS))]


def write_table(path: str, table: Any) -> None:
    """Write a pyarrow table in the format of the suffix, or as CSV to standard output for ``-``."""
    body = _encoded(table, Path(path).suffix.lower() if path != STDOUT else ".csv")
    if path == STDOUT:
        emit(body)
    else:
        write_whole(path, body)


def emit(body: bytes) -> None:
    """Write all of ``body`` to standard output, which takes it piece by piece if it is unbuffered."""
    sys.stdout.flush()
    left = memoryview(body)
    while left:
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()


def emit_document(document: Mapping[str, Any]) -> None:
    """Write one JSON document to standard output."""
    emit(json.dumps(plain({"exanova": __version__, **document}), allow_nan=False).encode() + b"\n")


def plain(value: Any) -> Any:
    """The value as JSON: dictionaries, lists, text, finite numbers, and null for everything else.

    >>> plain({"a": np.array([1.0, np.nan]), "b": (np.int64(2), "x")})
    {'a': [1.0, None], 'b': [2, 'x']}
    """
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, str | float):
        return with_options(value) if isinstance(value, str) else value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return value


def decomposition_document(anova: Any, effects: int) -> dict[str, Any]:
    """What ``explain`` and ``show`` print: fit, certificate, importances, strongest effects."""
    return {
        "game": GAME,
        "outputs": anova.output_names_,
        "mean": anova.intercept_,
        "rows": anova.plan_.rows,
        "distinct_rows": anova.plan_.distinct_rows,
        "certificate": certificate_document(anova.certificate_),
        "plan": plan_document(anova.plan_),
        "selection": anova.selection_,
        "importance": importance_records(anova.decomposition_),
        "net_shares": importance_records(anova.decomposition_, "variance"),
        "verdicts": verdicts(anova.decomposition_),
        "strongest_effects": strongest(anova, effects),
        "provenance": anova.provenance_,
    }


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan with the expected time."""
    return {**plain(plan), "seconds": plan.seconds}


def certificate_document(measured: Certificate) -> dict[str, Any]:
    """The certificate and its verdicts."""
    verdicts = {
        "holds": measured.holds,
        "cancels": measured.cancels,
        "exact": measured.exact,
        "unique": measured.unique,
    }
    return {**verdicts, **plain(measured)}


def strongest(anova: Any, count: int) -> list[dict[str, Any]]:
    """The subsets with the largest squared norm, summed over outputs."""
    state = anova.decomposition_
    norms = shown_norms(state.family, state.values)
    order = np.argsort(-norms[1:].sum(axis=1), kind="stable")[:count] + 1
    errors = norm_errors(state)
    return [
        {
            "features": state.schema.names(state.family.subsets[s]),
            "squared_norm": norms[s],
            "stderr": None if errors is None else np.where(norms[s] > 0, errors[s], np.nan),
        }
        for s in order.tolist()
    ]


def norm_errors(state: Any) -> Any:
    """(S, m) standard errors of squared norms, where they are known or cheap to compute."""
    return importance_stderr(state.family, state.uncertainty, "l2", "subset") if can_compute(state) else None


def known_errors(effect: Effect) -> Any:
    """(c, m) standard errors of an effect, where they are known or cheap to compute."""
    return effect.stderr if effect.knowledge is not None and effect.knowledge.cheap else None


def effect_document(effect: Effect) -> dict[str, Any]:
    """The table of one effect."""
    errors = known_errors(effect)
    return {
        "features": effect.features,
        "outputs": effect.output_names,
        "squared_norm": effect.norm2,
        "identified": effect.identified,
        "cells": [
            {
                "levels": levels,
                "probability": effect.probability[c],
                "rows": effect.rows[c],
                "values": effect.values[c],
                "stderr": None if errors is None else errors[c],
                "model_mean": effect.model_mean[c],
            }
            for c, levels in enumerate(effect.levels)
        ],
    }


def comparison_document(comparison: Comparison, count: int) -> dict[str, Any]:
    """The largest changes."""
    return {
        "game": comparison.game,
        "outputs": comparison.schema.outputs,
        "changes": comparison.changes[:count],
        "notes": comparison.notes,
    }


def shapley_table(explanation: Explanation, residual: FloatArray | None = None) -> Any:
    """``row``, ``base_value``, the features, ``fitted``, ``outside_support``; the middle ones once per output.

    The base value and the features add up to ``fitted``; (n, m) residuals, if given, come after it. With several
    outputs the names of these columns begin with the output and a colon.
    """
    schema = explanation.schema
    n, d, m = len(explanation), len(schema.features), len(schema.outputs)
    values, base = np.reshape(explanation.values, (n, d, m)), np.reshape(explanation.base_values, (n, m))
    own = [before + name for before in _prefixes(schema) for name in schema.features]
    columns: dict[str, Any] = {_free("row", own): np.arange(n)}
    for k, before in enumerate(_prefixes(schema)):
        columns[_free(f"{before}base_value", own, columns)] = base[:, k]
        columns.update({free_name(before + name, columns): values[:, i, k] for i, name in enumerate(schema.features)})
        columns[_free(f"{before}fitted", own, columns)] = base[:, k] + values[:, :, k].sum(axis=1)
        if residual is not None:
            columns[_free(f"{before}residual", own, columns)] = residual[:, k]
    columns[_free("outside_support", own, columns)] = explanation.outside
    return package("pyarrow").table(columns)


def interaction_table(interactions: Interactions, residual: FloatArray | None = None) -> Any:
    """``row``, ``subset``, ``order``, ``value`` (or one column per output), ``outside_support``.

    The subset ``(intercept)`` of order 0 is the base value, so that the lines of a row add up to its fitted part for
    efficient indices; its (n, m) residual, if given, is repeated on each of them.
    """
    schema, n = interactions.schema, len(interactions.values)
    m = len(schema.outputs)
    base = np.reshape(interactions.base_values, (n, 1, m))
    values = np.concatenate([base, np.reshape(interactions.values, (n, -1, m))], axis=1)
    subsets = [(), *interactions.subsets]
    columns: dict[str, Any] = {
        "row": np.repeat(np.arange(n), len(subsets)),
        "subset": [" x ".join(s) or INTERCEPT for s in subsets] * n,
        "order": np.tile([len(s) for s in subsets], n),
    }
    for k, name in enumerate(schema.value_columns):
        columns[free_name(name, columns)] = values[:, :, k].ravel()
    if residual is not None:
        for k, before in enumerate(_prefixes(schema)):
            columns[free_name(f"{before}residual", columns)] = np.repeat(residual[:, k], len(subsets))
    columns[free_name("outside_support", columns)] = np.repeat(interactions.outside, len(subsets))
    return package("pyarrow").table(columns)


def with_columns(values: Any, added: Mapping[str, Any]) -> Any:
    """A table of values with columns of the input beside ``row``, whose numbers say which cell belongs to a line."""
    for k, (name, column) in enumerate(added.items(), start=1):
        values = values.add_column(k, free_name(name, values.column_names), column.take(values.column(0)))
    return values


def _encoded(table: Any, suffix: str) -> bytes:
    sink = io.BytesIO()
    if suffix == ".parquet":
        package("pyarrow.parquet").write_table(table, sink)
    elif suffix == ".feather":
        package("pyarrow.feather").write_feather(table, sink)
    else:
        csv = package("pyarrow.csv")
        csv.write_csv(harmless_table(table), sink, csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ","))
    return sink.getvalue()


def _check_suffix(target: Target) -> None:
    if target.suffixes and Path(target.path).suffix.lower() not in target.suffixes:
        raise InputError(
            f"{target.option} {target.path!r} was given; expected a name ending in {', '.join(target.suffixes)}."
        )


def _check_writable(target: Target) -> None:
    """Make a temporary file beside the target, which fails where the target would."""
    folder = Path(target.path).parent
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".exanova-"):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileWriteError(
            f"{target.option} {target.path!r} cannot be written: {str(folder)!r}: {reason}."
        ) from error


def _identity(path: str) -> str:
    return os.path.realpath(path)


def _prefixes(schema: Schema) -> list[str]:
    return [""] if schema.single else [f"{name}:" for name in schema.outputs]


def _free(name: str, own: Sequence[str], columns: Sequence[str] | dict[str, Any] = ()) -> str:
    """A name that no feature has."""
    return free_name(name, {*own, *columns})
