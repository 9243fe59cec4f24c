"""A source read in two passes: its levels and its distinct rows with their values, as a table in memory gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from exanova.data.column_notes import Notes
from exanova.data.draws import weight_kind
from exanova.data.encoding import Encoding
from exanova.data.every_column import EveryColumn
from exanova.data.learning import learn_feature
from exanova.data.levels import sort_levels
from exanova.data.link import LINKS
from exanova.data.packing import word_places
from exanova.data.rules import MANY, NBins, check_rules
from exanova.data.table import Table, installed_kind
from exanova.data.trees import read_splits
from exanova.data.values import ModelValues, is_model
from exanova.data.weights import LARGEST_TOTAL, excess
from exanova.errors import InputError
from exanova.messages import Parameter, count_of
from exanova.progress import Progress
from exanova.sources.counting_passes import (
    Caller,
    ColumnCounter,
    Counted,
    CountedMerge,
    CountedRows,
    RowCounter,
    fold,
    merge_rows,
)
from exanova.sources.disk import give_back
from exanova.sources.linking import linked
from exanova.sources.observed import Counts, SourceReading, observed
from exanova.sources.opening import open_source
from exanova.sources.parts import Part, Roles, Source, find_roles
from exanova.sources.replicating import check_replicates, check_sums
from exanova.sources.runs import Runs
from exanova.sources.value_counts import counted, numbers_within

T = TypeVar("T")

KEPT_SHARE = 0.25
"""Fraction of the memory limit that the distinct rows of parts may take between the passes."""


class Engine(Protocol):
    """Runs the tasks of a pass."""

    def each(self, task: Callable[[Part], T | None], parts: Sequence[Part], progress: Progress) -> Iterator[T | None]:
        """The result of the task for every part, one after the other, in any order."""

    def __call__(
        self,
        task: Callable[[Part], T | None],
        parts: Sequence[Part],
        merge: Callable[[Sequence[T]], T],
        progress: Progress,
    ) -> T | None:
        """The result of the task for every part, merged."""


@dataclass(frozen=True)
class SourceOptions:
    """How a source is read.

    Attributes:
        min_frequency, n_bins, strategy: rules for levels.
        response_method, batch_size, output_names: how a model is called.
        weights: what ``sample_weight`` means for standard errors.
        memory_limit: bytes.
        link: the scale that outputs are brought to.
    """

    min_frequency: float | None = None
    n_bins: NBins = "auto"
    strategy: str = "quantile"
    response_method: str = "auto"
    batch_size: int | None = None
    output_names: Sequence[str] | None = None
    weights: Literal["auto", "frequency", "probability"] = "auto"
    memory_limit: int = 2**62
    link: str = "identity"


class Here:
    """Runs the tasks of a pass in this process, one after the other."""

    def each(self, task: Callable[[Part], T | None], parts: Sequence[Part], progress: Progress) -> Iterator[T | None]:
        """The result of the task for every part."""
        for part in parts:
            yield task(part)
            progress.step(1)

    def __call__(
        self,
        task: Callable[[Part], T | None],
        parts: Sequence[Part],
        merge: Callable[[Sequence[T]], T],
        progress: Progress,
    ) -> T | None:
        """The result of the task for every part, merged."""
        return fold(self.each(task, parts, progress), merge)


here = Here()
"""The local process."""


def read_source(
    X: Any,
    model: Any,
    options: SourceOptions,
    named: Mapping[str, Any],
    progress: Progress,
    engine: Engine = here,
) -> SourceReading:
    """Read a source: the levels of its columns, its distinct rows, and the model at these.

    Args:
        X: what ``open_source`` opens.
        model: the name of a column of predictions, a list of such names, a model to call, or ``None``.
        options: how to read it.
        named: the columns given as ``sample_weight``, ``clusters``, ``strata`` and ``replicate_weights``.
        progress: shows the progress.
        engine: runs the tasks of both passes.
    """
    source = open_source(X)
    replicates, scale = check_replicates(named)
    asked = (named.get(parameter) for parameter in ("sample_weight", "clusters", "strata"))
    roles = find_roles(source.names, source.label, output_columns(model), *asked, replicates=replicates)
    first_pass, roles = _count_values(source, roles, options, progress, engine)
    encoding = learn_levels(first_pass, roles, options, model)
    counter = _counter(first_pass, roles, encoding, options, model, source)
    parts = [kept if kept is not None else part for kept, part in zip(first_pass.kept, source.parts, strict=True)]
    give_back(first_pass.rows)
    progress.phase("counting rows", len(parts))
    rows = _count_rows(counter, parts, first_pass.distinct, options.memory_limit, progress, engine)
    if rows is None:
        raise InputError(f"{source.label} changed while it was read; fit again on files that nothing writes to.")
    check_sums(rows, replicates)
    given = rows.given or _named_outputs(roles, model, options)
    given = replace(given, output_names=tuple(map(LINKS[options.link].named, given.output_names)))
    passes = 1 if all(kept is not None for kept in first_pass.kept) else 2
    kind = installed_kind(source.kind)
    counted = sum(len(first_pass.columns[feature.name]) for feature in encoding.features if feature.edges)
    room = Runs(options.memory_limit).room
    surveyed = _surveyed(first_pass, roles)
    counts = Counts(
        first_pass.rows, _whole(first_pass), given, kind, scale, first_pass.distinct, passes, counted, room, surveyed
    )
    reading = observed(linked(rows, counter), counter, counts)
    give_back(first_pass.rows)
    return reading


def read_levels(source: Source, outputs: Sequence[str], weight: str | None, options: SourceOptions) -> Encoding:
    """The levels of the columns of a source, by the first pass alone."""
    roles = find_roles(source.names, source.label, outputs, weight)
    first_pass, roles = _count_values(source, roles, options, Progress(enabled=False), here, keep=False)
    return learn_levels(first_pass, roles, options, None)


def _count_values(
    source: Source, roles: Roles, options: SourceOptions, progress: Progress, engine: Engine, keep: bool = True
) -> tuple[Counted, Roles]:
    """The first pass, and the roles with what all weights are divided by."""
    progress.phase("counting values", len(source.parts))
    most = numbers_within(options.memory_limit, len(roles.features) + len(roles.units))
    counter = ColumnCounter(roles, most)
    counter = counter if keep else replace(counter, keep=False)
    first_pass = engine(counter, source.parts, CountedMerge(most), progress)
    if first_pass is None or not first_pass.columns:
        raise InputError(f"{source.label} holds no row of positive weight; at least one is needed.")
    first_pass = first_pass.within(KEPT_SHARE * options.memory_limit)
    return first_pass, replace(roles, divided=_excess(first_pass))


def _count_rows(
    counter: RowCounter, parts: Sequence[Part], distinct: int, limit: int, progress: Progress, engine: Engine
) -> CountedRows | None:
    """The rows of all parts, merged; on disk where about that many distinct ones take too much memory."""
    runs = Runs(limit)
    if engine is here:
        for part in parts:
            for rows in counter.blocks(part):
                runs.add(rows)
            progress.step(1)
        return runs.finish()
    if not runs.would_spill(distinct, len(counter.roles.outputs), len(word_places(counter.sizes))):
        return engine(counter, parts, merge_rows, progress)
    for counted_rows in engine.each(counter, parts, progress):
        if counted_rows is not None:
            runs.add(counted_rows)
    return runs.finish()


def output_columns(model: Any) -> tuple[str, ...]:
    """The columns that ``model`` names; empty for anything else."""
    if isinstance(model, str):
        return (model,)
    if isinstance(model, list | tuple) and model and all(isinstance(name, str) for name in model):
        return tuple(model)
    if model is None or is_model(model):
        return ()
    raise InputError(
        "rows that are read in blocks cannot be matched with an array of outputs",
        expected="the name of a column of predictions, a list of such names, or a model to call",
    )


def learn_levels(first_pass: Counted, roles: Roles, options: SourceOptions, model: Any) -> Encoding:
    """The levels of every feature, from the counts of its values."""
    rules = check_rules(Table(roles.features, "pyarrow", None), options.min_frequency, options.n_bins, options.strategy)
    splits = read_splits(model, roles.features) if options.strategy == "model" else None
    features, notes, wrong = [], Notes(), EveryColumn()
    for name in roles.features:
        own = counted(name, first_pass.columns[name], _whole(first_pass))
        with wrong.noted():
            features.append(learn_feature(own, first_pass.total, rules, splits, notes))
    wrong.give()
    notes.give(is_model(model))
    return Encoding(tuple(features))


def _excess(first_pass: Counted) -> int:
    """The power of two by which the weights of all rows are divided."""
    if not np.isfinite(first_pass.total):
        raise InputError("The weights add up to more than a float can hold; divide them by their maximum.")
    return excess(first_pass.total)


def _whole(first_pass: Counted) -> bool:
    return first_pass.whole and first_pass.total <= LARGEST_TOTAL


def _surveyed(first_pass: Counted, roles: Roles) -> int:
    """How many rows have whole weights that do not look like counts."""
    if roles.weight is None or not _whole(first_pass):
        return 0
    widest = max(len(first_pass.columns[name]) for name in roles.features)
    return (
        first_pass.weighed.rows if first_pass.weighed.look_surveyed(first_pass.total, widest, first_pass.sketch) else 0
    )


def _counter(
    first_pass: Counted, roles: Roles, encoding: Encoding, options: SourceOptions, model: Any, source: Source
) -> RowCounter:
    units = []
    for name in roles.units:
        counts = first_pass.columns[name]
        if counts.missing:
            raise InputError(f"the column {name!r} of clusters or strata has no label in some rows; fill it.")
        levels = sort_levels(counted(name, counts, whole=False).values)
        units.append({level: code for code, level in enumerate(levels)})
    called = None
    if is_model(model):
        called = Caller(model, model_kind(source), options.response_method, options.batch_size, options.output_names)
    frequency = weight_kind(options.weights, _whole(first_pass)) == "frequency"
    many = max(encoding.sizes) > MANY  # levels that may be joined
    apart = bool(roles.outputs) and (many or not encoding.is_lossless)
    room = Runs(options.memory_limit).room
    return RowCounter(roles, encoding, tuple(units), frequency, called, apart, options.link, room)


def model_kind(source: Source) -> str:
    """The library of the tables that a model receives: that of a lazy frame, else pandas if it is installed."""
    return source.kind if source.kind != "pyarrow" else "pandas" if installed_kind("pandas") == "pandas" else "pyarrow"


def _named_outputs(roles: Roles, model: Any, options: SourceOptions) -> ModelValues:
    """Names of the outputs that were read: those given, else those of the columns."""
    names = roles.outputs
    if options.output_names is not None:
        given = options.output_names
        own = (given,) if isinstance(given, str) else tuple(map(str, given))
        if len(own) != len(names) or len(set(own)) != len(own):
            raise InputError(
                Parameter("output_names", list(own)),
                f" were given for {count_of(len(names), 'output')}",
                expected="one different name per output",
            )
        names = own
    empty = np.zeros((0, len(names)))
    return ModelValues(empty, names, isinstance(model, str), empty, 0)
