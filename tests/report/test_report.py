"""Reports: the numbers are those of the decomposition, nothing from the data is ever markup, nothing is loaded.

What a reader sees and does is tested in a real browser, in test_report_browser.py.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import exanova
from exanova import FunctionalANOVA
from exanova.errors import (
    ExanovaError,
    FileWriteError,
    InputError,
    MissingPackageError,
    NotFittedError,
    OutsideSupportWarning,
)
from exanova.report.explorer import ROWS, spread_rows
from exanova.report.live import EFFECT_LEVELS, PAIR_LEVELS
from exanova.report.page import Page
from exanova.report.sections import PAIRS
from exanova.report.summary import summarise

pytestmark = pytest.mark.filterwarnings("ignore::exanova.errors.OverfitWarning")  # tables of a few rows

SCRIPT = "<script>alert(1)</script>"
HOSTILE = [SCRIPT, "</script><img src=x onerror=alert(2)>", "=1+1", "", "a|b`*_", "\u2028\u2029&amp;", "שלום"]


def boards(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame({name: rng.choice(list("abc"), n) for name in ("size", "colour", "twin")}).assign(
        twin=lambda table: table["colour"]
    )


def outputs(table: pd.DataFrame) -> np.ndarray:
    first = 1.0 * (table["size"] == "a") + 0.5 * (table["colour"] == "b") * (table["size"] == "c")
    return np.stack([first, 1.0 - first, 0.1 * (table["colour"] == "c")], axis=1)


def hostile() -> tuple[FunctionalANOVA, pd.DataFrame]:
    rng = np.random.default_rng(6)
    table = pd.DataFrame(
        {SCRIPT: rng.choice(HOSTILE, 120), '"><svg onload=alert(3)>': rng.choice(HOSTILE[:3], 120), "image": "constant"}
    )
    anova = FunctionalANOVA(shrinkage=None).fit(table, rng.normal(size=(120, 2)), output_names=[SCRIPT, "{{ 7 * 7 }}"])
    return anova, table


@pytest.fixture(scope="module")
def three() -> tuple[FunctionalANOVA, pd.DataFrame]:
    table = boards()
    return FunctionalANOVA(shrinkage=None, max_order=2).fit(table, outputs, output_names=["win", "lose", "draw"]), table


def written(anova: FunctionalANOVA, path: Path, **options) -> str:
    anova.report(path, **options)
    return path.read_text(encoding="utf-8")


def report_of(anova: FunctionalANOVA, folder: Path, **options) -> dict:
    return json.loads(written(anova, folder / "report.json", **options))


# The numbers


def test_json_has_the_numbers_of_the_decomposition_exactly(three, tmp_path):
    anova, _ = three
    report = report_of(anova, tmp_path)
    names = list(anova.output_names_)
    assert report["outputs"] == names
    assert [r["mean"] for r in report["fit"]] == anova.intercept_.tolist()
    assert [r["r2"] for r in report["fit"]] == anova.certificate_.r2.tolist()
    assert {e["feature"] for e in report["effects"]} == set(anova.feature_names_in_)
    for entry in report["effects"]:
        effect = anova.effects_[entry["feature"]]
        for k, (level,) in enumerate(effect.levels):
            found = {r["output"]: r["value"] for r in entry["records"] if r["level"] == level}
            assert found == dict(zip(names, effect.values[k].tolist(), strict=True))
    for entry in report["pairs"]:
        effect = anova.effects_[entry["first"], entry["second"]]
        found = {(r["first"], r["second"], r["output"]): r["value"] for r in entry["records"] if r["observed"]}
        assert found == {
            (*cell, output): value
            for cell, values in zip(effect.levels, effect.values, strict=True)
            for output, value in zip(names, values, strict=True)
        }
    table = anova.importance("l1")
    assert [r["value"] for r in report["importance"]] == table["value"].tolist()
    strongest = anova.importance("l1", by="subset")
    assert {(" x ".join(r["subset"]), r["output"]): r["value"] for r in report["strongest"]} == {
        (s, o): v for s, o, v in zip(strongest["subset"], strongest["output"], strongest["value"], strict=True)
    }


def test_rows_of_the_explorer_are_those_that_explain_gives(three, tmp_path):
    anova, table = three
    sample = report_of(anova, tmp_path, X=table, model=outputs)["sample"]
    rows = [entry["row"] for entry in sample["rows"]]
    explanation = anova.explain(table.iloc[rows], outputs)
    model = outputs(table)
    for k, entry in enumerate(sample["rows"]):
        assert entry["levels"] == list(table.iloc[entry["row"]])
        assert entry["values"] == explanation.values[k].T.tolist()
        assert entry["residual"] == explanation.residual[k].tolist()
        total = np.add(entry["base"], entry["residual"]) + np.sum(entry["values"], axis=1)
        np.testing.assert_allclose(total, model[entry["row"]], atol=1e-12)
        ends = [r["end"] for r in entry["waterfall"] if r["kind"] == "total"]
        np.testing.assert_allclose(ends, model[entry["row"]], atol=1e-12)


def test_rows_of_the_fit_are_known_in_memory_and_not_in_a_file(three, tmp_path):
    anova, table = three
    sample = report_of(anova, tmp_path)["sample"]
    assert len(sample["rows"]) == sample["total"] == len(table.drop_duplicates())
    assert {tuple(entry["levels"]) for entry in sample["rows"]} == set(table.itertuples(index=False, name=None))
    anova.save(tmp_path / "a.exanova")
    again = exanova.load(tmp_path / "a.exanova")
    without = report_of(again, tmp_path)
    assert without["sample"] is None
    assert "X=table" in without["sample_note"]
    assert len(report_of(again, tmp_path, X=table)["sample"]["rows"]) == len(table)


def test_the_sample_is_bounded_and_spread_from_the_lowest_to_the_highest_prediction(three):
    values = np.random.default_rng(0).normal(size=(5000, 3))
    rows = spread_rows(values, 200)
    assert len(rows) <= 200
    assert set(values.argmin(axis=0)) | set(values.argmax(axis=0)) <= set(rows.tolist())
    assert (rows == spread_rows(values, 200)).all()
    for column in values.T:  # every twentieth of the rows, by prediction, has one
        assert set(np.argsort(np.argsort(column))[rows] // 250) == set(range(20))
    anova, table = three
    many = pd.concat([table] * 10, ignore_index=True)
    assert len(summarise(anova.decomposition_, X=many).sample["rows"]) <= ROWS


@pytest.mark.parametrize("read", [pd.DataFrame, pl.DataFrame, lambda columns: pd.DataFrame(columns).to_numpy()])
def test_rows_may_come_from_any_library(three, tmp_path, read):
    anova, table = three
    sample = report_of(anova, tmp_path, X=read(table.to_dict("list")), model=outputs(table))["sample"]
    assert [entry["levels"] for entry in sample["rows"]] == table.to_numpy().tolist()
    ends = [[r["end"] for r in entry["waterfall"] if r["kind"] == "total"] for entry in sample["rows"]]
    np.testing.assert_allclose(ends, outputs(table), atol=1e-12)


def test_a_row_that_never_occurred_is_said_to(three, tmp_path):
    anova, _ = three
    new = pd.DataFrame({"size": ["a", "a"], "colour": ["a", "a"], "twin": ["a", "b"]})
    with pytest.warns(OutsideSupportWarning, match="1 of 2"):
        sample = report_of(anova, tmp_path, X=new)["sample"]
    assert [entry["outside"] for entry in sample["rows"]] == [False, True]


def test_the_same_decomposition_gives_the_same_report(three, tmp_path):
    anova, _ = three
    for suffix in (".json", ".md", ".html"):
        assert written(anova, tmp_path / f"one{suffix}") == written(anova, tmp_path / f"two{suffix}")


# The certificate in words


def answers(anova: FunctionalANOVA) -> dict[str, str]:
    return {v["question"]: f"{v['answer']}: {v['because']}" for v in summarise(anova.decomposition_).verdicts}


def test_words_say_whether_it_is_exact_and_unique_and_what_is_left(three):
    anova, table = three
    said = answers(anova)
    assert said["Was it computed exactly?"].startswith("Yes")
    assert said["Is it unique?"].startswith("No")
    assert "ties='share'" in said["Is it unique?"]
    assert said["What is not explained?"].startswith("0 %")
    alone = table[["size", "colour"]]
    assert answers(FunctionalANOVA(shrinkage=None).fit(alone, outputs))["Is it unique?"].startswith("Yes")


def test_words_give_the_share_that_truncation_leaves():
    table = boards()
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(table, lambda t: outputs(t)[:, 0])
    said = answers(anova)["What is not explained?"]
    assert said.startswith(f"{100 * (1 - anova.certificate_.r2[0]):.1f} %")
    assert "orders and terms left out" in said


def test_words_tell_of_notes_of_held_out_rows_and_of_too_many_functions():
    table, rng = boards(), np.random.default_rng(0)
    holes = table.drop(index=table.index[(table["size"] == "a") & (table["colour"] == "a")])
    paper = FunctionalANOVA(shrinkage=None, max_order=2, basis="paper", ties="first").fit(holes, outputs)
    said = answers(paper)["Was it computed exactly?"]
    assert said.startswith("No")
    assert paper.certificate_.notes[0] in said.replace("An effect", "an effect")
    judged = FunctionalANOVA(shrinkage=None, max_order=1).fit(table, outputs, eval_set=0.3)
    assert f"{np.nanmin(judged.certificate_.r2_eval):.4f}" in answers(judged)["Does it hold on other rows?"]
    wide = pd.DataFrame(rng.integers(0, 3, (40, 14)).astype(str)).rename(columns=str)
    crowded = FunctionalANOVA(shrinkage=None, max_order=1).fit(wide, rng.normal(size=40))
    assert answers(crowded)["Does it hold on other rows?"].startswith("No: R²")


def test_under_a_link_a_report_says_what_was_decomposed_and_rows_add_up_on_its_scale(tmp_path):
    table = boards()
    rates = np.exp(outputs(table)[:, 0])
    anova = FunctionalANOVA(shrinkage=None, max_order=1, link="log").fit(table, rates, output_names=["rate"])
    report = report_of(anova, tmp_path, X=table, model=rates)
    assert report["findings"][0].startswith("The mean of log(rate) is ")
    rows = payload_of(written(anova, tmp_path / "r.html", X=table, model=rates))["rows"]
    expected = np.log(rates)[numbers(rows["numbers"])] - anova.predict(table)[numbers(rows["numbers"])]
    np.testing.assert_allclose(numbers(rows["residual"]), expected, atol=1e-12)


def test_markdown_holds_the_certificate_and_every_effect(three, tmp_path):
    anova, _ = three
    text = written(anova, tmp_path / "r.md", title="Boards", about={"Data": "boards.csv"})
    assert text.startswith("# Boards\n")
    assert "- Data: boards.csv" in text
    assert "**Was it computed exactly?** Yes" in text
    assert "**Is it unique?** No" in text
    for name in anova.feature_names_in_:
        assert f"### {name}" in text
    value = anova.effects_["size"].values[0, 0]
    assert f"{value:+.4g}" in text
    assert "colour ~ twin" in text


def test_markdown_shows_hostile_names_as_text(tmp_path):
    text = written(hostile()[0], tmp_path / "r.md")
    assert "<" not in text
    assert "&lt;script&gt;" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    bars = [len(re.findall(r"(?<!\\)\|", line)) for line in rows]
    assert set(bars) <= {3, 4, 5, 6, 7}


# The page


class Elements(HTMLParser):
    """Tags with their attributes, and the text of each script and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._script: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._script = dict(attrs) if tag == "script" else None

    def handle_data(self, data):
        if self._script is not None:
            self.scripts.append((self._script, data))

    def handle_endtag(self, tag):
        self._script = None


