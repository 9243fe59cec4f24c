"""Pictures: what they show are the numbers of the decomposition, for any names, and they can be drawn."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
import warnings
from itertools import pairwise, product
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA
from exanova.effects.effect import GAME
from exanova.errors import (
    ExanovaError,
    InputError,
    InputTypeError,
    NotFittedError,
    OutsideSupportWarning,
    UnknownFeatureError,
    UnknownLevelError,
)
from exanova.show import records, row_records
from exanova.show.records import legible, legible_names
from strategies import examples, fit, supports

pytestmark = pytest.mark.filterwarnings("ignore::exanova.errors.OverfitWarning")  # tables of a few rows

HOSTILE = (
    "<script>alert(1)</script>",
    "say \"hi\" & 'bye'",
    "two\nlines\tand a tab",
    "a.b[c]\\d",
    "",
    "(empty)",
    " blank before",
    "שלום עולם",
    "مرحبا",
    "\u202eturned",
    "nul\x00 and escape\x1b",
    "no character \uffff",
    "long " * 60,
    "datum['value'] + 1",
    None,
)
"""Levels that pictures have to survive."""

ODD = "<img src=x onerror=alert(1)>", "with.dots[and] brackets", ""
"""Names of features of the same kind."""

CLASSES = 'class "<1>"', "c\n2", ""
"""Names of outputs of the same kind."""


@pytest.fixture(scope="module")
def loans():
    """Three features, one of them numeric, with holes in the support; a constant one; a model with two outputs."""
    rows = [r for r in product(["none", "clerk", "manager"], ["rent", "own"], [1, 2, 3]) if r[:2] != ("none", "own")]
    table = pd.DataFrame(rows, columns=["job", "home", "years"]).assign(bank="same")
    return pd.concat([table, table.head(4)], ignore_index=True)


def risk(table):
    high = 0.4 * (table["job"] == "none") + 0.1 * table["years"] * (table["home"] == "rent")
    high = high + 0.05 * (table["job"] == "clerk") * (table["home"] == "rent") * (table["years"] == 2)
    return np.stack([1 - high, high], axis=1)


@pytest.fixture(scope="module")
def two(loans):
    return FunctionalANOVA(shrinkage=None, max_order=2).fit(loans, risk, output_names=["repaid", "lost"])


@pytest.fixture(scope="module")
def one(loans):
    return FunctionalANOVA(shrinkage=None, max_order=2).fit(loans, lambda X: risk(X)[:, 1])


@pytest.fixture(scope="module")
def odd_rows():
    rng = np.random.default_rng(0)
    first = rng.permutation(np.array(HOSTILE * 6, dtype=object))
    second = rng.permutation(np.array(HOSTILE[:5] * 18, dtype=object))
    return pd.DataFrame({ODD[0]: first, ODD[1]: second, ODD[2]: rng.integers(0, 4, len(first))})


@pytest.fixture(scope="module")
def odd(odd_rows):
    values = np.random.default_rng(1).normal(size=(len(odd_rows), 3))
    return FunctionalANOVA(shrinkage=None, max_order=2).fit(odd_rows, values, output_names=CLASSES)


def pictures(plot, X, first, second, number, shape, **options):
    """Every kind of picture of a decomposition."""
    return {
        "importance": plot.importance(**options),
        "effect": plot.effect(first, **options),
        "line": plot.effect(number, **options),
        "pair": plot.pair(first, second, **options),
        "network": plot.network(),
        "waterfall": plot.waterfall(X.head(1), **options),
        "beeswarm": plot.beeswarm(X, **options),
        "certificate": plot.certificate(),
        "image": plot.image(X.head(1), shape, **options),
    }


NAMES = ("importance", "effect", "line", "pair", "network", "waterfall", "beeswarm", "certificate", "image")


@pytest.fixture(scope="module")
def odd_pictures(odd, odd_rows):
    alone = pictures(odd.plot, odd_rows, ODD[0], ODD[1], ODD[2], (1, 3), output=0)
    panels = pictures(odd.plot, odd_rows, ODD[0], ODD[1], ODD[2], (1, 3))
    return {
        (name, kind): chart for kind, drawn in (("alone", alone), ("panels", panels)) for name, chart in drawn.items()
    }


def data_of(chart, *fields):
    """Rows that a chart holds and that have all these fields, each once."""
    rows = [row for rows in chart.to_dict()["datasets"].values() for row in rows if set(fields) <= set(row)]
    return list({json.dumps(row, sort_keys=True): row for row in rows}.values())


def inside(node, key):
    """Everything stored under a key, anywhere in a specification apart from its data."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key:
                yield value
            if name != "datasets":
                yield from inside(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from inside(value, key)


def subtitle(chart):
    return " ".join(chart.to_dict()["title"]["subtitle"])


def svg_of(chart):
    return vl_convert.vegalite_to_svg(chart.to_dict())


# What the pictures show


@pytest.mark.parametrize("kind", ["l1", "l2", "shapley", "variance", "shapley-effects"])
@pytest.mark.parametrize("outputs", ["one", "two"])
def test_bars_of_importance_are_the_table(kind, outputs, request):
    anova = request.getfixturevalue(outputs)
    table = anova.importance(kind)
    names = table["output"] if outputs == "two" else ["output 0"] * len(table)
    drawn = data_of(anova.plot.importance(kind), "feature", "value")
    assert {(r["feature"], r["output"], r["value"]) for r in drawn} == set(
        zip(table["feature"], names, table["value"], strict=True)
    )


def test_importance_names_what_it_leaves_out(two):
    chart = two.plot.importance(top=3, output="lost")
    largest = list(two.importance().query("output == 'lost'").nlargest(3, "value")["feature"])
    assert [r["feature"] for r in data_of(chart, "feature")] == largest
    assert "3 of 4 features" in subtitle(chart)
    assert "1 are left out" in subtitle(chart)
    assert "left out" not in subtitle(two.plot.importance())


def test_bars_of_an_effect_are_its_table_with_probabilities(two):
    effect = two.effects_["job"]
    drawn = {(r["level"], r["output"]): r for r in data_of(two.plot.effect("job"), "level", "value")}
    assert len(drawn) == effect.values.size
    for c, (level,) in enumerate(effect.levels):
        for k, output in enumerate(two.output_names_):
            assert drawn[level, output]["value"] == effect.values[c, k]
            assert drawn[level, output]["probability"] == effect.probability[c]


@given(supports(max_features=3, max_outputs=2))
@examples(25)
def test_a_heat_map_has_the_observed_cells_and_says_which_were_not(case):
    anova = fit(case, max_order=2)
    for names in (key for key in anova.effects_ if len(key) == 2):
        effect = anova.effects_[names]
        listed = records.pair_records(anova.decomposition_, *names)
        seen = {(r["first"], r["second"], r["output"]): r["value"] for r in listed if r["observed"]}
        assert seen == {
            (*cell, output): effect.values[c, k]
            for c, cell in enumerate(effect.levels)
            for k, output in enumerate(anova.output_names_)
        }
        assert all(r["value"] is None and r["probability"] == 0 for r in listed if not r["observed"])
        sizes = [case.sizes[int(name[1:])] for name in names]
        assert len(listed) == np.prod(sizes) * len(anova.output_names_)
        turned = records.pair_records(anova.decomposition_, *names[::-1])
        assert {(r["second"], r["first"], r["output"], r["value"]) for r in turned} == {
            (r["first"], r["second"], r["output"], r["value"]) for r in listed
        }


def test_a_heat_map_draws_those_cells_and_names_the_others_in_its_legend(one):
    chart = one.plot.pair("job", "home")
    crossed = [r for r in data_of(chart, "first", "kind")]
    assert [(r["first"], r["second"], r["kind"]) for r in crossed] == [("none", "own", "never observed")]
    assert {(r["first"], r["second"]) for r in data_of(chart, "first") if r["observed"]} == set(
        one.effects_["job", "home"].levels
    )
    assert "never observed" in svg_of(chart)
    assert "never observed" not in svg_of(one.plot.pair("job", "years"))


@given(supports(max_outputs=2), st.integers(1, 4))
@examples(25)
def test_a_waterfall_leads_from_the_mean_to_the_prediction(case, top):
    anova = fit(case, max_order=2)
    row = case.rows[:1]
    for model in (None, case.values[:1]):
        target = anova.predict(row)[0] if model is None else case.values[0]
        steps = row_records.waterfall_records(anova.explain(row, model), top)
        for k, output in enumerate(anova.output_names_):
            own = [s for s in steps if s["output"] == output]
            assert own[0]["kind"] == "base"
            assert own[0]["value"] == anova.intercept_[k]
            assert all(after["start"] == before["end"] for before, after in pairwise(own))
            assert all(s["end"] == s["start"] + s["value"] for s in own[1:-1])
            assert own[-1]["kind"] == "total"
            assert own[-1]["end"] == pytest.approx(np.atleast_1d(target)[k], abs=1e-9)
            assert [s["kind"] for s in own].count("residual") == (model is not None)
            assert sum(s["kind"] == "feature" for s in own) <= top + 1


def test_a_waterfall_adds_up_what_it_does_not_show(two, loans):
    values = two.explain(loans.head(1)).values[0, :, 1]
    (rest,) = (
        r for r in data_of(two.plot.waterfall(loans.head(1), output="lost", top=2), "kind") if r["kind"] == "rest"
    )
    assert rest["label"] == "2 other features"
    assert rest["value"] == pytest.approx(np.sort(values[np.argsort(-np.abs(values))[2:]]).sum())


def test_a_waterfall_with_the_model_shows_what_the_fitted_part_leaves(two, loans):
    row = loans.iloc[[7]]
    drawn = data_of(two.plot.waterfall(row, risk, output=1), "kind")
    residual = next(r for r in drawn if r["kind"] == "residual")
    total = next(r for r in drawn if r["kind"] == "total")
    assert residual["value"] == pytest.approx(risk(row)[0, 1] - two.predict(row)[0, 1])
    assert total["end"] == pytest.approx(risk(row)[0, 1])
    assert total["label"] == "model"


def test_dots_of_a_swarm_stand_for_every_row(two, loans):
    values = two.explain(loans).values
    dots = data_of(two.plot.beeswarm(loans), "feature", "count")
    for i, feature in enumerate(two.feature_names_in_):
        for k, output in enumerate(two.output_names_):
            own = [d for d in dots if d["feature"] == feature and d["output"] == output]
            assert sum(d["count"] for d in own) == len(loans)
            assert sum(d["count"] * d["value"] for d in own) == pytest.approx(values[:, i, k].sum())
            levels = loans[feature].astype(str)
            for level in set(levels):
                assert sum(d["count"] for d in own if d["level"] == level) == (levels == level).sum()


def test_nodes_are_importances_and_edges_norms_of_pairs(two):
    for output, columns in ((None, [0, 1]), ("lost", [1])):
        nodes, edges = records.network_records(two.decomposition_, output)
        table = two.importance("l1")
        table = table if output is None else table[table["output"] == output]
        amounts = table.groupby("feature")["value"].sum()
        assert {n["feature"]: n["value"] for n in nodes} == pytest.approx(amounts.to_dict())
        assert np.allclose([n["x"] ** 2 + n["y"] ** 2 for n in nodes], 1)
        assert len(edges) == 3
        for edge in edges:
            assert edge["value"] == pytest.approx(two.effects_[edge["first"], edge["second"]].norm1[columns].sum())
        strengths = [edge["value"] for edge in edges]
        assert strengths == sorted(strengths, reverse=True)


def test_a_network_without_pairs_says_so(loans):
    alone = FunctionalANOVA(shrinkage=None, max_order=1).fit(loans, lambda X: risk(X)[:, 1])
    assert "no pair" in subtitle(alone.plot.network())
    crowded = FunctionalANOVA(shrinkage=None, max_order=2).fit(
        np.random.default_rng(0).integers(0, 2, (99, 9)), np.arange(99.0)
    )
    shown = subtitle(crowded.plot.network(top=5))
    assert "5 of 9 features" in shown
    assert "the 10 strongest pairs of these features, of 36 pairs in all" in shown


def test_the_certificate_judges_as_the_certificate_does(one, loans):
    literal = FunctionalANOVA(shrinkage=None, max_order=2, basis="paper", ties="first").fit(
        loans, lambda X: risk(X)[:, 1]
    )
    for anova in (one, literal):
        listed = {r["name"]: r for r in records.certificate_records(anova.certificate_)}
        assert listed["orthogonality"]["measured"] == anova.certificate_.orthogonality
        assert all(r["met"] is None or r["met"] == (r["measured"] <= r["tolerance"]) for r in listed.values())
        assert anova.certificate_.exact == all(r["met"] is not False for r in listed.values())
        said = "Certificate: exact" if anova.certificate_.exact else "Certificate: not exact"
        assert anova.plot.certificate().to_dict()["title"]["text"] == said
    assert not literal.certificate_.exact
    assert any(r["verdict"] == "missed" for r in data_of(literal.plot.certificate(), "verdict"))
    assert "basis='pure'" in subtitle(literal.plot.certificate())


def test_an_image_is_laid_out_row_by_row():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 6))
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(X, X @ np.arange(6.0) ** 2)
    values = anova.explain(X[:1]).values[0]
    drawn = data_of(anova.plot.image(X[0], (2, 3)), "row", "column")
    assert {(r["row"], r["column"]): r["value"] for r in drawn} == {(i // 3, i % 3): values[i] for i in range(6)}


def test_what_is_rounding_is_printed_as_zero_and_not_blown_up(loans):
    constant = FunctionalANOVA(shrinkage=None, max_order=2).fit(loans, np.full(len(loans), 1 / 3))
    for chart in (constant.plot.effect("job"), constant.plot.pair("job", "home"), constant.plot.importance()):
        assert "all zero, up to rounding" in subtitle(chart)
    svg = svg_of(constant.plot.pair("job", "home"))
    cells = len(constant.effects_["job", "home"].levels)
    assert svg.count(">0</text>") >= cells, "every cell holds a 0"


# Which levels are ordered


def marks_of(chart):
    return {mark if isinstance(mark, str) else mark["type"] for mark in inside(chart.to_dict(), "mark")}


def test_ordered_levels_are_lines_and_others_bars():
    n = 120
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "number": rng.integers(0, 5, n),
            "binned": rng.normal(size=n),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "word": rng.choice(["a", "b", "c"], n),
            "flag": rng.choice([True, False], n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 4, n)),
        }
    )
    anova = FunctionalANOVA(shrinkage=None, max_order=1, n_bins=4).fit(X, rng.normal(size=n))
    for name in ("number", "binned", "grade", "gaps"):
        assert "line" in marks_of(anova.plot.effect(name)), name
        assert "bar" in marks_of(anova.plot.effect(name, ordered=False)), name
    for name in ("word", "flag"):
        assert "bar" in marks_of(anova.plot.effect(name)), name
    assert "line" in marks_of(anova.plot.effect("word", ordered=True))
    places = {r["level"]: r["ordered"] for r in records.effect_records(anova.decomposition_, "gaps")}
    assert places == {"0.0": True, "1.0": True, "2.0": True, "3.0": True, "(missing)": False}


