"""An extension of mkdocstrings: docstrings as they are in the source become Markdown that reads well.

Examples become blocks of code, roles such as :class: become links or code, and the attributes after a fit a list.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)
ROLE = re.compile(r":(?:class|func|meth|mod):`~?([\w.]+)`")
AFTER_FIT = re.compile(r"^(\s*)Attributes \(after ``fit``\):", re.MULTILINE)


def as_markdown(text: str) -> str:
    """A docstring with its examples fenced, its roles as code and its headings as the parser expects them."""

    def fenced(match: re.Match[str]) -> str:
        return f"{match[1]}```pycon\n{match[0]}\n{match[1]}```"

    return AFTER_FIT.sub(r"\1Attributes:", ROLE.sub(r"`\1`", EXAMPLE.sub(fenced, text)))


class Docstrings(griffe.Extension):
    """Rewrites each docstring before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for each module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
