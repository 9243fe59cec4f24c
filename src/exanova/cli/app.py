"""The command ``exanova``: its help, and its subcommands from the families of commands.

Slow imports are deferred until a command runs, so that help and usage errors appear at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from exanova import __version__
from exanova.cli import apart_app, fit_app, question_app, saved_app
from exanova.cli.arguments import text
from exanova.errors import InputError

OF_DATA = ("handle_unknown", "format_", "separator", "decimal", "missing")

NEEDED: Mapping[str, Mapping[str, str]] = {
    "explain": {"title": "report", "trust_pickle": "model"},
    "moments": {"trust_pickle": "model"},
    "rows": dict.fromkeys(("direction", "against", "of_output"), "reasons"),
    "show": {"joined": "effect"},
    "report": dict.fromkeys(OF_DATA, "data"),
}
"""Options of commands that mean nothing without another one: refused without it, rather than ignored."""

EXCLUDED = {"rows": dict.fromkeys(("index", "order"), "reasons")}
"""Options that mean nothing beside another one."""


class Command(TyperCommand):
    """A command that refuses options which it would otherwise ignore."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        name, typed = str(self.name), {p.name: p.opts[0] for p in self.params if _is_typed(ctx, p.name)}
        option = {p.name: p.opts[0] for p in self.params}
        for own, other in NEEDED.get(name, {}).items():
            if own in typed and other not in typed:
                raise InputError(f"{typed[own]} was given without {option[other]}", remedy="give both, or neither")
        for own, other in EXCLUDED.get(name, {}).items():
            if own in typed and other in typed:
                raise InputError(f"{typed[own]} was given with {typed[other]}", remedy="give one of them")
        return super().invoke(ctx)


def _is_typed(context: Any, name: str | None) -> bool:
    """Whether an option was typed, and not left at its default."""
    source = None if name is None else context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _examples(*pairs: tuple[str, str]) -> str:
    """Each command below its purpose."""
    return "[bold]Examples[/bold]\n\n" + "\n\n".join(f"{why}\n  [cyan]{command}[/cyan]" for why, command in pairs)


EXANOVA = text(
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
    + "\n\nExit codes: 0 success, 2 error (one line on standard error), 3 above --fail-above, 130 interrupted."
)

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


for command, about, pairs in (
    *fit_app.COMMANDS[:1],
    *saved_app.COMMANDS,
    *fit_app.COMMANDS[1:],
    *apart_app.COMMANDS,
    *question_app.COMMANDS,
):
    app.command(help=about, epilog=_examples(*pairs), cls=Command)(command)
