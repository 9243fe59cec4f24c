"""The commands that decompose a model: read files, fit, write files and print results."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exanova import parallel
from exanova.apart.moments_file import is_moments
from exanova.cli import apart_commands, output, text
from exanova.cli.arguments import every
from exanova.cli.columns import Choice, divide, kinds_of
from exanova.cli.many_files import dask_client, fit_arguments, in_blocks, is_many, open_files
from exanova.cli.models import Model, load_model
from exanova.cli.output import Target, Targets, emit_document, report_targets
from exanova.cli.screen import Screen, busy
from exanova.cli.table_files import STDIN, ReadOptions, display_name, read_table
from exanova.design.memory import readable
from exanova.errors import InputError
from exanova.estimator import FunctionalANOVA
from exanova.infer.stored_errors import numbers_of
from exanova.messages import Parameter, Words
from exanova.show.error_bars import ERRORS_WORK, compute_errors
from exanova.solve.plan import Plan

AS_TYPED = ("selection", "strategy", "ties", "basis", "link", "route", "n_jobs")
"""Options that are parameters of the library as they are typed."""


@dataclass(frozen=True)
class FitOptions:
    """Options of a fit, as text if their meaning depends on the columns.

    Attributes:
        max_order, subsets, n_bins, min_frequency, memory_limit: as they were typed.
        others: parameters of the library.
        max_levels: as it was typed.
    """

    max_order: str = "2"
    subsets: tuple[str, ...] = ()
    n_bins: tuple[str, ...] = ()
    min_frequency: str | None = None
    memory_limit: str | None = None
    others: dict[str, Any] = field(default_factory=dict)
    max_levels: tuple[str, ...] = ()

    @classmethod
    def typed(cls, options: Mapping[str, Any], **others: Any) -> FitOptions:
        """The options of a fit among all ``options`` of a command, by name, and ``others`` of the library."""
        kept = {name: options[name] for name in AS_TYPED if name in options}
        kept |= {"max_terms": text.terms(options["max_terms"]), "shrinkage": text.shrinkage(options["shrinkage"])}
        kept |= {"sampled": "auto" if options["sampled"] is None else options["sampled"]}
        return cls(
            max_order=options["max_order"],
            subsets=every(options["subsets"], options["interactions"]),
            n_bins=every(options["n_bins"]),
            min_frequency=options["min_frequency"],
            memory_limit=options["memory_limit"],
            others=kept | others,
            max_levels=every(options["max_levels"]),
        )

    def estimator(self, features: Sequence[str]) -> FunctionalANOVA:
        """The estimator with these options, for these features."""
        return FunctionalANOVA(
            max_order=text.order(self.max_order),
            subsets=text.subsets(self.subsets, features),
            n_bins=text.bins(self.n_bins, features),
            min_frequency=text.frequency(self.min_frequency),
            max_levels=text.bins(self.max_levels, features, "--max-levels"),
            memory_limit=text.memory(self.memory_limit),
            **self.others,
        )


@dataclass(frozen=True)
class Job:
    """Options of ``explain``.

    Attributes:
        data: path of the table.
        reading: how to read tables.
        choice: roles of the columns.
        fit: how to decompose.
        model, trust_pickle: the model, if there are no predictions.
        output_names: names of the outputs, as typed.
        eval: fraction of the rows to hold out, or a file with held-out rows.
        report, save: files to write.
        covariances: whether the saved file holds the covariances of effects; ``None`` where they are small.
        title: title of the report.
        force, json, quiet: whether to replace files, and how to print.
        effects: number of effects to list.
        words: the command line.
        dask: address of a scheduler that reads the files, or ``None``.
        weights: what weights mean for standard errors.
    """

    data: str
    reading: ReadOptions
    choice: Choice
    fit: FitOptions
    model: str | None = None
    trust_pickle: bool = False
    output_names: str | None = None
    eval: str | None = None
    report: str | None = None
    save: str | None = None
    covariances: bool | None = None
    title: str | None = None
    force: bool = False
    json: bool = False
    quiet: bool = False
    effects: int = 10
    words: tuple[str, ...] = ()
    dask: str | None = None
    weights: Any = "auto"


def explain(job: Job) -> None:
    """Decompose a model over a table; report, save, show."""
    fraction = None if job.eval is None else text.eval_fraction(job.eval)
    held_out = job.eval if fraction is None else None
    of_moments = is_moments(job.data)
    if not of_moments:
        _check_inputs(job, held_out)
    wanted = [] if job.save is None else [Target("--save", job.save)]
    targets = Targets([*wanted, *report_targets(job.report)], [job.data, held_out, job.model], job.force)
    with _only_results_on_stdout(job.json):
        anova, rows, outputs = (apart_commands.fit(job), None, None) if of_moments else _fit(job, fraction, held_out)
        with busy("hashing files", job.quiet):
            anova.add_provenance(command=("exanova", *job.words), files=_origins(job))
        about = {"Data": Path(job.data).name} | ({"Model": job.model} if job.model else {})
        kept = _covariances(job, anova)
        targets.write("--save", lambda path: anova.save(path, covariances=kept))
        with busy("writing the report", job.quiet):
            targets.write(
                "--report", lambda path: anova.report(path, X=rows, model=outputs, title=job.title, about=about)
            )
    if job.json:
        files = {"report": job.report, "save": job.save}
        saved = {} if job.save is None else {"covariances": kept}
        emit_document({**output.decomposition_document(anova, job.effects), "files": files, **saved})
    elif not job.quiet:
        screen = Screen()
        screen.decomposition(anova, job.effects)
        screen.files([(w, p) for w, p in (("report", job.report), ("decomposition", job.save)) if p is not None])
        screen.lines(_not_kept(anova, kept) if job.save is not None else "")
        screen.next_commands(_after_explain(job, anova))


def _covariances(job: Job, anova: FunctionalANOVA) -> bool:
    """Whether the saved file will hold covariances of effects; what takes some seconds is computed for it."""
    if job.save is None:
        return False
    with busy("computing standard errors", job.quiet):
        compute_errors(anova.decomposition_, ERRORS_WORK)
    known = anova.decomposition_.uncertainty
    return known.keeps_covariances(ERRORS_WORK) if job.covariances is None else job.covariances


def _not_kept(anova: FunctionalANOVA, kept: bool) -> str:
    """What a file without covariances of effects cannot answer, and how to keep them; empty where there are none."""
    known = anova.decomposition_.uncertainty
    if kept or known.sample is None or known.is_whole:
        return ""
    if why := known.why_none or known.lonely:
        return f"the file holds no covariances of effects: {why}"
    size = readable(8 * numbers_of(known.outputs, known.family.n_cells))
    return Words(
        f"the file holds no covariances of effects ({size}), so that reasons, differences and Shapley values from it "
        "have no standard errors of effects; ",
        Parameter("covariances", True),
        " keeps them",
    )


def plan(data: str, reading: ReadOptions, choice: Choice, fit: FitOptions, json: bool) -> None:
    """Show what ``explain`` would need for this table."""
    planned = (
        _plan_files(data, reading, choice, fit) if in_blocks(data, reading) else _plan_table(data, reading, choice, fit)
    )
    if json:
        emit_document({"plan": output.plan_document(planned)})
    else:
        Screen().plan(planned)


def _plan_table(data: str, reading: ReadOptions, choice: Choice, fit: FitOptions) -> Plan:
    parts = divide(read_table(data, reading), choice, display_name(data))
    anova = fit.estimator(parts.features.column_names)
    return anova.plan(parts.features, sample_weight=parts.weight, n_outputs=max(1, len(parts.names)))


def _plan_files(data: str, reading: ReadOptions, choice: Choice, fit: FitOptions) -> Plan:
    source = open_files(data, reading, choice)
    features = [name for name in source.names if name not in choice.prediction]
    anova = fit.estimator([name for name in features if name != choice.weight])
    source = replace(source, names=tuple(features))
    return anova.plan(source, sample_weight=choice.weight, n_outputs=max(1, len(choice.prediction)))


def _check_inputs(job: Job, held_out: str | None) -> None:
    if job.covariances is not None and job.save is None:
        raise InputError("--covariances and --no-covariances are for the file of --save; give it, or leave them out.")
    if (job.model is None) == (not job.choice.prediction):
        raise InputError(
            "give either --prediction COLUMN, if the table has the model's predictions, or --model MODEL, to compute "
            "them."
        )
    if job.dask is not None and not in_blocks(job.data, job.reading):
        raise InputError("--dask was given for a single file, which is read here; leave it out, or give a folder.")
    if job.data == held_out == STDIN:
        raise InputError("standard input can be read only once; give --eval a file, or a fraction such as 0.2.")
    if job.output_names is not None and job.choice.prediction:
        raise InputError("--output-names is for the outputs of --model; predictions have the names of their columns.")


def _fit(job: Job, fraction: float | None, held_out: str | None) -> tuple[FunctionalANOVA, Any, Any]:
    """The decomposition, and the rows and the model (or its outputs there) for the report."""
    if in_blocks(job.data, job.reading):
        return _fit_files(job, fraction, held_out), None, None
    with busy(f"reading {display_name(job.data)}", job.quiet):
        model = _model(job)
        table = read_table(job.data, job.reading)
    wanted = None if model is None else model.wanted(table.column_names)
    data = divide(table, job.choice, display_name(job.data), wanted)
    names = text.output_names(job.output_names) if model is not None else list(data.names)
    anova = job.fit.estimator(data.features.column_names)
    anova.fit(
        data.features,
        data.predictions if model is None else model,
        sample_weight=data.weight,
        output_names=names,
        weights=job.weights,
        **data.drawn,
        eval_set=fraction if held_out is None else _held_out(job, held_out, data.features, model),
    )
    if fraction is not None:
        return anova, None, None  # held-out rows are not part of the fit
    counted = data.counted()
    return anova, counted.features, counted.predictions if model is None else model


def _fit_files(job: Job, fraction: float | None, held_out: str | None) -> FunctionalANOVA:
    """The decomposition of rows in several files, which are read in blocks."""
    model = _model(job)
    source = open_files(job.data, job.reading, job.choice, None if model is None else model.wanted)
    roles = fit_arguments(job.choice, model)
    apart = job.choice.apart
    anova = job.fit.estimator([name for name in source.names if name not in apart])
    names = text.output_names(job.output_names) if model is not None else None
    other = None if held_out is None else (held_out, roles["model"])
    with dask_client(job.dask) as client:
        anova.set_params(engine=client).fit(
            source, **roles, output_names=names, eval_set=fraction or other, weights=job.weights
        )
    return anova.set_params(engine=None)


def _origins(job: Job) -> dict[str, str]:
    """The files that a fit comes from, by their roles; a function and standard input are none."""
    given = {"data": job.data, "model": job.model}
    return {role: path for role, path in given.items() if path is not None and Path(path).is_file()}


def _held_out(job: Job, path: str, features: Any, model: Model | None) -> tuple[Any, Any]:
    """Held-out rows, read like the others, and the model or its predictions there."""
    table = read_table(path, replace(job.reading, text=()), kinds_of(features))  # kinds are known
    apart = divide(table, Choice(prediction=job.choice.prediction), display_name(path), features.column_names)
    return apart.features, apart.predictions if model is None else model


def _model(job: Job) -> Model | None:
    if job.model is None:
        return None
    threads = parallel.thread_count(job.fit.others.get("n_jobs"))
    return load_model(job.model, job.trust_pickle, threads)


@contextmanager
def _only_results_on_stdout(json: bool) -> Iterator[None]:
    """With ``--json``, redirect what a model prints to standard error."""
    if not json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def _after_explain(job: Job, anova: FunctionalANOVA) -> list[tuple[str, list[str]]]:
    """Commands to run next."""
    if job.save is None:
        again = ["exanova", *job.words, "--save", "model.exanova", *(["--force"] if job.report else [])]
        return [("save the decomposition, to show it, compare it and explain rows with it", again)]
    rows = ["exanova", "rows", job.save, job.data, *job.reading.words()]
    rows += [word for name in job.choice.prediction for word in ("--prediction", name)] + ["--output"]
    suffix = "/" if is_many(job.data) else ".csv"
    explaining = not is_moments(job.data)  # they hold no rows
    commands = [("Shapley values of rows", [*rows, f"values{suffix}"])] if explaining else []
    for strongest in output.strongest(anova, 1):
        effect = ":".join(strongest["features"])
        commands.insert(0, ("the strongest effect, level by level", ["exanova", "show", job.save, "--effect", effect]))
    if job.report is None:
        return [*commands, ("a report for the browser", ["exanova", "show", job.save, "--report", "report.html"])]
    pairs = ("pairwise interactions, row by row", [*rows, f"pairs{suffix}", "--index", "k-SII"])
    return [*commands, pairs] if explaining else commands
