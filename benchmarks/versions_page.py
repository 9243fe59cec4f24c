"""The page on the speed of two versions, docs/speed.md, from what :mod:`benchmarks.versions` measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Facts

PAGE = Path(__file__).resolve().parent.parent / "docs" / "speed.md"

BOUND = 1.05
"""Ratio above which a case of the two benchmarks is named."""

BUSY = 1.5
"""Load of the machine, this benchmark included, from which it had other work to do."""

INTRODUCTION = """\
# Speed: 0.2 compared with 0.1.0

Each case is the same exact fit (`shrinkage=None`) on the same arrays by two versions of the source: {before}, whose
version is 0.1.0, and 0.2 ({after}). The cases are the fits of `make bench` and `make bench-dimension`, with the classes
of a table in place of model outputs. What 0.2 measures in addition (the fit on other rows, redundancy on every route,
provenance) is part of its times. The versions take turns, each run in a process of its own with one thread; the figures
are processor times, the smallest of the runs. Fits of more than ten seconds were run once by each version, and loading
compiled loops is part of their times. {load}

```bash
python -m benchmarks.versions --data DIR --before PATH/OF/0.1.0/src
```

The command writes this page from one run of all cases; `--resume` continues a run that was interrupted.
"""

MORE_WORK = """\
Part of every small fit is work that 0.1.0 did not do: rows are left out in closed form, near-redundant features are
searched for, and the fit is recorded.
"""


def write(facts: Facts, groups: dict[str, list[str]], page: Path = PAGE) -> Path:
    """Write the page of a whole run: ``groups`` has the cases of each table by the title of its first column."""
    page.write_text("\n".join(lines(facts, groups)), encoding="utf-8")
    return page


def lines(facts: Facts, groups: dict[str, list[str]]) -> Iterator[str]:
    """The lines of the page."""
    commits = {version: f"commit {name}" if name else "no commit" for version, name in facts["commits"].items()}
    yield INTRODUCTION.format(load=load(facts), **commits)
    found, suites = facts["cases"], list(groups)[:-1]
    for title in groups:
        yield f"| {title} | 0.1.0, ms | 0.2, ms | ratio |"
        yield "|---|---|---|---|"
        yield from (line(case, found[case]) for case in groups[title])
        yield ""
    yield summary({case: ratio(found[case]) for title in suites for case in groups[title]})
    yield ""
    yield MORE_WORK


def load(facts: Facts) -> str:
    """Whether the machine had other work to do."""
    busy = sum(case["load"] > BUSY for case in facts["cases"].values())
    if not busy:
        return "The machine had no other work to do."
    return (
        f"The machine had other work to do when {busy} of the {len(facts['cases'])} cases began, so that ratios of a "
        "few percent are uncertain."
    )


def line(case: str, found: Facts) -> str:
    """One line of a table."""
    return f"| {case} | {min(found['before']):,.0f} | {min(found['after']):,.0f} | {ratio(found):.2f} |"


def ratio(found: Facts) -> float:
    """Time of the later version over that of the earlier one."""
    return float(min(found["after"]) / min(found["before"]))


def summary(ratios: dict[str, float]) -> str:
    """How many cases of the two benchmarks are faster, and which are slower by more than the bound."""
    faster = sum(one < 1.0 for one in ratios.values())
    text = f"Faster than in 0.1.0: {faster} of the {len(ratios)} cases of the two benchmarks"
    above = {case: one for case, one in ratios.items() if one > BOUND}
    if not above:
        return f"{text}. None is more than {BOUND - 1:.0%} slower; the largest ratio is {max(ratios.values()):.3f}."
    named = "; ".join(f"{case} ({one:.3f})" for case, one in above.items())
    return f"{text}. More than {BOUND - 1:.0%} slower: {named}."
