"""Arguments and options of the commands that read saved decompositions: tables, rows, comparisons and answers."""

from __future__ import annotations

from typing import Annotated

import typer

from exanova.cli import arguments as a

Id = Annotated[
    a.Names,
    typer.Option(
        "--id", metavar="COLUMN", help="Column to copy to the output (repeatable).", rich_help_panel=a.COLUMNS
    ),
]
ExportPath = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="File to write: .xlsx, .json, .sql, .md or .tex; a name that ends in / for a folder.",
        show_default=False,
    ),
]
Dialect = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        metavar="NAME",
        help="SQL dialect: standard, duckdb, sqlite or postgres. Default: standard.",
        rich_help_panel=a.RESULTS,
    ),
]
SqlTable = Annotated[
    str | None,
    typer.Option(
        "--table", metavar="NAME", help="With .sql: table to score. Default: rows.", rich_help_panel=a.RESULTS
    ),
]
Keep = Annotated[
    a.Names,
    typer.Option(
        "--keep",
        metavar="COLUMN",
        help="With .sql: additional column to return, such as a key (repeatable).",
        rich_help_panel=a.RESULTS,
    ),
]
Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File to write: .csv, .tsv, .parquet or .feather; - for CSV on standard output.",
        rich_help_panel=a.RESULTS,
    ),
]
ReasonCount = Annotated[
    int | None,
    typer.Option(
        "--reasons",
        min=1,
        metavar="N",
        help="Write the N strongest reasons per row, as sentences.",
        rich_help_panel=a.RESULTS,
    ),
]
Direction = Annotated[
    str,
    typer.Option(
        "--direction",
        metavar="lower|higher|both",
        help="Show reasons why the output is lower, higher, or both.",
        rich_help_panel=a.RESULTS,
    ),
]
Against = Annotated[
    str,
    typer.Option(
        "--against",
        metavar="mean|best|N",
        help="Compare each row with the mean, the best row, or row N of DATA (counted from 0).",
        rich_help_panel=a.RESULTS,
    ),
]
OfOutput = Annotated[
    str | None,
    typer.Option(
        "--of-output",
        metavar="NAME",
        help="Output to give reasons for, if there are several.",
        rich_help_panel=a.RESULTS,
    ),
]
Index = Annotated[
    str,
    typer.Option(
        "--index",
        metavar="NAME",
        help="Index to compute: SV, k-SII, SII, STII, FSII, BII, BV, FBII or Moebius.",
        rich_help_panel=a.RESULTS,
    ),
]
Order = Annotated[
    int,
    typer.Option(
        "--order", min=1, metavar="N", help="Largest size of a subset (not used by SV).", rich_help_panel=a.RESULTS
    ),
]
JoinedLevels = Annotated[
    bool,
    typer.Option("--joined", help="With --effect: show neighbours that do not differ beyond their error as one level."),
]
OneEffect = Annotated[
    a.Names,
    typer.Option(
        "--effect", metavar="A|A:B", help="Show the table of this effect (repeatable).", rich_help_panel=a.RESULTS
    ),
]
Before = Annotated[str, typer.Argument(metavar="BEFORE", help="File written by --save.", show_default=False)]
After = Annotated[
    str, typer.Argument(metavar="AFTER", help="File written by --save, to compare with it.", show_default=False)
]
By = Annotated[
    str,
    typer.Option("--by", metavar="COLUMN", help="Column with the groups to compare.", rich_help_panel=a.COLUMNS),
]
ReportPath = Annotated[
    str, typer.Argument(metavar="FILE", help="Report to write: .html, .json or .md.", show_default=False)
]
RowData = Annotated[
    str | None,
    typer.Option("--data", metavar="DATA", help="Table with the rows of the report.", rich_help_panel=a.COLUMNS),
]
RowId = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="Column of DATA that names its rows.", rich_help_panel=a.COLUMNS),
]
ReportBy = Annotated[
    str | None,
    typer.Option("--by", metavar="COLUMN", help="Column of DATA whose groups are compared.", rich_help_panel=a.COLUMNS),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="MODEL", help="An earlier fit, to explain how the mean changed.", rich_help_panel=a.RESULTS
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        "--within", metavar="COLUMN", help="Compare inside each stratum of this column.", rich_help_panel=a.COLUMNS
    ),
]
Base = Annotated[
    a.Names,
    typer.Option(
        "--base",
        metavar="A=LEVEL",
        help="Base level of a feature (repeatable); default: the most frequent.",
        rich_help_panel=a.RESULTS,
    ),
]
FailAbove = Annotated[
    float | None,
    typer.Option(
        "--fail-above",
        min=0.0,
        metavar="LIMIT",
        help="Exit with code 3 if something changed by more than this, in units of the output.",
        rich_help_panel=a.RESULTS,
    ),
]
TariffOutput = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the tariff to a file: .xlsx, .csv, .tsv, .parquet or .feather.",
        rich_help_panel=a.RESULTS,
    ),
]
TableOutput = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the table to a file: .csv, .tsv, .parquet or .feather.",
        rich_help_panel=a.RESULTS,
    ),
]
BySubset = Annotated[
    bool,
    typer.Option(
        "--by-subset/--by-feature",
        help="In --output, write one line per subset of features, or per feature.",
        rich_help_panel=a.RESULTS,
    ),
]
Changes = Annotated[
    int,
    typer.Option("--changes", min=0, metavar="N", help="Number of largest changes to list.", rich_help_panel=a.RESULTS),
]
