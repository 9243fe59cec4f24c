"""A notebook is run by a kernel without a network, and its page is looked at in a browser without a network."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import nbclient
import nbformat
import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import sync_playwright

from exanova import FunctionalANOVA

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "jupyter.md"

NO_NETWORK = """
import socket

def refuse(*_, **__):
    raise OSError("this test has no network")

socket.getaddrinfo = socket.create_connection = refuse
"""

MIXED = """
rng = np.random.default_rng(1)
mixed = pd.DataFrame({"age": rng.uniform(18, 90, 300), "home": rng.choice(["own", "rent"], 300)})
mixed["since"] = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, 300), "D")
other = FunctionalANOVA(verbose=False).fit(mixed, np.asarray(mixed["age"] > 50, dtype=float))
other.plot.importance()
"""


def cells() -> list[str]:
    """The snippets of the page on notebooks, and every kind of object as the last line of a cell."""
    written = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    shown = ["effects_['job']", "effects_['job', 'shift']", "certificate_", "explain(table.head(3))", "importance()"]
    shown += [
        "explain(table.head(3))[0]",
        "compare(anova)",
        "plot.pair('job', 'shift')",
        "plot.waterfall(table.head(1))",
    ]
    parts = ["other", "effects_['age'].joined()", "plot.effect('age', joined=True)", "plot.effect('since')"]
    others = [MIXED, *(part if part == "other" else f"other.{part}" for part in parts)]
    return [NO_NETWORK, *written, *(f"anova.{part}" for part in shown), *others]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells()])
    folder = tmp_path_factory.mktemp("notebook")
    nbclient.NotebookClient(made, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return made


def outputs(notebook) -> list[dict[str, str]]:
    return [out["data"] for cell in notebook.cells for out in cell.outputs if "data" in out]


def page(notebook) -> str:
    """What a notebook shows of every output: its richest form."""
    parts = []
    for data in outputs(notebook):
        rich = data.get("text/html") or data.get("image/svg+xml")
        parts.append(f"<div class=output>{rich or '<pre>' + html.escape(data['text/plain']) + '</pre>'}</div>")
    return f"<!doctype html><meta charset=utf-8><body>{''.join(parts)}</body>"


def test_every_cell_ran_and_showed_a_table_or_a_picture(notebook):
    assert not [out for cell in notebook.cells for out in cell.outputs if out["output_type"] == "error"]
    rich = [data for data in outputs(notebook) if "text/html" in data or "image/svg+xml" in data]
    assert len(rich) == len(outputs(notebook)) >= 14
    assert sum("image/svg+xml" in data for data in rich) >= 5
    for data in rich:
        assert "<script" not in data.get("text/html", "")


def test_the_page_is_drawn_without_a_network(notebook, tmp_path):
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on the path: the page is looked at in a real browser")
    (tmp_path / "notebook.html").write_text(page(notebook), encoding="utf-8")
    asked, wrong = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            context = browser.new_context(offline=True)
            shown = context.new_page()
            shown.on("request", lambda request: asked.append(request.url))
            shown.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
            shown.on("pageerror", lambda error: wrong.append(str(error)))
            shown.goto((tmp_path / "notebook.html").as_uri())
            boxes = [part.bounding_box() for part in shown.locator(".output").all()]
            marks = shown.locator("svg path, svg rect").count()
            text = shown.locator("body").inner_text()
        finally:
            browser.close()
    assert not wrong
    assert all(url.startswith("file:") for url in asked)
    assert all(box["width"] > 100 and box["height"] > 15 for box in boxes)
    assert marks > 50
    assert "Error loading script" not in text
    for words in ("Does it hold on other rows?", "guard", "share of rows", "home"):
        assert words in text


HTML = {
    "estimator": lambda a, x: a,
    "decomposition": lambda a, x: a.decomposition_,
    "effects": lambda a, x: a.effects_,
    "effect": lambda a, x: a.effects_["<b>job"],
    "pair": lambda a, x: a.effects_["<b>job", "home"],
    "explanation": lambda a, x: a.explain(x),
    "interactions": lambda a, x: a.interactions(x),
    "components": lambda a, x: a.components(x),
    "certificate": lambda a, x: a.certificate_,
    "importance": lambda a, x: a.importance(),
    "significance": lambda a, x: a.significance(),
    "comparison": lambda a, x: a.compare(a),
    "change": lambda a, x: a.change(a),
    "difference": lambda a, x: a.difference(x[:20], x[20:]),
    "reasons": lambda a, x: a.reasons(x[:3]),
    "plan": lambda a, x: a.plan_,
    "provenance": lambda a, x: a.provenance_,
    "unfitted": lambda a, x: FunctionalANOVA(),
}


@pytest.mark.parametrize("name", HTML)
def test_every_object_is_shown_as_html_without_scripts_or_addresses(name):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"<b>job": rng.choice(["none", "<i>clerk"], 60), "home": rng.choice(["rent", "own"], 60)})
    anova = FunctionalANOVA().fit(rows, (rows["home"] == "own") + 2.0 * (rows["<b>job"] == "none"))
    html = HTML[name](anova, rows)._repr_html_()
    assert html.count("<") == html.count(">")
    for forbidden in ("<script", "http", "<b>job", "<i>clerk"):
        assert forbidden not in html