# Choosing outputs and rows


def outputs_of(chart):
    return list(dict.fromkeys(r["output"] for r in data_of(chart, "output")))


def test_outputs_are_chosen_by_name_number_or_list(two, loans):
    by_name, by_number = two.plot.effect("job", output="lost"), two.plot.effect("job", output=1)
    assert outputs_of(by_name) == ["lost"]
    assert by_name.to_dict() == by_number.to_dict() == two.plot.effect("job", output=np.int64(-1)).to_dict()
    assert sorted(outputs_of(two.plot.effect("job", output=["lost", 0]))) == ["lost", "repaid"]
    classes = FunctionalANOVA(shrinkage=None, max_order=1).fit(loans, risk, output_names=["1", "2"])
    assert outputs_of(classes.plot.importance(output=1)) == ["1"], "the number of a class is its name"


def test_more_outputs_than_fit_are_refused_with_a_hint(loans):
    many = FunctionalANOVA(shrinkage=None, max_order=1).fit(
        loans, np.random.default_rng(0).normal(size=(len(loans), 13))
    )
    with pytest.raises(
        InputError, match=r"13 outputs were requested; a chart has room for 12\. Choose some, for example output="
    ):
        many.plot.importance()
    assert len(outputs_of(many.plot.importance(output=[0, 5, "output 7"]))) == 3


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "numpy"])
def test_a_row_may_be_a_table_a_mapping_or_flat(kind, loans):
    table = loans.astype({"years": str})
    frames = {
        "pandas": table,
        "polars": pl.from_pandas(table),
        "pyarrow": pl.from_pandas(table).to_arrow(),
        "numpy": table.to_numpy(dtype=object),
    }
    X = frames[kind]
    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(X, risk(loans)[:, 1])
    levels = dict(zip(anova.feature_names_in_, table.iloc[2], strict=True))
    expected = anova.plot.waterfall(X[2:3] if kind != "pyarrow" else X.slice(2, 1)).to_dict()
    assert anova.plot.waterfall({**levels, "more": 1}).to_dict() == expected
    assert anova.plot.waterfall(table.iloc[2].to_numpy()).to_dict() == expected
    if kind == "pandas":
        assert anova.plot.waterfall(X.iloc[2]).to_dict() == expected


