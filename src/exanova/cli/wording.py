"""Messages of the library in the words of the command: its parameters become the options that set them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

OPTIONS = (
    *("max_order", "max_terms", "selection", "interactions", "n_bins", "min_frequency", "strategy", "ties", "basis"),
    *("route", "memory_limit", "n_jobs", "handle_unknown", "index", "order"),
)
"""Parameters of the library that are options of the same name."""

PHRASES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"n_bins=\{'(.*?)': (\d+|None)(.*?)\}", lambda m: f"--n-bins '{_by_column(m[0])}'"),
    (
        r"convert a column to a categorical dtype if each of its values is",
        "give it with --text if each of its values is",
    ),
    (r"Drop them from the table if it can do without", "Leave them out with --ignore if it can do without"),
    (r"\bmax_order=None\b", "--max-order all"),
    (r"(?<=at least 0, or )None", "all"),
    (r"\bstrict=True raises instead", "--strict refuses such rows"),
    (r" strict=False counts it as 0\.", " Without --strict it counts as 0."),
    (r"Fit with eval_set= to know", "Add --eval 0.2 to know"),
    (r"name them alike with output_names= when fitting", "name the columns alike, or use --output-names"),
)
"""What is said otherwise on a command line."""


def reworded(message: str) -> str:
    """A message of the library as the command says it.

    >>> reworded("give max_terms=, a number; basis='pure' is orthogonal")
    'give --max-terms, a number; --basis pure is orthogonal'
    """
    for pattern, instead in PHRASES:
        message = re.sub(pattern, instead, message)
    names = "|".join(OPTIONS)
    message = re.sub(rf"\b({names})=(?=[\s,;.)]|$)", lambda m: _option(m[1]), message)
    message = re.sub(rf"\b({names})='?([^\s,;']+)'?", lambda m: f"{_option(m[1])} {m[2]}", message)
    return re.sub(rf"\b({'|'.join(n for n in OPTIONS if '_' in n)})\b", lambda m: _option(m[1]), message)


def _by_column(given: str) -> str:
    """A mapping of the library, as in ``n_bins={'a': 5, 'b': None}``, as the option writes it: ``a=5,b=none``."""
    found = ast.literal_eval(given.partition("=")[2])
    return ",".join(f"{name}={'none' if bins is None else bins}" for name, bins in found.items())


def _option(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"
