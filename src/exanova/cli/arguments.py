"""Arguments and options of fits and moments, and those shared by most commands; parsing of typed lists.

Those of commands that read saved decompositions are in ``answer_arguments.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from exanova.basis.names import BASES
from exanova.solve.traits import TRAITS

if TYPE_CHECKING:
    from exanova.cli.table_files import ReadOptions

COLUMNS, MODEL, FIT, READING, RESULTS = "Columns", "Model", "Decomposition", "Reading tables", "Results"
"""Panels of the help."""

Names = list[str] | None

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Table to read: .csv, .tsv or .jsonl (also .gz), .parquet, .feather; - for standard input; a folder or a "
        "quoted pattern of such files, which are read in blocks.",
        show_default=False,
    ),
]
Saved = Annotated[str, typer.Argument(metavar="MODEL", help="File written by --save.", show_default=False)]

Prediction = Annotated[
    Names,
    typer.Option(
        "--prediction",
        metavar="COLUMN",
        help="Column with the model's predictions (repeat for several outputs).",
        rich_help_panel=COLUMNS,
    ),
]
Weight = Annotated[
    str | None, typer.Option("--weight", metavar="COLUMN", help="Column with row weights.", rich_help_panel=COLUMNS)
]
Clusters = Annotated[
    str | None,
    typer.Option(
        "--clusters",
        metavar="COLUMN",
        help="Column that labels rows drawn together, for standard errors and for the fit on other rows.",
        rich_help_panel=COLUMNS,
    ),
]
Strata = Annotated[
    str | None,
    typer.Option(
        "--strata",
        metavar="COLUMN",
        help="Column with the parts of the population that rows were drawn from separately, for standard errors.",
        rich_help_panel=COLUMNS,
    ),
]
WeightsAre = Annotated[
    str,
    typer.Option(
        "--weights",
        metavar="auto|frequency|probability",
        help="What --weight means for standard errors: counts of equal rows, or inverse sampling probabilities. "
        "auto: whole numbers are counts.",
        rich_help_panel=COLUMNS,
    ),
]
Features = Annotated[
    Names,
    typer.Option(
        "--features", metavar="A,B,C", help="Feature columns. Default: all other columns.", rich_help_panel=COLUMNS
    ),
]
Ignore = Annotated[
    Names, typer.Option("--ignore", metavar="A,B,C", help="Columns to leave out.", rich_help_panel=COLUMNS)
]

RowPrediction = Annotated[
    Names,
    typer.Option(
        "--prediction",
        metavar="COLUMN",
        help="Column with the model's predictions, to add the residual (one per output, in their order).",
        rich_help_panel=COLUMNS,
    ),
]
Groups = Annotated[
    Names,
    typer.Option(
        "--group",
        metavar="NAME=A,B",
        help="Treat features as one group (repeatable).",
        rich_help_panel=COLUMNS,
    ),
]

ModelToAsk = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Model to explain: an .onnx file, a function package.module:name, or a pickle (.joblib, .pkl).",
        rich_help_panel=MODEL,
    ),
]
TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", help="Load a pickle, which can run any code.", rich_help_panel=MODEL)
]
OutputNames = Annotated[
    str | None,
    typer.Option("--output-names", metavar="A,B,C", help="Names of the model's outputs.", rich_help_panel=MODEL),
]

MaxOrder = Annotated[
    str,
    typer.Option(
        "--max-order", metavar="N|all", help="Largest number of features in an interaction.", rich_help_panel=FIT
    ),
]
Subsets = Annotated[
    Names,
    typer.Option(
        "--subsets",
        metavar="A:B,B:C:D",
        help="Decompose only over these subsets of features and their parts.",
        rich_help_panel=FIT,
    ),
]
FormerSubsets = Annotated[Names, typer.Option("--interactions", metavar="A:B,B:C:D", hidden=True)]
MaxTerms = Annotated[
    str | None,
    typer.Option(
        "--max-terms",
        metavar="N|auto",
        help="Budget for many features: largest number of functions, or auto to find it on held-out rows.",
        rich_help_panel=FIT,
    ),
]
Selection = Annotated[
    str | None,
    typer.Option("--selection", metavar="screen|canonical|lasso", help="How to spend the budget.", rich_help_panel=FIT),
]
NBins = Annotated[
    Names,
    typer.Option(
        "--n-bins",
        metavar="auto|none|N|A=N,B=N",
        help="Bin numbers and dates with more than 20 values (default: auto).",
        rich_help_panel=FIT,
    ),
]
Strategy = Annotated[
    str,
    typer.Option(
        "--strategy", metavar="quantile|uniform|kmeans|model", help="How to place the bins.", rich_help_panel=FIT
    ),
]
MinFrequency = Annotated[
    str | None,
    typer.Option(
        "--min-frequency",
        metavar="N|FRACTION",
        help="Merge levels that occur in fewer rows, e.g. 10 or 0.01.",
        rich_help_panel=FIT,
    ),
]
MaxLevels = Annotated[
    Names,
    typer.Option(
        "--max-levels",
        metavar="auto|none|N|A=N,B=N",
        help="Join levels with similar effects in columns with more levels (default: auto, 50).",
        rich_help_panel=FIT,
    ),
]
Shrinkage = Annotated[
    str,
    typer.Option(
        "--shrinkage",
        metavar="auto|none",
        help="Shrink effects to what the rows can support (auto), or fit the rows exactly (none).",
        rich_help_panel=FIT,
    ),
]
Sampled = Annotated[
    bool | None,
    typer.Option(
        "--sample/--population",
        help="The rows are a sample, or the complete population (no shrinkage, no standard errors). "
        "Default: a sample, unless all combinations of levels occur equally often.",
        show_default=False,
        rich_help_panel=FIT,
    ),
]
Link = Annotated[
    str,
    typer.Option(
        "--link",
        metavar="identity|log|logit",
        help="Decompose this function of the output, e.g. the log of a rate weighted by exposure.",
        rich_help_panel=FIT,
    ),
]
Ties = Annotated[
    str,
    typer.Option(
        "--ties",
        metavar="share|first",
        help="How to split an effect that several subsets can express.",
        rich_help_panel=FIT,
    ),
]
Basis = Annotated[
    str,
    typer.Option(
        "--basis",
        metavar="|".join(BASES),
        help="Orthogonal functions, or the functions of the paper.",
        rich_help_panel=FIT,
    ),
]
Route = Annotated[
    str,
    typer.Option("--route", metavar="|".join(("auto", *TRAITS)), help="Solver to use.", rich_help_panel=FIT),
]
Eval = Annotated[
    str | None,
    typer.Option(
        "--eval",
        metavar="FRACTION|FILE",
        help="Measure the fit on held-out rows: a fraction of the rows, e.g. 0.2, or a file.",
        rich_help_panel=FIT,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster that reads the files of a folder."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Largest memory to use, e.g. '4 GB'. Default: most of the free memory.",
        rich_help_panel=FIT,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--n-jobs", metavar="N", help="Number of threads. Default: all cores.", rich_help_panel=FIT),
]

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="csv|tsv|jsonl|parquet|feather",
        help="Format of DATA. Default: by its suffix, csv for standard input.",
        rich_help_panel=READING,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option("--separator", metavar="CHAR", help="Field separator of CSV input.", rich_help_panel=READING),
]
Decimal = Annotated[
    str,
    typer.Option("--decimal", metavar="CHAR", help="Decimal point of numbers in CSV input.", rich_help_panel=READING),
]
Missing = Annotated[
    Names,
    typer.Option(
        "--missing",
        metavar="TEXT",
        help="Additional text to read as missing in CSV (repeatable).",
        rich_help_panel=READING,
    ),
]
AsText = Annotated[
    Names,
    typer.Option(
        "--text", metavar="A,B,C|all", help="CSV columns to read as text even if numeric.", rich_help_panel=READING
    ),
]
Categories = Annotated[
    Names,
    typer.Option(
        "--categories",
        metavar="A,B,C|all",
        help="Columns the model receives as categories (all: every text column); Parquet keeps them.",
        rich_help_panel=READING,
    ),
]
HandleUnknown = Annotated[
    str,
    typer.Option(
        "--handle-unknown",
        metavar="error|ignore",
        help="What to do with unseen levels: refuse them, or treat their effects as 0 (a shrunken fit interpolates "
        "those of numbers).",
        rich_help_panel=READING,
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Refuse rows with unseen combinations of levels.", rich_help_panel=READING),
]

Report = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE", help="Write a report: .html, .json or .md.", rich_help_panel=RESULTS),
]
Save = Annotated[
    str | None,
    typer.Option(
        "--save", metavar="FILE", help="Save the decomposition for the other commands.", rich_help_panel=RESULTS
    ),
]
Covariances = Annotated[
    bool | None,
    typer.Option(
        "--covariances/--no-covariances",
        help="Whether the saved file holds the covariances of effects, which standard errors of what is computed from "
        "it need. Default: if they take at most 4 MB and a few seconds.",
        show_default=False,
        rich_help_panel=RESULTS,
    ),
]
Title = Annotated[
    str | None, typer.Option("--title", metavar="TEXT", help="Title of the report.", rich_help_panel=RESULTS)
]
Effects = Annotated[
    int,
    typer.Option("--effects", min=0, metavar="N", help="Number of strongest effects to list.", rich_help_panel=RESULTS),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.", rich_help_panel=RESULTS)]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to standard output.", rich_help_panel=RESULTS)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.", rich_help_panel=RESULTS)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=RESULTS)]

Target = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="File to write.", rich_help_panel=RESULTS, show_default=False),
]
LevelsFile = Annotated[
    str,
    typer.Option(
        "--levels", metavar="FILE", help="File written by `exanova levels`.", rich_help_panel=FIT, show_default=False
    ),
]
Add = Annotated[
    str | None,
    typer.Option("--add", metavar="FILE", help="Levels to keep; new ones are added.", rich_help_panel=FIT),
]
MinCount = Annotated[
    int,
    typer.Option(
        "--min-count", metavar="N", help="Refuse to write cells with fewer rows than this.", rich_help_panel=FIT
    ),
]
Files = Annotated[
    list[str], typer.Argument(metavar="MOMENTS...", help="Files written by `exanova moments`.", show_default=False)
]


def text(*paragraphs: str) -> str:
    """Paragraphs of a help without line breaks, so that they are wrapped to the width of the terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def every(*given: Names) -> tuple[str, ...]:
    """All values of options that may be repeated."""
    return tuple(value for values in given for value in values or ())


def reading(
    format_: str | None,
    separator: str | None,
    decimal: str,
    missing: Names,
    as_text: Names = None,
    categories: Names = None,
) -> ReadOptions:
    """How to read tables, from what was typed."""
    from exanova.cli.table_files import ReadOptions

    names, chosen = ([name for part in every(given) for name in part.split(",")] for given in (as_text, categories))
    return ReadOptions(format_, separator, every(missing), tuple(names), tuple(chosen), decimal)
