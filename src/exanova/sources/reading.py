"""A source read in two passes: its levels and its distinct rows with their values, as a table in memory gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from exanova.data.draws import Draws, Kind, refuse_crossing, weight_kind
from exanova.data.encoding import Encoding
from exanova.data.every_column import EveryColumn
from exanova.data.feature import FeatureLevels
from exanova.data.fingerprint import fingerprint
from exanova.data.joining import Most, join_levels
from exanova.data.learning import Notes, learn_feature
from exanova.data.levels import sort_levels
from exanova.data.observe import Observation, new_codes
from exanova.data.packing import pack_rows, unpack_rows
from exanova.data.rules import MANY, NBins, check_rules
from exanova.data.sample import Sample
from exanova.data.scaling import Scaling, scaling_between
from exanova.data.support import Support
from exanova.data.table import Table, installed_kind
from exanova.data.trees import read_splits
from exanova.data.values import ModelValues, is_model, means_from_sums
from exanova.data.weights import LARGEST_TOTAL
from exanova.errors import InputError, MemoryLimitError
from exanova.messages import Parameter
from exanova.progress import Progress
from exanova.sources.opening import open_source
from exanova.sources.parts import Part, Roles, Source, find_roles
from exanova.sources.passes import (
    Block,
    Caller,
    ColumnCounter,
    Counted,
    RowCounter,
    Rows,
    fold,
    merge_counted,
    merge_rows,
    outputs_of,
    read_blocks,
)
from exanova.sources.tally import Tally, onto, together
from exanova.sources.value_counts import counted
from exanova.typing import Codes, FloatArray, IntArray

T = TypeVar("T")

COPIES_OF_TALLY = 4
"""Copies of the counted rows that are in memory while they are merged with others."""


class Engine(Protocol):
    """Who runs the tasks of a pass."""

    def __call__(
        self,
        task: Callable[[Part], T | None],
        parts: Sequence[Part],
        merge: Callable[[Sequence[T]], T],
        progress: Progress,
    ) -> T | None:
        """What the task finds in every part, merged."""


@dataclass(frozen=True)
class SourceOptions:
    """How a source is read.

    Attributes:
        min_frequency, n_bins, strategy: rules for levels.
        response_method, batch_size, output_names: how a model is called.
        weights: what ``sample_weight`` means for standard errors.
        memory_limit: bytes.
    """

    min_frequency: float | None = None
    n_bins: NBins = "auto"
    strategy: str = "quantile"
    response_method: str = "auto"
    batch_size: int | None = None
    output_names: Sequence[str] | None = None
    weights: Literal["auto", "frequency", "probability"] = "auto"
    memory_limit: int = 2**62


@dataclass(frozen=True, eq=False)
class SourceReading:
    """A source that was read: what :class:`exanova.data.observe.Reading` and its observation are for a table.

    Attributes:
        encoding: the levels of every feature.
        support: the r distinct encoded rows with their weights.
        n_rows: number of rows that were read.
        model_calls: rows a model was called on.
        observation: the same rows with their values; without values if no model was given.
        again: the same rows with other levels, of which each holds some of the present ones.
        entries: codes (d, k), outputs (k, m) and weights (k,) of the rows behind the distinct ones.
        is_distribution: never, of rows that are read.
    """

    encoding: Encoding
    support: Support
    n_rows: int
    model_calls: int
    observation: Observation
    again: Callable[[Sequence[FeatureLevels]], SourceReading]
    entries: Callable[[], tuple[Codes, FloatArray, NDArray[Any]]]
    is_distribution: bool = False

    def joined(self, chosen: Mapping[int, Most]) -> SourceReading:
        """The same rows with the levels of the columns ``chosen`` joined by the outputs."""
        return self.again(join_levels(self.encoding.features, chosen, *self.entries()))

    @property
    def sample(self) -> Sample:
        """The distinct rows."""
        return self.observation.sample


def here(
    task: Callable[[Part], T | None], parts: Sequence[Part], merge: Callable[[Sequence[T]], T], progress: Progress
) -> T | None:
    """Run the tasks of a pass in this process, one after the other."""

    def each() -> Iterator[T | None]:
        for part in parts:
            yield task(part)
            progress.step(1)

    return fold(each(), merge)


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
        named: the columns given as ``sample_weight``, ``clusters`` and ``strata``.
        progress: shows how far it is.
        engine: runs the tasks of both passes.
    """
    source = open_source(X)
    if named.get("replicate_weights") is not None:
        raise InputError(
            "replicate_weights= are not read in blocks",
            remedy="Read the rows into memory, or give clusters= and strata=",
        )
    asked = (named.get(parameter) for parameter in ("sample_weight", "clusters", "strata"))
    roles = find_roles(source.names, source.label, output_columns(model), *asked)
    progress.phase("counting values", len(source.parts))
    found = engine(ColumnCounter(roles), source.parts, merge_counted, progress)
    if found is None or not found.columns:
        raise InputError(f"{source.label} holds no row of positive weight; at least one is needed.")
    encoding = learn_levels(found, roles, options, model)
    counter = _counter(found, roles, encoding, options, model, source)
    parts = [kept if kept is not None else part for kept, part in zip(found.kept, source.parts, strict=True)]
    progress.phase("counting rows", len(parts))
    rows = engine(counter, parts, LimitedMerge(options.memory_limit), progress)
    if rows is None:
        raise InputError(f"{source.label} changed while it was read; fit again on files that nothing writes to.")
    return _reading(rows, found, counter, options, model, source)


