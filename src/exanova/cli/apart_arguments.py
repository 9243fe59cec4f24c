"""Arguments and options of the commands for rows in several places."""

from __future__ import annotations

from typing import Annotated

import typer

from exanova.cli import arguments as a

Target = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="FILE", help="File to write.", rich_help_panel=a.RESULTS, show_default=False
    ),
]
LevelsFile = Annotated[
    str,
    typer.Option(
        "--levels", metavar="FILE", help="File written by `exanova levels`.", rich_help_panel=a.FIT, show_default=False
    ),
]
Add = Annotated[
    str | None,
    typer.Option("--add", metavar="FILE", help="Levels to keep; new ones are added.", rich_help_panel=a.FIT),
]
MinCount = Annotated[
    int, typer.Option("--min-count", metavar="N", help="Refuse cells of fewer rows than this.", rich_help_panel=a.FIT)
]
Files = Annotated[
    list[str], typer.Argument(metavar="MOMENTS...", help="Files written by `exanova moments`.", show_default=False)
]
