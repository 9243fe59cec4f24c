"""The commands as they are typed, with their help; ``commands.py`` runs them.

Nothing heavy is imported before a command runs, so that help and usage errors appear at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from exanova import __version__
from exanova.cli import apart_app, question_app
from exanova.cli import arguments as a

if TYPE_CHECKING:
    from exanova.cli.table_files import ReadOptions


def _text(*paragraphs: str) -> str:
    """Paragraphs without line breaks, so that they are wrapped to the width of the terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _examples(*pairs: tuple[str, str]) -> str:
    """Each command below its purpose."""
    return "[bold]Examples[/bold]\n\n" + "\n\n".join(f"{why}\n  [cyan]{command}[/cyan]" for why, command in pairs)


EXANOVA = _text(
    "Exact functional ANOVA of any model with categorical inputs.",
    """The model is written as a sum of effects, one per subset of features. Each effect is orthogonal to every function
    of fewer of its features under the joint distribution of the data, even if some combinations of levels never
    occur.""",
)
EXANOVA_EXAMPLES = (
    _examples(
        (
            "Predictions in a column: write a report and save the decomposition",
            "exanova explain data.csv --prediction p --report report.html --save model.exanova",
        ),
        ("A model instead of predictions", "exanova explain data.parquet --model model.onnx --report report.html"),
        ("Shapley values of new rows", "exanova rows model.exanova new.csv --output values.csv"),
        ("A first look, no data needed", "exanova demo"),
    )
    + "\n\nExit codes: 0 success, 2 error (one line on standard error), 3 above the limit of compare, 130 interrupted."
)

EXPLAIN = _text(
    "Decompose a model over a table: effects, certificate, report.",
    """[bold]Features[/bold] are all columns not named by --prediction, --weight or --ignore, or the features that the
    model names itself. In CSV, a column of numbers is read as numbers unless a cell looks like a code (007). An empty
    cell is a missing value, which is a level of its own; NA is text, except in a column of numbers. Use --text and
    --missing to change this. Numbers with more than 20 different values are binned (--n-bins).""",
    """[bold]The model[/bold] is called once on each distinct row. ONNX: one input per column, or one tensor with the
    columns in the order of the features; missing text becomes an empty string. Python function or estimator: a pandas
    dataframe if pandas is installed, otherwise a pyarrow table; an estimator fitted on arrays gets an array. For a
    classifier, its probabilities are explained.""",
)
EXPLAIN_EXAMPLES = _examples(
    ("Predictions in a column", "exanova explain data.csv --prediction p --report report.html"),
    (
        "One prediction per class, with weights and a column to leave out",
        "exanova explain data.csv --prediction low --prediction high --weight w --ignore id",
    ),
    ("An ONNX model, with the table from standard input", "zcat data.csv.gz | exanova explain - --model model.onnx"),
    (
        "A function of a dataframe, in score.py in this folder",
        "exanova explain data.csv --ignore id --model score:predict",
    ),
    (
        "A scikit-learn model from a file that you trust",
        "exanova explain data.csv --model model.joblib --trust-pickle",
    ),
    (
        "Hundreds of features: a budget, measured on a fifth of the rows",
        "exanova explain wide.parquet --prediction p --max-terms 2000 --eval 0.2",
    ),
)

ROWS = _text(
    "Explain new rows with a saved decomposition: Shapley values or interactions.",
    """Shapley values: one line per row, with base_value, one column per feature, and their sum as fitted. With
    --prediction, the residual is what the model says beyond that. With several outputs the columns are called
    output:feature. Other indices: one line per row and subset. Columns are matched by name; other columns are ignored
    (--id copies them). A row marked outside_support has a combination of levels that was not in the data; the effect
    of that combination counts as 0.""",
)
ROWS_EXAMPLES = _examples(
    ("Shapley values, one column per feature", "exanova rows model.exanova new.csv --output values.csv"),
    (
        "Pairwise interactions, one line per row and subset",
        "exanova rows model.exanova new.parquet --index k-SII --output pairs.parquet",
    ),
    (
        "With customer numbers, and what the effects leave of the predictions",
        "exanova rows model.exanova new.csv --id customer --prediction p --output values.csv",
    ),
    ("In a pipe", "cat new.csv | exanova rows model.exanova - | head"),
    (
        "The four strongest reasons why each score is low, as sentences",
        "exanova rows model.exanova new.csv --reasons 4 --id customer --output reasons.csv",
    ),
)