def read_outputs(
    X: Any, model: Any, encoding: Encoding, response_method: str, batch_size: int | None, progress: Progress
) -> Iterator[tuple[Block, FloatArray]]:
    """Blocks of further rows with the columns that were fitted, and (n, m) what the model says there."""
    source = open_source(X)
    outputs = output_columns(model)
    absent = [name for name in (*encoding.names, *outputs) if name not in source.names]
    if absent:
        raise InputError(f"{source.label} has no column {', '.join(map(repr, absent))}, which the fit used.")
    called = Caller(model, _model_kind(source), response_method, batch_size, None)
    progress.phase("reading other rows", len(source.parts))
    for part in source.parts:
        for block in read_blocks(part, Roles(encoding.names, outputs)):
            features = replace(block, table=block.table.select(encoding.names))
            yield features, outputs_of(block.table, outputs) if outputs else called(encoding, features.table).values
        progress.step(1)


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


def learn_levels(found: Counted, roles: Roles, options: SourceOptions, model: Any) -> Encoding:
    """The levels of every feature, from the counts of its values."""
    rules = check_rules(Table(roles.features, "pyarrow", None), options.min_frequency, options.n_bins, options.strategy)
    splits = read_splits(model, roles.features) if options.strategy == "model" else None
    features, notes, wrong = [], Notes(), EveryColumn()
    for name in roles.features:
        own = counted(name, found.columns[name], _whole(found))
        with wrong.noted():
            features.append(learn_feature(own, found.total, rules, splits, notes))
    wrong.give()
    notes.give()
    return Encoding(tuple(features))


@dataclass(frozen=True)
class LimitedMerge:
    """Merges rows that were counted, and refuses before they take more memory than they may."""

    limit: int

    def __call__(self, several: Sequence[Rows]) -> Rows:
        """What was found in all rows."""
        needed = COPIES_OF_TALLY * sum(rows.tally.n_bytes for rows in several)
        if needed > self.limit:
            rows = sum(len(one.tally) for one in several)
            raise MemoryLimitError(
                f"some {rows:,} distinct rows were counted so far, and merging them takes about "
                f"{needed / 1e6:,.0f} MB; the memory limit is {self.limit / 1e6:,.0f} MB",
                remedy=[
                    "Use fewer bins (",
                    Parameter("n_bins"),
                    "), merge rare levels (",
                    Parameter("min_frequency"),
                    "), leave columns out, or give a larger ",
                    Parameter("memory_limit"),
                ],
            )
        return merge_rows(several)


