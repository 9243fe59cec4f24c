"""The benchmark of the core: ``python -m benchmarks.core --data DIR [--quick | --full]``.

Every computation runs in a process of its own, so that its peak memory is its own; compilation and first touches are
apart from the time. One line a case: how many times as long the reference takes, what share of the speed of the machine
is reached, how time grows when the work is doubled.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path

from benchmarks.harness import Facts, Line, peak, run_job, save, table
from benchmarks.jobs import Settings, followers, jobs

REFERENCE = "dense solve of reference.py"
GREEDY = "Algorithm 1 of reference.py"
LEGEND = (
    "ratio: seconds of the other over ours; for cached words, the share of their speed; doubled: whole over half.\n"
    "exanova: all of fit, from text to certificate; the engine alone at a rank and for doubled functions.\n"
    "peak: of the whole process, interpreter and libraries included."
)


def main() -> int:
    """Run every job, or the one that is named."""
    options = parse()
    settings = Settings(options.data, options.quick, options.full, options.seconds)
    if options.job:
        facts = json.loads(options.given) if options.given else {}
        work = (jobs(settings) | followers(settings, facts))[options.job]
        found = work()
        print(json.dumps(found | {"peak": peak()}))
        return 0
    return measure(settings, options.only)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the tables")
    parser.add_argument("--quick", action="store_true", help="small tables: shows that everything runs")
    parser.add_argument("--full", action="store_true", help="let the reference finish, however long and large")
    parser.add_argument("--seconds", type=float, default=120.0, help="time Algorithm 1 may take (default: 120)")
    parser.add_argument("--only", default="", help="only the jobs whose names begin like this")
    parser.add_argument("--job", help="run one job in this process and print what it found as JSON")
    parser.add_argument("--given", help="what earlier jobs found, as JSON, for the jobs that need it")
    return parser.parse_args()


def measure(settings: Settings, only: str) -> int:
    """Run the jobs one after the other, print the table, keep the results."""
    arguments = ["--data", str(settings.data), "--seconds", str(settings.seconds)]
    arguments += [flag for flag, on in (("--quick", settings.quick), ("--full", settings.full)) if on]
    found: dict[str, Facts] = {}
    for name in jobs(settings):
        if name.startswith(only):
            found[name] = run_job("benchmarks.core", name, arguments)
    for name in followers(settings, found):
        found[name] = run_job("benchmarks.core", name, [*arguments, "--given", json.dumps(found)])
    lines = [line for line in report(settings, found) if line.ours or line.other]
    print(table(lines))
    kept = {"quick": settings.quick, "full": settings.full, "seconds": settings.seconds}
    print(f"\n{LEGEND}\nEverything that was measured: {os.path.relpath(save('core', found, lines, kept))}")
    return 1 if any("failed" in facts for facts in found.values()) else 0


def report(settings: Settings, found: dict[str, Facts]) -> list[Line]:
    """The lines of the table, in the order of the cases."""
    lines = [line for kind in ("uniform", "dependent") for line in nursery_lines(settings, found, kind)]
    lines += greedy_lines(found, "poker", "Poker, order 2")
    lines += greedy_lines(found, "connect4", "Connect-4, order 2, 3 outputs")
    return [*lines, *gram_lines(found), *growth_lines(found)]


def nursery_lines(settings: Settings, found: dict[str, Facts], kind: str) -> list[Line]:
    lines = []
    for cells in settings.grids:
        ours = found.get(f"nursery {kind} {cells}", {})
        other = found.get(f"nursery {kind} {cells} reference", {})
        note = f"{ours.get('route')}, {ours.get('iterations')} iterations" if ours else ""
        if other.get("seconds"):
            note += growth(found, settings, kind, cells)
        lines.append(Line(f"Nursery grid, {kind}, {cells:,} cells, 5 outputs", ours, other, REFERENCE, note))
    return lines


def growth(found: dict[str, Facts], settings: Settings, kind: str, cells: int) -> str:
    """How the reference grew from the grid before: the power of the number of cells."""
    earlier = [c for c in settings.grids if c < cells and "seconds" in found.get(f"nursery {kind} {c} reference", {})]
    if not earlier:
        return ""
    times = [found[f"nursery {kind} {c} reference"]["seconds"] for c in (earlier[-1], cells)]
    return f"; reference grows as cells^{math.log(times[1] / times[0]) / math.log(cells / earlier[-1]):.1f}"


def greedy_lines(found: dict[str, Facts], name: str, title: str) -> list[Line]:
    """One table against Algorithm 1: the whole by both bases, then the part that it reached, if it did not finish."""
    other = found.get(f"{name} reference", {})
    part = f"{GREEDY}, in part" if other.get("stopped") == "max_seconds" else GREEDY
    lines = []
    for key, choice in ((name, ""), (f"{name} paper first", ", basis=paper ties=first")):
        ours = found.get(key, {})
        lines.append(Line(title + choice, ours, other, part, ranks(ours, other)))
    reached = found.get(f"{name} at rank", {})
    return [*lines, Line(f"{title}, at that rank", reached, other, GREEDY, ranks(reached, other))] if reached else lines


def ranks(ours: Facts, other: Facts) -> str:
    shown = [f"rank {facts['rank']:,}" if "rank" in facts else "-" for facts in (ours, other)]
    stopped = f", other stopped by {other['stopped']}" if "stopped" in other else ""
    return f"{shown[0]} against {shown[1]}{stopped}" if ours or other else ""


def gram_lines(found: dict[str, Facts]) -> list[Line]:
    ours, dsyrk, machine = (found.get(name, {}) for name in ("gram counts", "gram dsyrk", "machine"))
    lines = [Line("Gram matrix of counts", ours, dsyrk, "one dsyrk of the same columns", gram_note(ours))]
    if "seconds" in ours and "words_per_second" in machine:
        words = ours["columns"] * (ours["columns"] + 1) / 2 * ours["words"]
        speed, limit = words / ours["seconds"], machine["words_per_second"]
        note = f"{speed / 1e9:.1f} of {limit / 1e9:.1f} billion words a second, {machine['threads']} threads"
        ideal = {"seconds": words / limit}
        lines.append(Line("Gram matrix of counts", ours, ideal, "AND and count of cached words", note, speed / limit))
    return lines


def gram_note(ours: Facts) -> str:
    return f"{ours['columns']:,} columns, {ours['rows']:,} rows" if "columns" in ours else ""


def growth_lines(found: dict[str, Facts]) -> list[Line]:
    pairs = (("connect4", "connect4 half rows", "rows"), ("connect4 engine", "connect4 half functions", "functions"))
    lines = []
    for name, part, what in pairs:
        whole, half = found.get(name, {}), found.get(part, {})
        if "seconds" in half and "seconds" in whole:
            note = f"{half[what]:,} -> {whole[what]:,} {what}"
            ratio = whole["seconds"] / half["seconds"]
            lines.append(Line(f"Connect-4, {what} doubled", whole, half, f"half the {what}", note, ratio))
    return lines


if __name__ == "__main__":
    sys.exit(main())