SHOW = "Show a saved decomposition: summary, certificate, strongest effects."
SHOW_EXAMPLES = _examples(
    ("Summary, certificate, strongest effects", "exanova show model.exanova"),
    ("Two effects, level by level", "exanova show model.exanova --effect odor --effect odor:habitat"),
    ("Write the report later", "exanova show model.exanova --report report.html"),
)

EXPORT = _text(
    "Write the tables of a saved decomposition: .xlsx, .json, .sql, .md, .tex, or a folder with CSV and Parquet.",
    """A workbook has one sheet per table, with standard errors and rows per cell. A query (.sql) returns the fitted
    value of every row of a table in a database. All tell where the numbers come from; none holds rows or the model.""",
)
EXPORT_EXAMPLES = _examples(
    ("A workbook", "exanova export model.exanova book.xlsx"),
    ("Every table as CSV and Parquet, in a folder", "exanova export model.exanova tables/"),
    (
        "Score a table in DuckDB",
        "exanova export model.exanova score.sql --dialect duckdb --table customers --keep id",
    ),
)

PLAN = _text(
    "Estimate the functions, memory and time that explain would need.", "Nothing is fitted and no model is called."
)
PLAN_EXAMPLES = _examples(
    ("Is order 3 feasible?", "exanova plan data.csv --prediction p --max-order 3"),
    ("And with a budget?", "exanova plan data.csv --prediction p --max-order 3 --max-terms 2000"),
)

DEMO = _text(
    "Run a demo: tic-tac-toe, from the rules of the game to a report in demo/.",
    "A classifier learns which end positions x has won; its effects recover the lines of the game.",
)
DEMO_EXAMPLES = _examples(("Run it", "exanova demo"))

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


