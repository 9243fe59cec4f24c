"""What each command does, once its options are read: files in, the library, files and a screen out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exanova import parallel
from exanova.cli import documents, options
from exanova.cli.columns import Choice, check_columns, divide
from exanova.cli.kinds import kinds_of, learned_kinds
from exanova.cli.libraries import check_installed
from exanova.cli.models import Model, load_model
from exanova.cli.output import STDOUT, TABLES, Target, Targets, emit, write_table
from exanova.cli.screen import Screen, busy
from exanova.cli.tables import STDIN, Reading, read_table
from exanova.cli.values import interaction_table, shapley_table
from exanova.errors import InputError
from exanova.estimator import FunctionalANOVA, load
from exanova.report import FORMATS
from exanova.show.records import rounding
from exanova.solve.plan import Plan


@dataclass(frozen=True)
class Fit:
    """Options of a fit, as text where their meaning depends on the columns.

    Attributes:
        max_order, interactions, n_bins, min_frequency, memory_limit: as they were typed.
        others: parameters of the library that need no reading.
    """

    max_order: str = "2"
    interactions: tuple[str, ...] = ()
    n_bins: tuple[str, ...] = ()
    min_frequency: str | None = None
    memory_limit: str | None = None
    others: dict[str, Any] = field(default_factory=dict)

    def estimator(self, features: Sequence[str]) -> FunctionalANOVA:
        """The estimator these options ask for, of these features."""
        return FunctionalANOVA(
            max_order=options.order(self.max_order),
            interactions=options.subsets(self.interactions, features),
            n_bins=options.bins(self.n_bins, features),
            min_frequency=options.frequency(self.min_frequency),
            memory_limit=options.memory(self.memory_limit),
            **self.others,
        )


@dataclass(frozen=True)
class Job:
    """What ``explain`` was asked for.

    Attributes:
        data: path of the table.
        reading: how tables are read.
        choice: which columns are what.
        fit: how it is decomposed.
        model, trust_pickle: the model, if there is no prediction.
        output_names: names of the outputs, as typed.
        eval: a share of the rows or a file to judge the fit by.
        report, save: files to write.
        title: heading of the report.
        force, json, quiet: how to write and to speak.
        effects: number of effects to list.
        words: what was typed.
    """

    data: str
    reading: Reading
    choice: Choice
    fit: Fit
    model: str | None = None
    trust_pickle: bool = False
    output_names: str | None = None
    eval: str | None = None
    report: str | None = None
    save: str | None = None
    title: str | None = None
    force: bool = False
    json: bool = False
    quiet: bool = False
    effects: int = 10
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wish:
    """What ``rows`` was asked for: where to write, which index up to which order, and how to speak."""

    output: str
    index: str
    order: int
    force: bool
    json: bool
    quiet: bool


def explain(job: Job) -> None:
    """Decompose a model over a table; report, save, show."""
    share = None if job.eval is None else options.eval_share(job.eval)
    held_out = job.eval if share is None else None
    _check_inputs(job, held_out)
    wanted = [] if job.save is None else [Target("--save", job.save)]
    targets = Targets([*wanted, *_reports(job.report)], [job.data, held_out, job.model], job.force)
    with _only_results_on_stdout(job.json):
        anova, rows, outputs = _fit(job, share, held_out)
        about = {"Data": Path(job.data).name} | ({"Model": job.model} if job.model else {})
        targets.write("--save", anova.save)
        with busy("writing the report", job.quiet):
            targets.write(
                "--report", lambda path: anova.report(path, X=rows, model=outputs, title=job.title, about=about)
            )
    if job.json:
        files = {"report": job.report, "save": job.save}
        emit(documents.written({**documents.decomposition(anova, job.effects), "files": files}))
    elif not job.quiet:
        screen = Screen()
        screen.decomposition(anova, job.effects)
        screen.files([(w, p) for w, p in (("report", job.report), ("decomposition", job.save)) if p is not None])
        screen.next_commands(_after_explain(job, anova))


def rows(saved: str, data: str, reading: Reading, wish: Wish, rules: dict[str, Any]) -> None:
    """Values of new rows by a saved decomposition."""
    to_file = [Target("--output", wish.output, TABLES)] if wish.output != STDOUT else []
    targets = Targets(to_file, [saved, data], wish.force)
    anova = load(saved).set_params(**rules)
    with busy(f"reading {_shown(data)}", wish.quiet):
        table = read_table(data, reading, learned_kinds(anova))
    check_columns(table, list(anova.feature_names_in_), _shown(data))
    values, outside = _values(anova, table, wish)
    summary = {"rows": table.num_rows, "outside_support": outside, "index": wish.index}
    if to_file:
        targets.write("--output", lambda path: write_table(path, values))
    if wish.json:
        emit(documents.written(summary | ({"output": wish.output} if to_file else {"values": values.to_pylist()})))
    elif not to_file:
        write_table(STDOUT, values)
    elif not wish.quiet:
        Screen().files([(f"{wish.index} of {table.num_rows:,} rows, {outside:,} outside the support", wish.output)])


def show(saved: str, effects: int, names: Sequence[str], report: str | None, force: bool, json: bool) -> None:
    """A saved decomposition, or some of its effects."""
    targets = Targets(_reports(report), [saved], force)
    anova = load(saved)
    features = list(anova.feature_names_in_)
    chosen = [anova.effects_[options.subset(name, features, "--effect")] for name in names]
    targets.write("--report", anova.report)
    if json:
        tables = {"effects": [documents.effect(effect) for effect in chosen]} if chosen else {}
        emit(documents.written({**documents.decomposition(anova, effects), **tables}))
        return
    screen = Screen()
    if not chosen:
        screen.decomposition(anova, effects)
    for effect in chosen:
        screen.effect(effect, rounding(anova.decomposition_))
    screen.files([("report", report)] if report else [])


def compare(before: str, after: str, count: int, json: bool) -> None:
    """Two saved decompositions of the same columns."""
    found = load(before).compare(load(after))
    if json:
        emit(documents.written(documents.comparison(found, count)))
    else:
        Screen().comparison(found, count)


def plan(data: str, reading: Reading, choice: Choice, fit: Fit, json: bool) -> None:
    """What ``explain`` would do with this table, without doing it."""
    parts = divide(read_table(data, reading), choice, _shown(data))
    found: Plan = fit.estimator(parts.features.column_names).plan(
        parts.features, sample_weight=parts.weight, n_outputs=max(1, len(parts.names))
    )
    if json:
        emit(documents.written({"plan": documents.plan(found)}))
    else:
        Screen().plan(found)


def _check_inputs(job: Job, held_out: str | None) -> None:
    if (job.model is None) == (not job.choice.prediction):
        raise InputError(
            "give either --prediction COLUMN, if the table holds what the model says, or --model MODEL, to ask it."
        )
    if job.data == held_out == STDIN:
        raise InputError("standard input can be read once; give a file to --eval, or a share such as 0.2.")
    if job.output_names is not None and job.choice.prediction:
        raise InputError("--output-names names the outputs of a --model; predictions are named by their columns.")


def _reports(path: str | None) -> list[Target]:
    """The report, if there is to be one and everything is there to make it."""
    if path is None:
        return []
    if Path(path).suffix.lower() in (".html", ".htm"):
        check_installed(("altair", "jinja2", "vl_convert"), f"--report {path}")
    return [Target("--report", path, tuple(FORMATS))]


def _fit(job: Job, share: float | None, held_out: str | None) -> tuple[FunctionalANOVA, Any, Any]:
    """The decomposition, and the rows and the model (or its outputs there) that a report may show."""
    with busy(f"reading {_shown(job.data)}", job.quiet):
        model = _model(job)
        table = read_table(job.data, job.reading)
    wanted = None if model is None else model.wanted(table.column_names)
    data = divide(table, job.choice, _shown(job.data), wanted)
    names = options.output_names(job.output_names) if model is not None else list(data.names)
    anova = job.fit.estimator(data.features.column_names)
    anova.fit(
        data.features,
        data.predictions if model is None else model,
        sample_weight=data.weight,
        output_names=names,
        eval_set=share if held_out is None else _held_out(job, held_out, data.features, model),
    )
    if share is not None:
        return anova, None, None  # the rows that were held out are not among those of the fit
    counted = data.counted()
    return anova, counted.features, counted.predictions if model is None else model


def _held_out(job: Job, path: str, features: Any, model: Model | None) -> tuple[Any, Any]:
    """Rows to judge the fit by, read alike, and the model or the predictions there."""
    table = read_table(path, job.reading, kinds_of(features))
    apart = divide(table, Choice(prediction=job.choice.prediction), _shown(path), features.column_names)
    return apart.features, apart.predictions if model is None else model


def _values(anova: FunctionalANOVA, table: Any, wish: Wish) -> tuple[Any, int]:
    """The values of all rows as a pyarrow table, and how many rows lie outside the support."""
    if wish.index == "SV":
        explained = anova.explain(table)
        return shapley_table(explained), int(explained.outside.sum())
    found = anova.interactions(table, index=wish.index, order=wish.order)
    return interaction_table(found), int(found.outside.sum())


def _model(job: Job) -> Model | None:
    if job.model is None:
        return None
    threads = parallel.thread_count(job.fit.others.get("n_jobs"))
    return load_model(job.model, job.trust_pickle, threads)


@contextmanager
def _only_results_on_stdout(json: bool) -> Iterator[None]:
    """With ``--json`` send what a model prints to standard error, so that the document stands alone."""
    if not json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def _after_explain(job: Job, anova: FunctionalANOVA) -> list[tuple[str, list[str]]]:
    """Commands that go on from here."""
    if job.save is None:
        again = ["exanova", *job.words, "--save", "model.exanova", *(["--force"] if job.report else [])]
        return [("keep the decomposition, to show it, compare it and explain rows with it", again)]
    rows = ["exanova", "rows", job.save, job.data, *job.reading.words(), "--output"]
    found = [("Shapley values of rows", [*rows, "values.csv"])]
    for strongest in documents.strongest(anova, 1):
        effect = ":".join(strongest["features"])
        found.insert(0, ("the strongest effect, level by level", ["exanova", "show", job.save, "--effect", effect]))
    if job.report is None:
        return [*found, ("a report for the browser", ["exanova", "show", job.save, "--report", "report.html"])]
    return [*found, ("interactions of pairs, row by row", [*rows, "pairs.csv", "--index", "k-SII"])]


def _shown(path: str) -> str:
    return "standard input" if path == STDIN else repr(path)
