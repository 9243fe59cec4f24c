"""Messages of the library in the words of the command: options in place of parameters."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any, get_origin

from exanova.cli import answer_arguments, arguments
from exanova.messages import UNSAID, Action, Mention, Value, Words

OPTIONS: dict[str, str] = {
    flag[2:].replace("-", "_"): flag
    for module in (answer_arguments, arguments)
    for kind in vars(module).values()
    if get_origin(kind) is Annotated
    # The first name of an option is a default for typer, which sorts that out later.
    for flags in (kind.__metadata__[0].default, *(kind.__metadata__[0].param_decls or ()))
    if isinstance(flags, str) and flags.startswith("--")
    for flag in flags.split("/")  # one to say yes, one to say no
}
"""Every long option of the command, by the name of its parameter."""

OTHER_NAMES = {"eval_set": "eval", "sample_weight": "weight"}
"""Parameters of the library whose option has another name."""

NONE = {"max_order": "all", "max_levels": "none", "n_bins": "none", "shrinkage": "none"}
"""Options in which ``None`` has its own word."""

YES_OR_NO = {"sampled": {True: "--sample", False: "--population", "auto": "neither --sample nor --population"}}
"""Parameters whose values are options of their own."""

ACTIONS = {"drop": "leave it out with --ignore", "categorical": "read it as text with --text"}
ACTIONS |= {"missing": "read them as missing with --missing", "decimal": "read it with --decimal"}
"""Options that replace what Python users do with the column in code."""


def with_options(message: str) -> str:
    """A message of the library with options in place of parameters.

    >>> from exanova.messages import Parameter
    >>> with_options(Words("use ", Parameter("max_order", None), " or ", Parameter("n_bins", {"age": 5}), "."))
    'use --max-order all or --n-bins age=5.'
    """
    return message.spelled(_spell) if isinstance(message, Words) else message


def _spell(mention: Mention) -> str:
    if isinstance(mention, Action):
        advice = ACTIONS[mention.name] if mention.count == 1 else ACTIONS[mention.name].replace(" it ", " them ")
        return f"{advice} {shlex.quote(mention.column)}"
    if mention.name in YES_OR_NO:
        options = YES_OR_NO[mention.name]
        return "--sample or --population" if mention.value is UNSAID else options.get(mention.value, str(mention.value))
    option = OPTIONS.get(OTHER_NAMES.get(mention.name, mention.name), mention.name)  # some only Python has
    if mention.value is UNSAID or mention.value is True:
        return option
    if mention.value is False or (mention.value is None and mention.name not in NONE):
        return f"no {option}"
    typed = NONE[mention.name] if mention.value is None else _typed(mention.value)
    return typed if isinstance(mention, Value) else f"{option} {typed}"


def _typed(value: Any) -> str:
    """A value as it is typed in a shell."""
    if isinstance(value, Mapping):
        value = ",".join(f"{name}={'none' if bins is None else bins}" for name, bins in value.items())
    elif isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return shlex.quote(str(value))
