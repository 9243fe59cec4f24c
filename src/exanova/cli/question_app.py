"""The commands that answer questions, with their options; ``question_commands.py`` runs them."""

from __future__ import annotations

import typer

from exanova.cli import answer_arguments as b
from exanova.cli import arguments as a

DIFFERENCE = (
    "Explain why one group of rows scores higher than another: the gap, split over features and interactions.\n\n"
    "The parts add up to the gap between the means exactly; with --prediction the residual is one of them. Two groups "
    "are compared with each other; three or more are each compared with all others. The columns of --by and --within "
    "need not be features."
)
DIFFERENCE_EXAMPLES = (
    ("Women and men", "exanova difference model.exanova data.csv --by sex"),
    (
        "With the residual, inside each department, as a table",
        "exanova difference model.exanova data.csv --by sex --within dept --prediction p --output gap.csv",
    ),
)


COMPARE = (
    "Compare two saved decompositions of the same columns: largest changes, and why the mean changed.\n\n"
    "The change of the mean is split into what the mix of the rows changed (same effects, other rows) and what the "
    "model changed (same rows, other effects), by subset.\n\n"
    "With --fail-above, the exit code is 3 if the mean, its change by the mix or by the model, or any effect (root "
    "mean square over common cells) changed by more than the limit, in units of the output, or cannot be compared."
)
COMPARE_EXAMPLES = (
    ("Two models on the same columns, or one model in two periods", "exanova compare before.exanova after.exanova"),
    (
        "A monitor: exit code 3 if anything moved by more than 0.02",
        "exanova compare old.exanova new.exanova --fail-above 0.02 --json",
    ),
)


def compare(
    before: b.Before,
    after: b.After,
    changes: b.Changes = 10,
    fail_above: b.FailAbove = None,
    json: a.Json = False,
    debug: a.Debug = False,
) -> None:
    """Compare two saved decompositions."""
    from exanova.cli import question_commands as commands

    if commands.compare(before, after, changes, fail_above, json):
        raise typer.Exit(3)


def difference(
    saved: a.Saved,
    data: a.Data,
    by: b.By,
    within: b.Within = None,
    prediction: a.RowPrediction = None,
    weight: a.Weight = None,
    weights: a.WeightsAre = "auto",
    group: a.Groups = None,
    subsets: b.BySubset = True,
    output: b.TableOutput = None,
    handle_unknown: a.HandleUnknown = "error",
    strict: a.Strict = False,
    format_: a.Format = None,
    separator: a.Separator = None,
    decimal: a.Decimal = ".",
    missing: a.Missing = None,
    force: a.Force = False,
    json: a.Json = False,
    debug: a.Debug = False,
) -> None:
    """Split the gap between groups of rows."""
    from exanova.cli import question_commands as commands

    rules = {"handle_unknown": handle_unknown, "strict": strict}
    compared = commands.Compared(by, within, weight, weights, a.every(prediction), a.every(group))
    shown = commands.Shown(output, subsets, force, json)
    commands.difference(saved, data, a.reading(format_, separator, decimal, missing), compared, shown, rules)


RELATIVITIES = (
    "Show the tariff of a decomposition with --link log (or logit): factors against base levels, with intervals.\n\n"
    "The fitted value of a row is the base value times its factors. Factors are main effects and pairs; the output "
    "says how much deviance they explain and how well they order the rows (Gini index)."
)
RELATIVITIES_EXAMPLES = (
    (
        "Claims per year of exposure",
        "exanova explain claims.csv --prediction rate --weight exposure --link log --save m",
    ),
    ("Its tariff", "exanova relativities m --base region=north --output tariff.xlsx"),
)


def relativities(
    saved: a.Saved,
    base: b.Base = None,
    output: b.TariffOutput = None,
    force: a.Force = False,
    json: a.Json = False,
    debug: a.Debug = False,
) -> None:
    """The tariff of a saved decomposition."""
    from exanova.cli import question_commands as commands

    commands.relativities(saved, a.every(base), commands.Shown(output, False, force, json))


REPORT = (
    "Write the report of a saved decomposition, with rows and answers to questions about them.\n\n"
    "With --data, the report has a row explorer and gives reasons for the lowest and the highest rows. --by explains "
    "why groups of rows differ, --since why the mean changed since an earlier fit. --group treats several features as "
    "one. --base sets the base levels of a tariff (--link log or logit)."
)
REPORT_EXAMPLES = (
    ("With rows, named by a column", "exanova report model.exanova report.html --data data.csv --id customer"),
    (
        "Why groups differ, and what changed since last year",
        "exanova report model.exanova report.html --data data.csv --prediction p --by sex --since last.exanova",
    ),
)


def report(
    saved: a.Saved,
    path: b.ReportPath,
    data: b.RowData = None,
    prediction: a.RowPrediction = None,
    id_: b.RowId = None,
    by: b.ReportBy = None,
    since: b.Since = None,
    group: a.Groups = None,
    base: b.Base = None,
    title: a.Title = None,
    handle_unknown: a.HandleUnknown = "error",
    format_: a.Format = None,
    separator: a.Separator = None,
    decimal: a.Decimal = ".",
    missing: a.Missing = None,
    force: a.Force = False,
    json: a.Json = False,
    quiet: a.Quiet = False,
    debug: a.Debug = False,
) -> None:
    """Write the report of a saved decomposition."""
    from exanova.cli import question_commands as commands
    from exanova.cli.saved_commands import Printing

    options = commands.ReportOptions(data, a.every(prediction), id_, by, since, a.every(group), a.every(base), title)
    rules = {"handle_unknown": handle_unknown, "verbose": False if quiet else None}
    printing = Printing(force, json, quiet)
    commands.report(saved, path, a.reading(format_, separator, decimal, missing), options, rules, printing)


COMMANDS = (
    (compare, COMPARE, COMPARE_EXAMPLES),
    (difference, DIFFERENCE, DIFFERENCE_EXAMPLES),
    (relativities, RELATIVITIES, RELATIVITIES_EXAMPLES),
    (report, REPORT, REPORT_EXAMPLES),
)
"""The commands with their help and examples."""