def test_a_mapping_reaches_the_model_as_the_table_it_knows(two, loans):
    row = loans.iloc[[7]]
    assert two.plot.waterfall(row.iloc[0].to_dict(), risk).to_dict() == two.plot.waterfall(row, risk).to_dict()


def test_a_missing_level_is_drawn(odd, odd_rows):
    row = odd_rows[odd_rows[ODD[0]].isna()].iloc[0].to_dict()
    for missing in (None, float("nan")):
        drawn = data_of(odd.plot.waterfall({**row, ODD[0]: missing}, output=0), "level")
        assert "(missing)" in {r["level"] for r in drawn}


def test_a_row_outside_the_support_is_told(two):
    row = {"job": "none", "home": "own", "years": 1, "bank": "same"}
    with pytest.warns(OutsideSupportWarning):
        chart = two.plot.waterfall(row)
    assert "never occurred" in subtitle(chart)


# Names of any kind


@pytest.mark.parametrize("kind", ["alone", "panels"])
@pytest.mark.parametrize("name", NAMES)
def test_every_picture_is_drawn_whatever_the_names(name, kind, odd_pictures):
    specification = odd_pictures[name, kind].to_dict(validate=True)
    svg = vl_convert.vegalite_to_svg(specification)
    png = vl_convert.vegalite_to_png(specification, scale=0.3)
    tree = ElementTree.fromstring(svg)
    assert png.startswith(b"\x89PNG")
    assert not [element for element in tree.iter() if element.tag.endswith(("script", "img"))]
    texts = [text for element in tree.iter() if element.tag.endswith("text") for text in element.itertext()]
    assert any("joint distribution" in text for text in texts), "the caption names the game"