@app.callback(help=EXANOVA, epilog=EXANOVA_EXAMPLES)
def exanova(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The command itself, which does nothing without a subcommand."""


@app.command(help=EXPLAIN, epilog=EXPLAIN_EXAMPLES)
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
    subsets: a.Subsets = None,
    interactions: a.FormerSubsets = None,
    max_terms: a.MaxTerms = None,
    selection: a.Selection = None,
    n_bins: a.NBins = None,
    strategy: a.Strategy = "quantile",
    min_frequency: a.MinFrequency = None,
    max_levels: a.MaxLevels = None,
    shrinkage: a.Shrinkage = "auto",
    sampled: a.Sampled = None,
    link: a.Link = "identity",
    ties: a.Ties = "share",
    basis: a.Basis = "pure",
    route: a.Route = "auto",
    eval_: a.Eval = None,
    dask: a.Dask = None,
    memory_limit: a.MemoryLimit = None,
    n_jobs: a.Jobs = None,
    format_: a.Format = None,
    separator: a.Separator = None,
    missing: a.Missing = None,
    text: a.AsText = None,
    categories: a.Categories = None,
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
    from exanova.cli.text import shrinkage as shrinkage_
    from exanova.cli.text import terms

    others = {"max_terms": terms(max_terms), "selection": selection, "strategy": strategy, "ties": ties, "basis": basis}
    others |= {"shrinkage": shrinkage_(shrinkage), "sampled": "auto" if sampled is None else sampled}
    others |= {"link": link, "route": route, "n_jobs": n_jobs, "verbose": False if quiet else None}
    commands.explain(
        commands.Job(
            data=data,
            reading=_reading(format_, separator, missing, text, categories),
            choice=Choice(_all(features), _all(ignore), _all(prediction), weight),
            fit=commands.FitOptions(
                max_order,
                _all(subsets, interactions),
                _all(n_bins),
                min_frequency,
                memory_limit,
                others,
                _all(max_levels),
            ),
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
            dask=dask,
        )
    )


@app.command(help=ROWS, epilog=ROWS_EXAMPLES)
def rows(
    saved: a.Saved,
    data: a.Data,
    prediction: a.RowPrediction = None,
    id_: a.Id = None,
    group: a.Groups = None,
    output: a.Output = "-",
    index: a.Index = "SV",
    order: a.Order = 2,
    reasons: a.ReasonCount = None,
    direction: a.Direction = "lower",
    against: a.Against = "mean",
    of_output: a.OfOutput = None,
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
    from exanova.cli import commands
    from exanova.cli.text import memory

    rules = {"handle_unknown": handle_unknown, "strict": strict, "n_jobs": n_jobs}
    rules |= {"memory_limit": memory(memory_limit), "verbose": False if quiet else None}
    reading = _reading(format_, separator, missing, None)
    if reasons is not None:
        from exanova.cli import question_commands

        asked = question_commands.AskedReasons(
            reasons, direction, against, of_output, _all(prediction), _all(id_), _all(group)
        )
        shown = question_commands.Shown(None if output == "-" else output, False, force, json)
        question_commands.reasons(saved, data, reading, asked, shown, rules)
        return
    wish = commands.Wish(output, index, order, force, json, quiet, _all(prediction), _all(id_), _all(group))
    commands.rows(saved, data, reading, wish, rules)


@app.command(help=SHOW, epilog=SHOW_EXAMPLES)
def show(
    saved: a.Saved,
    effects: a.Effects = 10,
    effect: a.OneEffect = None,
    joined: a.JoinedLevels = False,
    report: a.Report = None,
    force: a.Force = False,
    json: a.Json = False,
    debug: a.Debug = False,
) -> None:
    """Show a saved decomposition."""
    from exanova.cli import commands

    commands.show(saved, effects, _all(effect), report, force, json, joined)


@app.command(help=EXPORT, epilog=EXPORT_EXAMPLES)
def export(
    context: typer.Context,
    saved: a.Saved,
    path: a.ExportPath,
    dialect: a.Dialect = None,
    table: a.SqlTable = None,
    keep: a.Keep = None,
    force: a.Force = False,
    json: a.Json = False,
    quiet: a.Quiet = False,
    debug: a.Debug = False,
) -> None:
    """Write the tables of a saved decomposition."""
    from exanova.cli import commands

    sql = {"dialect": dialect, "table": table, "keep": _all(keep) or None}
    commands.export(saved, path, sql, context.obj, commands.Printing(force, json, quiet))


@app.command(help=PLAN, epilog=PLAN_EXAMPLES)
def plan(
    data: a.Data,
    prediction: a.Prediction = None,
    weight: a.Weight = None,
    features: a.Features = None,
    ignore: a.Ignore = None,
    max_order: a.MaxOrder = "2",
    subsets: a.Subsets = None,
    interactions: a.FormerSubsets = None,
    max_terms: a.MaxTerms = None,
    selection: a.Selection = None,
    n_bins: a.NBins = None,
    strategy: a.Strategy = "quantile",
    min_frequency: a.MinFrequency = None,
    max_levels: a.MaxLevels = None,
    shrinkage: a.Shrinkage = "auto",
    sampled: a.Sampled = None,
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
    """Estimate what ``explain`` would need."""
    from exanova.cli import commands
    from exanova.cli.columns import Choice
    from exanova.cli.text import shrinkage as shrinkage_
    from exanova.cli.text import terms

    others = {"max_terms": terms(max_terms), "selection": selection, "strategy": strategy, "ties": ties, "basis": basis}
    others |= {"shrinkage": shrinkage_(shrinkage), "sampled": "auto" if sampled is None else sampled}
    others |= {"route": route, "n_jobs": n_jobs}
    commands.plan(
        data,
        _reading(format_, separator, missing, text),
        Choice(_all(features), _all(ignore), _all(prediction), weight),
        commands.FitOptions(
            max_order, _all(subsets, interactions), _all(n_bins), min_frequency, memory_limit, others, _all(max_levels)
        ),
        json,
    )


@app.command(help=DEMO, epilog=DEMO_EXAMPLES)
def demo(debug: a.Debug = False) -> None:
    """Run the demo."""
    from exanova.demo import main

    main()


app.command(help=apart_app.LEVELS, epilog=_examples(*apart_app.LEVELS_EXAMPLES))(apart_app.levels)
app.command(help=apart_app.MOMENTS, epilog=_examples(*apart_app.MOMENTS_EXAMPLES))(apart_app.moments)
app.command(help=apart_app.MERGE, epilog=_examples(*apart_app.MERGE_EXAMPLES))(apart_app.merge)
for command, about, pairs in question_app.COMMANDS:
    app.command(help=about, epilog=_examples(*pairs))(command)


def _all(*given: a.Names) -> tuple[str, ...]:
    return tuple(text for texts in given for text in texts or ())


def _reading(
    format_: str | None, separator: str | None, missing: a.Names, text: a.Names, categories: a.Names = None
) -> ReadOptions:
    from exanova.cli.table_files import ReadOptions

    names, chosen = ([name for part in _all(given) for name in part.split(",")] for given in (text, categories))
    return ReadOptions(format_, separator, _all(missing), tuple(names), tuple(chosen))