def payload_of(text: str) -> dict:
    return next(json.loads(body) for attributes, body in Elements(text).scripts if attributes.get("id") == "payload")


def numbers(packed: dict[str, str]) -> np.ndarray:
    """What the script of the page makes of numbers in binary."""
    ((kind, text),) = packed.items()
    return np.frombuffer(base64.b64decode(text), dtype=f"<{kind}")


def unpacked(payload: dict, part: dict) -> list[dict]:
    """What the script of the page makes of a part."""

    def column(packed):
        if isinstance(packed, list):
            return packed
        if "all" in packed:
            return [packed["all"]] * part["length"]
        return [packed["texts"][k] for k in packed["codes"]] if "texts" in packed else numbers(packed).tolist()

    columns = {field: column(payload["columns"][k]) for field, k in part["fields"].items()}
    return [{field: values[k] for field, values in columns.items()} for k in range(part["length"])]


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory) -> str:
    anova, table = hostile()
    return written(anova, tmp_path_factory.mktemp("hostile") / "r.html", X=table, title=SCRIPT, about={SCRIPT: SCRIPT})


def test_a_page_loads_nothing_and_runs_its_own_script_only(hostile_page):
    found = Elements(hostile_page)
    allowed = {"html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "bdi", "p", "div"}
    allowed |= {"nav", "main", "noscript", "section", "dl", "dt", "dd", "ul", "li", "details", "summary", "button"}
    allowed |= {"figure", "figcaption", "label", "input", "output", "select", "option", "footer", "script", "span"}
    allowed |= {"datalist", "code", "h4", "ol"}
    assert {tag for tag, _ in found.tags} <= allowed
    for tag, attributes in found.tags:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes), tag
    run = [body for attributes, body in found.scripts if attributes.get("type") != "application/json"]
    assert len(run) == 1
    policy = next(a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    hashes = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in run]
    assert policy.split("; ")[:2] == ["default-src 'none'", f"script-src 'sha256-{hashes[0]}'"]
    assert "unsafe-eval" not in policy


