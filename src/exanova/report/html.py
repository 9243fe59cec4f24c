"""The HTML page of a summary: template, style and scripts around its data, in one file that works offline.

Text from the data reaches the page in two ways, and is escaped in both: through Jinja2, which escapes everything it
inserts, and as JSON in which no character can end a script element. The script of the page puts it there as text, and
the policy of the page runs no script but its own two, and loads nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from exanova.errors import MissingPackageError
from exanova.report.summary import Summary
from exanova.show.records import legible


def to_html(summary: Summary) -> str:
    """The whole page.

    Raises:
        MissingPackageError: if jinja2, altair or vl-convert is not installed.
    """
    template, bundle = _template(), _bundle()
    from altair.utils.schemapi import debug_mode

    from exanova.report.page import Page  # needs altair

    with debug_mode(False):  # altair checks every part of every chart against its schema otherwise
        page = Page(summary)
    scripts = bundle, _text("report.js")
    return str(
        template.render(
            summary=summary,
            page=page,
            legible=legible,
            style=_text("report.css"),
            scripts=scripts,
            payload=page.payload.to_json(),
            policy=_policy(scripts),
        )
    )


def _text(name: str) -> str:
    return files("exanova.report").joinpath("templates", name).read_text(encoding="utf-8")


def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise _missing(error) from error
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text("report.html.j2"))


@cache
def _bundle() -> str:
    """Vega-Lite and what it stands on, as one script; made once a process, which takes seconds."""
    try:
        import altair
        import vl_convert
    except ImportError as error:
        raise _missing(error) from error
    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return str(script).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _missing(error: ImportError) -> MissingPackageError:
    return MissingPackageError(
        f'an HTML report needs {error.name}, which is not installed: pip install "exanova[app]", '
        "or write the report as .json or .md."
    )


def _policy(scripts: Sequence[str]) -> str:
    """What the page may do: run these scripts, use its own styles. Nothing else, and no network."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
