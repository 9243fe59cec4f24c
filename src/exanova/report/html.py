"""The HTML page of a summary: template, style and script around its data, in one file that works offline.

Text from the data reaches the page in two ways, and is escaped in both: through Jinja2, which escapes everything it
inserts, and as JSON in which no character can end a script element. The script of the page puts it there as text, and
the policy of the page runs no script but its own, and loads nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import Any

from exanova.errors import MissingPackageError
from exanova.report.glossary import GLOSSARY
from exanova.report.page import Page, joined
from exanova.report.summary import Summary
from exanova.show.records import legible

SCRIPTS = (
    "data.js",
    "svg.js",
    "charts.js",
    "tables.js",
    "cards.js",
    "at_levels.js",
    "rows.js",
    "what_if.js",
    "cohorts.js",
    "report.js",
)
"""Parts of the script, each of which may use what those before it define."""


COMMENTS = re.compile(r"^ *//.*\n", re.MULTILINE)
"""Lines of a script that hold nothing but a comment."""


def to_html(summary: Summary) -> str:
    """The complete page.

    Raises:
        MissingPackageError: if jinja2 is not installed.
    """
    page, script = Page(summary), _script()
    return str(
        _template().render(
            summary=summary,
            page=page,
            joined=joined,
            legible=legible,
            glossary=GLOSSARY,
            style=_text("report.css"),
            script=script,
            payload=page.payload.to_json(),
            policy=_policy(script),
        )
    )


def _text(name: str) -> str:
    return files("exanova.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """The parts of the script as one, in a scope of its own, without the lines of comments that are for maintainers."""
    parts = "\n".join(COMMENTS.sub("", _text(name)) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingPackageError(
            f'an HTML report needs {error.name}, which is not installed: pip install "exanova[app]", '
            "or write the report as .json or .md."
        ) from error
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text("report.html.j2"))


def _policy(script: str) -> str:
    """What the page may do: run this script, use its own styles. Nothing else, and no network."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
