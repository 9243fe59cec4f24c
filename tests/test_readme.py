"""The README runs: its Python blocks, top to bottom in one namespace, print the text blocks that follow them."""

from __future__ import annotations

from pathlib import Path

import pytest

from snippets import ROOT, run_page, settled, snippets

README = ROOT / "README.md"


def test_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    assert run_page(README, tmp_path) >= 5


def test_the_comparison_can_fail() -> None:
    assert settled("MSE  1e-32\n1 iterations, 0.02 s") == settled("MSE -0.000\n2 iterations, 0.31 s")
    assert settled("job 0.3407") != settled("job 0.3408")


def test_every_kind_of_block_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```console\n$ exanova a \\\n  b\nsaid\n$ exanova c\n```\n"
    )
    assert [(s.kind, s.code.split(), s.says.strip()) for s in snippets(page)] == [
        ("python", ["print(1)"], "1"),
        ("console", ["exanova", "a", "b"], "said"),
        ("console", ["exanova", "c"], ""),
    ]


@pytest.mark.parametrize(
    "lie",
    [
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```text\n1\n```\n",
        "```console\n$ exanova --version\nexanova 99\n```\n",
        "```console\n$ exanova show nothing.exanova\n```\n",
        "```console\n$ rm nothing\n```\n",
    ],
)
def test_a_page_that_lies_or_fails_is_found(tmp_path: Path, lie: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(lie, encoding="utf-8")
    with pytest.raises(AssertionError):
        run_page(page, tmp_path)