@pytest.mark.parametrize("kind", ["alone", "panels"])
@pytest.mark.parametrize("name", NAMES)
def test_names_never_become_fields_or_expressions(name, kind, odd_pictures):
    specification = odd_pictures[name, kind].to_dict()
    known = {"name", "value", "number", "feature", "level", "output", "probability", "row", "column", "first", "second"}
    known |= {"kind", "label", "start", "end", "x", "y", "x2", "y2", "angle", "importance", "offset", "place", "count"}
    known |= {"measured", "tolerance", "verdict", "meaning", "label", "limit"}
    known |= {"low", "high", "mean", "rows", "stderr"}
    assert set(inside(specification, "field")) <= known
    written = [*inside(specification, "filter"), *inside(specification, "calculate"), *inside(specification, "test")]
    given = [*filter(None, HOSTILE), *filter(None, ODD), *filter(None, CLASSES)]
    assert not [e for e in written for text in given if text in str(e)]
    assert GAME in specification["description"]


@pytest.mark.parametrize(("shrinkage", "unseen"), [(None, "counts as 0"), ("auto", "extrapolated by the prior")])
def test_a_chart_says_what_is_done_with_combinations_that_never_occurred(loans, shrinkage, unseen):
    many = pd.concat([loans] * 20, ignore_index=True).drop(columns="bank")
    y = risk(many)[:, 1] + np.random.default_rng(0).normal(scale=0.2, size=len(many))
    anova = FunctionalANOVA(shrinkage=shrinkage).fit(many, y)
    row = many.head(1).assign(job="none", home="own")
    with pytest.warns(OutsideSupportWarning, match=unseen):
        assert unseen in subtitle(anova.plot.waterfall(row))
    with pytest.warns(OutsideSupportWarning):
        assert unseen in subtitle(anova.plot.beeswarm(pd.concat([row, many.head(3)])))


