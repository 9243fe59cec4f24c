"""The page of a report in a real browser: it draws, answers, prints and downloads, and nothing hostile happens.

Chromium is driven headless; without one on the path these tests are skipped.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

import exanova
from exanova import FunctionalANOVA
from exanova.export.harmless import FORMULA, MADE_HARMLESS, restored

pytestmark = pytest.mark.filterwarnings("ignore::exanova.errors.OverfitWarning")  # tables of a few rows

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(2)>'
OUTPUTS = ["win", SCRIPT, "draw"]
PATIENCE = 20_000
"""Milliseconds after which an expectation counts as missed; nothing here waits that long unless it fails."""


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "size": rng.choice(["small", "large", SCRIPT], 60),
            SCRIPT: rng.choice(["red", 'say "hi", twice', "=1+1"], 60),
            "image": rng.choice(["a.png", IMAGE], 60),
            "year": rng.choice([2020, 2021, 2022, 2023], 60),
        }
    )


def model(rows: pd.DataFrame) -> np.ndarray:
    first = 1.0 * (rows["size"] == "small") * (rows["image"] == IMAGE) - 0.5 * (rows[SCRIPT] == "red")
    return np.stack([first, 0.1 * (rows["year"] - 2020) - first, 0.2 * (rows["size"] == SCRIPT)], axis=1)


@pytest.fixture(scope="module")
def anova() -> FunctionalANOVA:
    return FunctionalANOVA(shrinkage=None, max_order=2).fit(table(), model, output_names=OUTPUTS)


@pytest.fixture(scope="module")
def report(anova, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    anova.report(path, X=table(), model=model, title=SCRIPT, about={"Data": IMAGE})
    return path


@dataclass
class Seen:
    """Everything a page did that a reader did not ask for."""

    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@dataclass
class Opener:
    browser: Browser
    contexts: list = field(default_factory=list)

    def __call__(self, path: Path, **options) -> tuple[Page, Seen]:
        context = self.browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        self.contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page, seen = context.new_page(), Seen()
        page.on("console", lambda message: seen.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (seen.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: seen.asked.append(request.url))
        page.goto(path.as_uri())
        page.locator("#importance").scroll_into_view_if_needed()
        expect(page.locator("#importance[data-drawn]")).to_be_visible()
        return page, seen


@pytest.fixture
def opened(browser) -> Iterator[Opener]:
    opener = Opener(browser)
    yield opener
    for context in opener.contexts:
        context.close()


def pictures(page: Page) -> list[str]:
    return page.locator(".picture").evaluate_all("all => all.map(({ id }) => id)")


def draw_all(page: Page) -> None:
    for name in pictures(page):
        page.locator(f"#{name}").scroll_into_view_if_needed()
        expect(page.locator(f"#{name}[data-drawn]")).to_be_attached()


def drawn(page: Page, name: str) -> str:
    """Every mark and text of a picture."""
    return page.locator(f"#{name} svg").inner_html()


def cells(page: Page, key: str) -> list[list[str]]:
    """The rows of a table on the page, opened first."""
    details = page.locator(f"details[data-table='{key}']")
    if details.get_attribute("open") is None:
        details.locator("summary").click()
    rows = details.locator("tbody tr")
    expect(rows.first).to_be_visible()
    return rows.evaluate_all("all => all.map((row) => Array.from(row.cells, (cell) => cell.textContent))")


def saved(page: Page, key: str) -> list[dict[str, str]]:
    """The table in the file that its button downloads."""
    cells(page, key)
    with page.expect_download() as download:
        page.locator(f"button[data-table='{key}']").click()
    assert re.fullmatch(r"[\w-]+\.csv", download.value.suggested_filename)
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    for text in (cell for line in lines for cell in line):
        assert not FORMULA.match(text) or MADE_HARMLESS.match(text) or np.isfinite(float(text))
    head, *body = [[restored(cell) for cell in line] for line in lines]
    return [dict(zip(head, line, strict=True)) for line in body]


def test_it_opens_silently_asks_nothing_of_a_network_and_draws_every_picture(opened, report):
    page, seen = opened(report)
    assert {"importance", "network", "waterfall", "effect-0", "pair-0-2"} <= set(pictures(page))
    draw_all(page)
    for name in pictures(page):
        assert page.locator(f"#{name} svg .mark").count() > 0, name
    assert seen.said == []
    assert seen.asked == [report.as_uri()]


def test_pictures_are_drawn_as_they_come_near(opened, report):
    page, _ = opened(report)
    assert page.locator("#waterfall[data-drawn]").count() == 0
    page.locator("nav a", has_text="Rows").click()
    expect(page.locator("#waterfall[data-drawn]")).to_be_visible()


def test_the_output_that_is_chosen_is_the_one_that_is_shown_and_named(opened, report, anova):
    page, seen = opened(report)
    draw_all(page)
    before = {name: drawn(page, name) for name in pictures(page)}
    shown = cells(page, "effect-0")
    page.get_by_label("Output", exact=True).select_option(label="draw")
    draw_all(page)
    after = {name: drawn(page, name) for name in pictures(page)}
    assert all(after[name] != before[name] for name in set(before) & set(after))
    assert set(page.locator("figure .which").all_text_contents()) == {"Output: draw (3 of 3)"}
    effect = anova.effects_["size"]
    for k, output in enumerate(("win", "draw")):
        values = effect.values[:, OUTPUTS.index(output)]
        found = [float(row[3]) for row in (shown, cells(page, "effect-0"))[k]]  # level, share, rows, effect
        np.testing.assert_allclose(found, values, rtol=1e-3, atol=1e-15)
    assert seen.said == []


def test_importance_and_effects_are_sorted_for_the_output_that_is_chosen(opened, report, anova):
    page, _ = opened(report)
    table = anova.importance("variance" if anova.certificate_.cancels else "l1")
    for output in OUTPUTS:
        page.get_by_label("Output", exact=True).select_option(label=output)
        own = table[table["output"] == output].sort_values("value", ascending=False, key=abs)
        assert [row[0] for row in cells(page, "importance")] == own["feature"].tolist()
        names = page.locator("#effect-cards h3").all_text_contents()
        assert names == [name for name in own["feature"] if name in names]


def ends(page: Page, name: str) -> str:
    """The ends of the axis of a picture."""
    return page.locator(f"#{name} .axis").get_attribute("data-domain")


def test_a_switch_gives_all_charts_one_scale(opened, report):
    page, _ = opened(report)
    draw_all(page)
    names = [name for name in pictures(page) if name.startswith("effect-")]
    assert len({ends(page, name) for name in names}) > 1
    page.get_by_label("Scale of the charts").select_option("common")
    draw_all(page)
    assert len({ends(page, name) for name in names}) == 1
    before = ends(page, names[0])
    page.get_by_label("Output", exact=True).select_option(label="draw")
    draw_all(page)
    assert ends(page, names[0]) != before
    page.get_by_label("Scale of the charts").select_option("outputs")
    draw_all(page)
    common = ends(page, names[0])
    page.get_by_label("Output", exact=True).select_option(label="win")
    draw_all(page)
    assert ends(page, names[0]) == common


def test_the_row_explorer_by_keyboard(opened, report, anova):
    page, seen = opened(report)
    row = page.get_by_label("Row", exact=True)
    row.focus()
    first = page.locator("#row-title").text_content()
    waterfall = page.locator("#waterfall")
    expect(page.locator("#waterfall[data-drawn]")).to_be_visible()
    before = drawn(page, "waterfall")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#row-title")).not_to_have_text(first)
    expect(waterfall).not_to_have_attribute("data-drawn", "1")
    assert drawn(page, "waterfall") != before
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Previous")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#row-title")).to_have_text(first)
    expect(page.get_by_role("button", name="Previous")).to_be_disabled()
    explanation = anova.explain(table(), model)
    for k in (0, 1):
        listed = {feature: float(value) for feature, _, value, *_ in cells(page, "row")}
        expected = dict(zip(anova.feature_names_in_, explanation.values[k, :, 0], strict=True))
        for name, value in expected.items():
            assert listed[name] == pytest.approx(value, rel=1e-3, abs=1e-12)
        assert listed["model"] == pytest.approx(model(table())[k, 0], rel=1e-3, abs=1e-12)
        if k == 0:
            page.get_by_role("button", name="Next").click()
            expect(page.locator("#row-title")).not_to_have_text(first)
    assert seen.said == []


def test_the_row_explorer_keeps_the_rows_that_are_asked_for(opened, report):
    page, _ = opened(report)
    rows = table()
    wanted = np.flatnonzero((rows["size"] == "large") & (rows["year"] == 2021))
    page.get_by_label("Find rows by id").fill("size=large year=2021")
    expect(page.locator("#kept")).to_have_text(f"{len(wanted)} of {len(rows)} rows")
    named = page.locator("#row option").all_text_contents()
    assert [int(re.match(r"Row (\d+):", name)[1]) for name in named] == wanted.tolist()
    levels = {feature: level for feature, level, *_ in cells(page, "row")}
    assert (levels["size"], levels["year"]) == ("large", "2021")
    page.get_by_label("Find rows by id").fill("no such level")
    expect(page.locator("#kept")).to_have_text(f"0 of {len(rows)} rows")
    page.get_by_label("Find rows by id").fill("")
    expect(page.locator("#row option")).to_have_count(len(rows))


def test_hostile_names_are_shown_as_text(opened, report):
    page, seen = opened(report)
    draw_all(page)
    expect(page.locator("h1")).to_have_text(SCRIPT)
    assert page.title() == SCRIPT
    assert SCRIPT in page.locator("#output option").all_text_contents()
    assert SCRIPT in page.locator("#effects h3").all_text_contents()
    assert SCRIPT in page.locator("#importance svg text").all_text_contents()
    page.get_by_label("Output", exact=True).select_option(label=SCRIPT)
    size = page.locator("figure[data-name='size']")
    size.locator("summary").click()
    expect(size.locator("td", has_text=SCRIPT)).to_be_visible()
    assert page.locator("img, iframe, object, embed, link").count() == 0
    assert page.locator("script").count() == 2
    assert seen.said == []


def test_what_a_mark_says_is_text(opened, report):
    page, seen = opened(report)
    page.get_by_label("Output", exact=True).select_option(label=SCRIPT)
    card = page.locator("figure[data-name='image']")
    card.scroll_into_view_if_needed()
    expect(card.locator(".picture[data-drawn]")).to_be_visible()
    tip = page.locator("#tip")
    expect(tip).to_be_hidden()
    card.locator("svg rect.mark").first.hover()
    expect(tip).to_be_visible()
    first = tip.text_content()
    card.locator("svg rect.mark").nth(1).hover()
    expect(tip).not_to_have_text(first)
    assert IMAGE in first + tip.text_content()
    assert f"output{SCRIPT}" in first
    assert tip.locator("img").count() == 0
    page.mouse.move(5, 5)
    expect(tip).to_be_hidden()
    assert seen.said == []


def test_no_script_runs_but_those_of_the_page(opened, report):
    page, seen = opened(report)
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = true'>");
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in line for line in seen.said)
    assert [url for url in seen.asked if url.startswith("http")] == []


def test_a_table_is_downloaded_whole_and_exact(opened, report, anova):
    page, seen = opened(report)
    key = page.locator("figure[data-name='size'] .picture").get_attribute("id")
    effect = anova.effects_["size"]
    found = {(row["output"], row["level"]): float(row["effect"]) for row in saved(page, key)}
    assert found == {
        (output, level): effect.values[i, k]
        for k, output in enumerate(OUTPUTS)
        for i, (level,) in enumerate(effect.levels)
    }
    lines = saved(page, "row")
    explanation = anova.explain(table(), model)
    for k, output in enumerate(OUTPUTS):
        for i, name in enumerate(anova.feature_names_in_):
            of = [line for line in lines if (line["output"], line["feature"]) == (output, name)]
            assert [int(line["row"]) for line in of] == list(range(len(table())))
            found = [float(line["Shapley value"]) for line in of]
            np.testing.assert_allclose(found, explanation.values[:, i, k], rtol=1e-12, atol=1e-14)
            assert [line["level"] for line in of] == table()[name].astype(str).tolist()
    assert seen.said == []


def colours(page: Page) -> tuple[str, str]:
    """Of the page and of the names in a picture."""
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ink = page.locator("#importance svg text.end").first.evaluate("e => getComputedStyle(e).fill")
    return paper, ink


def brightness(colour: str) -> int:
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3])


def test_dark_mode_turns_page_and_pictures_also_while_it_is_open(opened, report):
    page, _ = opened(report)
    paper, ink = colours(page)
    assert brightness(paper) > 600
    assert brightness(ink) < 200
    page.emulate_media(color_scheme="dark")
    paper, ink = colours(page)
    assert brightness(paper) < 150
    assert brightness(ink) > 500


@pytest.mark.parametrize("width", [320, 360, 768])
def test_no_width_makes_the_page_scroll_sideways(opened, report, width):
    page, seen = opened(report, viewport={"width": width, "height": 740})
    draw_all(page)
    for details in page.locator("details").all():
        if details.get_attribute("open") is None:
            details.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.said == []


def test_a_width_that_changes_draws_the_pictures_again(opened, report):
    page, _ = opened(report)
    before = page.locator("#importance svg").bounding_box()["width"]
    page.set_viewport_size({"width": 500, "height": 900})
    expect(page.locator("#importance")).not_to_have_attribute("data-drawn", "1")
    assert page.locator("#importance svg").bounding_box()["width"] < min(before, 500)


def test_on_paper_every_picture_is_there_in_light_colours(opened, report):
    page, seen = opened(report, color_scheme="dark")
    assert page.locator(".picture:not([data-drawn])").count() > 0
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator(".picture:not([data-drawn])")).to_have_count(0)
    expect(page.locator(".bar")).to_be_hidden()
    for name in pictures(page):
        assert page.locator(f"#{name} svg .mark").count() > 0, name
    paper, ink = colours(page)
    assert brightness(paper) > 600
    assert brightness(ink) < 200
    page.emulate_media(media="screen", color_scheme="dark")
    expect(page.locator(".bar")).to_be_visible()
    for _ in range(50):  # colours follow the medium when the page is next laid out
        if brightness(colours(page)[0]) < 150:
            break
        page.wait_for_timeout(100)
    assert brightness(colours(page)[0]) < 150
    assert seen.said == []


def printed(page: Page, folder: Path) -> str:
    """The text of the PDF that the browser prints."""
    page.pdf(path=folder / "r.pdf", format="A4")
    ran = subprocess.run(["pdftotext", "-layout", folder / "r.pdf", "-"], capture_output=True, text=True, check=True)
    return ran.stdout


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext on the path: it reads what was printed")
def test_a_printed_page_is_whole_from_the_first_section_to_the_last(opened, report, tmp_path):
    page, seen = opened(report)
    assert page.locator(".picture:not([data-drawn])").count() > 0
    text = " ".join(printed(page, tmp_path).split())
    assert page.locator(".picture:not([data-drawn])").count() == 0
    titles = page.locator("h2").all_text_contents()
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    for sentence in page.locator("#notes li, #notes p, #computed dd, #computed h3").all_inner_texts():
        assert "".join(sentence.split()[:5]) in "".join(text.split())
    for cell in page.locator("#computed td:first-child").all_inner_texts():
        assert set(cell.split()) <= set(text.split())
    assert text.endswith("This file works offline and needs no network.")
    assert text.count("Output: win (1 of 3)") == page.locator("figure").count()
    assert seen.said == []


def test_before_printing_everything_is_drawn_in_the_same_turn(opened, report):
    """What is drawn later lengthens the page after paper was laid out, and the end is lost."""
    page, _ = opened(report)
    missing, height = page.evaluate(
        """() => {
            window.dispatchEvent(new Event("beforeprint"));
            const missing = document.querySelectorAll(".picture:not([data-drawn])").length;
            return [missing, document.documentElement.scrollHeight];
        }"""
    )
    assert missing == 0
    page.wait_for_timeout(400)
    assert page.evaluate("document.documentElement.scrollHeight") == height
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext on the path: it reads what was printed")
def test_a_reader_meets_a_result_before_any_word_of_the_trade(opened, report, tmp_path):
    page, _ = opened(report)
    text = printed(page, tmp_path).lower()
    before = text[: text.index("strongest interactions")]
    assert "the mean of win is" in before
    for word in ("game", "orthogonal", "rank", "least energy", "probability", "e|f|"):
        assert word not in before, word


def test_everything_is_reached_and_named_without_a_mouse(opened, report):
    page, _ = opened(report)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    assert page.locator(".picture:not([role=img][aria-label])").count() == 0
    for control in page.locator("select, input").all():
        assert page.locator(f"label[for='{control.get_attribute('id')}']").count() == 1
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map((e) => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    summary = page.locator("details[data-table='importance'] summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator("details[data-table='importance'] tbody tr").first).to_be_visible()
    assert summary.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"


def test_three_features_together_are_drawn_for_the_output_that_is_chosen(opened, tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.choice(["u", "v"], 60) for name in "abc"})
    found = 1.0 * (rows == "u").all(axis=1)
    anova = FunctionalANOVA(shrinkage=None, max_order=3).fit(rows, np.stack([found, -2.0 * found], axis=1))
    anova.report(tmp_path / "r.html")
    page, seen = opened(tmp_path / "r.html")
    draw_all(page)
    bars = page.locator("#higher-0 svg rect.mark")
    assert bars.count() == 8
    effect = anova.effects_["a", "b", "c"]
    for output in (0, 1):
        page.get_by_label("Output", exact=True).select_option(str(output))
        draw_all(page)
        largest = np.argmax(effect.probability * np.abs(effect.values[:, output]))
        assert page.locator("#higher-0 svg text.end").first.text_content() == ", ".join(effect.levels[largest])
        drawn_as = "positive" if effect.values[largest, output] > 0 else "negative"
        assert drawn_as in bars.first.get_attribute("class")
    assert seen.said == []


def test_cards_leave_no_holes_and_do_not_overlap(opened, tmp_path):
    rng = np.random.default_rng(0)
    sizes = [2, 12, 3, 2, 8, 2]
    rows = pd.DataFrame({f"f{i}": rng.integers(0, n, 300).astype(str) for i, n in enumerate(sizes)})
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(rows, sum(rows[name].astype(int) for name in rows) * 1.0)
    anova.report(tmp_path / "r.html")
    page, _ = opened(tmp_path / "r.html")
    draw_all(page)
    page.wait_for_timeout(200)
    boxes = [card.bounding_box() for card in page.locator("#effect-cards > figure").all()]
    columns = {round(box["x"]): sorted((b for b in boxes if b["x"] == box["x"]), key=lambda b: b["y"]) for box in boxes}
    assert len(columns) == 2
    for column in columns.values():
        for above, below in pairwise(column):
            assert 10 <= below["y"] - above["y"] - above["height"] <= 24


def test_a_feature_is_found_by_its_name(opened, report):
    page, _ = opened(report)
    page.get_by_label("Find a feature").fill("SIZ")
    expect(page.locator("#effects figure:visible")).to_have_count(1)
    expect(page.locator("#found")).to_have_text("1 of 4 features")
    page.get_by_label("Find a feature").fill("")
    expect(page.locator("#effects figure:visible")).to_have_count(4)


def test_the_first_card_is_about_other_rows_and_error_bars_are_drawn(opened, report, anova):
    page, seen = opened(report)
    card = page.locator(".verdicts > li").first
    expect(card).to_contain_text("Does it hold on other rows?")
    expect(card).to_have_class("good" if anova.certificate_.holds else "bad")
    page.locator("#effect-0").scroll_into_view_if_needed()
    expect(page.locator("#effect-0[data-drawn]")).to_be_visible()
    assert page.locator("#effect-0 svg .whisker").count() == len(anova.effects_["size"].levels)
    assert seen.said == []


@pytest.mark.parametrize("matter", [0, 3, 25])
def test_of_many_features_those_that_matter_are_drawn(opened, tmp_path, matter):
    """No bars of nothing: where features are many, only those with an importance; the table has all."""
    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (200, 30)), columns=[f"x{k}" for k in range(30)])
    weight = np.where(np.arange(30) < matter, np.arange(30) + 1.0, 0.0)
    FunctionalANOVA(shrinkage=None, max_order=1).fit(rows, rows.to_numpy() @ weight).report(tmp_path / "r.html")
    page, _ = opened(tmp_path / "r.html")
    page.locator("#importance").scroll_into_view_if_needed()
    expect(page.locator("#importance rect.amount")).to_have_count(min(matter, 20) or 1)
    expect(page.locator("#importance-figure")).to_contain_text("most important of 30 features")


def test_one_output_and_no_rows_open_as_silently(opened, tmp_path):
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(table(), lambda rows: model(rows)[:, 0])
    anova.save(tmp_path / "a.exanova")
    exanova.load(tmp_path / "a.exanova").report(tmp_path / "r.html")
    page, seen = opened(tmp_path / "r.html")
    assert page.locator("#output, #waterfall, #interactions").count() == 0
    expect(page.locator("section#rows")).to_contain_text("report(path, X=table)")
    draw_all(page)
    assert cells(page, "fit")
    assert seen.said == []


def test_no_text_of_a_narrow_chart_is_cut_off_in_a_notebook(browser, anova):
    """The drawing of a notebook, whose width is fixed before the browser knows its letters."""
    pytest.importorskip("vl_convert", reason="vl-convert-python draws the charts of notebooks")
    rng = np.random.default_rng(0)
    small = pd.DataFrame({"a": rng.choice(["x", "y"], 90), "b": rng.choice(["u", "v"], 90)})
    fitted = FunctionalANOVA().fit(small, 1.0 * (small["a"] == "x") * (small["b"] == "u"))
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    for chart in (fitted.plot.pair("a", "b"), fitted.plot.effect("a"), fitted.plot.importance()):
        page.set_content(chart._repr_mimebundle_()["image/svg+xml"])
        beyond = page.evaluate(
            """() => {
                const edge = document.querySelector("svg").getBoundingClientRect().right;
                const texts = Array.from(document.querySelectorAll("text"));
                return Math.max(...texts.map((text) => text.getBoundingClientRect().right)) - edge;
            }"""
        )
        assert beyond <= 1
    page.close()


@pytest.fixture
def rare(tmp_path) -> Path:
    """A report of a feature with a level of two rows whose interval is wide, and a pair of twelve columns."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"job": rng.choice(["a", "b"], 300), "month": rng.integers(1, 13, 300)}).astype(str)
    rows.loc[[3, 8], "job"] = "rare"
    values = (rows["job"] == "a") + 0.3 * rng.normal(size=300) + 3.0 * (np.arange(300) == 3)
    FunctionalANOVA(shrinkage=None).fit(rows, values).report(tmp_path / "r.html", X=rows)
    return tmp_path / "r.html"


