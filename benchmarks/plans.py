"""Plans against what fits take: seconds of processor time and peak memory, one process a case, rows made on the spot.

    python -m benchmarks.plans             every case, and docs/plans.md written again
    python -m benchmarks.plans dense grid  those whose names begin so, no page

Planned are ``plan.seconds`` and ``plan.memory``. Measured is a fit on one thread in a process that has imported the
package and made a small fit of the same kind, so that nothing is imported or compiled meanwhile: its processor time,
and its largest resident memory less what was resident before (the table itself).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.memory import Case, measured
from exanova.design.memory import readable

PAGE = Path(__file__).resolve().parent.parent / "docs" / "plans.md"
FACTOR, ABOVE = 3.0, 1.5
"""How far seconds may be off either way, and how far planned memory may be above what was measured; never below."""

SMALL_SECONDS, SMALL_BYTES = 0.3, 5_000_000
"""What any fit may take on top: where both plan and fit stay below, the plan is right."""


def case(columns: int, levels: int, rows: int = 0, **given: Any) -> Case:
    """A case on one thread, with the defaults of the estimator unless parameters say otherwise."""
    parameters = {"n_jobs": 1, "shrinkage": "auto", **given.pop("parameters", {})}
    return Case(columns, levels, rows, parameters=parameters, **given)


EXACT = {"shrinkage": None}
CASES: dict[str, Case] = {
    "tiny table, default": case(4, 3, 60),
    "mixed size, default": case(10, 4, 20_000),
    "more functions than rows, default": case(20, 5, 1500),
    "ten outputs, default": case(8, 4, 5000, outputs=10),
    "dense": case(10, 4, 1500, parameters=EXACT),
    "moments": case(30, 4, 20_000, parameters=EXACT),
    "moments, real weights": case(12, 8, 30_000, weights="real", parameters=EXACT),
    "moments, order 3": case(14, 3, 20_000, parameters={**EXACT, "max_order": 3}),
    "wide, all pairs": case(110, 4, 4000, parameters=EXACT),
    "366 levels, all pairs": case(6, 9, 8000, many=366, parameters=EXACT),
    "10,000 levels, all pairs": case(7, 6, 50_000, many=10_000, parameters=EXACT),
    "30,000 levels, main effects": case(7, 8, 1_000_000, many=30_000, parameters={**EXACT, "max_order": 1}),
    "many rows, few distinct": case(10, 5, 5_000_000, repeat=30_000),
    "many rows, all distinct": case(20, 6, 1_000_000, parameters={"max_order": 1}),
    "text, default": case(8, 5, 300_000, kind="text"),
    "budget": case(40, 4, 20_000, parameters={"max_terms": 800}),
    "budget, 300 features": case(300, 4, 5000, parameters={"max_terms": 1500}),
    "complete table 4^10, all orders": case(10, 4, complete=True, parameters={"max_order": None}),
    "complete table 4^9, uneven weights": case(9, 4, complete=True, weights="uneven", parameters={"max_order": None}),
}

AUTO = {"n_bins": "auto"}
CASES |= {
    "five numbers and five names, default": case(5, 4, 2000, numbers=5, parameters=AUTO),
    "two numbers and six names, 20,000 rows": case(6, 4, 20_000, numbers=2, parameters=AUTO),
    "twenty numbers, 1,500 rows": case(1, 4, 1500, numbers=20, parameters=AUTO),
    "two numbers, 300,000 rows": case(5, 4, 300_000, numbers=2, parameters=AUTO),
    "366 levels, default": case(6, 9, 8000, many=366),
    "two columns of 1,000 levels": case(2, 1000, 40_000, parameters=EXACT),
    "60 features, no matrix": case(60, 3, 60_000, parameters={**EXACT, "route": "matrix-free"}),
    "thirty outputs, default": case(6, 5, 10_000, outputs=30),
    "numbers under a budget": case(10, 4, 5000, numbers=10, parameters={**AUTO, "max_terms": 600}),
    "complete table 3^11, three outputs": case(11, 3, complete=True, outputs=3, parameters={"max_order": None}),
    "Parquet, a million rows": case(12, 5, 1_000_000, source=True, repeat=200_000),
    "Parquet with numbers": case(4, 4, 400_000, source=True, numbers=4, parameters={**AUTO, "max_order": 1}),
    "three numbers and ten names": case(10, 3, 3000, numbers=3, parameters=AUTO),
    "one number, 100,000 rows": case(8, 5, 100_000, numbers=1, parameters=AUTO),
    "twelve numbers, 600 rows": case(2, 3, 600, numbers=12, parameters=AUTO),
    "eight numbers, main effects, 200,000 rows": case(2, 4, 200_000, numbers=8, parameters={**AUTO, "max_order": 1}),
    "forty names, 3,000 rows": case(40, 3, 3000),
    "five outputs and numbers": case(4, 4, 4000, outputs=5, numbers=2, parameters=AUTO),
    "a day of 366 levels, 60,000 rows": case(5, 12, 60_000, many=366, parameters=EXACT),
    "2,000 levels in a pair of columns": case(3, 6, 30_000, many=2000, parameters=EXACT),
    "150 features, no matrix": case(150, 2, 10_000, parameters={**EXACT, "route": "matrix-free"}),
    "a budget of 300, numbers": case(6, 5, 8000, numbers=6, parameters={**AUTO, "max_terms": 300}),
    "complete table 5^6, two outputs": case(6, 5, complete=True, outputs=2, parameters={"max_order": None}),
    "Parquet, two million rows, one number": case(
        6, 4, 2_000_000, source=True, numbers=1, parameters={**AUTO, "max_order": 1}
    ),
}
CASES |= {
    "four numbers and four names, 1,000 rows": case(4, 3, 1000, numbers=4, parameters=AUTO),
    "seven numbers, 2,500 rows": case(3, 4, 2500, numbers=7, parameters=AUTO),
    "one number and twelve names, 10,000 rows": case(12, 3, 10_000, numbers=1, parameters=AUTO),
    "twelve names of six levels, 50,000 rows": case(12, 6, 50_000),
    "three outputs, 800 rows": case(9, 4, 800, outputs=3),
    "two numbers, order 1, 500,000 rows": case(3, 5, 500_000, numbers=2, parameters={**AUTO, "max_order": 1}),
    "exact, numbers": case(5, 4, 6000, numbers=2, parameters={**AUTO, **EXACT}),
    "a column of 1,000 levels, exact": case(5, 5, 20_000, many=1000, parameters=EXACT),
    "a budget of 200, names": case(25, 3, 10_000, parameters={"max_terms": 200}),
    "complete table 2^16, all orders": case(16, 2, complete=True, parameters={"max_order": None}),
    "Parquet, 300,000 rows": case(9, 4, 300_000, source=True),
    "Parquet, two numbers, 100,000 rows": case(3, 4, 100_000, source=True, numbers=2, parameters=AUTO),
    "five outputs, 600 rows": case(10, 4, 600, outputs=5),
    "twenty names, 3,000 rows": case(20, 3, 3000),
    "eighteen names, 10,000 rows": case(18, 4, 10_000),
    "complete table 4^8, three outputs": case(8, 4, complete=True, outputs=3, parameters={"max_order": None}),
    "100 features, no matrix, 5,000 rows": case(100, 3, 5000, parameters={**EXACT, "route": "matrix-free"}),
    "six numbers and two names, 5,000 rows": case(2, 5, 5000, numbers=6, parameters=AUTO),
    "three numbers, main effects, 80,000 rows": case(4, 4, 80_000, numbers=3, parameters={**AUTO, "max_order": 1}),
    "fifteen names, 4,000 rows": case(15, 4, 4000),
    "nine names of seven levels, 30,000 rows": case(9, 7, 30_000, parameters=EXACT),
    "four outputs, 3,000 rows": case(7, 5, 3000, outputs=4),
    "a column of 500 levels, 15,000 rows": case(5, 6, 15_000, many=500, parameters=EXACT),
    "a budget of 400, 60 features": case(60, 3, 8000, parameters={"max_terms": 400}),
    "complete table 6^6, all orders": case(6, 6, complete=True, parameters={"max_order": None}),
    "text, six columns, 100,000 rows": case(6, 6, 100_000, kind="text"),
    "Parquet, ten names, 600,000 rows": case(10, 4, 600_000, source=True, repeat=100_000),
}
"""Cases that the constants of the plan were measured on."""

OTHERS: dict[str, Case] = {
    "three numbers and five names, 30,000 rows": case(5, 5, 30_000, numbers=3, parameters=AUTO),
    "five numbers and a name, 900 rows": case(1, 4, 900, numbers=5, parameters=AUTO),
    "ten names, 2,000 rows": case(10, 3, 2000),
    "two outputs, 20,000 rows": case(9, 4, 20_000, outputs=2),
    "thirteen names, 100,000 rows": case(13, 4, 100_000),
    "seven names, order 3": case(7, 4, 8000, parameters={"max_order": 3}),
    "a column of 3,000 levels, exact": case(4, 5, 25_000, many=3000, parameters=EXACT),
    "a budget of 150, three numbers": case(6, 4, 4000, numbers=3, parameters={**AUTO, "max_terms": 150}),
    "complete table 3^10, all orders": case(10, 3, complete=True, parameters={"max_order": None}),
    "Parquet, one number, 400,000 rows": case(5, 4, 400_000, source=True, numbers=1, parameters=AUTO),
}
"""Cases that were first measured when the constants had been settled."""

WARMED = ("mixed size, default", "moments", "366 levels, all pairs", "complete table 5^6, two outputs")
"""Cases that are run before any is measured: in a fresh tree loops are compiled meanwhile, which are then cached."""

OFF = """What is off, and why: stacks of levels are priced for levels of equal size; of shrunken fits to rows that are
fewer than their functions, some arrays are priced that are never held at the same time; a route without a matrix that
is forced on few rows holds little beside what allocators keep. That differs by some megabytes from run to run, so that
a plan near its bound is right in one run and not in another.
"""


def is_right(found: dict[str, Any]) -> tuple[bool, bool]:
    """Whether planned seconds, and planned memory, are as close to the measured ones as they should be."""
    foreseen, seconds = found["foreseen"], found["seconds"]
    in_time = max(foreseen, seconds) <= SMALL_SECONDS or 1 / FACTOR <= foreseen / seconds <= FACTOR
    planned, taken = found["planned"], found["measured"]
    in_memory = max(planned, taken) <= SMALL_BYTES or taken <= planned <= ABOVE * taken
    return in_time, in_memory


def lines(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The table of the page."""
    yield "| case | route | planned | taken | ratio | planned | taken | ratio |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for name, found in results.items():
        yield "| " + " | ".join([name, *columns(found)]) + " |"