def test_nothing_from_the_data_is_markup(hostile_page):
    assert SCRIPT not in hostile_page
    assert "onload=alert" not in hostile_page.replace("&#34;&gt;&lt;svg onload=alert", "").replace(
        "\\u003e\\u003csvg onload=alert", ""
    )
    body = next(body for attributes, body in Elements(hostile_page).scripts if attributes.get("id") == "payload")
    assert not set(body) & set("<>&\u2028\u2029")
    assert "49" not in payload_of(hostile_page)["outputs"]
    assert payload_of(hostile_page)["outputs"] == [SCRIPT, "{{ 7 * 7 }}"]


def test_the_effects_of_a_page_are_those_of_the_decomposition(three, tmp_path):
    anova, table = three
    payload = payload_of(written(anova, tmp_path / "r.html", X=table, model=outputs))
    packed, d = payload["effects"], anova.decomposition_
    assert packed["complete"]
    assert packed["subsets"] == [list(subset) for subset in d.family.subsets]
    assert numbers(packed["values"]).tolist() == d.values.ravel().tolist()
    np.testing.assert_allclose(numbers(packed["share"]), d.family.weight / d.family.weight[0], rtol=1e-15)
    np.testing.assert_array_equal(numbers(packed["rows"]), d.uncertainty.rows)
    np.testing.assert_allclose(numbers(packed["stderr"]), d.uncertainty.stderr.ravel(), rtol=1e-6, atol=1e-12)
    assert [f["levels"] for f in payload["features"]] == [list(labels) for labels in d.schema.labels]
    summary = summarise(d, X=table, model=outputs)
    means = numbers(packed["means"]).reshape(-1, 3)
    for effect in summary.effects:
        start = d.family.cell_start[d.family.position[(d.schema.features.index(effect["feature"]),)]]
        for r in effect["records"]:
            found = means[start + r["position"], list(d.schema.outputs).index(r["output"])]
            assert found == pytest.approx(r["mean"], rel=1e-6, abs=1e-7)
    rows = payload["rows"]
    codes = numbers(rows["codes"]).reshape(-1, 3)
    found = [[payload["features"][i]["levels"][c] for i, c in enumerate(row)] for row in codes.tolist()]
    assert found == table.iloc[numbers(rows["numbers"])].to_numpy().tolist()
    residual = anova.explain(table, outputs).residual[numbers(rows["numbers"])]
    np.testing.assert_allclose(numbers(rows["residual"]).reshape(-1, 3), residual, atol=1e-15)


