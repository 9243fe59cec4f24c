"""The page of ``benchmarks/scale.py``: its results as tables."""

from __future__ import annotations

from itertools import pairwise
from math import log
from textwrap import wrap
from typing import Any

from benchmarks.scale_files import DUCK, FIT, LIMIT, POLARS, ROWS, SHRUNK
from benchmarks.scale_table import BEFORE

Results = dict[str, dict[str, Any]]

KINDS = {"few": "some 33,000", "all": "nearly all"}


def page(results: Results) -> str:
    """The page, from what was measured."""
    return "\n".join([*_files(results), *_growth(results), *_rows(results), *_table(results), *_paper(results)]) + "\n"


def _of(results: Results, *tasks: str) -> list[tuple[str, str, int, dict[str, Any]]]:
    found = [(*job.split("|"), facts) for job, facts in results.items() if "|" in job]
    return [(task, kind, int(rows), facts) for task, kind, rows, facts in found if task in tasks]


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _line(task: str, kind: str, rows: int, facts: dict[str, Any]) -> str:
    if "failed" in facts:
        return f"| {rows:,} | {KINDS[kind]} | {task} | | | | {facts['failed']} |"
    numbers = f"{_seconds(facts['cpu'])} | {facts['peak']:.2f} | {facts['anonymous']:.2f}"
    return f"| {rows:,} | {KINDS[kind]} | {task} | {numbers} | {facts['said']} |"


def _files(results: Results) -> list[str]:
    head = f"""# Scale

Made by one run of `make bench-scale`. CPU seconds with one thread, each task in a process of its own. Other programs
ran on the same two cores.

## Files under a memory limit

Rows of 12 columns of text and a score, in Parquet files of a million rows, read with `memory_limit="{LIMIT}"`. The fit
has order two, on some 33,000 distinct rows (2 to 8 levels per column), or on rows that are nearly all distinct (8
levels per column, 3,319 functions). The others group the same 13 columns and count. Peak is the largest resident memory
of the process; pages of temporary files, which leave memory block by block, are part of it.

| rows | distinct rows | task | CPU seconds | peak, GB | without pages of files, GB | |
|---|---|---|---|---|---|---|"""
    lines = sorted(
        _of(results, FIT, SHRUNK, DUCK, POLARS), key=lambda line: (line[1] == "all", line[2], line[0] != FIT)
    )
    return [*head.splitlines(), *(_line(*line) for line in lines), ""]


def _growth(results: Results) -> list[str]:
    said = []
    for kind in KINDS:
        own = sorted((rows, facts["cpu"]) for _, k, rows, facts in _of(results, FIT) if k == kind and "cpu" in facts)
        if len(own) < 2:
            continue
        steps = [log(t1 / t0) / log(n1 / n0) for (n0, t0), (n1, t1) in pairwise(own)]
        last, power = own[-1], max(1.0, steps[-1])
        later = last[1] * (10**8 / last[0]) ** power
        powers = ", ".join(f"{step:.2f}" for step in steps)
        text = (
            f"- {KINDS[kind]} distinct rows: CPU seconds grow as the rows to the power {powers} from step to step "
            f"({', '.join(f'{rows:,}' for rows, _ in own)} rows). By the last of them, and at least in proportion, "
            f"100,000,000 rows would take {later:,.0f} CPU seconds; that was not measured."
        )
        said += wrap(text, 118, subsequent_indent="  ")
    return ["Growth:", "", *said, ""] if said else []


def _rows(results: Results) -> list[str]:
    head = """## Explaining rows to files

`exanova rows model.exanova folder/ --output values/`: Shapley values of every row, one block at a time, with a line of
progress on a terminal. Memory stays flat.

| rows | CPU seconds | peak, GB | |
|---|---|---|---|"""
    lines = [
        f"| {rows:,} | {_seconds(facts['cpu'])} | {facts['peak']:.2f} | {facts['said']} |"
        for _, _, rows, facts in sorted(_of(results, ROWS), key=lambda line: line[2])
        if "cpu" in facts
    ]
    return [*head.splitlines(), *lines, ""] if lines else []


def _table(results: Results) -> list[str]:
    head = """## Jobs that were slow

CPU seconds when the work on scale began, and now. The tables were made again from their descriptions: the sizes are
alike, the rows are not the same. Variables of tables at all orders have 3 levels each; the levels of the earlier
measurement are not known, so these lines cannot be compared. Tables with holes are refused where a subset that is
needed has more than 2,500 observed cells, as with ten variables of 3 levels or eight of 4.

| job | before | now | peak, GB | |
|---|---|---|---|---|"""
    lines = []
    for job, before in BEFORE.items():
        facts = results.get(job)
        if facts is None:
            continue
        now = facts["failed"] if "failed" in facts else _seconds(facts["cpu"])
        peak = "" if "failed" in facts else f"{facts['peak']:.2f}"
        lines.append(f"| {job} | {before} | {now} | {peak} | {facts.get('said', '')} |")
    files = "| 2 x 10^7 rows x 12 columns in 20 Parquet files | 94 (6.4 GB) | see the first table: 3 x 10^7 rows | | |"
    return [*head.splitlines(), *lines, files, ""] if lines else []


def _paper(results: Results) -> list[str]:
    head = """## Algorithm 1 of the paper at equal rank

`reference.algorithm1` tries one function after the other and keeps those that raise the rank: every function of order
two on Poker, as far as it got in a few minutes on the others. The engine took as many functions in the same order: the
paper's own (`basis="paper"`, `ties="first"`; which of them raise the rank is decided exactly, modulo primes), and pure
ones, the default. CPU seconds, for the engine of the whole fit with its certificate, the fastest of three.

| table | rows | rank | stopped by | Algorithm 1 | paper's functions | ratio | default functions | ratio |
|---|---|---|---|---|---|---|---|---|"""
    lines = []
    for job, facts in results.items():
        if not job.startswith("paper:") or "failed" in facts:
            continue
        order = "all orders" if "Nursery" in job else "order two"
        ranks = list(dict.fromkeys([facts["rank"], facts["ours"], facts["default_rank"]]))
        reference, ours, default = facts["reference"], facts["cpu"], facts["default"]
        lines.append(
            f"| {job.removeprefix('paper: ')}, {order} | {facts['rows']:,} | {' / '.join(f'{k:,}' for k in ranks)} | "
            f"{facts['said'].replace('max_seconds', 'time')} | {_seconds(reference)} | {_seconds(ours)} | "
            f"{reference / ours:,.0f} | {_seconds(default)} | {reference / default:,.0f} |"
        )
    note = """
A rank that is reached by time is not that of all functions, and nothing is extrapolated from it. The aim for Poker and
Connect-4 was a ratio of 200. The paper's own functions take the engine longer than its default ones, because the rank
is decided a second time, in exact arithmetic. What bounds the ratio on Connect-4, by a profile: two fifths of the
engine's seconds decide in exact arithmetic which functions raise the rank, an eighth reads 67,557 rows of 42 columns,
and the rest counts, eliminates and measures."""
    return [*head.splitlines(), *lines, *note.splitlines()] if lines else []