def test_intervals_of_few_rows_make_no_scale_and_end_in_arrows(opened, rare):
    page, seen = opened(rare)
    page.locator("#effect-0").scroll_into_view_if_needed()
    expect(page.locator("#effect-0[data-drawn]")).to_be_visible()
    paths = page.locator("#effect-0 svg .whisker").evaluate_all("all => all.map((path) => path.getAttribute('d'))")
    assert ["l4,-3" in path or "l4,3" in path for path in paths] == [False, False, True]
    edges = page.locator("#effect-0 svg .whisker").evaluate_all(
        "all => all.map((p) => p.getBBox().x + p.getBBox().width)"
    )
    assert max(edges) <= page.locator("#effect-0 svg").evaluate("svg => svg.getBBox().width")
    expect(page.locator("#effects")).to_contain_text("an interval that leaves its chart ends in an arrow")
    assert seen.said == []


def test_maps_of_a_dozen_columns_show_values_and_rows(opened, rare):
    page, _ = opened(rare)
    page.locator("#pair-0-1").scroll_into_view_if_needed()
    expect(page.locator("#pair-0-1[data-drawn]")).to_be_visible()
    shown = page.locator("#pair-0-1 svg .count").all_text_contents()
    lines = [line for line in cells(page, "pair-0-1") if "never" not in " ".join(line)]
    assert len(shown) == page.locator("#pair-0-1 svg rect.box").count() > 20
    assert all(text.startswith("n ") for text in shown)
    assert lines


def test_maps_of_uneven_weights_say_what_their_rows_are(opened, tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.choice(["x", "y"], 200), "b": rng.choice(["u", "v"], 200)})
    for weight, words in (
        (None, "n is the number of rows."),
        (rng.random(200), "n is the number of rows of equal weight"),
    ):
        anova = FunctionalANOVA(shrinkage=None).fit(rows, rng.normal(size=200), sample_weight=weight)
        anova.report(tmp_path / "r.html")
        page, _ = opened(tmp_path / "r.html")
        expect(page.locator("#interactions")).to_contain_text(words)


def test_groups_and_rows_of_intervals_are_named_as_sentences(opened, tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.normal(40, 9, 300), "job": rng.choice(["x", "y"], 300)})
    FunctionalANOVA(n_bins=3).fit(rows, rows["age"] / 9).report(tmp_path / "r.html", X=rows)
    page, _ = opened(tmp_path / "r.html")
    expect(page.locator("#cohort-title")).to_contain_text(re.compile(r"^age < [\d.]+: mean"))
    value = page.locator("#what-if-value").inner_text().partition(" (")[0].rpartition(" ")[2]
    assert len(value.strip("-").replace(".", "").lstrip("0")) <= 4