def test_rows_of_a_page_that_does_not_hold_all_effects_come_explained(three, tmp_path, monkeypatch):
    from exanova.report import live

    monkeypatch.setattr(live, "NUMBERS", 0)
    anova, table = three
    payload = payload_of(written(anova, tmp_path / "r.html", X=table, model=outputs))
    summary = summarise(anova.decomposition_, X=table, model=outputs)
    assert payload["rows"] is None
    for k, row in enumerate(summary.sample["rows"]):
        for j, part in enumerate(payload["shown"][k]["table"]):
            lines = unpacked(payload, part)
            assert [r["value"] for r in lines if r["kind"] == "feature"] == row["values"][j]
            assert [r["level"] for r in lines if r["kind"] == "feature"] == row["levels"]
            assert lines[0]["value"] == row["base"][j]


def test_cells_of_a_page_are_numbered_by_their_levels(tmp_path):
    """Also where effects are too many for a page, which then holds their strongest levels."""
    from exanova.report import live

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 40, 300).astype(str), "b": rng.integers(0, 35, 300).astype(str)})
    d = FunctionalANOVA(shrinkage=None).fit(table, rng.normal(size=300)).decomposition_
    for most in (live.NUMBERS, 10):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(live, "NUMBERS", most)
            found = live.live_effects(d, [1, 2, 3])
        assert found.is_complete == (most > 10)
        start = 0
        for subset, keys, cells in zip(found.subsets, found.keys, found.cells, strict=True):
            sizes = [len(found.features[i].levels) for i in subset]
            effect = d.effects[d.schema.names(subset)]
            expected = {levels: value for levels, (value,) in zip(effect.levels, effect.values, strict=True)}
            for c in range(cells):
                place = np.unravel_index(c if keys is None else keys[c], sizes) if sizes else ()
                levels = tuple(found.features[i].levels[k] for i, k in zip(subset, place, strict=True))
                assert expected[levels] == found.values[start + c, 0]
            start += cells
        assert len(found.features[0].levels) == 40


