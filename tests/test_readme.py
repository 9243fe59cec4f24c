"""The README runs: its Python blocks, top to bottom in one namespace, print the text blocks that follow them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from snippets import ROOT, disagreement, run_page, scale_of, snippets

README = ROOT / "README.md"


def test_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    assert run_page(README, tmp_path) >= 5


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        ("job 0.438", "job 0.437"),
        ("-0.438 more", "-0.437 more"),
        ("0.5", "0.4999"),
        ("1", "0.9999"),
        ("[2. 3.]", "[1.9999999999999998 3.]"),
        ("0.30000000000000004", "0.3"),
        ("1.234e-05", "1.235e-05"),
        ("MSE  1e-32", "MSE -0.000"),
        ("MSE  2.0e-17 and 1.561e-34", "MSE -3.1e-16 and 0"),
        ("+0", "-1e-17"),
        ("-0.0", "0.0"),
        ("2 iterations, 0.02 s", "11 iterations, 12 s"),
        ("exanova 0.1.0", "exanova 1.10.3"),
        ("value\n──────\n 0.5  a", "value\n────────\n 0.4999  a"),
        ("[ 0.5  -0.25]", "[0.4999 -0.25]"),
        ("| 0.5 | a", "| 0.4999 | a"),
    ],
)
def test_what_machines_print_differently_agrees(printed: str, says: str) -> None:
    assert disagreement(printed, says) is None
    assert disagreement(says, printed) is None


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        ("job 0.3407", "job 0.3409"),
        ("job 0.439", "job 0.437"),
        ("0.5", "0.3"),
        ("0.5", "-0.5"),
        ("+0.5", "0.5"),
        ("0.437", "0.4397"),
        ("1.2e-05", "1.2e-06"),
        ("1.2e-08", "1.4e-08"),
        ("1e-05", "1e-17"),
        ("rank 19", "rank 20"),
        ("rank 19 of 29", "rank 19 of 28"),
        ("1,234 rows", "1,235 rows"),
        ("3 features", "3 rows"),
        ("x0 0.5", "x1 0.5"),
        ("2024-05-01", "2024-05-02"),
        ("0.5 a", "0.5 b"),
        ("0.5", "a"),
        ("0.5", "0.5 0.5"),
        ("a\nb", "a"),
        ("a", "a\nb"),
        ("a\nb", "b\na"),
        ("ab c", "a bc"),
        ("{'a': 0.5, 'b': 0.5}", "{'b': 0.5, 'a': 0.5}"),
        ("True", "False"),
        ("nan", "0.0"),
        ("yes", ""),
    ],
)
def test_a_wrong_number_a_missing_line_and_another_word_disagree(printed: str, says: str) -> None:
    assert disagreement(printed, says) is not None
    assert disagreement(says, printed) is not None


def test_what_is_negligible_follows_the_numbers_of_a_page() -> None:
    assert scale_of(["12 rows, 2.0e-05 and 3e-17"]) == Decimal("2.0e-05")
    assert scale_of(["12 rows, 2500.5"]) == scale_of(["3e-17"]) == scale_of(["nothing"]) == 1
    assert disagreement("1e-12", "3e-12", Decimal("2.0e-05")) is not None
    assert disagreement("1e-15", "-3e-16", Decimal("2.0e-05")) is None


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
