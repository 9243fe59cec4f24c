"""Rows are shown with what they hold and the interval it falls in: explanations, waterfalls, notebooks, the report."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.explain.cells import cell_text, with_level
from exanova.report.explorer import GivenRows
from exanova.report.live_rows import live_rows
from exanova.show.row_records import waterfall_records


def table(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "income": rng.gamma(9, 4, n).round(1),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
            "home": rng.choice(["rent", "own"], n),
            "age": np.where(np.arange(n) % 9 == 0, np.nan, rng.integers(18, 80, n)),
        }
    )


ROWS = table()
OUTPUTS = np.where(ROWS["income"] > 36, 1.0, 0.0) + (ROWS["home"] == "rent")


@pytest.fixture(scope="module")
def anova():
    return FunctionalANOVA(max_order=1).fit(ROWS, OUTPUTS)


def said(level: str) -> str:
    """An interval with an open end is said as it is, and a value is in any other."""
    return level if re.match("<|>=|before|from", level) else f"in {level}"


def test_an_explanation_shows_values_and_intervals(anova):
    e = anova.explain(ROWS)
    for k in (0, 5, 17):
        shown = dict(zip(e.feature_names, e[k].display_cells, strict=True))
        level = dict(zip(e.feature_names, e[k].display_data, strict=True))
        assert shown["home"] == level["home"] == ROWS["home"][k]
        assert shown["income"] == f"{ROWS['income'][k]:g} ({said(level['income'])})"
        assert shown["day"] == f"{ROWS['day'][k]:%Y-%m-%d} ({said(level['day'])})"
    assert e[9].display_cells[3] == "(missing)"
    assert e[:, "income"].display_cells[5] == e[5].display_cells[0] == e[5, "income"].display_cells
    assert e[[5, 17]].display_cells.tolist() == e.display_cells[[5, 17]].tolist()
    assert e[:, ["home", "day"]].display_cells[:, 1].tolist() == e.display_cells[:, 1].tolist()


def test_pictures_and_notebooks_show_them(anova):
    e = anova.explain(ROWS)
    labels = {record["label"] for record in waterfall_records(e[5])}
    assert f"income = {e[5].display_cells[0]}" in labels
    assert f"({e[0].display_cells[0].replace('<', '&lt;').replace('>', '&gt;')})" in e._repr_html_()


def test_the_report_shows_them(anova, tmp_path):
    anova.report(tmp_path / "r.json", X=ROWS, model=OUTPUTS)
    row = json.loads((tmp_path / "r.json").read_text())["sample"]["rows"][0]
    assert row["cells"][0] == f"{ROWS['income'][row['row']]:g} ({said(row['levels'][0])})"
    live = live_rows(anova.decomposition_, GivenRows(ROWS, OUTPUTS))
    assert set(live.cells) == {0, 1, 3}
    assert live.cells[0] == [f"{ROWS['income'][k]:g}" for k in live.numbers]
    assert live.cells[3][9] == ""
    anova.report(tmp_path / "r.html", X=ROWS, model=OUTPUTS)
    assert '"cells":{"0":{"texts":[' in (tmp_path / "r.html").read_text()


def test_rows_of_the_fit_and_groups_have_levels_only(anova):
    assert live_rows(anova.decomposition_, GivenRows()).cells == {}
    grouped = anova.explain(ROWS, groups={"who": ["income", "home"]})
    assert grouped.cells is None
    assert grouped.display_cells.tolist() == grouped.display_data.tolist()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_shown_in_full(number):
    text = cell_text(number)
    assert float(text) == number
    assert with_level(number, text) == text
    if 1e-5 <= abs(number) < 1e16:
        assert "e" not in text


def test_joined_names_say_which_they_are():
    assert with_level("10115", "214 levels: 10115, ...") == "10115 (in 214 levels: 10115, ...)"
    assert cell_text(None) is None
    assert with_level(None, "(missing)") == "(missing)"