def test_a_file_holds_fifty_features_in_less_than_five_megabytes(tmp_path):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({f"feature {i}": rng.integers(0, 6, 900).astype(str) for i in range(50)})
    pairs = [(i, i + 1) for i in range(PAIRS + 2)]
    anova = FunctionalANOVA(shrinkage=None, subsets=pairs).fit(table, rng.normal(size=(900, 2)))
    path = tmp_path / "r.html"
    anova.report(path, X=table)
    assert path.stat().st_size < 1e6
    summary = summarise(anova.decomposition_)
    assert len(summary.effects) == 50
    assert len(summary.pairs) == PAIRS
    assert any("2 pairs" in sentence for sentence in summary.left_out)


def test_many_features_levels_and_outputs_are_bounded_and_it_is_said():
    rng = np.random.default_rng(2)
    many = pd.DataFrame({f"f{i}": rng.integers(0, 5, 400).astype(str) for i in range(60)})
    wide = summarise(FunctionalANOVA(shrinkage=None, max_order=1).fit(many, rng.normal(size=(400, 200))).decomposition_)
    assert 0 < len(wide.effects) < 60
    assert any("main effects" in sentence for sentence in wide.left_out)
    assert 0 < len(wide.sample["rows"]) < 10
    long = pd.DataFrame({"city": rng.integers(0, 900, 3000).astype(str), "day": rng.integers(0, 60, 3000).astype(str)})
    anova = FunctionalANOVA(shrinkage=None, subsets=[(0, 1)], max_levels=None).fit(long, rng.normal(size=3000))
    deep = summarise(anova.decomposition_)
    city = next(e for e in deep.effects if e["feature"] == "city")
    assert len(city["records"]) == EFFECT_LEVELS < city["levels"]
    assert len(deep.pairs[0]["records"]) <= PAIR_LEVELS**2
    assert any("Levels of city" in sentence for sentence in deep.left_out)
    assert len(Page(deep).payload.to_json()) < 1e6
    assert len(Page(wide).payload.to_json()) < 3e6


@pytest.mark.parametrize(
    ("table", "model"),
    [
        (np.array([["a"], ["a"]]), np.array([1.0, 1.0])),
        (np.array([["a"], ["b"]]), np.array([2.0, 2.0])),
        (np.array([["a", "u"], ["b", "v"]]), np.array([0.0, 1.0])),
        (np.array([[None, "u"], ["b", None]], dtype=object), np.array([0.0, 1e-130])),
    ],
)
def test_the_smallest_decompositions_have_reports(tmp_path, table, model):
    anova = FunctionalANOVA(shrinkage=None).fit(table, model)
    for suffix in (".json", ".md", ".html"):
        assert written(anova, tmp_path / f"r{suffix}", X=table, model=model)


# What is refused


@pytest.mark.parametrize("name", ["report", "report.pdf", "report.html.gz", ".html", ""])
def test_another_suffix_is_refused_and_nothing_is_written(three, tmp_path, name):
    with pytest.raises(InputError, match=r"\.html.*\.json.*\.md"):
        three[0].report(str(tmp_path / name) if name else name)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told_and_what_was_there_stays(three, tmp_path):
    with pytest.raises(FileWriteError, match="cannot be written"):
        three[0].report(tmp_path / "absent" / "r.json")
    (tmp_path / "r.md").mkdir()
    with pytest.raises(FileWriteError):
        three[0].report(tmp_path / "r.md")
    (tmp_path / "r.json").write_text("before", encoding="utf-8")
    with pytest.raises(ExanovaError):
        three[0].report(tmp_path / "r.json", X=pd.DataFrame({"other": ["a"]}))
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.json", "r.md"]


def test_what_is_not_fitted_has_no_report(tmp_path):
    with pytest.raises(NotFittedError):
        FunctionalANOVA(shrinkage=None).report(tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_a_model_without_rows_is_refused(three, tmp_path):
    with pytest.raises(InputError, match="X=table"):
        three[0].report(tmp_path / "r.json", model=outputs)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(three, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingPackageError, match=r'jinja2.*pip install "exanova\[app\]"'):
        three[0].report(tmp_path / "r.html")
    three[0].report(tmp_path / "r.json")
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]
