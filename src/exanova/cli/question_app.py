"""The commands that answer questions, as they are typed, with their help; ``question_commands.py`` runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exanova.cli import arguments as a

if TYPE_CHECKING:
    from exanova.cli.table_files import ReadOptions

DIFFERENCE = (
    "Why one group of rows scores higher than another: the gap, split over features and interactions.\n\n"
    "The parts add up to the gap between the means exactly; with --prediction the residual is one of them. Two groups "
    "are compared with each other, more of them each with all others. The columns of --by and --within may be features "
    "or not."
)
DIFFERENCE_EXAMPLES = (
    ("Women and men", "exanova difference model.exanova data.csv --by sex"),
    (
        "With the residual, inside each department, as a table",
        "exanova difference model.exanova data.csv --by sex --within dept --prediction p --output gap.csv",
    ),
)


def difference(
    saved: a.Saved,
    data: a.Data,
    by: a.By,
    within: a.Within = None,
    prediction: a.RowPrediction = None,
    weight: a.Weight = None,
    group: a.Groups = None,
    subsets: a.BySubset = True,
    output: a.TableOutput = None,
    handle_unknown: a.HandleUnknown = "error",
    strict: a.Strict = False,
    format_: a.Format = None,
    separator: a.Separator = None,
    missing: a.Missing = None,
    force: a.Force = False,
    json: a.Json = False,
    debug: a.Debug = False,
) -> None:
    """Split the gap between groups of rows."""
    from exanova.cli import question_commands as commands

    rules = {"handle_unknown": handle_unknown, "strict": strict}
    compared = commands.Compared(by, within, weight, _all(prediction), _all(group))
    shown = commands.Shown(output, subsets, force, json)
    commands.difference(saved, data, _reading(format_, separator, missing), compared, shown, rules)


def _all(given: a.Names) -> tuple[str, ...]:
    return tuple(given or ())


def _reading(format_: str | None, separator: str | None, missing: a.Names) -> ReadOptions:
    from exanova.cli.table_files import ReadOptions

    return ReadOptions(format_, separator, _all(missing), ())