def test_names_are_shown_in_a_legible_form(odd_pictures):
    texts = set(ElementTree.fromstring(svg_of(odd_pictures["effect", "alone"])).itertext())
    expected = {
        "<script>alert(1)</script>",
        "two\\nlines\\tand a tab",
        "(empty)",
        "'(empty)'",
        "(missing)",
        "a.b[c]\\d",
    }
    expected |= {'" blank before"', "\\u202eturned", "nul\\x00 and escape\\x1b"}
    assert expected <= texts
    assert any(text.startswith('"long long') and text.endswith("…") for text in texts)


@given(st.lists(st.text(), min_size=1, max_size=8, unique=True))
@examples(200)
def test_legible_names_are_different_visible_and_safe_in_a_file(names):
    shown = legible_names(names)
    assert list(shown) == names
    assert len(set(shown.values())) == len(names)
    for name, text in shown.items():
        assert text
        assert text == text.strip()
        assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text)
        assert legible(text) == text, "what is legible stays as it is"
        if name.isalnum() and name.isascii():
            assert text == name
        document = ElementTree.Element("text")
        document.text = text
        assert ElementTree.fromstring(ElementTree.tostring(document, encoding="utf-8")).text == text


# Many levels, many features, many rows


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    n = 1200
    X = pd.DataFrame({"city": [f"c{k}" for k in rng.integers(0, 150, n)], "day": rng.integers(0, 200, n)})
    y = np.sin(X["city"].str[1:].astype(int).to_numpy()) + np.sin(X["day"].to_numpy() / 100)
    return X, FunctionalANOVA(shrinkage=None, max_order=1, n_bins=None, max_levels=None).fit(X, y)


