"""What a page computes itself is what the decomposition says: fitted part, parts, Shapley values, standard errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect
from scipy.sparse import csr_array

import exanova
from exanova import FunctionalANOVA
from exanova.data.table import Table
from exanova.errors import InputError, UnknownFeatureError
from exanova.explain.row_errors import cells_at, row_stderr
from exanova.infer import uncertainty
from exanova.report import covariances, factors

pytestmark = [
    pytest.mark.filterwarnings("ignore::exanova.errors.OverfitWarning"),
    pytest.mark.filterwarnings("ignore::exanova.errors.OutsideSupportWarning"),  # such rows are part of what is asked
]

OUTPUTS = ["risk", "cost"]
PATIENCE = 20_000


def table(n: int = 260) -> pd.DataFrame:
    """Four features, some combinations of which never occur, with names for the rows."""
    rng = np.random.default_rng(8)
    found = pd.DataFrame(
        {
            "job": rng.choice(["clerk", "guard", "nurse"], n),
            "shift": rng.choice(["day", "night"], n),
            "year": rng.choice([2020, 2021, 2022, 2023], n),
            "town": rng.choice(["A", "B <i>", "C"], n),
        },
        index=[f"p{1000 + k}" for k in range(n)],
    )
    return found[
        ~((found["job"] == "nurse") & (found["town"] == "A")) & ~((found["job"] == "guard") & (found["year"] == 2022))
    ]


def values(rows: pd.DataFrame) -> np.ndarray:
    risk = 0.3 * (rows["shift"] == "night") * (rows["job"] == "guard") + 0.1 * (rows["year"] - 2020)
    cost = 50.0 * (rows["town"] == "C") - 20.0 * (rows["job"] == "nurse") * (rows["year"] > 2021)
    return np.stack([risk, cost], axis=1)


def fitted(**options) -> FunctionalANOVA:
    subsets = [("job", "shift", "year"), ("job", "town"), ("year", "town")]
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(len(table()), 2)) * [0.1, 5.0]
    return FunctionalANOVA(subsets=subsets, **options).fit(table(), values(table()) + noise, output_names=OUTPUTS)


@pytest.fixture(scope="module")
def anova() -> FunctionalANOVA:
    return fitted(shrinkage=None)


@pytest.fixture
def opened(browser) -> Iterator:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(PATIENCE)

    def opener(path: Path, state: str = "") -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: pytest.fail(str(error)))
        page.goto(path.as_uri() + state)
        expect(page.locator("#importance")).to_be_attached()
        return page

    yield opener
    context.close()


def written(anova: FunctionalANOVA, folder: Path, **options) -> Path:
    anova.report(folder / "r.html", **options)
    return folder / "r.html"


def choose(page: Page, row: pd.Series) -> None:
    for name in row.index:
        page.locator("#what-if-form").get_by_label(name, exact=True).select_option(
            index=levels_of(name).index(row[name])
        )


def levels_of(name: str) -> list:
    return sorted(table()[name].unique())


def lines(page: Page, key: str) -> list[dict[str, str]]:
    details = page.locator(f"details[data-table='{key}']")
    rows = details.locator("tbody tr")
    for _ in range(3):  # a page that draws its answer again closes the table that was opened meanwhile
        if details.get_attribute("open") is None:
            details.locator("summary").click()
        with suppress(AssertionError):
            expect(rows.first).to_be_visible(timeout=6000)
            break
    expect(rows.first).to_be_visible()
    titles = details.locator("th").all_text_contents()
    cells = rows.evaluate_all("all => all.map((row) => Array.from(row.cells, (cell) => cell.textContent))")
    return [dict(zip(titles, row, strict=True)) for row in cells]


def combinations(count: int) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame({name: rng.choice(levels_of(name), count) for name in table()})


@pytest.mark.parametrize("limit", [covariances.NUMBERS, 3000])
@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_the_page_gives_what_the_decomposition_gives(opened, tmp_path, monkeypatch, limit, shrinkage):
    """For random levels, with the covariances of all cells and with those that have a level in common."""
    monkeypatch.setattr(covariances, "NUMBERS", limit)
    monkeypatch.setattr(factors, "LEAST", 0.1)  # no factor
    anova = fitted(shrinkage=shrinkage)
    found = covariances.live_errors(anova.decomposition_)
    assert found is not None
    assert found.is_whole == (limit > 3000)
    asked = combinations(6)
    predicted, explained, parts = anova.predict(asked), anova.explain(asked, stderr=True), anova.components(asked)
    assert 0 < explained.outside.sum() < len(asked)
    page = opened(written(anova, tmp_path, X=table()))
    for k in range(len(asked)):
        choose(page, asked.iloc[k])
        for output, name in enumerate(OUTPUTS):
            page.get_by_label("Output", exact=True).select_option(label=name)
            value = float(page.locator("#what-if-value").get_attribute("data-value"))
            assert value == pytest.approx(predicted[k, output], rel=1e-9, abs=1e-12)
            for line in lines(page, "what-if"):
                if line["feature"] in table().columns:
                    i = list(table().columns).index(line["feature"])
                    assert line["level"] == str(asked.iloc[k][line["feature"]])
                    same(line["Shapley value"], explained.values[k, i, output], 4)
                    same(line["± (standard error)"], explained.stderr[k, i, output], 2)
            said = {line["features"]: line for line in lines(page, "what-if-parts")}
            for s, subset in enumerate(parts.subsets[1:], start=1):
                line = said[" × ".join(subset)]
                same(line["effect"], parts.values[k, s, output], 4)
                cell = tuple(str(asked.iloc[k][name]) for name in subset)
                assert line["observed"] == ("yes" if cell in anova.effects_[subset].levels else "no")
        expect(page.locator("#what-if-note")).to_be_visible(visible=bool(explained.outside[k]))


WAYS = {
    "a factor": [(factors, "LEAST", 1)],
    "correlations": [(factors, "LEAST", 0.1)],
    "at rows": [(covariances, "WORK", 0)],
}
"""What a page holds where it has no room for covariances, and what makes it so."""


@pytest.mark.parametrize("way", WAYS)
def test_large_fits_have_error_bars_too(opened, tmp_path, monkeypatch, way):
    """At rows of the page they are exact; at other levels compressed ones are off by the tolerance at most."""
    monkeypatch.setattr(covariances, "NUMBERS", 0)
    for module, name, value in WAYS[way]:
        monkeypatch.setattr(module, name, value)
    anova = fitted(shrinkage="auto")
    some = table().iloc[:40]
    codes = anova.decomposition_.encoding.encode(Table.read(some)).T.astype(np.int64)
    found = covariances.live_errors(anova.decomposition_, codes)
    assert way == ("at rows" if found is None else "a factor" if found.factor else "correlations")
    page = opened(written(anova, tmp_path, X=some))
    mine, other = some.iloc[[20]], combinations(80).merge(some, how="left", indicator=True)
    other = other[other.pop("_merge") == "left_only"]
    other = other[~anova.explain(other).outside].iloc[:1]
    for row, tolerance in ((mine, 0.0), (other, factors.TOLERANCE)):
        choose(page, row.iloc[0])
        expected = {name: anova.explain(row, stderr=True).stderr[0, i, 0] for i, name in enumerate(table())}
        if way == "a factor" or not tolerance:
            expected["fitted part"] = error_of_the_sum(anova.decomposition_, row)
        for line in lines(page, "what-if"):
            text = line.get("± (standard error)", "")  # a column that is empty is not shown
            value = np.nan if way == "at rows" and tolerance else expected.get(line["feature"], np.nan)
            if np.isnan(value):
                assert text == ""
            else:
                assert float(text) == pytest.approx(value, rel=0.06 + tolerance, abs=1e-9)
    said = page.locator("#what-if").inner_text()
    assert ("within 5 % of the exact ones" in said) == (way != "at rows")
    assert ("At other levels there are none" in said) == (way == "at rows")


@pytest.mark.parametrize(("size", "way"), [(300, None), (3000, "correlations"), (30_000, "a factor")])
def test_what_is_compressed_is_close_or_refused(monkeypatch, size, way):
    """Every standard error at a row of the page, against the covariances of all cells."""
    monkeypatch.setattr(covariances, "NUMBERS", 0)
    monkeypatch.setattr(factors, "BYTES", size)
    d = fitted(shrinkage="auto").decomposition_
    codes = d.encoding.encode(Table.read(table().drop_duplicates()))
    found = covariances.live_errors(d, codes.T.astype(np.int64))
    assert way == (None if found is None else "a factor" if found.factor else "correlations")
    if found is None:
        return
    weights = factors.statistics(d)
    exact = row_stderr(d.family, d.uncertainty, codes, csr_array(weights))
    for row, place, stderr in zip(codes.T, cells_at(d.family, codes), exact, strict=True):
        for o in range(2):
            if found.factor:
                told = np.sqrt(found.factor.variances(o, place, weights))
                np.testing.assert_allclose(told, stderr[:, o], rtol=factors.TOLERANCE)
            else:
                told = [of_correlations(d, found, i, int(row[i]), place, weights[i], o) for i in range(4)]
                np.testing.assert_allclose(told, stderr[:-1, o], rtol=factors.TOLERANCE)


def of_correlations(d, found, feature: int, level: int, place, weights, output: int) -> float:
    """The standard error of a Shapley value from the correlations in the block of a level."""
    number = int(d.family.sizes[:feature].sum()) + level
    sizes = [len(block) for block in found.blocks]
    start = sum(n * (n - 1) // 2 for n in sizes[:number])
    block, n = found.blocks[number].tolist(), sizes[number]
    matrix = np.eye(n)
    rows, columns = np.triu_indices(n, 1)
    matrix[rows, columns] = matrix[columns, rows] = found.triangles[start : start + len(rows), output] / factors.STEPS
    used = np.flatnonzero(weights)
    inside = [block.index(cell) for cell in place[used].tolist()]
    amounts = weights[used] * d.uncertainty.stderr[place[used], output]
    return float(np.sqrt(amounts @ matrix[np.ix_(inside, inside)] @ amounts))


def error_of_the_sum(d: exanova.Decomposition, row: pd.DataFrame) -> float:
    codes = d.encoding.encode(Table.read(row))[:, 0]
    family = d.family
    inside = [family.codes_of(s).T.tolist().index(codes[list(a)].tolist()) for s, a in enumerate(family.subsets)]
    cells = np.add(family.cell_start[:-1], inside)
    return float(np.sqrt(d.uncertainty.all_cells[0][np.ix_(cells, cells)].sum()))


def test_main_effects_alone_need_no_covariances(monkeypatch):
    """Their blocks are variances, which are known without those."""
    d = FunctionalANOVA(max_order=1, shrinkage=None).fit(table(), values(table())[:, 0]).decomposition_
    computed = covariances._computed(d, covariances.cells_by_level(d.family), False)
    monkeypatch.setattr(covariances, "WORK", 0)
    monkeypatch.setattr(covariances, "_computed", None)
    found = covariances.live_errors(d)
    np.testing.assert_allclose(found.triangles, computed.triangles, rtol=1e-8, atol=1e-20)


def same(text: str, value: float, digits: int) -> None:
    """Whether a printed number is this value to its digits, and nothing is printed where there is none."""
    if np.isnan(value):
        assert text == ""
        return
    assert float(text) == pytest.approx(value, rel=0.6 * 10.0 ** (1 - digits), abs=1e-12)


def test_the_error_of_the_sum_is_that_of_the_fitted_part(opened, tmp_path, anova):
    """Against the covariance of all cells, summed over those of a row."""
    row = table().iloc[[5]]
    page = opened(written(anova, tmp_path, X=table()))
    choose(page, row.iloc[0])
    total = next(line for line in lines(page, "what-if") if line["feature"] == "fitted part")
    same(total["± (standard error)"], error_of_the_sum(anova.decomposition_, row), 2)


def test_a_combination_that_never_occurred_is_marked(opened, tmp_path, anova):
    page = opened(written(anova, tmp_path, X=table()))
    choose(page, pd.Series({"job": "nurse", "shift": "day", "year": 2020, "town": "B <i>"}))
    expect(page.locator("#what-if-note")).to_be_hidden()
    town = page.locator("#what-if-form").get_by_label("town")
    assert town.locator("option").all_text_contents() == ["A (never observed with the other levels)", "B <i>", "C"]
    town.select_option(index=0)
    expect(page.locator("#what-if-note")).to_contain_text("Never observed: job = nurse with town = A.")
    expect(page.locator("#what-if-note")).to_contain_text("The effect of such a combination counts as 0.")


def test_an_extrapolated_combination_is_marked(opened, tmp_path):
    page = opened(written(fitted(shrinkage="auto"), tmp_path, X=table()))
    choose(page, pd.Series({"job": "nurse", "shift": "day", "year": 2020, "town": "A"}))
    said = (
        "The effect of such a combination is extrapolated by the prior of the fit in 2 pairs and counts as 0 in other"
    )
    expect(page.locator("#what-if-note")).to_contain_text(said)


def test_rows_are_found_by_their_id_and_hold_the_residual(opened, tmp_path, anova):
    page = opened(written(anova, tmp_path, X=table(), model=values))
    expect(page.locator("#row option")).to_have_count(len(table()))
    name = table().index[17]
    page.get_by_label("Find rows by id").fill(name)
    expect(page.locator("#row-title")).to_contain_text(f"Row {name}: ")
    expect(page.locator("#kept")).to_have_text(f"1 of {len(table())} rows")
    explained = anova.explain(table().iloc[[17]], values, stderr=True)
    said = {line["feature"]: line for line in lines(page, "row")}
    for i, feature in enumerate(table()):
        same(said[feature]["Shapley value"], explained.values[0, i, 0], 4)
        same(said[feature]["± (standard error)"], explained.stderr[0, i, 0], 2)
    same(said["residual"]["Shapley value"], explained.residual[0, 0], 4)
    same(said["model"]["Shapley value"], values(table())[17, 0], 4)


def test_a_column_names_the_rows(opened, tmp_path, anova):
    numbered = table().reset_index(drop=True).assign(number=[f"n-{k}" for k in range(len(table()))])
    page = opened(written(anova, tmp_path, X=numbered, id="number"), "#row=n-7&output=1")
    expect(page.locator("#row-title")).to_contain_text("Row n-7: ")
    anova.report(tmp_path / "r.json", X=numbered, id="number")
    sample = json.loads((tmp_path / "r.json").read_text())["sample"]
    assert {row["id"] for row in sample["rows"]} <= set(numbered["number"])
    with pytest.raises(UnknownFeatureError, match="no such column"):
        anova.report(tmp_path / "r.json", X=numbered, id="none")
    with pytest.raises(InputError, match="X=table"):
        anova.report(tmp_path / "r.json", id="number")


def test_a_link_opens_a_state_and_the_page_gives_such_a_link(opened, tmp_path, anova):
    path = written(anova, tmp_path, X=table())
    page = opened(path, f"#row={table().index[17]}&output=1&scale=common")
    expect(page.locator("#row-title")).to_contain_text(f"Row {table().index[17]}: ")
    expect(page.get_by_label("Output", exact=True)).to_have_value("1")
    expect(page.get_by_label("Scale of the charts")).to_have_value("common")
    expect(page.locator("section#rows h2")).to_be_in_viewport()
    choose(page, pd.Series({"job": "guard", "shift": "night"}))
    again = opened(path, page.evaluate("location.hash"))
    assert again.locator("#what-if-value").text_content() == page.locator("#what-if-value").text_content()
    assert again.locator("#row-title").text_content() == page.locator("#row-title").text_content()
    again.evaluate("location.hash = '#output=0'")
    expect(again.get_by_label("Output", exact=True)).to_have_value("0")
    opened(path, "#row=none&output=7&scale=x&levels=1.2")  # what does not exist is ignored


def test_without_rows_a_page_still_computes_and_says_what_it_lacks(opened, tmp_path, anova):
    anova.save(tmp_path / "a.exanova")
    page = opened(written(exanova.load(tmp_path / "a.exanova"), tmp_path))
    row = table().iloc[3]
    choose(page, row)
    value = float(page.locator("#what-if-value").get_attribute("data-value"))
    assert value == pytest.approx(anova.predict(table().iloc[[3]])[0, 0], rel=1e-9)
    explained = anova.explain(table().iloc[[3]], stderr=True)
    for line in lines(page, "what-if"):  # the file holds the covariances of so few cells
        if line["feature"] in table().columns:
            i = list(table().columns).index(line["feature"])
            same(line["± (standard error)"], explained.stderr[0, i, 0], 2)


def test_without_rows_and_covariances_there_are_no_error_bars_at_levels(tmp_path, anova, monkeypatch):
    monkeypatch.setattr(uncertainty, "MOST_NUMBERS", 0)
    anova.save(tmp_path / "a.exanova")
    stored = exanova.load(tmp_path / "a.exanova").decomposition_
    assert covariances.live_errors(stored) is None
    assert covariances.errors_note(stored, None) == "No error bars: files of decompositions hold no rows."


# Groups of rows


@pytest.mark.parametrize("against", ["all other rows", "day"])
def test_groups_are_compared_as_difference_compares_them(opened, tmp_path, anova, against):
    page = opened(written(anova, tmp_path, X=table(), model=values))
    page.get_by_label("Output", exact=True).select_option(label="cost")
    page.get_by_label("Rows by", exact=True).select_option(label="shift")
    page.get_by_label("with the level").select_option(label="night")
    page.get_by_label("against", exact=True).select_option(label=against)
    night = table()["shift"] == "night"
    found = anova.difference(table()[night], table()[~night], model=values)
    means = [float(mean) for mean in page.locator("#cohort-title").get_attribute("data-means").split()]
    np.testing.assert_allclose(means, found[0].means[:, 1], rtol=1e-9)
    expect(page.locator("#cohort-title")).to_contain_text(f"({night.sum()} rows)")
    told = {line["part of the difference"]: line for line in lines(page, "cohort")}
    errors = found[0].by_feature_stderr[:, 1]
    assert np.isfinite(errors).any()
    for name, value, error in zip(found.features, found[0].by_feature[:, 1], errors, strict=True):
        same(told[name]["value"], value, 4)
        assert told[name]["± (standard error)"] == "" if np.isnan(error) else True
        if np.isfinite(error):
            same(told[name]["± (standard error)"], error, 2)
    same(told["residual"]["value"], found[0].residual[1], 4)
    same(told["residual"]["± (standard error)"], found[0].residual_stderr[1], 2)
    same(page.locator("#cohort-title").text_content().split("±")[1], found[0].total_stderr[1], 2)
    said = {line["part of the difference"]: line["value"] for line in lines(page, "cohort-parts")}
    for subset, value in zip(found.subsets[1:], found[0].by_subset[1:, 1], strict=True):
        same(said[" × ".join(subset)], value, 4)
    again = opened(tmp_path / "r.html", page.evaluate("location.hash"))
    assert again.locator("#cohort-title").text_content() == page.locator("#cohort-title").text_content()


def test_rows_of_the_fit_count_as_often_as_they_were_given(opened, tmp_path, anova):
    page = opened(written(anova, tmp_path))
    page.get_by_label("Rows by", exact=True).select_option(label="shift")
    night = table()["shift"] == "night"
    expect(page.locator("#cohort-title")).to_contain_text(f"({(~night).sum()} rows)")
    means = [float(mean) for mean in page.locator("#cohort-title").get_attribute("data-means").split()]
    expected = [anova.predict(table()[group])[:, 0].mean() for group in (~night, night)]
    np.testing.assert_allclose(means, expected, rtol=1e-9)


def test_a_report_by_groups_says_why_they_differ_in_every_format(opened, tmp_path, anova):
    found = anova.difference(table(), by="job", model=values)
    page = opened(written(anova, tmp_path, X=table(), model=values, by="job"))
    anova.report(tmp_path / "r.json", X=table(), model=values, by="job")
    anova.report(tmp_path / "r.md", X=table(), model=values, by="job")
    told = json.loads((tmp_path / "r.json").read_text())["groups"]
    text = (tmp_path / "r.md").read_text()
    assert len(told["contrasts"]) == len(found) == 3
    for k, contrast in enumerate(found):
        group = told["contrasts"][k]
        assert (group["group"], group["against"]) == (contrast.group, contrast.against)
        for output, name in enumerate(OUTPUTS):
            parts = {r["part"]: (r["value"], r["stderr"]) for r in group["records"] if r["output"] == name}
            for part, value, error in found.parts(contrast, output=output):
                assert parts[part][0] == pytest.approx(value, rel=1e-12)
                assert parts[part][1] == (pytest.approx(error) if np.isfinite(error) else None)
            assert sum(v for part, (v, _) in parts.items() if part != "(total)") == pytest.approx(parts["(total)"][0])
            expect(page.locator("section#groups")).to_contain_text(group["words"][output])
            assert group["words"][output].split(":")[0] in text
        said = {line["part of the difference"]: line for line in lines(page, f"groups-{k}")}
        same(said["(total)"]["value"], contrast.total[0], 4)
    with pytest.raises(InputError, match="X=table"):
        anova.report(tmp_path / "r.json", by="job")


def test_a_report_since_an_earlier_fit_says_why_the_mean_changed(opened, tmp_path, anova):
    earlier = FunctionalANOVA(max_order=1, shrinkage=None).fit(
        table()[:150], values(table()[:150]) * 0.8, output_names=OUTPUTS
    )
    found = earlier.change(anova)
    page = opened(written(anova, tmp_path, since=earlier))
    anova.report(tmp_path / "r.json", since=earlier.decomposition_)
    anova.report(tmp_path / "r.md", since=earlier)
    told = json.loads((tmp_path / "r.json").read_text())["change"]
    text = (tmp_path / "r.md").read_text()
    for k, name in enumerate(OUTPUTS):
        own = {r["part"]: r for r in told["records"] if r["output"] == name}
        for s, subset in enumerate(found.subsets):
            record = own[" × ".join(subset) or "(level)"]
            assert (record["mix"], record["model"]) == (found.mix[s, k], found.model[s, k])
        assert own["(total)"]["mix"] + own["(total)"]["model"] == pytest.approx(found.total[k])
        expect(page.locator("section#changed")).to_contain_text(told["words"][k])
        assert told["words"][k].split(":")[0] in text
    said = {line["part of the change"]: line for line in lines(page, "change")}
    same(said["(total)"]["the mix changed"], found.mix_total[0], 4)
    same(said["job"]["the model changed"], found.model[found.subsets.index(("job",)), 0], 4)


def test_a_word_says_what_it_means_when_it_is_pointed_at_or_reached(opened, tmp_path, anova):
    page = opened(written(anova, tmp_path, X=table()))
    terms = page.locator(".term")
    assert terms.count() > 5
    for key in terms.evaluate_all("all => all.map((term) => term.getAttribute('aria-describedby'))"):
        expect(page.locator(f"#{key}")).to_be_attached()
    first = terms.first
    meaning = page.locator(f"#{first.get_attribute('aria-describedby')}").text_content()
    first.focus()
    expect(page.locator("#tip")).to_have_text(meaning)
    page.keyboard.press("Escape")
    expect(page.locator("#tip")).to_be_hidden()
    first.hover()
    expect(page.locator("#tip")).to_have_text(meaning)


@pytest.mark.parametrize("link", ["log", "logit"])
def test_beside_the_log_of_an_output_stands_the_output(opened, tmp_path, link):
    frame = table()
    anova = FunctionalANOVA(link=link).fit(frame, 1 / (2 + values(frame)[:, 0] ** 2), output_names=["rate"])
    page = opened(written(anova, tmp_path, X=frame), f"#row={frame.index[17]}")
    choose(page, frame.iloc[5])
    rate = anova.predict(frame.iloc[[5, 17]], scale="response")
    expect(page.locator("#what-if-value")).to_contain_text(f"; rate: {float(f'{rate[0]:.4g}')} (")
    expect(page.locator("#row-title")).to_contain_text(f"(rate {float(f'{rate[1]:.4g}')})")


def test_a_link_keeps_its_section_in_view_while_charts_are_drawn(opened, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"f{i}": rng.choice(list("abcdef"), 300) for i in range(12)})
    anova = FunctionalANOVA().fit(frame, (frame["f0"] == "a") * 1.0 + rng.normal(size=300))
    page = opened(written(anova, tmp_path, X=frame), "#row=17")
    page.wait_for_timeout(1500)
    assert 0 <= page.locator("section#rows").bounding_box()["y"] < 150


def test_a_meaning_goes_away_with_what_it_explains(opened, tmp_path, anova):
    page = opened(written(anova, tmp_path, X=table()))
    page.locator(".term").first.hover()
    expect(page.locator("#tip")).to_be_visible()
    page.evaluate("window.scrollBy(0, 400)")
    expect(page.locator("#tip")).to_be_hidden()
