"""The input of a fit as rows: from a table or a source, with many levels joined, before the model is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from exanova.data.draws import do_not_look_like_counts, plan_draws
from exanova.data.link import linked_rows
from exanova.data.named_columns import take_named
from exanova.data.observe import Observation, Reading, read_rows
from exanova.data.repeating import with_second_call
from exanova.data.values import ModelValues, is_model
from exanova.design.memory import resolve_limit
from exanova.errors import WeightsWarning
from exanova.messages import Parameter, Words
from exanova.other_rows.many_levels import Joined, fit_apart, join_many_levels, join_source, to_join
from exanova.progress import Progress
from exanova.queries.query import seed_of
from exanova.sources.cluster import engine_of
from exanova.sources.observed import SourceReading
from exanova.sources.opening import is_source
from exanova.sources.reading import SourceOptions, read_source
from exanova.warned import warn

LEVEL_RULES = ("min_frequency", "n_bins", "strategy")
"""Parameters that control how columns become levels."""


@dataclass(frozen=True, eq=False)
class Given:
    """Arguments of ``fit``, which documents them; ``design`` has clusters, strata and replicate weights."""

    X: Any
    model: Any = None
    sample_weight: Any = None
    output_names: Sequence[str] | None = None
    weights: Any = "auto"
    design: Mapping[str, Any] = field(default_factory=dict)
    eval_set: Any = None

    @property
    def columns(self) -> dict[str, Any]:
        """What may be given as the name of a column."""
        return {"sample_weight": self.sample_weight, **self.design}


Read = tuple[Joined | None, Callable[[], Observation]]
"""Rows with their levels joined, and how to observe the model at them; no rows if the fit was made already."""


def read_given(given: Given, parameters: Mapping[str, Any], fit: Callable[..., Any], progress: Progress) -> Read:
    """Read the rows of a table or a source; ``fit`` fits the same estimator to some of the rows, if that is needed."""
    if is_source(given.X):
        return _read_in_blocks(given, parameters, progress)
    return _read_in_memory(given, parameters, fit, progress)


def _read_in_blocks(given: Given, parameters: Mapping[str, Any], progress: Progress) -> Read:
    options = SourceOptions(
        **level_rules(parameters),
        response_method=parameters["response_method"],
        batch_size=parameters["batch_size"],
        output_names=given.output_names,
        weights=given.weights,
        memory_limit=resolve_limit(parameters["memory_limit"]),
        link=parameters["link"],
    )
    engine = engine_of(parameters["engine"])
    reading = read_source(given.X, given.model, options, given.columns, progress, engine)
    share = given.eval_set if isinstance(given.eval_set, float) else None
    joined = join_source(reading, dict(parameters), share, progress)
    assert isinstance(joined.rows, SourceReading)
    rows = joined.rows

    def observe() -> Observation:
        if rows.counts.surveyed and _may_be_surveyed(given, parameters["sampled"]):
            _warn_of_counts(rows.counts.surveyed, float(rows.support.weight.sum()))
        return rows.observation

    return joined, observe


def _read_in_memory(given: Given, parameters: Mapping[str, Any], fit: Callable[..., Any], progress: Progress) -> Read:
    X, model, named, names = take_named(given.X, given.model, given.columns)
    rows = read_rows(X, sample_weight=named.pop("sample_weight"), model=model, **level_rules(parameters))
    drawn = plan_draws(rows.weight, rows.kept, rows.n_rows, rows.index, weights=given.weights, **named)
    rows = replace(rows, clusters=0 if drawn.cluster is None else int(drawn.cluster.max()) + 1)
    outputs, link = names if given.output_names is None else given.output_names, parameters["link"]
    asked = (model, parameters["response_method"], parameters["batch_size"], outputs, progress)
    called = partial(_called_twice, rows, *asked)
    read, chosen = Joined(rows), to_join(rows, dict(parameters)) if model is not None else {}
    if chosen and isinstance(given.eval_set, float):
        values, seed = called(), seed_of(parameters["random_state"])
        fit_apart(partial(fit, weights=given.weights), rows, values, given.eval_set, seed, drawn)
        return None, partial(rows.sampled, values)
    if chosen:
        read = join_many_levels(rows, linked_rows(rows, called(), link), chosen, drawn.kind, progress)

    def observe() -> Observation:
        if _may_be_surveyed(given, parameters["sampled"]) and _look_surveyed(rows, model):
            _warn_of_counts(len(rows.weight), float(rows.weight.sum()))
        values = linked_rows(rows, called(), link) if read.values is None else read.values
        assert isinstance(read.rows, Reading)
        return read.rows.sampled(values, drawn)

    return read, observe


def _called_twice(rows: Reading, model: Any, response_method: str, batch_size: int | None, *more: Any) -> ModelValues:
    """The values of a model at each distinct row, and whether it repeats them; or the outputs given for each row."""
    values = rows.model_values(model, response_method, batch_size, *more)
    if not values.calls:
        return values
    return with_second_call(values, model, rows.table, rows.first, response_method, batch_size)


def _may_be_surveyed(given: Given, sampled: Any) -> bool:
    """Whether the kind of the weights was not given, so that whole ones are taken as counts."""
    return given.sample_weight is not None and given.weights == "auto" and sampled is not False


def _look_surveyed(rows: Reading, model: Any) -> bool:
    """Whether whole weights of rows in memory do not look like counts of rows."""
    outputs = None if is_model(model) else rows.model_values(model).values
    return do_not_look_like_counts(rows.weight, rows.raw_group, outputs, rows.widest)


def _warn_of_counts(n: int, total: float) -> None:
    """Warn of whole weights of that many rows that were taken as counts, although they look like survey weights."""
    warn(
        Words(
            f"the weights are whole numbers and taken as counts: {n:,} rows stand for {int(total):,}. "
            "If they are survey weights or exposures, standard errors are far too small; say ",
            Parameter("weights", "probability"),
            ". If they are counts, say ",
            Parameter("weights", "frequency"),
            ".",
        ),
        WeightsWarning,
    )


def level_rules(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that control how columns become levels."""
    return {name: parameters[name] for name in LEVEL_RULES}
