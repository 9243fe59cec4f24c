"""The commands that read a saved decomposition, with their options; ``saved_commands.py`` runs them."""

from __future__ import annotations

import typer

from exanova.cli import answer_arguments as b
from exanova.cli import arguments as a

ROWS = a.text(
    "Explain new rows with a saved decomposition: Shapley values or interactions.",
    """Shapley values: one line per row, with base_value, one column per feature, and their sum as fitted. With
    --prediction, the residual (prediction minus fitted) is added. With several outputs the columns are called
    output:feature. Other indices: one line per row and subset. Columns are matched by name; other columns are ignored
    (--id copies them). A row marked outside_support has a combination of levels that was not in the data; its effect
    is extrapolated by a shrunken fit, and counts as 0 otherwise.""",
)
ROWS_EXAMPLES = (
    ("Shapley values, one column per feature", "exanova rows model.exanova new.csv --output values.csv"),
    (
        "Pairwise interactions, one line per row and subset",
        "exanova rows model.exanova new.parquet --index k-SII --output pairs.parquet",
    ),
    (
        "With customer numbers, and the residuals of the predictions",
        "exanova rows model.exanova new.csv --id customer --prediction p --output values.csv",
    ),
    ("In a pipe", "cat new.csv | exanova rows model.exanova - | head"),
    (
        "The four strongest reasons why each score is low, as sentences",
        "exanova rows model.exanova new.csv --reasons 4 --id customer --output reasons.csv",
    ),
)

SHOW = "Show a saved decomposition: summary, certificate, strongest effects."
SHOW_EXAMPLES = (
    ("Summary, certificate, strongest effects", "exanova show model.exanova"),
    ("Two effects, level by level", "exanova show model.exanova --effect odor --effect odor:habitat"),
    ("Write the report later", "exanova show model.exanova --report report.html"),
)

EXPORT = a.text(
    "Write the tables of a saved decomposition: .xlsx, .json, .sql, .md, .tex, or a folder with CSV and Parquet.",
    """A workbook has one sheet per table, with standard errors and rows per cell. A query (.sql) returns the fitted
    value of every row of a table in a database. All include the provenance; none contains rows or the model.""",
)
EXPORT_EXAMPLES = (
    ("A workbook", "exanova export model.exanova book.xlsx"),
    ("Every table as CSV and Parquet, in a folder", "exanova export model.exanova tables/"),
    (
        "Score a table in DuckDB",
        "exanova export model.exanova score.sql --dialect duckdb --table customers --keep id",
    ),
)


def rows(
    saved: a.Saved,
    data: a.Data,
    prediction: a.RowPrediction = None,
    id_: b.Id = None,
    group: a.Groups = None,
    output: b.Output = "-",
    index: b.Index = "SV",
    order: b.Order = 2,
    reasons: b.ReasonCount = None,
    direction: b.Direction = "lower",
    against: b.Against = "mean",
    of_output: b.OfOutput = None,
    handle_unknown: a.HandleUnknown = "error",
    strict: a.Strict = False,
    memory_limit: a.MemoryLimit = None,
    n_jobs: a.Jobs = None,
    format_: a.Format = None,
    separator: a.Separator = None,
    decimal: a.Decimal = ".",
    missing: a.Missing = None,
    force: a.Force = False,
    json: a.Json = False,
    quiet: a.Quiet = False,
    debug: a.Debug = False,
) -> None:
    """Explain new rows with a saved decomposition."""
    from exanova.cli import saved_commands as commands
    from exanova.cli.text import memory

    rules = {"handle_unknown": handle_unknown, "strict": strict, "n_jobs": n_jobs}
    rules |= {"memory_limit": memory(memory_limit), "verbose": False if quiet else None}
    reading = a.reading(format_, separator, decimal, missing, None)
    if reasons is not None:
        from exanova.cli import question_commands

        asked = question_commands.AskedReasons(
            reasons, direction, against, of_output, a.every(prediction), a.every(id_), a.every(group)
        )
        shown = question_commands.Shown(None if output == "-" else output, False, force, json)
        question_commands.reasons(saved, data, reading, asked, shown, rules)
        return
    options = commands.RowOptions(
        output, index, order, force, json, quiet, a.every(prediction), a.every(id_), a.every(group)
    )
    commands.rows(saved, data, reading, options, rules)


def show(
    saved: a.Saved,
    effects: a.Effects = 10,
    effect: b.OneEffect = None,
    joined: b.JoinedLevels = False,
    report: a.Report = None,
    force: a.Force = False,
    json: a.Json = False,
    debug: a.Debug = False,
) -> None:
    """Show a saved decomposition."""
    from exanova.cli import saved_commands as commands

    commands.show(saved, effects, a.every(effect), report, force, json, joined)


def export(
    context: typer.Context,
    saved: a.Saved,
    path: b.ExportPath,
    dialect: b.Dialect = None,
    table: b.SqlTable = None,
    keep: b.Keep = None,
    force: a.Force = False,
    json: a.Json = False,
    quiet: a.Quiet = False,
    debug: a.Debug = False,
) -> None:
    """Write the tables of a saved decomposition."""
    from exanova.cli import saved_commands as commands

    sql = {"dialect": dialect, "table": table, "keep": a.every(keep) or None}
    commands.export(saved, path, sql, context.obj, commands.Printing(force, json, quiet))


COMMANDS = (
    (rows, ROWS, ROWS_EXAMPLES),
    (show, SHOW, SHOW_EXAMPLES),
    (export, EXPORT, EXPORT_EXAMPLES),
)
"""The commands with their help and examples."""