def _whole(found: Counted) -> bool:
    return found.whole and found.total <= LARGEST_TOTAL


def _counter(
    found: Counted, roles: Roles, encoding: Encoding, options: SourceOptions, model: Any, source: Source
) -> RowCounter:
    units = []
    for name in roles.units:
        counts = found.columns[name]
        if counts.missing:
            raise InputError(f"the column {name!r} of clusters or strata has no label in some rows; fill it.")
        levels = sort_levels(counted(name, counts, whole=False).values)
        units.append({level: code for code, level in enumerate(levels)})
    called = None
    if is_model(model):
        called = Caller(model, _model_kind(source), options.response_method, options.batch_size, options.output_names)
    frequency = weight_kind(options.weights, _whole(found)) == "frequency"
    many = max(encoding.sizes) > MANY  # levels that may be joined
    apart = bool(roles.outputs) and (many or not encoding.is_lossless)
    return RowCounter(roles, encoding, tuple(units), frequency, called, apart)


def _model_kind(source: Source) -> str:
    """The library of the tables that a model receives: that of a lazy frame, else pandas if it is installed."""
    return source.kind if source.kind != "pyarrow" else "pandas" if installed_kind("pandas") == "pandas" else "pyarrow"


def _reading(
    rows: Rows, found: Counted, counter: RowCounter, options: SourceOptions, model: Any, source: Source
) -> SourceReading:
    encoding, tally = counter.encoding, rows.tally
    codes = unpack_rows(tally.words, counter.sizes)
    d = len(encoding.features)
    words = pack_rows(codes[:d], encoding.sizes) if counter.units else tally.words
    main = together(onto(tally, words) if counter.units else tally)
    group = _group_of(words)
    weight = main.weight.astype(np.int64) if _whole(found) else main.weight
    support = Support.from_distinct(encoding, unpack_rows(main.words, encoding.sizes), weight)
    scaling = _scaling(main)
    values, within = _means(main, scaling)
    noise = _noise(rows, encoding, weight, within, scaling, counter)
    kind: Kind = "frequency" if counter.counts else "probability"
    draws = _draws(tally, codes[d:], group, kind, scaling, counter, noisy=bool(within.any()))
    sample = Sample(
        support.codes,
        weight,
        support.sizes,
        values,
        found.rows,
        within=within if within.any() else None,
        noise=noise,
        scaling=scaling,
        draws=draws,
        in_blocks=True,
        counted=sum(len(found.columns[feature.name]) for feature in encoding.features if feature.edges),
    )
    given = rows.given or _named_outputs(counter.roles, model, options)
    fitted = (group, tally.weight, tally.lowest)
    digest = fingerprint(encoding, support.codes, *fitted)
    seen = Observation(encoding, support, sample, given, installed_kind(source.kind), digest)

    def again(features: Sequence[FeatureLevels]) -> SourceReading:
        recoded = codes.astype(np.int64)
        for row, old, new in zip(recoded, encoding.features, features, strict=False):
            row[:] = row if new is old else new_codes(old, new)[row]
        other = replace(counter, encoding=Encoding(tuple(features)))
        moved = onto(tally, pack_rows(recoded, other.sizes))
        return _reading(replace(rows, tally=moved), found, other, options, model, source)

    def entries() -> tuple[Codes, FloatArray, NDArray[Any]]:
        own = codes[:d].astype(np.int64)
        whole = tally.weight.astype(np.int64) if _whole(found) else tally.weight
        if tally.is_apart:
            return own, tally.lowest, whole
        means, within = _means(tally, Scaling(np.zeros(tally.lowest.shape[1]), np.ones(tally.lowest.shape[1])))
        spread = np.sqrt(within)
        halves = [tally.weight / 2.0] * 2
        return np.tile(own, 2), np.concatenate([means - spread, means + spread]), np.concatenate(halves)

    calls = 0 if rows.given is None else rows.given.calls
    return SourceReading(encoding, support, found.rows, calls, seen, again, entries)


