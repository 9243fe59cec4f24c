"""Messages of the library in the words of the command: its parameters become the options that set them."""

from __future__ import annotations

import re

OPTIONS = (
    *("max_order", "max_terms", "selection", "interactions", "n_bins", "min_frequency", "strategy", "ties", "basis"),
    *("route", "memory_limit", "n_jobs", "handle_unknown", "index", "order"),
)
"""Parameters of the library that are options of the same name."""

PHRASES = (
    (r"Pass n_bins= \(for example n_bins=\{'(.*)': (\d+)\}\) to bin it,", r"Give --n-bins '\1=\2', --ignore '\1',"),
    (r"n_bins=\{'(.*)': (\d+)\}", r"--n-bins '\1=\2'"),
    (r"or convert it to a categorical dtype if each number is a category", "or --text if each number is a category"),
    (r"^(Column ('.*?') .*)Drop the column", r"\1Leave it out with --ignore \2"),
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


def _option(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"