def test_hundreds_of_levels_are_cut_to_those_that_matter(wide):
    _, anova = wide
    effect = anova.effects_["city"]
    chart = anova.plot.effect("city", top=25)
    shown = {r["level"] for r in data_of(chart, "level")}
    carried = dict(zip([c for (c,) in effect.levels], effect.probability * abs(effect.values[:, 0]), strict=True))
    assert len(shown) == 25
    assert min(carried[c] for c in shown) >= max(v for c, v in carried.items() if c not in shown)
    assert f"{len(carried) - 25} are left out" in subtitle(chart)


def test_hundreds_of_ordered_levels_are_one_line_of_fixed_width(wide):
    X, anova = wide
    chart = anova.plot.effect("day")
    assert len({r["level"] for r in data_of(chart, "level")}) == X["day"].nunique()
    assert chart.to_dict()["width"] <= 560
    assert vl_convert.vegalite_to_png(chart.to_dict(), scale=0.3).startswith(b"\x89PNG")


def test_a_large_pair_keeps_the_strongest_levels_of_both():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 15, (900, 2))
    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(X, rng.normal(size=900) * (X[:, 0] < 5))
    chart = anova.plot.pair("x0", "x1", top=8)
    assert len({r["first"] for r in data_of(chart, "first")}) == 8
    assert {"0", "1", "2", "3", "4"} <= {r["first"] for r in data_of(chart, "first")}
    assert "8 of 15 levels of x0" in subtitle(chart)
    assert "8 of 15 levels of x1" in subtitle(chart)


def test_no_limit_of_rows_applies():
    from exanova.show.charts import effect_chart

    rows = [
        {"level": str(k), "position": k, "probability": 1 / 6000, "output": "p", "value": float(k), "ordered": True}
        for k in range(6000)
    ]
    assert len(data_of(effect_chart(rows, feature="day"), "level")) == 6000


# Files, wrong use, and what is left as it was


def test_pictures_are_saved_without_a_browser_and_work_offline(one, tmp_path):
    chart = one.plot.importance()
    for name in ("a.png", "a.svg"):
        chart.save(tmp_path / name)
    chart.save(tmp_path / "a.html", inline=True)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert 'src="http' not in page
    assert "vegaEmbed" in page


def test_a_loaded_decomposition_draws_the_same(two, loans, tmp_path):
    two.save(tmp_path / "two.exanova")
    again = exanova.load(tmp_path / "two.exanova")
    wanted = pictures(two.plot, loans, "job", "home", "years", (2, 2), output="lost")
    found = pictures(again.plot, loans, "job", "home", "years", (2, 2), output="lost")
    with_rows = {"importance", "effect", "line", "waterfall"}  # errors of sums and means at levels need the rows
    assert {name: chart.to_dict() for name, chart in found.items() if name not in with_rows} == {
        name: chart.to_dict() for name, chart in wanted.items() if name not in with_rows
    }
    fields = ("level", "value", "stderr", "rows", "few")
    for name in ("effect", "line"):
        drawn, same = ([{f: r[f] for f in fields} for r in data_of(c[name], *fields)] for c in (found, wanted))
        assert drawn == same


