"""Exported tables read back: workbooks, CSV, Parquet, JSON, Markdown and LaTeX say what the effect tables say."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import jsonschema
import numpy as np
import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape

import exanova
from cli_helpers import PREDICTED, TABLE, inside, refused
from exanova import FunctionalANOVA
from exanova.errors import FileWriteError, InputError, InputTypeError, MissingPackageError
from exanova.export import csv_folder, workbook
from exanova.export.harmless import FORBIDDEN, FORMULA, file_name, harmless, in_xml, restored, sheet_names
from exanova.export.json_tables import SCHEMA
from exanova.export.typeset import in_latex
from exanova.progress import Progress

pytestmark = pytest.mark.filterwarnings("ignore:.*differ only in blanks:UserWarning")

HOSTILE = ["=1+1", "+1", "-2", "@SUM(A1)", "\tx", "\rx", "'=a", "#N/A", "a\x07b", "_x0041_", "plain", "TRUE", "007"]


def table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "=cmd|' /C calc'!A0": rng.choice(HOSTILE, n),
            "k": rng.integers(-3, 3, n),
            "flag": rng.random(n) < 0.5,
            "age": rng.normal(size=n),
        }
    )
    X.loc[X["k"] == -3, "flag"] = True  # a combination that never occurs
    return X


@pytest.fixture(scope="module")
def fitted():
    X = table()
    values = np.random.default_rng(1).normal(size=(len(X), 2)) + X[["k", "k"]].to_numpy()
    return FunctionalANOVA(n_bins=3).fit(X, values, output_names=["low", "-high"])


@pytest.fixture(scope="module")
def book(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "book.xlsx"
    fitted.export(path)
    return openpyxl.load_workbook(path)


@pytest.fixture(scope="module")
def folder(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("folder") / "tables"
    fitted.export(f"{path}/")
    return path


def expected(anova, features):
    """The lines of an effect as exports have them."""
    effect = anova.effects_[features]
    levels = dict(zip(anova.feature_names_in_, anova.categories_, strict=True))
    labels = dict(zip(anova.feature_names_in_, anova.decomposition_.schema.labels, strict=True))

    def cell(name, label):
        level = levels[name][labels[name].index(label)]
        return level if isinstance(level, int | float) else label

    return [
        (
            *(cell(name, label) for name, label in zip(effect.features, own, strict=True)),
            effect.probability[c],
            effect.rows[c],
            *effect.values[c],
            *effect.stderr[c],
            effect.identified,
        )
        for c, own in enumerate(effect.levels)
    ]


def header(anova, features):
    schema = anova.decomposition_.schema
    return [*features, "probability", "rows", *schema.value_columns, *schema.stderr_columns, "identified"]


def same_in_a_workbook(found, value):
    """Whether a cell holds a value: numbers to the sixteen digits that openpyxl writes."""
    return found == (pytest.approx(value, rel=1e-15, abs=0.0) if isinstance(value, float) else value)


# Workbooks


def test_every_effect_reads_back_from_a_workbook_to_sixteen_digits(fitted, book):
    names = sheet_names(book.sheetnames)
    assert names == book.sheetnames
    overview = ["summary", "provenance", "certificate", "fit", "importance", "effects"]
    assert book.sheetnames[:6] == overview
    subsets = [features for features in fitted.effects_ if features]
    assert len(book.sheetnames) == 6 + len(subsets)
    for sheet, features in zip(book.worksheets[6:], subsets, strict=True):
        wanted = expected(fitted, features)
        width = len(wanted[0])
        lines = list(sheet.iter_rows(max_col=width, max_row=1 + len(wanted), values_only=True))
        assert [unescape(text) for text in lines[0]] == header(fitted, features)
        for line, own in zip(lines[1:], wanted, strict=True):
            found = [unescape(v) if isinstance(v, str) else v for v in line]
            assert all(map(same_in_a_workbook, found, own)), (found, own)
        assert sheet.freeze_panes == "A2"


def test_the_list_of_effects_names_the_sheet_of_each(fitted, book):
    lines = list(book["effects"].iter_rows(values_only=True))
    places = {unescape(line[lines[0].index("subset")]): line[lines[0].index("sheet")] for line in lines[1:]}
    subsets = [" x ".join(features) for features in fitted.effects_ if features]
    assert places == dict(zip(subsets, book.sheetnames[6:], strict=True))


def test_no_cell_of_a_workbook_is_a_formula_and_what_looks_like_one_is_marked_as_text(book):
    marked = 0
    for sheet in book.worksheets:
        for cell in (cell for row in sheet.iter_rows() for cell in row if isinstance(cell.value, str)):
            assert cell.data_type == "s", (sheet.title, cell.coordinate, cell.value)
            if FORMULA.match(unescape(cell.value)):
                marked += 1
                assert cell.quotePrefix
    assert marked > 10


def test_pairs_are_matrices_too_with_empty_cells_where_nothing_was_observed(fitted, book):
    sheet = book["k x flag"]
    effect = fitted.effects_["k", "flag"]
    start = len(header(fitted, ("k", "flag"))) + 2
    heading = sheet.cell(1, start).value
    assert heading == "low: k down, flag across"
    ks = [str(level) for level in fitted.categories_[1]]
    assert [sheet.cell(1, start + 1 + j).value for j in range(2)] == ["False", "True"]
    found = {
        (ks[i], flag): sheet.cell(2 + i, start + 1 + j).value
        for i in range(len(ks))
        for j, flag in enumerate(["False", "True"])
    }
    wanted = dict(zip(effect.levels, effect.values[:, 0].tolist(), strict=True))
    assert all(same_in_a_workbook(found[key], wanted.get(key)) for key in found)
    assert found["-3", "False"] is None
    titles = [sheet.cell(row, start).value for row in range(1, sheet.max_row + 1)]
    kinds = [text.partition(":")[0] for text in titles if text and "across" in text]
    assert kinds == ["low", "-high", "stderr of low", "stderr of -high", "rows"]


def test_numbers_have_formats_and_columns_have_widths(book):
    sheet = book["k"]
    assert sheet["B2"].number_format == "0.00%"
    assert re.fullmatch(r"0\.0+", sheet["D2"].number_format)
    assert isinstance(sheet["A2"].value, int)
    assert sheet.column_dimensions["A"].width >= 9
    assert sheet["A1"].font.bold


def test_the_same_decomposition_gives_the_same_bytes(fitted):
    first = workbook.to_workbook(fitted.decomposition_, {}, Progress(enabled=False))
    assert workbook.to_workbook(fitted.decomposition_, {}, Progress(enabled=False)) == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert b"modified" not in archive.read("docProps/core.xml")


def test_effects_beyond_the_sheets_share_one_and_long_tables_are_cut_in_parts(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "EFFECT_SHEETS", 2)
    monkeypatch.setattr(workbook, "LINES", 40)
    fitted.export(tmp_path / "b.xlsx")
    found = openpyxl.load_workbook(tmp_path / "b.xlsx")
    parts = [sheet for sheet in found.worksheets if sheet.title.startswith("further effects")]
    lines = [line for sheet in parts for line in sheet.iter_rows(min_row=2, values_only=True)]
    own = [sheet.title for sheet in found.worksheets[6:] if sheet not in parts]
    assert len(parts) > 1
    assert all(sheet.max_row <= 41 for sheet in found.worksheets)
    total = sum(len(effect.levels) for features, effect in fitted.effects_.items() if features)
    assert len(lines) + sum(found[name].max_row - 1 for name in own if " x " not in name) <= total
    columns = {cell.value: k for k, cell in enumerate(next(parts[0].iter_rows(max_row=1)))}
    for line in lines:
        effect = fitted.effects_[tuple(unescape(line[0]).split(" x "))]
        assert np.isclose(line[columns["low"]], effect.values[:, 0], rtol=1e-15, atol=0.0).any()


def test_wide_pairs_have_no_matrix(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "COLUMNS", 1)
    fitted.export(tmp_path / "b.xlsx")
    assert openpyxl.load_workbook(tmp_path / "b.xlsx")["k x flag"].max_column == len(header(fitted, ("k", "flag")))


def test_without_openpyxl_the_error_names_the_extra(fitted, tmp_path, monkeypatch):
    from exanova import packages

    packages.package.cache_clear()
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingPackageError, match=r"exanova\[xlsx\]"):
        fitted.export(tmp_path / "b.xlsx")
    packages.package.cache_clear()
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=50), max_size=8))
def test_sheet_names_are_different_short_and_allowed(names):
    found = sheet_names(names)
    assert len({name.casefold() for name in found}) == len(names)
    for name in found:
        assert 1 <= len(name.encode("utf-16-le")) // 2 <= 31
        assert not FORBIDDEN.search(name)
        assert not name.startswith("'")
        assert not name.endswith("'")
        assert name.casefold() != "history"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20))
def test_harmless_text_is_restored_and_never_a_formula(text):
    assert restored(harmless(text)) == text
    assert not re.match(r"[=+\-@\t\r]", harmless(text))


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_text_in_a_workbook_is_restored(text):
    escaped = in_xml(text)
    assert re.sub(r"_x([0-9A-F]{4})_", lambda m: chr(int(m.group(1), 16)), escaped) == text
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", escaped)


# Folders


def test_the_index_names_every_file_and_every_table(fitted, folder):
    index = json.loads((folder / "index.json").read_text("ascii"))
    files = {entry[kind] for entry in index["tables"] for kind in ("csv", "parquet")}
    assert files | {"index.json"} == {path.name for path in folder.iterdir()}
    subsets = [tuple(entry["features"]) for entry in index["tables"] if "features" in entry]
    assert subsets == [features for features in fitted.effects_ if features]
    assert index["provenance"]["Hash of the table as fitted"].endswith(fitted.provenance_.table_hash)


def test_every_effect_reads_back_from_csv_and_parquet(fitted, folder):
    index = json.loads((folder / "index.json").read_text("ascii"))
    for entry in index["tables"]:
        if "features" not in entry:
            continue
        wanted = expected(fitted, tuple(entry["features"]))
        with open(folder / entry["csv"], encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, quoting=csv.QUOTE_MINIMAL))
        assert [restored(name) for name in lines[0]] == entry["columns"] == header(fitted, entry["features"])
        for line, own in zip(lines[1:], wanted, strict=True):
            for cell, value in zip(line, own, strict=True):
                if isinstance(value, str):
                    assert restored(cell) == value
                    assert not re.match(r"[=+\-@\t\r]", cell)
                elif isinstance(value, bool) or value is None:
                    assert cell == ("" if value is None else str(value))
                else:
                    assert float(cell) == value
        parquet = pq.read_table(folder / entry["parquet"]).to_pydict()
        assert list(parquet) == entry["columns"]
        assert list(zip(*parquet.values(), strict=True)) == wanted
        frame = pd.read_csv(folder / entry["csv"])
        assert frame.shape == (len(wanted), len(wanted[0]))


def test_a_folder_is_replaced_only_if_an_export_made_it(fitted, tmp_path, monkeypatch):
    target = tmp_path / "tables"
    target.mkdir()
    fitted.export(target)  # empty
    (target / "note.txt").write_text("mine", "utf-8")
    fitted.export(target)
    assert not (target / "note.txt").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("x", "utf-8")
    with pytest.raises(FileWriteError, match="not a folder of an earlier export"):
        fitted.export(f"{other}/")
    assert (other / "mine.txt").exists()

    def fails(sheet):
        raise OSError(28, "No space left on device")

    before = {path.name: path.read_bytes() for path in target.iterdir()}
    monkeypatch.setattr(csv_folder, "to_parquet", fails)
    with pytest.raises(FileWriteError, match="No space left"):
        fitted.export(target)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "tables"]
    with pytest.raises(FileWriteError, match="cannot be written"):
        fitted.export(tmp_path / "nowhere" / "tables")


def test_columns_of_mixed_levels_are_text_in_parquet_and_numbers_in_csv(tmp_path):
    X = pd.DataFrame({"a": [1.0, -2.0, np.nan] * 6, "b": ["u", "v"] * 9})
    FunctionalANOVA(shrinkage=None).fit(X, np.arange(18.0)).export(tmp_path / "t")
    name = next(path for path in (tmp_path / "t").glob("* a.csv"))
    assert name.read_text("utf-8").splitlines()[1].startswith(("-2", "1", '"(missing)"'))
    assert pq.read_table(name.with_suffix(".parquet")).column("a").type == "string"


# JSON


def test_json_follows_its_schema_and_holds_the_effects_exactly(fitted, tmp_path):
    fitted.export(tmp_path / "tables.json", about={"Note": "draft"})
    document = json.loads((tmp_path / "tables.json").read_bytes())
    schema = json.loads(SCHEMA.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    assert document["about"] == {"Note": "draft"}
    assert document["provenance"]["table_hash"] == fitted.provenance_.table_hash
    assert document["intercept"] == fitted.intercept_.tolist()
    subsets = [tuple(effect["features"]) for effect in document["effects"]]
    assert subsets == [features for features in fitted.effects_ if features]
    for entry in document["effects"]:
        effect = fitted.effects_[tuple(entry["features"])]
        assert [tuple(cell["levels"]) for cell in entry["cells"]] == list(effect.levels)
        assert [cell["values"] for cell in entry["cells"]] == effect.values.tolist()
        assert [cell["stderr"] for cell in entry["cells"]] == effect.stderr.tolist()
        assert [cell["rows"] for cell in entry["cells"]] == effect.rows.tolist()


def test_the_effects_of_json_add_up_to_predict(fitted, tmp_path):
    fitted.export(tmp_path / "tables.json")
    document = json.loads((tmp_path / "tables.json").read_bytes())
    X = table()
    encoding = fitted.decomposition_.encoding
    codes = dict(zip(encoding.names, encoding.encode(exanova.data.table.Table.read(X)), strict=True))
    total = np.tile(document["intercept"], (len(X), 1))
    for entry in document["effects"]:
        values = {tuple(cell["codes"]): cell["values"] for cell in entry["cells"]}
        rows = np.stack([codes[name] for name in entry["features"]], axis=1).tolist()
        total += np.array([values[tuple(row)] for row in rows])
    np.testing.assert_allclose(total, fitted.predict(X), atol=1e-12)


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_a_file_without_provenance_or_errors_is_exported_and_says_so(tmp_path, name):
    from pathlib import Path

    anova = exanova.load(Path(__file__).resolve().parents[1] / "golden" / f"{name}.exanova")
    anova.export(tmp_path / "tables.json")
    document = json.loads((tmp_path / "tables.json").read_bytes())
    jsonschema.validate(document, json.loads(SCHEMA.read_bytes()))
    assert document["provenance"] is None
    anova.export(tmp_path / "b.xlsx")
    assert openpyxl.load_workbook(tmp_path / "b.xlsx")["provenance"]["B2"].value.startswith("not recorded")


def test_a_population_has_no_standard_errors(tmp_path):
    X = pd.DataFrame({"a": list("uuvv"), "b": list("xyxy")})
    anova = FunctionalANOVA(sampled=False).fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
    anova.export(tmp_path / "tables.json")
    document = json.loads((tmp_path / "tables.json").read_bytes())
    jsonschema.validate(document, json.loads(SCHEMA.read_bytes()))
    assert all(cell["stderr"] is None for entry in document["effects"] for cell in entry["cells"])


# Papers


def test_markdown_says_the_numbers_to_four_digits(fitted, tmp_path):
    fitted.export(tmp_path / "t.md")
    text = (tmp_path / "t.md").read_text("utf-8")
    part = text.partition("## Effect of k\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in part.strip().splitlines()[2:]]
    effect = fitted.effects_["k"]
    assert len(lines) == len(effect.levels)
    for line, values, errors in zip(lines, effect.values, effect.stderr, strict=True):
        for cell, value, error in zip(line[2:], values, errors, strict=True):
            shown, _, own = cell.rstrip(")").partition(" (")
            assert float(shown) == pytest.approx(value, rel=5e-4)
            assert float(own) == pytest.approx(error, rel=5e-2)
    assert fitted.provenance_.table_hash in text
    widths = {line.count(" | ") for line in part.strip().splitlines()}
    assert len(widths) == 1


def test_latex_is_escaped_and_compiles_where_latex_is_installed(fitted, tmp_path):
    fitted.export(tmp_path / "t.tex")
    text = (tmp_path / "t.tex").read_text("utf-8")
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") > 5
    assert text.count(r"\toprule") == text.count(r"\bottomrule")
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert not re.search(r"(?<!\\)[#%]", body)
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed: the tables were not compiled")
    if not subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, check=False).stdout:
        pytest.skip("the LaTeX package booktabs is not installed: the tables were not compiled")
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\extrafloats{100}"
        "\\begin{document}\\input{t.tex}\\end{document}",
        "utf-8",
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.parametrize("character", list("\\{}$&#_%~^<>|\"-`'[]"))
def test_latex_has_no_active_character_of_the_data(character):
    written = in_latex(f"a{character}b")
    assert written not in (f"a{character}b",)
    assert written.startswith("a")
    assert written.endswith("b")


@pytest.mark.parametrize(("level", "told"), [("café", False), ("Łódź", False), ("北京", True), ("שלום", True)])
def test_latex_says_when_a_name_needs_more_than_pdflatex(tmp_path, level, told):
    X = pd.DataFrame({"city": [level, "Bonn"] * 6})
    FunctionalANOVA().fit(X, np.arange(12.0)).export(tmp_path / "t.tex")
    head = (tmp_path / "t.tex").read_text("utf-8").splitlines()[1]
    assert ("LuaLaTeX" in head) == told


def test_papers_show_the_strongest_and_say_what_is_left_out(fitted, tmp_path, monkeypatch):
    from exanova.export import typeset

    monkeypatch.setattr(typeset, "EFFECTS", 2)
    monkeypatch.setattr(typeset, "LINES", 4)
    monkeypatch.setattr(typeset, "ACROSS", 1)
    fitted.export(tmp_path / "t.md")
    text = (tmp_path / "t.md").read_text("utf-8")
    assert text.count("## Effect of") == 2
    assert "effects are not shown: the weakest." in text
    assert "more than 4 lines" in text


# All of them


@pytest.mark.parametrize("path", ["b.txt", "b.csv", "b.parquet", "b.html"])
def test_an_unknown_suffix_is_refused(fitted, tmp_path, path):
    with pytest.raises(InputError, match="an export is written as"):
        fitted.export(tmp_path / path)


def test_options_of_sql_are_refused_elsewhere(fitted, tmp_path):
    with pytest.raises(InputError, match=r"dialect= was given for .*b.xlsx"):
        fitted.export(tmp_path / "b.xlsx", dialect="duckdb")
    with pytest.raises(InputTypeError, match="as text"):
        fitted.export(b"b.xlsx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["b.xlsx", "t.json", "s.sql", "t.md", "t.tex"])
def test_files_are_written_whole_or_not_at_all(fitted, tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_bytes(b"before")

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    options = {"dialect": "duckdb"} if name.endswith("sql") else {}
    with pytest.raises(FileWriteError):
        fitted.export(path, **options)
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_no_row_leaves_with_an_export(tmp_path):
    # Each number is in one row alone, and bins are all that is told of it.
    X = pd.DataFrame({"secret": np.arange(600) + 0.123456, "b": ["u", "v"] * 300})
    anova = FunctionalANOVA().fit(X, np.arange(600.0))
    for name in ("t.json", "s.sql", "t.md", "t.tex", "folder/", "b.xlsx"):
        anova.export(os.path.join(tmp_path, name))
    bodies = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    with zipfile.ZipFile(tmp_path / "b.xlsx") as archive:
        bodies += [archive.read(part) for part in archive.namelist()]
    assert not any(b".123456" in body for body in bodies)


@pytest.mark.parametrize("name", ["b.xlsx", "t.json", "s.sql", "t.md", "t.tex", "folder/"])
def test_every_format_counts_its_effects(fitted, tmp_path, monkeypatch, name):
    steps = []
    monkeypatch.setattr(Progress, "step", lambda self, steps_=1, note="": steps.append(steps_))
    options = {"dialect": "duckdb"} if name.endswith("sql") else {}
    fitted.export(f"{tmp_path}/{name}", **options)
    assert sum(steps) == (len(fitted.effects_) - 1) * (2 if name.endswith("sql") else 1)


# The command


def test_the_command_exports_what_the_library_does(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("loans.csv", index=False)
    assert inside(capsys, "explain", "loans.csv", *PREDICTED, "--save", "m.exanova", "-q").code == 0
    for name in ("book.xlsx", "tables.json", "score.sql", "t.md", "t.tex", "folder/"):
        ended = inside(capsys, "export", "m.exanova", name)
        assert (ended.code, ended.err) == (0, "")
        assert name in ended.out
    document = json.loads((tmp_path / "tables.json").read_bytes())
    assert document["provenance"]["files"][0]["path"] == "loans.csv"
    assert document["about"]["Command of the export"] == "exanova export m.exanova tables.json"
    assert "m.exanova (sha256 " in document["about"]["File: decomposition"]
    refused(inside(capsys, "export", "m.exanova", "folder/"), "exists", "--force")
    refused(inside(capsys, "export", "m.exanova", "book.xlsx"), "exists", "--force")
    refused(inside(capsys, "export", "m.exanova", "book.pdf"), "an export is written as")
    refused(inside(capsys, "export", "m.exanova", "new.xlsx", "--dialect", "duckdb"), "--dialect")
    refused(inside(capsys, "export", "m.exanova", "new.sql", "--dialect", "oracle"), "--dialect")
    ended = inside(capsys, "export", "m.exanova", "folder/", "--force", "--json")
    assert json.loads(ended.out)["export"] == "folder/"
    more = ("--dialect", "sqlite", "--table", "loans", "--keep", "id", "--force", "-q")
    assert inside(capsys, "export", "m.exanova", "score.sql", *more).code == 0
    query = (tmp_path / "score.sql").read_text("utf-8")
    assert 'FROM "loans"' in query
    assert '"t"."id"' in query


def test_file_names_differ_though_names_do_not():
    assert file_name(1, "a/b") != file_name(2, "a\\b")
    assert "/" not in file_name(1, "../../etc/passwd")
