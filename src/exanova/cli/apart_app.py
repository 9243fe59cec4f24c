"""The commands for rows in several places, with their options; ``apart_commands.py`` runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exanova.cli import arguments as a

if TYPE_CHECKING:
    from exanova.cli.apart_commands import PlaceTable


LEVELS = (
    "Write the levels of a table's columns to a JSON file, for all sites to agree on.\n\n"
    "With --add, the levels of an existing file are kept, and levels that occur only in this table are added. "
    "A folder or a pattern of files is one table, read in blocks."
)
LEVELS_EXAMPLES = (
    ("The first site proposes levels", "exanova levels a.csv --prediction p -o levels.json"),
    ("The next one adds its own", "exanova levels b.csv --prediction p --add levels.json -o levels-2.json"),
)
MOMENTS = (
    "Collect the moments of a table: counts and sums from which effects can be computed, without its rows.\n\n"
    "Moments of several tables with the same levels are merged by `exanova merge` and explained by `exanova explain`. "
    "A folder or a pattern of files is one table, read in blocks. "
    "With --min-count, moments with a cell of fewer rows are refused."
)
MOMENTS_EXAMPLES = (
    ("One shard", "exanova moments a.parquet --prediction p --levels levels.json -o a.moments"),
    (
        "No count below 10 leaves this site",
        "exanova moments a.csv --prediction p --levels levels.json --min-count 10 -o a.moments",
    ),
)
MERGE = (
    "Merge moments; the result is that of all rows together.\n\n"
    "A shard that is in two of the files is refused, because it would count twice."
)
MERGE_EXAMPLES = (
    ("Two sites", "exanova merge a.moments b.moments -o all.moments"),
    ("Then", "exanova explain all.moments --report report.html"),
)


def levels(
    data: a.Data,
    output: a.Target,
    prediction: a.Prediction = None,
    weight: a.Weight = None,
    features: a.Features = None,
    ignore: a.Ignore = None,
    add: a.Add = None,
    n_bins: a.NBins = None,
    strategy: a.Strategy = "quantile",
    min_frequency: a.MinFrequency = None,
    format_: a.Format = None,
    separator: a.Separator = None,
    decimal: a.Decimal = ".",
    missing: a.Missing = None,
    text: a.AsText = None,
    force: a.Force = False,
    quiet: a.Quiet = False,
    debug: a.Debug = False,
) -> None:
    """Write the levels of a table."""
    from exanova.cli import apart_commands as commands

    part = _part(
        data, (format_, separator, decimal, missing, text), (features, ignore, prediction, weight), output, force, quiet
    )
    commands.levels(part, add, commands.LevelRule(a.every(n_bins), strategy, min_frequency))


def moments(
    data: a.Data,
    output: a.Target,
    levels: a.LevelsFile,
    prediction: a.Prediction = None,
    model: a.ModelToAsk = None,
    trust_pickle: a.TrustPickle = False,
    weight: a.Weight = None,
    max_order: a.MaxOrder = "2",
    min_count: a.MinCount = 0,
    memory_limit: a.MemoryLimit = None,
    n_jobs: a.Jobs = None,
    format_: a.Format = None,
    separator: a.Separator = None,
    decimal: a.Decimal = ".",
    missing: a.Missing = None,
    force: a.Force = False,
    quiet: a.Quiet = False,
    debug: a.Debug = False,
) -> None:
    """Collect the moments of a table."""
    from exanova.cli import apart_commands as commands

    part = _part(
        data, (format_, separator, decimal, missing, None), (None, None, prediction, weight), output, force, quiet
    )
    asked = commands.Collected(levels, max_order, min_count, model, trust_pickle, memory_limit, n_jobs)
    commands.moments(part, asked)


def merge(
    files: a.Files, output: a.Target, force: a.Force = False, quiet: a.Quiet = False, debug: a.Debug = False
) -> None:
    """Merge moments."""
    from exanova.cli import apart_commands as commands

    commands.merge(files, output, force, quiet)


def _part(
    data: str,
    reading: tuple[str | None, str | None, str, a.Names, a.Names],
    columns: tuple[a.Names, a.Names, a.Names, str | None],
    output: str,
    force: bool,
    quiet: bool,
) -> PlaceTable:
    from exanova.cli.apart_commands import PlaceTable
    from exanova.cli.columns import Choice

    features, ignore, prediction, weight = columns
    choice = Choice(a.every(features), a.every(ignore), a.every(prediction), weight)
    return PlaceTable(data, a.reading(*reading), choice, output, force, quiet)


COMMANDS = (
    (levels, LEVELS, LEVELS_EXAMPLES),
    (moments, MOMENTS, MOMENTS_EXAMPLES),
    (merge, MERGE, MERGE_EXAMPLES),
)
"""The commands with their help and examples."""