def test_drawing_changes_nothing(loans):
    table, row = loans.copy(), loans.iloc[0].to_dict()
    values = risk(loans)
    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(table, values)
    before = anova.effects_["job"].values, anova.predict(loans), dict(row), values.copy()
    for chart in pictures(anova.plot, table, "job", "home", "years", (2, 2)).values():
        chart.to_dict()
    anova.plot.waterfall(row, risk)
    pd.testing.assert_frame_equal(table, loans)
    assert row == before[2]
    assert np.array_equal(values, before[3])
    assert np.array_equal(anova.effects_["job"].values, before[0])
    assert np.array_equal(anova.predict(loans), before[1])


WRONG = {
    "unknown feature": (lambda p, X: p.effect("jbo"), UnknownFeatureError, "there is no feature 'jbo'.*job"),
    "unknown in a pair": (lambda p, X: p.pair("job", "x"), UnknownFeatureError, "there is no feature 'x'"),
    "the same twice": (lambda p, X: p.pair("job", "job"), UnknownFeatureError, "names a feature twice"),
    "unknown output": (lambda p, X: p.importance(output="won"), UnknownFeatureError, "no output 'won'.*'repaid'"),
    "output number": (lambda p, X: p.effect("job", output=2), UnknownFeatureError, "there is no output 2"),
    "output of a network": (lambda p, X: p.network(output="won"), UnknownFeatureError, "there is no output 'won'"),
    "no output": (lambda p, X: p.beeswarm(X, output=[]), InputError, "0 outputs were requested"),
    "unknown kind": (lambda p, X: p.importance("gini"), InputError, "kind='gini' was given; expected 'l1'"),
    "no bars": (lambda p, X: p.importance(top=0), InputError, "top=0 was given; expected a whole number"),
    "half a level": (lambda p, X: p.effect("job", top=1.5), InputError, "top=1.5 was given"),
    "wrong shape": (lambda p, X: p.image(X.head(1), (2, 3)), InputError, "6 pixels, the decomposition 4 features"),
    "no shape": (lambda p, X: p.image(X.head(1), 4), InputError, "expected two whole numbers"),
    "negative shape": (lambda p, X: p.image(X.head(1), (-2, -2)), InputError, "expected two whole numbers"),
    "two rows": (lambda p, X: p.waterfall(X.head(2)), InputError, "2 rows were given; this chart shows one"),
    "rows of an image": (lambda p, X: p.image(X.head(3), (2, 2)), InputError, "3 rows were given"),
    "absent features": (lambda p, X: p.waterfall({"job": "none"}), InputError, "no level for 'home', 'years', 'bank'"),
    "no row": (lambda p, X: p.waterfall(3), InputTypeError, "expected a pandas, polars or pyarrow table"),
    "unknown level": (lambda p, X: p.waterfall(dict(X.iloc[0], job="king")), UnknownLevelError, "'king'"),
    "no table": (lambda p, X: p.beeswarm("rows"), InputTypeError, "expected a pandas, polars or pyarrow table"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use_is_told_clearly(case, two, loans):
    draw, kind, message = WRONG[case]
    with pytest.raises(kind, match=message) as caught:
        draw(two.plot, loans)
    assert isinstance(caught.value, ExanovaError)


def test_a_pair_that_was_not_fitted_is_told(loans):
    alone = FunctionalANOVA(shrinkage=None, max_order=1).fit(loans, lambda X: risk(X)[:, 1])
    with pytest.raises(UnknownFeatureError, match=r"job x home is not part of this decomposition.*max_order"):
        alone.plot.pair("job", "home")


@pytest.mark.parametrize("name", ["importance", "network", "certificate"])
def test_what_is_not_fitted_cannot_be_drawn(name):
    with pytest.raises(NotFittedError, match=r"call fit\(X, model\) first"):
        getattr(FunctionalANOVA(shrinkage=None).plot, name)()


def test_without_altair_the_message_names_what_to_install():
    program = """
import sys
import numpy as np
import exanova
assert not {"altair", "vl_convert", "pandas"} & set(sys.modules), "import exanova is light"
sys.modules["altair"] = None
anova = exanova.FunctionalANOVA(shrinkage=None, max_order=1).fit(np.array([["a"], ["b"]]), np.array([0.0, 1.0]))
plot = anova.plot
try:
    plot.importance()
except exanova.errors.ExanovaError as error:
    print(type(error).__name__, isinstance(error, ImportError), error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingPackageError True")
    assert 'pip install "exanova[plot]"' in done.stdout


def test_a_picture_gives_no_warning(one, loans):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for chart in pictures(one.plot, loans, "job", "home", "years", (2, 2)).values():
            chart.to_dict()
