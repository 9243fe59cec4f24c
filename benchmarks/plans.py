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
    right = [is_right(found) for found in results.values()]
    times, sizes = (sum(part) for part in zip(*right, strict=True))
    return "\n".join(
        [
            "# Plans, measured",
            "",
            "`anova.plan(X)` estimates the cost of a fit before it runs. This page compares the plans of "
            f"{len(results)} fits with their actual cost: seconds of processor time on one thread, and peak memory "
            "beyond the table itself, each in a separate process that had made a small fit before. A plan is right if "
            f"its seconds are within a factor of {FACTOR:g} and its memory is never below, and at most {ABOVE:g} "
            f"times, what was taken (or if both stay below {SMALL_SECONDS} s, and {readable(SMALL_BYTES)}). Seconds: "
            f"right in {times} of {len(results)} cases; memory: in {sizes}. Other machines differ in seconds by a "
            "factor of a few. `make plans` measures all of it again.",
            "",
            *lines(results),
            "",
        ]
    )


def main(names: list[str]) -> None:
    """Print each case as soon as it is done; write the page if all were."""
    results = {}
    for name in CASES:
        if not names or any(name.startswith(n) for n in names):
            results[name] = measured(CASES[name])
            print(f"{name:36}", *(f"{text:>14}" for text in columns(results[name])), flush=True)
    if not names:
        PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
