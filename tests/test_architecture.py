"""ARCHITECTURE.md and CONTRIBUTING.md say what is there: the order of the map, every name, the table of the trace."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import exanova
from snippets import ROOT

PACKAGE = ROOT / "src" / "exanova"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PATH = re.compile(r"`([\w/*]+\.(?:py|js|json|md|toml|yml))(?::([\w.]+))?`|`([\w/]+/)`")
"""A file with or without a name in it, or a folder."""

NEARLY = 4
"""Modules by which a trace on another machine may differ: another number of threads, other optional packages."""


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


check_imports, trace = script("check_imports"), script("trace")


def section(title: str) -> str:
    return ARCHITECTURE.split(f"## {title}\n")[1].split("\n## ")[0]


def map_rows() -> list[list[str]]:
    """The modules and folders of every row of the map, in its order."""
    lines = [line for line in section("Map").splitlines() if line.startswith("| `")]
    return [re.findall(r"`(\w+)(?:\.py|/)`", line.split("|")[1]) for line in lines]


def imports() -> Iterator[tuple[str, str]]:
    """Every import between folders or top-level modules of the package."""
    for path in PACKAGE.rglob("*.py"):
        source = path.relative_to(PACKAGE).with_suffix("").parts
        for _, name in check_imports.imported(ast.parse(path.read_text(encoding="utf-8")), ("exanova", *source)):
            if name[0] == "exanova" and len(name) > 1 and name[1] in check_imports.LEVEL and source[0] != "__init__":
                yield source[0], name[1]


def test_the_map_has_every_folder_and_module_once() -> None:
    listed = [name for row in map_rows() for name in row]
    assert sorted(listed) == sorted((set(check_imports.LEVEL) | set(check_imports.APART)) - {check_imports.ROOT})


def test_folders_import_only_from_rows_above_them_in_the_map_or_their_own() -> None:
    row = {name: k for k, names in enumerate(map_rows()) for name in names}
    against = {(a, b) for a, b in imports() if a in row and row[b] > row[a]}
    assert against - check_imports.HANDED_ON == set()


def test_the_list_in_contributing_is_in_the_order_that_is_checked() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listing = re.search(r"\n\n((?:    .*\n)+)", text.split("The folders follow one table")[1])
    assert listing is not None
    first, *steps = re.split(r"^ *-> ", listing[1], flags=re.MULTILINE)
    listed = [name for step in (first.strip(), *steps) for name in re.split(r"  |\n", step)[0].split(", ")]
    assert sorted(listed) == sorted(set(check_imports.LEVEL) - {check_imports.ROOT})
    levels = [check_imports.LEVEL[name] for name in listed]
    assert levels == sorted(levels)


@pytest.mark.parametrize("line", [row for row in section("Where new code goes").splitlines() if "`" in row])
def test_every_name_in_where_new_code_goes_is_there(line: str) -> None:
    folder = Path()
    for file, name, named_folder in PATH.findall(line):
        if named_folder or "*" in file:
            folder = Path(named_folder or folder)
            assert any(base.joinpath(folder).is_dir() for base in (PACKAGE, ROOT)), folder
            continue
        places = [base / start / file for base in (PACKAGE, ROOT) for start in (Path(), folder)]
        found = next((place for place in places if place.is_file()), None)
        assert found is not None, file
        folder = found.parent.relative_to(PACKAGE) if found.is_relative_to(PACKAGE) else folder
        for part in name.split(".") if name else ():
            assert re.search(rf"\b{part}\b", found.read_text(encoding="utf-8")), (file, name)


def test_the_table_of_the_trace_is_what_the_script_prints(tmp_path: Path) -> None:
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \|$", section("One fit, step by step"), re.MULTILINE)
    jobs = trace.jobs(tmp_path)
    assert [name for name, _, _ in rows] == list(jobs)
    for name, modules, depth in rows:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jobs[name]()
            found = trace.Trace().watch(jobs[name])
        assert abs(len(found.modules) - int(modules)) <= NEARLY, name
        assert abs(found.depth - int(depth)) <= 1, name


def test_the_reference_names_the_purpose_of_every_parameter_once() -> None:
    text = (ROOT / "docs" / "reference" / "decomposition.md").read_text(encoding="utf-8")
    table = [line.split("|")[2] for line in text.splitlines() if line.startswith("| ") and "`" in line]
    assert sorted(re.findall(r"`(\w+)`", "".join(table))) == sorted(exanova.FunctionalANOVA().get_params())


def test_the_page_for_maintainers_of_the_report_lists_its_modules() -> None:
    report = PACKAGE / "report"
    rows = [
        line.split("|")[1] for line in (report / "README.md").read_text(encoding="utf-8").splitlines() if "|" in line
    ]
    assert sorted(re.findall(r"`(\w+\.py)`", "".join(rows))) == sorted(path.name for path in report.glob("*.py"))
