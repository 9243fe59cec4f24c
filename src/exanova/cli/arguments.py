"""Arguments and options that commands share: what each is called, what it takes, what its help says."""

from __future__ import annotations

from typing import Annotated

import typer

COLUMNS, MODEL, FIT, READING, RESULTS = "Columns", "Model", "Decomposition", "Reading tables", "Results"
"""Panels of the help."""

Names = list[str] | None

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv or .jsonl (also .gz), .parquet, .feather; - for standard input.",
        show_default=False,
    ),
]
Saved = Annotated[str, typer.Argument(metavar="MODEL", help="A file written by --save.", show_default=False)]
Before = Annotated[str, typer.Argument(metavar="BEFORE", help="A file written by --save.", show_default=False)]
After = Annotated[str, typer.Argument(metavar="AFTER", help="Another one.", show_default=False)]

Prediction = Annotated[
    Names,
    typer.Option(
        metavar="COLUMN",
        help="What the model says of each row; repeat it for several outputs.",
        rich_help_panel=COLUMNS,
    ),
]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="Weights of the rows.", rich_help_panel=COLUMNS)]
Features = Annotated[
    Names,
    typer.Option(
        metavar="A,B,C", help="The features. Default: every column that is nothing else.", rich_help_panel=COLUMNS
    ),
]
Ignore = Annotated[Names, typer.Option(metavar="A,B,C", help="Columns to leave aside.", rich_help_panel=COLUMNS)]

ModelToAsk = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="A file .onnx, a function package.module:name, or a pickle (.joblib, .pkl).",
        rich_help_panel=MODEL,
    ),
]
TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", help="Load a pickle, which runs whatever is in it.", rich_help_panel=MODEL)
]
OutputNames = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="Names of the outputs of the model.", rich_help_panel=MODEL)
]

MaxOrder = Annotated[
    str, typer.Option(metavar="N|all", help="Largest number of features in an interaction.", rich_help_panel=FIT)
]
Interactions = Annotated[
    Names,
    typer.Option(metavar="A:B,B:C:D", help="Only these subsets, and those inside them.", rich_help_panel=FIT),
]
MaxTerms = Annotated[
    int | None, typer.Option(metavar="N", help="A budget of functions, for many features.", rich_help_panel=FIT)
]
Selection = Annotated[
    str | None,
    typer.Option(metavar="screen|canonical|lasso", help="How the budget is spent.", rich_help_panel=FIT),
]
NBins = Annotated[
    Names,
    typer.Option(
        metavar="auto|none|N|A=N,B=N",
        help="Bin numbers and dates with many values; auto if absent.",
        rich_help_panel=FIT,
    ),
]
Strategy = Annotated[
    str, typer.Option(metavar="quantile|uniform|kmeans|model", help="How bins are cut.", rich_help_panel=FIT)
]
MinFrequency = Annotated[
    str | None,
    typer.Option(metavar="N|SHARE", help="Merge levels in fewer rows, as 10 or 0.01.", rich_help_panel=FIT),
]
Ties = Annotated[
    str,
    typer.Option(metavar="share|first", help="Who gets what several subsets can express.", rich_help_panel=FIT),
]
Basis = Annotated[
    str, typer.Option(metavar="pure|paper", help="Orthogonal functions, or those of the paper.", rich_help_panel=FIT)
]
Route = Annotated[
    str,
    typer.Option(metavar="auto|grid|dense|moments|matrix-free", help="How it is solved.", rich_help_panel=FIT),
]
Eval = Annotated[
    str | None,
    typer.Option(
        "--eval", metavar="SHARE|FILE", help="Judge the fit on held-out rows, as 0.2, or a file.", rich_help_panel=FIT
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="As '4 GB'. Default: most of what is free.", rich_help_panel=FIT),
]
Jobs = Annotated[
    int | None, typer.Option("--n-jobs", metavar="N", help="Threads. Default: every core.", rich_help_panel=FIT)
]

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="csv|tsv|jsonl|parquet|feather",
        help="Default: what the name ends in, and csv for -.",
        rich_help_panel=READING,
    ),
]
Separator = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Stands between the cells of a CSV file.", rich_help_panel=READING)
]
Missing = Annotated[
    Names,
    typer.Option(
        metavar="TEXT", help="Means a missing value in CSV, as an empty cell does; repeat it.", rich_help_panel=READING
    ),
]
AsText = Annotated[
    Names,
    typer.Option("--text", metavar="A,B,C|all", help="CSV columns whose numbers are names.", rich_help_panel=READING),
]
HandleUnknown = Annotated[
    str,
    typer.Option(
        metavar="error|ignore", help="A level never seen: refuse it, or let its effects be 0.", rich_help_panel=READING
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Refuse rows with a combination that never occurred.", rich_help_panel=READING),
]

Report = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write a report: .html, .json or .md.", rich_help_panel=RESULTS)
]
Save = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write the decomposition, for the other commands.", rich_help_panel=RESULTS),
]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the report.", rich_help_panel=RESULTS)]
Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help=".csv, .tsv, .parquet or .feather; - for CSV on standard output.",
        rich_help_panel=RESULTS,
    ),
]
Index = Annotated[
    str,
    typer.Option(metavar="NAME", help="SV, k-SII, SII, STII, FSII, BII, BV, FBII or Moebius.", rich_help_panel=RESULTS),
]
Order = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Largest size of a subset, but for SV.", rich_help_panel=RESULTS),
]
Effects = Annotated[
    int, typer.Option(min=0, metavar="N", help="How many of the strongest effects to list.", rich_help_panel=RESULTS)
]
OneEffect = Annotated[
    Names,
    typer.Option(metavar="A|A:B", help="The table of this effect; repeat it for more.", rich_help_panel=RESULTS),
]
Changes = Annotated[
    int, typer.Option(min=0, metavar="N", help="How many of the largest changes to list.", rich_help_panel=RESULTS)
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.", rich_help_panel=RESULTS)]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.", rich_help_panel=RESULTS)]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.", rich_help_panel=RESULTS)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.", rich_help_panel=RESULTS)]