def _group_of(words: Any) -> IntArray:
    """(k,) which distinct row each is, of ascending words."""
    new = np.zeros(words.shape[1], dtype=np.int64)
    for word in words:
        new[1:] |= word[1:] != word[:-1]
    return np.cumsum(new)


def _scaling(main: Tally) -> Scaling:
    """The centre and the unit of every output."""
    assert main.first is not None
    first, mass, lowest = main.first.sum(axis=0), main.weight, main.lowest

    def mean_around(base: FloatArray) -> FloatArray:
        return np.asarray(base + (mass @ (lowest - base) + first) / mass.sum())

    return scaling_between(lowest.min(axis=0), main.highest, mean_around)


def _means(tally: Tally, scaling: Scaling) -> tuple[FloatArray, FloatArray]:
    """Normalised means (k, m) of the rows of a tally, and variances within them (k, m)."""
    assert tally.first is not None
    assert tally.second is not None
    unit = np.where(scaling.unit > 0, scaling.unit, np.inf)
    lowest = scaling.normalised(tally.lowest)
    return means_from_sums(tally.weight, lowest, tally.first / unit, tally.second / unit**2)


def _noise(
    rows: Rows, encoding: Encoding, weight: Any, within: FloatArray, scaling: Scaling, counter: RowCounter
) -> FloatArray | None:
    """(m,) mean variance between rows that are equal as they were given."""
    if counter.model is not None or not within.any():
        return None
    inside = np.asarray((weight / weight.sum()) @ within)
    if rows.raw is None:
        return inside
    unit = np.where(scaling.unit > 0, scaling.unit, np.inf)
    return np.asarray(rows.raw.noise(inside * scaling.unit**2) / unit**2)


def _draws(
    tally: Tally, units: Any, group: IntArray, kind: Kind, scaling: Scaling, counter: RowCounter, noisy: bool
) -> Draws | None:
    """How the rows were drawn; ``None`` where the weights of the distinct rows say everything."""
    labels = dict(zip(("cluster", "stratum"), (counter.roles.cluster, counter.roles.stratum), strict=True))
    found = iter(units.astype(np.int64))
    cluster, stratum = (None if name is None else next(found) for name in labels.values())
    if cluster is not None and stratum is not None:
        refuse_crossing(cluster, stratum)
    if cluster is None and stratum is None and kind == "frequency" and not noisy:
        return None
    weight = tally.weight
    if tally.is_apart:
        values = scaling.normalised(tally.lowest) if noisy else None
        return Draws(group, weight, kind, values, cluster, stratum, copies=tally.copies)
    means, within = _means(tally, scaling)
    copies = None if tally.squares is None else weight**2 / tally.squares
    if not noisy or cluster is not None:
        return Draws(group, weight, kind, means if noisy else None, cluster, stratum, copies=copies)
    spread = np.sqrt(within)
    twice = np.concatenate([np.arange(len(weight))] * 2)
    return Draws(
        group[twice],
        weight[twice] / 2.0,
        kind,
        np.concatenate([means - spread, means + spread]),
        None,
        None if stratum is None else stratum[twice],
        copies=None if copies is None else copies[twice] / 2.0,
    )


def _named_outputs(roles: Roles, model: Any, options: SourceOptions) -> ModelValues:
    """Names of the outputs that were read: those given, else those of the columns."""
    names = roles.outputs
    if options.output_names is not None:
        given = options.output_names
        own = (given,) if isinstance(given, str) else tuple(map(str, given))
        if len(own) != len(names) or len(set(own)) != len(own):
            raise InputError(
                Parameter("output_names", list(own)),
                f" were given for {len(names)} output(s)",
                expected="one different name per output",
            )
        names = own
    empty = np.zeros((0, len(names)))
    return ModelValues(empty, names, isinstance(model, str), empty, 0)
