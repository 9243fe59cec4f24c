"""Arguments and options of the commands: their names, their help, and how their text is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from exanova.cli.text import nearest, split_names
from exanova.errors import InputError

COLUMNS, MODEL, FIT, READING, RESULTS = "Columns", "Model", "Decomposition", "Reading tables", "Results"
"""Panels of the help."""

Names = list[str] | None

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Table to read: .csv, .tsv or .jsonl (also .gz), .parquet, .feather; - for standard input.",
        show_default=False,
    ),
]
Saved = Annotated[str, typer.Argument(metavar="MODEL", help="File written by --save.", show_default=False)]
Before = Annotated[str, typer.Argument(metavar="BEFORE", help="File written by --save.", show_default=False)]
After = Annotated[
    str, typer.Argument(metavar="AFTER", help="File written by --save, to compare with it.", show_default=False)
]

Prediction = Annotated[
    Names,
    typer.Option(
        metavar="COLUMN",
        help="Column with the model's predictions (repeat for several outputs).",
        rich_help_panel=COLUMNS,
    ),
]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with row weights.", rich_help_panel=COLUMNS)]
Features = Annotated[
    Names,
    typer.Option(metavar="A,B,C", help="Feature columns. Default: all other columns.", rich_help_panel=COLUMNS),
]
Ignore = Annotated[Names, typer.Option(metavar="A,B,C", help="Columns to leave out.", rich_help_panel=COLUMNS)]

ModelToAsk = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Model to explain: an .onnx file, a function package.module:name, or a pickle (.joblib, .pkl).",
        rich_help_panel=MODEL,
    ),
]
TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", help="Load a pickle, which can run any code.", rich_help_panel=MODEL)
]
OutputNames = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="Names of the model's outputs.", rich_help_panel=MODEL)
]

MaxOrder = Annotated[
    str, typer.Option(metavar="N|all", help="Largest number of features in an interaction.", rich_help_panel=FIT)
]
Subsets = Annotated[
    Names,
    typer.Option(
        metavar="A:B,B:C:D", help="Decompose only over these subsets of features and their parts.", rich_help_panel=FIT
    ),
]
FormerSubsets = Annotated[Names, typer.Option("--interactions", metavar="A:B,B:C:D", hidden=True)]
MaxTerms = Annotated[
    int | None,
    typer.Option(metavar="N", help="Budget: largest number of functions, for many features.", rich_help_panel=FIT),
]
Selection = Annotated[
    str | None,
    typer.Option(metavar="screen|canonical|lasso", help="How to spend the budget.", rich_help_panel=FIT),
]
NBins = Annotated[
    Names,
    typer.Option(metavar="N|A=N,B=N", help="Bin numeric columns into this many intervals.", rich_help_panel=FIT),
]
Strategy = Annotated[
    str, typer.Option(metavar="quantile|uniform|kmeans", help="How to place the bins.", rich_help_panel=FIT)
]
MinFrequency = Annotated[
    str | None,
    typer.Option(
        metavar="N|FRACTION", help="Merge levels that occur in fewer rows, e.g. 10 or 0.01.", rich_help_panel=FIT
    ),
]
Ties = Annotated[
    str,
    typer.Option(
        metavar="share|first", help="How to split an effect that several subsets can express.", rich_help_panel=FIT
    ),
]
Basis = Annotated[
    str,
    typer.Option(
        metavar="pure|paper", help="Orthogonal functions, or the functions of the paper.", rich_help_panel=FIT
    ),
]
Route = Annotated[
    str,
    typer.Option(metavar="auto|grid|dense|moments|matrix-free", help="Solver to use.", rich_help_panel=FIT),
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
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Memory that may be used, e.g. '4 GB'. Default: most of what is free.", rich_help_panel=FIT
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
    str | None, typer.Option(metavar="CHAR", help="Field separator of CSV input.", rich_help_panel=READING)
]
Missing = Annotated[
    Names,
    typer.Option(
        metavar="TEXT", help="Additional text to read as missing in CSV (repeatable).", rich_help_panel=READING
    ),
]
AsText = Annotated[
    Names,
    typer.Option(
        "--text", metavar="A,B,C|all", help="CSV columns to read as text even if numeric.", rich_help_panel=READING
    ),
]
HandleUnknown = Annotated[
    str,
    typer.Option(
        metavar="error|ignore",
        help="What to do with unseen levels: refuse them, or treat their effects as 0.",
        rich_help_panel=READING,
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Refuse rows with unseen combinations of levels.", rich_help_panel=READING),
]

Report = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write a report: .html, .json or .md.", rich_help_panel=RESULTS)
]
Save = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Save the decomposition for the other commands.", rich_help_panel=RESULTS),
]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the report.", rich_help_panel=RESULTS)]
Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File to write: .csv, .tsv, .parquet or .feather; - for CSV on standard output.",
        rich_help_panel=RESULTS,
    ),
]
Index = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Index to compute: SV, k-SII, SII, STII, FSII, BII, BV, FBII or Moebius.",
        rich_help_panel=RESULTS,
    ),
]
Order = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Largest size of a subset (not used by SV).", rich_help_panel=RESULTS),
]
Effects = Annotated[
    int, typer.Option(min=0, metavar="N", help="Number of strongest effects to list.", rich_help_panel=RESULTS)
]
OneEffect = Annotated[
    Names,
    typer.Option(metavar="A|A:B", help="Show the table of this effect (repeatable).", rich_help_panel=RESULTS),
]
Changes = Annotated[
    int, typer.Option(min=0, metavar="N", help="Number of largest changes to list.", rich_help_panel=RESULTS)
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.", rich_help_panel=RESULTS)]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to standard output.", rich_help_panel=RESULTS)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.", rich_help_panel=RESULTS)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=RESULTS)]


def order(text: str) -> int | None:
    """``--max-order``: a number, or ``all``.

    >>> order("2"), order("all")
    (2, None)
    """
    return None if text.strip().lower() == "all" else whole(text, "--max-order", "a whole number, or 'all'")


def whole(text: str, option: str, expected: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"{option} {text!r} was given; expected {expected}.") from error


def frequency(text: str | None) -> int | float | None:
    """``--min-frequency``: a number of rows, or a fraction of them.

    >>> frequency("10"), frequency("0.01"), frequency(None)
    (10, 0.01, None)
    """
    if text is None:
        return None
    try:
        return int(text) if text.strip().lstrip("+").isdecimal() else float(text)
    except ValueError as error:
        raise InputError(
            f"--min-frequency {text!r} was given; expected a number of rows such as 10, or a fraction such as 0.01."
        ) from error


def bins(texts: Sequence[str], features: Sequence[str]) -> int | dict[str, int] | None:
    """``--n-bins``: one number for all columns, or numbers by column.

    >>> bins(["5"], []), bins(["age=4,income=6"], ["age", "income"])
    (5, {'age': 4, 'income': 6})
    """
    if not texts:
        return None
    expected = "a whole number, or numbers by column such as age=5,income=4"
    if len(texts) == 1 and "=" not in texts[0]:
        return whole(texts[0], "--n-bins", expected)
    found = {}
    for part in (part for text in texts for part in text.split(",")):
        name, equals, number = part.rpartition("=")
        if not equals:
            raise InputError(f"--n-bins {part!r} was given; expected {expected}.")
        found[_feature(name.strip(), features, "--n-bins")] = whole(number, "--n-bins", expected)
    return found


def subsets(texts: Sequence[str], features: Sequence[str]) -> list[tuple[str, ...]] | None:
    """``--subsets``: subsets such as ``a:b,b:c:d``; a name may contain a colon or a comma.

    >>> subsets(["a:b,b:c:d"], ["a", "b", "c", "d"])
    [('a', 'b'), ('b', 'c', 'd')]
    """
    if not texts:
        return None
    return [subset(part, features, "--subsets") for text in texts for part in _subset_texts(text, features)]


def subset(text: str, features: Sequence[str], option: str) -> tuple[str, ...]:
    """The features of one subset, such as ``a:b``."""
    return tuple(_feature(name, features, option) for name in split_names(text, features, ":"))


def eval_fraction(text: str) -> float | None:
    """``--eval``: a fraction of the rows, or ``None`` if it is a file name.

    >>> eval_fraction("0.25"), eval_fraction("test.csv")
    (0.25, None)
    """
    try:
        fraction = float(text)
    except ValueError:
        return None
    if not 0.0 < fraction < 1.0:
        raise InputError(f"--eval {text!r} was given; expected a fraction of the rows such as 0.2, or a file.")
    return fraction


def output_names(text: str | None) -> list[str] | None:
    """``--output-names``: a list."""
    return None if text is None else [name.strip() for name in text.split(",")]


def memory(text: str | None) -> Any:
    """``--memory-limit``: bytes, or text with a unit, which the library reads."""
    return int(text) if text is not None and text.isdecimal() else text


def _subset_texts(text: str, features: Sequence[str]) -> list[str]:
    """Split ``a:b,c:d`` at the commas that are not part of a name."""
    pieces, rest = [""], text
    by_length = sorted(features, key=len, reverse=True)
    while rest:
        name = next((f for f in by_length if f and rest.startswith(f)), None)
        if name is None and rest[0] == ",":
            pieces.append("")
            rest = rest[1:]
        else:
            taken = name or rest[0]
            pieces[-1], rest = pieces[-1] + taken, rest[len(taken) :]
    return [piece.strip() for piece in pieces if piece.strip()]


def _feature(name: str, features: Sequence[str], option: str) -> str:
    if name not in features:
        raise InputError(f"{option} names {name!r}, which is not a feature.{nearest(name, features)}")
    return name
