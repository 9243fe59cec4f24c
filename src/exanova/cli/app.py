"""The commands: what can be typed, handed on to ``commands.py``.

Nothing heavy is imported before a command runs, so that help and errors of usage come at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from exanova import __version__
from exanova.cli import arguments as a
from exanova.cli import help as h

if TYPE_CHECKING:
    from exanova.cli.tables import Reading

app = typer.Typer(
    name="exanova",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"exanova {__version__}")
        raise typer.Exit


@app.callback(help=h.EXANOVA, epilog=h.EXANOVA_EXAMPLES)
def exanova(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
) -> None:
    """The command itself, which does nothing without a subcommand."""


@app.command(help=h.EXPLAIN, epilog=h.EXPLAIN_EXAMPLES)
def explain(
    context: typer.Context,
    data: a.Data,
    prediction: a.Prediction = None,
    weight: a.Weight = None,
    features: a.Features = None,
    ignore: a.Ignore = None,
    model: a.ModelToAsk = None,
    trust_pickle: a.TrustPickle = False,
    output_names: a.OutputNames = None,
    max_order: a.MaxOrder = "2",
    interactions: a.Interactions = None,
    max_terms: a.MaxTerms = None,
    selection: a.Selection = None,
    n_bins: a.NBins = None,
    strategy: a.Strategy = "quantile",
    min_frequency: a.MinFrequency = None,
    ties: a.Ties = "share",
    basis: a.Basis = "pure",
    route: a.Route = "auto",
    eval_: a.Eval = None,
    memory_limit: a.MemoryLimit = None,
    n_jobs: a.Jobs = None,
    format_: a.Format = None,
    separator: a.Separator = None,
    missing: a.Missing = None,
    text: a.AsText = None,
    report: a.Report = None,
    save: a.Save = None,
    title: a.Title = None,
    effects: a.Effects = 10,
    force: a.Force = False,
    json: a.Json = False,
    quiet: a.Quiet = False,
    debug: a.Debug = False,
) -> None:
    """Decompose a model over a table."""
    from exanova.cli import commands
    from exanova.cli.columns import Choice

    others = {"max_terms": max_terms, "selection": selection, "strategy": strategy, "ties": ties, "basis": basis}
    others |= {"route": route, "n_jobs": n_jobs, "verbose": False if quiet else None}
    commands.explain(
        commands.Job(
            data=data,
            reading=_reading(format_, separator, missing, text),
            choice=Choice(_all(features), _all(ignore), _all(prediction), weight),
            fit=commands.Fit(max_order, _all(interactions), _all(n_bins), min_frequency, memory_limit, others),
            model=model,
            trust_pickle=trust_pickle,
            output_names=output_names,
            eval=eval_,
            report=report,
            save=save,
            title=title,
            force=force,
            json=json,
            quiet=quiet,
            effects=effects,
            words=context.obj,
        )
    )


@app.command(help=h.ROWS, epilog=h.ROWS_EXAMPLES)
def rows(
    saved: a.Saved,
    data: a.Data,
    output: a.Output = "-",
    index: a.Index = "SV",
    order: a.Order = 2,
    handle_unknown: a.HandleUnknown = "error",
    strict: a.Strict = False,
    memory_limit: a.MemoryLimit = None,
    n_jobs: a.Jobs = None,
    format_: a.Format = None,
    separator: a.Separator = None,
    missing: a.Missing = None,
    force: a.Force = False,
    json: a.Json = False,
    quiet: a.Quiet = False,
    debug: a.Debug = False,
) -> None:
    """Explain new rows with a saved decomposition."""
    from exanova.cli import commands, options

    rules = {"handle_unknown": handle_unknown, "strict": strict, "n_jobs": n_jobs}
    rules |= {"memory_limit": options.memory(memory_limit), "verbose": False if quiet else None}
    reading = _reading(format_, separator, missing, None)
    commands.rows(saved, data, reading, commands.Wish(output, index, order, force, json, quiet), rules)


@app.command(help=h.SHOW, epilog=h.SHOW_EXAMPLES)
def show(
    saved: a.Saved,
    effects: a.Effects = 10,
    effect: a.OneEffect = None,
    report: a.Report = None,
    force: a.Force = False,
    json: a.Json = False,
    debug: a.Debug = False,
) -> None:
    """Show a saved decomposition."""
    from exanova.cli import commands

    commands.show(saved, effects, _all(effect), report, force, json)


@app.command(help=h.COMPARE, epilog=h.COMPARE_EXAMPLES)
def compare(
    before: a.Before, after: a.After, changes: a.Changes = 10, json: a.Json = False, debug: a.Debug = False
) -> None:
    """Compare two saved decompositions."""
    from exanova.cli import commands

    commands.compare(before, after, changes, json)


@app.command(help=h.PLAN, epilog=h.PLAN_EXAMPLES)
def plan(
    data: a.Data,
    prediction: a.Prediction = None,
    weight: a.Weight = None,
    features: a.Features = None,
    ignore: a.Ignore = None,
    max_order: a.MaxOrder = "2",
    interactions: a.Interactions = None,
    max_terms: a.MaxTerms = None,
    selection: a.Selection = None,
    n_bins: a.NBins = None,
    strategy: a.Strategy = "quantile",
    min_frequency: a.MinFrequency = None,
    ties: a.Ties = "share",
    basis: a.Basis = "pure",
    route: a.Route = "auto",
    memory_limit: a.MemoryLimit = None,
    n_jobs: a.Jobs = None,
    format_: a.Format = None,
    separator: a.Separator = None,
    missing: a.Missing = None,
    text: a.AsText = None,
    json: a.Json = False,
    debug: a.Debug = False,
) -> None:
    """Say what ``explain`` would take."""
    from exanova.cli import commands
    from exanova.cli.columns import Choice

    others = {"max_terms": max_terms, "selection": selection, "strategy": strategy, "ties": ties, "basis": basis}
    others |= {"route": route, "n_jobs": n_jobs}
    commands.plan(
        data,
        _reading(format_, separator, missing, text),
        Choice(_all(features), _all(ignore), _all(prediction), weight),
        commands.Fit(max_order, _all(interactions), _all(n_bins), min_frequency, memory_limit, others),
        json,
    )


@app.command(help=h.DEMO, epilog=h.DEMO_EXAMPLES)
def demo(debug: a.Debug = False) -> None:
    """Run the demonstration."""
    from exanova.demo import main

    main()


def _all(texts: list[str] | None) -> tuple[str, ...]:
    return tuple(texts or ())


def _reading(format_: str | None, separator: str | None, missing: a.Names, text: a.Names) -> Reading:
    from exanova.cli.tables import Reading

    names = [name for part in _all(text) for name in part.split(",")]
    return Reading(format_, separator, _all(missing), tuple(names))