def columns(found: dict[str, Any]) -> list[str]:
    """Route; seconds planned, taken, their ratio; memory planned, taken, their ratio."""
    in_time, in_memory = is_right(found)
    time_ratio, ratio = found["foreseen"] / found["seconds"], found["planned"] / max(found["measured"], 1)
    return [
        found["route"],
        f"{found['foreseen']:.2g} s",
        f"{found['seconds']:.2g} s",
        f"{time_ratio:.2g}{'' if in_time else ' **off**'}",
        readable(found["planned"]),
        readable(found["measured"]),
        f"{ratio:.2g}{'' if in_memory else ' **off**'}",
    ]


def page(results: dict[str, dict[str, Any]]) -> str:
    """The page, with how many plans were right."""
    tuned, others = ({name: results[name] for name in names} for names in (CASES, OTHERS))
    return "\n".join(
        [
            "# Plans, measured",
            "",
            "`anova.plan(X)` says before a fit what it will take. This page compares the plans of "
            f"{len(results)} fits with what they took: seconds of processor time on one thread, and peak memory beyond "
            "the table itself, each in a process of its own that had made a small fit before. A plan is right if its "
            f"seconds are within a factor of {FACTOR:g} and its memory is never below, and at most {ABOVE:g} times, "
            f"what was taken (or if both stay below {SMALL_SECONDS} s, and {readable(SMALL_BYTES)}). Other machines "
            "differ in seconds by a factor of a few. `make plans` measures all of it again.",
            "",
            f"The constants behind a plan were measured on these cases. {_right(tuned)}",
            "",
            *lines(tuned),
            "",
            f"These cases were first measured when the constants had been settled. {_right(others)}",
            "",
            *lines(others),
            "",
            OFF,
        ]
    )


def _right(results: dict[str, dict[str, Any]]) -> str:
    times, sizes = (sum(part) for part in zip(*map(is_right, results.values()), strict=True))
    return f"Seconds are right in {times} of {len(results)}, memory in {sizes}."


def main(names: list[str]) -> None:
    """Print each case as soon as it is done; write the page if all were."""
    results = {}
    for name in WARMED:  # compiles the loops that small fits do not use, where that was not done before
        measured(CASES[name])
    for name, one in {**CASES, **OTHERS}.items():
        if not names or any(name.startswith(n) for n in names):
            results[name] = measured(one)
            print(f"{name:36}", *(f"{text:>14}" for text in columns(results[name])), flush=True)
    if not names:
        PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
