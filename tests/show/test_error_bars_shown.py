"""Error bars where results are shown: plots, reports, the terminal, notebooks; they are those of the effects."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import altair as alt
import numpy as np
import pandas as pd
import pytest

import exanova
from cli_helpers import environment
from exanova import FunctionalANOVA
from exanova.effects.effect import FEW_ROWS
from exanova.report.summary import summarise
from exanova.show import records
from exanova.show.error_bars import REACH

SCRIPT = "<script>alert(1)</script>"


def table(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    home = rng.choice(["own", "rent", SCRIPT], n, p=[0.5, 0.45, 0.05])
    job = np.where(home == "own", rng.choice(["a", "b", "c"], n, p=[0.7, 0.28, 0.02]), rng.choice(["a", "b"], n))
    return pd.DataFrame({"home": home, "job": job, "years": rng.choice([1, 2, 3, 4], n, p=[0.5, 0.3, 0.17, 0.03])})


def outputs(X: pd.DataFrame) -> np.ndarray:
    noise = np.random.default_rng(1).normal(size=len(X))
    return 1.0 * (X["home"] == "rent") + 0.5 * (X["job"] == "b") + 0.2 * X["years"] + 0.3 * noise


@pytest.fixture(scope="module", params=["auto", None])
def anova(request) -> FunctionalANOVA:
    return FunctionalANOVA(shrinkage=request.param).fit(table(), outputs(table()))


@pytest.fixture(scope="module")
def population() -> FunctionalANOVA:
    return FunctionalANOVA(sampled=False).fit(table(), outputs(table()))


@pytest.fixture(scope="module")
def cancelling() -> FunctionalANOVA:
    rng = np.random.default_rng(3)
    X = table(900)
    twin = np.where(rng.random(900) < 0.01, "own", X["home"])
    return FunctionalANOVA(max_order=1, shrinkage=None).fit(
        X.assign(twin=twin), outputs(X) + 3.0 * (X["home"] == "own") - 3.0 * (twin == "own")
    )


def data_of(chart, *fields):
    rows = [row for rows in chart.to_dict()["datasets"].values() for row in rows if set(fields) <= set(row)]
    return list({json.dumps(row, sort_keys=True): row for row in rows}.values())


def subtitle(chart) -> str:
    return " ".join(chart.to_dict()["title"]["subtitle"])


def drawn_rules(chart) -> int:
    """Whiskers in the layers of a chart."""
    marks = [layer["mark"] for layer in chart.to_dict()["layer"]]
    return sum(mark.get("style") == "whisker" and mark["type"] == "rule" for mark in marks)


# Plots


@pytest.mark.parametrize("name", ["home", "job", "years"])
def test_whiskers_are_the_intervals_of_the_effect(anova, name):
    effect = anova.effects_[name]
    low, high = effect.interval()
    chart = anova.plot.effect(name)
    layers = [layer["transform"] for layer in chart.to_dict()["layer"] if "transform" in layer]
    (calculated,) = {tuple(step["calculate"] for step in steps[:2]) for steps in layers}
    for c, r in enumerate(sorted(data_of(chart, "level"), key=lambda r: r["position"])):
        assert r["stderr"] == effect.stderr[c, 0]
        assert r["value"] - r["reach"] * r["stderr"] == pytest.approx(low[c, 0], rel=1e-12)
        assert r["value"] + r["reach"] * r["stderr"] == pytest.approx(high[c, 0], rel=1e-12)
    reach = f"(datum.stderr == null ? 0 : (datum.reach == null ? {REACH!r} : datum.reach) * datum.stderr)"
    assert set(calculated) == {f"datum.value - {reach}", f"datum.value + {reach}"}
    assert drawn_rules(chart) == 1
    assert "which rows were drawn (400)" in subtitle(chart)


def test_marks_are_faded_exactly_where_rows_are_few(anova):
    for key in (k for k in anova.effects_ if 0 < len(k) <= 2):
        effect = anova.effects_[key]
        listed = getattr(records, "effect_records" if len(key) == 1 else "pair_records")(anova.decomposition_, *key)
        found = [r for r in listed if r.get("observed", True)]
        assert sorted((r["rows"], r["few"]) for r in found) == sorted((n, n < FEW_ROWS) for n in effect.rows)
        assert sum(r["few"] for r in found) == effect.few_rows.sum()
        chart = anova.plot.effect(*key) if len(key) == 1 else anova.plot.pair(*key)
        assert ("datum.few" in json.dumps(chart.to_dict())) == effect.few_rows.any()
        assert ("faded: fewer than 30 rows" in subtitle(chart)) == effect.few_rows.any()


def test_diamonds_are_means_of_the_model_at_each_level(anova):
    y = outputs(table())
    for name in ("home", "years"):
        means = (y.groupby(table()[name].astype(str)).mean() - y.mean()).to_dict()
        found = {r["level"]: r["mean"] for r in records.effect_records(anova.decomposition_, name)}
        assert found == pytest.approx(means)


def test_a_population_has_no_error_bars_and_says_why(population, tmp_path):
    for chart in (population.plot.effect("home"), population.plot.importance()):
        assert drawn_rules(chart) == 0
        assert "no error bars: these rows are the complete population" in subtitle(chart)
    for listed in (
        records.effect_records(population.decomposition_, "job"),
        records.pair_records(population.decomposition_, "job", "home"),
    ):
        assert all(r["stderr"] is None and not r["few"] for r in listed)
    assert "these rows are the complete population" in summarise(population.decomposition_).errors


def test_effects_that_are_not_identified_have_no_whiskers():
    X = table().assign(twin=lambda t: t["home"])
    shared = FunctionalANOVA(max_order=1, shrinkage=None).fit(X, outputs(X))
    assert shared.effects_["twin"].identified is False
    chart = shared.plot.effect("twin")
    assert drawn_rules(chart) == 0
    assert "other subsets can express part of this effect" in subtitle(chart)
    assert drawn_rules(shared.plot.effect("years")) == 1


def test_bars_of_importance_have_the_errors_of_the_table(anova):
    for kind in ("l1", "variance"):
        wanted = anova.importance(kind, stderr=True).set_index("feature")["stderr"].to_dict()
        chart = anova.plot.importance(kind)
        assert {r["feature"]: r["stderr"] for r in data_of(chart, "feature")} == wanted
        assert drawn_rules(chart) == 1


# The report


def test_the_first_card_is_about_other_rows_and_the_last_about_arithmetic(anova, cancelling):
    for fitted in (anova, cancelling):
        asked = [v["question"] for v in summarise(fitted.decomposition_).verdicts]
        assert asked[0] == "Does it hold on other rows?"
        assert asked[-1] == "Was it computed exactly?"


def test_effects_that_cancel_are_told_with_net_shares_first(cancelling, anova, tmp_path):
    summary = summarise(cancelling.decomposition_)
    said = {v["question"]: v for v in summary.verdicts}
    assert said["Do effects cancel?"]["care"]
    assert "home and twin" in said["Can features stand in for each other?"]["because"]
    assert summary.importance_kind == "variance"
    assert [r["value"] for r in summary.importance] == cancelling.importance("variance")["value"].tolist()
    assert summarise(anova.decomposition_).importance_kind == "l1"
    cancelling.report(tmp_path / "r.html")
    assert "net of what other effects cancel" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "net share of the variance" in str(cancelling)
    assert "net share" not in str(anova)


@pytest.mark.filterwarnings("ignore::exanova.errors.OverfitWarning")
def test_a_fit_that_does_not_hold_is_red_and_first(tmp_path):
    X = table(60)
    bad = FunctionalANOVA(shrinkage=None).fit(X, np.random.default_rng(0).normal(size=60))
    assert bad.certificate_.holds is False
    summary = summarise(bad.decomposition_)
    assert summary.verdicts[0]["good"] is False
    assert "This does not hold on other rows" in summary.headline
    bad.report(tmp_path / "r.html")
    cards = re.findall(r'<li class="(\w+)">\s*<h3>([^<]*)</h3>', (tmp_path / "r.html").read_text(encoding="utf-8"))
    assert cards[0] == ("bad", "Does it hold on other rows?")


def test_the_report_says_which_effects_can_be_told_from_zero(anova, tmp_path):
    frame = anova.significance()
    listed = summarise(anova.decomposition_).significance
    assert [(r["subset"], r["q"], r["significant"]) for r in listed] == list(
        zip(frame["subset"], frame["q"], frame["significant"], strict=True)
    )
    anova.save(tmp_path / "a.exanova")
    assert summarise(exanova.load(tmp_path / "a.exanova").decomposition_).significance == []


# The terminal


def test_the_command_shows_rows_and_standard_errors(tmp_path, anova):
    anova.save(tmp_path / "a.exanova")

    def show(*words):
        done = subprocess.run(
            [sys.executable, "-m", "exanova", "show", "a.exanova", *words],
            cwd=tmp_path, capture_output=True, text=True, env=environment(), check=True,
        )  # fmt: skip
        return done.stdout

    effect = anova.effects_["job"]
    (cell,) = (line for line in show("--effect", "job").splitlines() if line.split()[:1] == ["b"])
    assert cell.split()[2] == f"{effect.rows[1]:.0f}"
    assert float(cell.split()[4]) == pytest.approx(effect.stderr[1, 0], rel=0.06)
    document = json.loads(show("--effect", "job", "--json"))
    cells = document["effects"][0]["cells"]
    assert [c["rows"] for c in cells] == effect.rows.tolist()
    assert [c["stderr"] for c in cells] == effect.stderr.tolist()
    assert document["certificate"]["holds"] is True
    assert document["verdicts"][0]["question"] == "Does it hold on other rows?"
    assert "Does it hold on other rows? Yes" in show()


def test_print_has_standard_errors_of_the_strongest_effects(anova):
    errors = anova.importance("l2", by="subset", stderr=True).set_index("subset")["stderr"]
    assert f"± {errors['home']:.2g}" in str(anova)


# Notebooks


def html_of(anova) -> list[str]:
    X = table().head(3)
    things = [anova, anova.effects_["home"], anova.effects_["home", "job"], anova.explain(X), anova.explain(X)[0]]
    things += [anova.certificate_, anova.compare(anova), FunctionalANOVA()]
    return [thing._repr_html_() for thing in things]


def test_notebooks_show_escaped_tables_without_scripts_or_addresses(anova):
    for html in html_of(anova):
        ElementTree.fromstring(html)
        assert "<script" not in html
        assert not re.search(r"(src|href)\s*=|https?:|//", html)
    assert "&lt;script&gt;" in html_of(anova)[1]
    assert "Does it hold on other rows?" in html_of(anova)[0]
    assert f"± {anova.effects_['home'].stderr[0, 0]:.2g}" in html_of(anova)[1]


def test_charts_are_drawn_in_notebooks_without_a_network(anova, tmp_path):
    two = FunctionalANOVA(shrinkage=None).fit(table(), np.stack([outputs(table()), -outputs(table())], axis=1))
    for chart in (anova.plot.effect("home"), anova.plot.pair("home", "job"), two.plot.effect("home")):
        shown = chart._repr_mimebundle_()
        svg = shown["image/svg+xml"]
        assert set(shown) == {"image/svg+xml", "text/plain"}
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert not re.search(r"https?:(?!//www\.w3\.org/)|(src|href)\s*=|<script", svg)
        assert isinstance(chart, alt.TopLevelMixin)
        again = chart.properties(background="white").copy()
        assert "image/svg+xml" in again._repr_mimebundle_()
        again.save(tmp_path / "a.png")
        assert alt.Chart.from_json(chart.to_json()).to_dict()["title"] == chart.to_dict()["title"]
    with alt.renderers.enable("png"):
        assert "image/png" in chart._repr_mimebundle_()[0], "a renderer that somebody enables is respected"


def test_a_waterfall_has_the_errors_of_its_shapley_values():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": rng.choice(list("xyz"), 200), "b": rng.choice(list("uv"), 200)})
    anova = FunctionalANOVA(shrinkage=None).fit(table, rng.normal(size=200) + (table["a"] == "x"))
    drawn = anova.plot.waterfall(table[:1]).to_dict()
    steps = [r for data in drawn["datasets"].values() for r in data if r.get("kind") == "feature"]
    explained = anova.explain(table[:1], stderr=True)
    expected = dict(zip(explained.feature_names, explained.stderr[0], strict=True))
    assert {r["feature"] for r in steps} == set(expected)
    for r in steps:
        assert r["stderr"] == pytest.approx(expected[r["feature"]])
        assert (r["high"] - r["low"]) / 2 == pytest.approx(1.959964 * r["stderr"], rel=1e-6)
    whiskers = [layer for layer in drawn["layer"] if layer["mark"].get("style") == "whisker"]
    assert len(whiskers) == 1
