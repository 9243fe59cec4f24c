"""From the results file to the page: ``python -m benchmarks.peers.page`` writes docs/benchmarks.md and its pictures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Facts
from benchmarks.peers.sections import DESCRIBED, SECTIONS, Section

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
SOURCE = DOCS / "benchmarks.json"
OURS = "exanova"
LEAST_MEMORY = 1e6
"""Bytes below which memory counts as so many: pages and allocators hide less."""

HEADER = (
    "peer",
    "time",
    "memory",
    "difference",
    "orthogonality",
    "its orthogonality",
    "model calls",
    "its model calls",
    "never occur",
    "note",
)
SUMMARY = ("case", "peer", "time", "memory", "difference", "its orthogonality", "never occur")
COLORS = ("#2b6cb0", "#dd7a14", "#2f855a", "#97266d", "#8a8f98", "#b7791f")

LEGEND = (
    "**time**, **memory**: the peer's over ours; above 1 exanova is faster, or needs less. Memory is what the "
    "call took beyond what the process held before, at least 1 MB. **difference**: largest difference of the two "
    "answers, relative to our largest value. **orthogonality**: the largest conditional mean, that is the largest "
    "|E[f_A 1{x_B = b}]| over all B strictly inside A, relative to the largest value, computed for all by one "
    "function from the values at the rows. **model calls**: rows sent to the model. **never occur**: the share of "
    "the peer's model calls on combinations that never occur in the table. A dash: does not apply, or not all "
    "rows were explained."
)


def main() -> int:
    """Write the page and its pictures from the results of a whole run."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    written = write_page(json.loads(source.read_text(encoding="utf-8")), DOCS)
    print("\n".join(str(path) for path in written))
    return 0


def write_page(content: Facts, folder: Path) -> list[Path]:
    """The page and its pictures in a folder."""
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    shown = [section for section in SECTIONS if any(m["case"] in section.cases for m in content["measurements"])]
    written = [draw(section, content, images / f"bench-{section.key}.svg") for section in shown]
    page = folder / "benchmarks.md"
    parts = [introduction(content), *(part(s, content) for s in shown), DESCRIBED]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return [page, *written]


def introduction(content: Facts) -> str:
    """What was run where, how to read it, and all cases in one table."""
    return "\n\n".join(
        [
            "# Comparison with other libraries",
            "The same model, rows and machine for all: every measurement in a process of its own, threads fixed, "
            "without compilation and first calls, medians of repeats. A peer is only ever compared with what exanova "
            "took in the same run. `make bench-peers DATA=folder` runs all of it again and writes this page; "
            "`BENCH_ARGS=--quick` shows in about a minute that everything runs.",
            *map(run_of, runs(content)),
            *two_clocks(content),
            *versions_that_ship(content),
            LEGEND,
            "## In short",
            table(SUMMARY, list(summary(content))),
        ]
    )


def two_clocks(content: Facts) -> Iterator[str]:
    """Why some measurements go by another clock, if some do."""
    if len({run["settings"].get("clock") for run in runs(content)}) > 1:
        yield (
            "Runs of some milliseconds go by the wall clock, since processor time is counted in steps of 4 ms; all "
            "others by processor time, which other work on the machine does not lengthen."
        )


def runs(content: Facts) -> list[Facts]:
    """The runs that the measurements come from, the oldest first; each has its jobs, machine and versions."""
    return content.get("runs") or [{**content, "jobs": jobs_of(content["measurements"])}]


def jobs_of(measurements: Sequence[Facts]) -> list[str]:
    """What was measured: case / size, each once."""
    return list(dict.fromkeys(job(m) for m in measurements))


def job(m: Facts) -> str:
    """The case and the size of a measurement."""
    return f"{m['case']} / {m['size']}"


def run_of(run: Facts) -> str:
    """What one run was: which sections, on which machine, with which versions."""
    machine, settings = run["machine"], run["settings"]
    listed = ", ".join(f"{name} {number}" for name, number in run["versions"].items() if number != "-")
    parts = [covered(section, run["jobs"]) for section in SECTIONS]
    seconds = "processor time" if settings.get("clock") == "cpu" else "seconds of the clock"
    return (
        f"**{'; '.join(part for part in parts if part)}:** {machine['system']}, {machine['processor']}, "
        f"{machine['cores']} cores, {count_of_threads(settings['threads'])}, {seconds}, at most "
        f"{settings['limit']:g} s each, {run['minutes']:.0f} minutes in all; {listed}."
    )


def covered(section: Section, jobs: Sequence[str]) -> str:
    """A section with those of its cases that a run measured, and the sizes."""
    found = [done for done in jobs if done.partition(" / ")[0] in section.cases]
    cases = dict.fromkeys(section.cases[done.partition(" / ")[0]] for done in found)
    sizes = dict.fromkeys(done.partition(" / ")[2] for done in found)
    numbers = sorted(int(size) for size in sizes if size.isdigit())
    named = f", {' and '.join(sizes)}" if section.by_rows or not numbers else f", sizes {numbers[0]} to {numbers[-1]}"
    return f"{section.title} ({' and '.join(cases)}{named})" if found else ""


def count_of_threads(threads: int) -> str:
    return "one thread" if threads == 1 else f"{threads} threads"


def versions_that_ship(content: Facts) -> Iterator[str]:
    """What later releases have that these measurements do not show."""
    for run in runs(content):
        shapiq, python = run["versions"].get("shapiq", "-"), run["versions"].get("python", "-")
        if shapiq == "-" or not any(m["who"].startswith("shapiq") for m in measured_in(content, run)):
            continue
        needed = "shapiq 1.5 and later need Python 3.12 and compute trees in compiled code."
        if older(shapiq, (1, 5)):
            yield (
                f"{needed} shapiq {shapiq} is the newest release for Python {python}; no ratio over its tree explainer "
                "is given, since that code no longer ships."
            )
        else:
            yield f"{needed} Measured here: shapiq {shapiq} under Python {python}. Under Python 3.11 the newest is 1.4."


def measured_in(content: Facts, run: Facts) -> list[Facts]:
    """The measurements of a run."""
    return [m for m in content["measurements"] if job(m) in run["jobs"]]


def older(version: str, than: tuple[int, int]) -> bool:
    """Whether a version is known and comes before another."""
    numbers = version.split(".")[:2]
    return all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) < than


def no_longer_ships(content: Facts, m: Facts) -> bool:
    """Whether a measurement is of code that later releases of its library have replaced."""
    run = next(run for run in runs(content) if job(m) in run["jobs"])
    return m["who"] == "shapiq TreeExplainer" and older(run["versions"].get("shapiq", "-"), (1, 5))


def summary(content: Facts) -> Iterator[list[str]]:
    """One line for each case and peer: the range of the ratios over all sizes, and the worst of the rest."""
    for section in SECTIONS:
        for case, name in section.cases.items():
            for who in peers(content, case):
                pairs = [(ours, m) for ours, m in beside(content, case) if m["who"] == who]
                times = [(r, "over" in m) for ours, m in pairs if (r := time_ratio(ours, m))]
                memory = [(r, False) for ours, m in pairs if (r := memory_ratio(ours, m))]
                found = [m for _, m in pairs]
                if times:
                    worst = [scientific(worst_of(found, key)) for key in ("difference", "orthogonality")]
                    yield [
                        f"{section.title}, {name}",
                        who,
                        span(times),
                        span(memory),
                        *worst,
                        share(worst_of(found, "never")),
                    ]


def worst_of(found: Sequence[Facts], key: str) -> float | None:
    """The largest of what was measured."""
    return max((m[key] for m in found if m.get(key) is not None), default=None)


def part(section: Section, content: Facts) -> str:
    """One section: what was done, picture, tables, where we lose, when to choose the peer."""
    blocks = [f"## {section.title}", section.about, f"![Seconds against size](images/bench-{section.key}.svg)"]
    for case, name in section.cases.items():
        lines = [[str(m["size"]), *line(ours, m)] for ours, m in beside(content, case)]
        if lines:
            blocks += [f"### {name[0].upper()}{name[1:]}", table(*told((section.size, *HEADER), lines))]
    where = [text for case, name in section.cases.items() for text in losses(section, content, case, name)]
    if where:
        blocks.append("**Where exanova is slower:** " + "; ".join(where) + f". The reason: {section.slower}")
    named = [who for who in section.choose if any(who in peers(content, case) for case in section.cases)]
    blocks.append("**When the peer is the better choice**\n\n" + "\n".join(f"- {section.choose[who]}" for who in named))
    return "\n\n".join(blocks)


def losses(section: Section, content: Facts, case: str, name: str) -> Iterator[str]:
    """Where exanova is slower than a peer, by how much."""
    for who in peers(content, case):
        slower = [
            f"{m['size']} ({significant(1 / ratio)} times)"
            for ours, m in beside(content, case)
            if m["who"] == who and (ratio := time_ratio(ours, m)) and ratio < 1 and "over" not in m
        ]
        if slower:
            yield f"{name}, than {who} at {', '.join(slower)}" + ("" if section.by_rows else f" {section.size}")


def told(header: Sequence[str], lines: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """A table without the columns that say nothing."""
    kept = [k for k in range(len(header)) if any(cells[k] != "-" for cells in lines)]
    return [header[k] for k in kept], [[cells[k] for k in kept] for cells in lines]


def beside(content: Facts, case: str) -> list[tuple[Facts, Facts]]:
    """Ours and a peer's measurement of the same size, all of a case in order."""
    measurements = [m for m in content["measurements"] if m["case"] == case]
    ours = {m["size"]: m for m in measurements if m["who"] == OURS}
    shown = [m for m in measurements if m["who"] != OURS and m["size"] in ours and not no_longer_ships(content, m)]
    return [(ours[m["size"]], m) for m in shown]


def peers(content: Facts, case: str) -> list[str]:
    """The peers of a case, in order."""
    return list(dict.fromkeys(m["who"] for _, m in beside(content, case)))


def time_ratio(ours: Facts, other: Facts) -> float | None:
    """The peer's seconds over ours; the limit, where it did not finish."""
    seconds = other.get("over") or other.get("seconds")
    return seconds / ours["seconds"] if seconds and ours.get("seconds") else None


def memory_ratio(ours: Facts, other: Facts) -> float | None:
    """The peer's memory over ours."""
    if "extra" not in ours or "extra" not in other:
        return None
    return max(other["extra"], LEAST_MEMORY) / max(ours["extra"], LEAST_MEMORY)


def line(ours: Facts, other: Facts) -> list[str]:
    """A line of a table, without its size."""
    ratio, memory = time_ratio(ours, other), memory_ratio(ours, other)
    mark = "> " if "over" in other else "≈ " if part_of_rows(other) else ""
    return [
        other["who"],
        "-" if ratio is None else mark + significant(ratio),
        "-" if memory is None else significant(memory),
        scientific(other.get("difference")),
        scientific(ours.get("orthogonality")),
        scientific(other.get("orthogonality")),
        whole(ours.get("model_rows")),
        whole(other.get("model_rows")),
        share(other.get("never")),
        note(ours, other),
    ]


def note(ours: Facts, other: Facts) -> str:
    """What a reader needs beside the numbers: our seconds, the peer's words, what was left out."""
    route = f", {ours['route']}" if "route" in ours else ""
    parts = [f"exanova {seconds(ours['seconds'])}{route}"] if ours.get("seconds") else []
    parts += [trouble(ours, "exanova: ")] if trouble(ours) else []
    parts += [trouble(other)] if trouble(other) else []
    if part_of_rows(other):
        parts.append(f"{other['explained']:,} of {other['rows']:,} rows")
    if other.get("reconstruction", 0.0) > 1e-6:
        parts.append(f"its sum is off by {scientific(other['reconstruction'])}")
    if other.get("r2", 1.0) < 0.9999 and "r2" in ours:
        parts.append(f"R2 {other['r2']:.4f}, ours {ours['r2']:.4f}")
    return "; ".join(parts).replace("|", "\\|")


def trouble(facts: Facts, who: str = "") -> str:
    """What stopped a measurement."""
    if "over" in facts:
        return f"{who}stopped after {facts['over']:g} s"
    said = facts.get("skipped") or facts.get("failed")
    return f"{who}“{said}”" if said else ""


def part_of_rows(facts: Facts) -> bool:
    """Whether the seconds of all rows are in proportion to those of some."""
    return "explained" in facts and bool(facts["explained"] < facts["rows"])


def tables(content: Facts) -> str:
    """The summary alone, for the terminal."""
    return table(SUMMARY, list(summary(content)))


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Markdown."""
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def span(ratios: Sequence[tuple[float, bool]]) -> str:
    """The least and the largest of some ratios; those that are only a bound are marked."""
    if not ratios:
        return "-"
    shown = [("> " if bound else "") + significant(ratio) for ratio, bound in (min(ratios), max(ratios))]
    return shown[0] if shown[0] == shown[1] else " to ".join(shown)


def significant(number: float) -> str:
    """Two digits that count."""
    return f"{float(f'{number:.2g}'):,.0f}" if number >= 10 else f"{number:.2g}"


def seconds(number: float) -> str:
    return f"{number:.2g} s" if number < 10 else f"{number:.0f} s"


def scientific(number: float | None) -> str:
    return "-" if number is None else "0" if number == 0 else f"{number:.0e}"


def share(number: float | None) -> str:
    return "-" if number is None else f"{100 * number:.0f} %"


def whole(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


# Pictures


def draw(section: Section, content: Facts, path: Path) -> Path:
    """Seconds against size, or against rows explained, on logarithmic axes, one panel for each case."""
    import altair as alt

    points = list(rows_points(section, content) if section.by_rows else size_points(section, content))
    people, panels = (list(dict.fromkeys(point[key] for point in points)) for key in ("who", "panel"))
    powers = [10.0**k for k in range(-6, 6)]
    if section.by_rows:
        across = alt.X("size:Q", title="rows explained", scale=alt.Scale(type="log")).axis(values=powers, format="~s")
    else:
        ticks = sorted({point["size"] for point in points})
        across = alt.X("size:Q", title=section.size, scale=alt.Scale(zero=False, padding=10)).axis(values=ticks)
    chart = (
        alt.Chart(alt.Data(values=points))
        .mark_line(point={"filled": True, "size": 40}, strokeWidth=1.5)
        .encode(
            x=across,
            y=alt.Y("seconds:Q", title="seconds", scale=alt.Scale(type="log")).axis(values=powers, format="~g"),
            color=alt.Color("who:N", title=None, scale=alt.Scale(domain=people, range=list(COLORS[: len(people)]))),
            shape=alt.Shape("who:N", title=None, scale=alt.Scale(domain=people)),
            strokeDash=alt.condition(f"datum.who == '{OURS}'", alt.value([1, 0]), alt.value([5, 3])),
        )
        .properties(width=240, height=200)
        .facet(facet=alt.Facet("panel:N", title=None, sort=panels), columns=3)
        .configure(background="white", font="sans-serif")
        .configure_legend(orient="bottom", columns=3, labelLimit=240)
    )
    chart.save(str(path))
    return path


def size_points(section: Section, content: Facts) -> Iterator[Facts]:
    for m in content["measurements"]:
        if m["case"] in section.cases and m.get("seconds"):
            yield point(m, section.cases[m["case"]], m["size"], m["seconds"])


def rows_points(section: Section, content: Facts) -> Iterator[Facts]:
    for m in content["measurements"]:
        if m["case"] in section.cases and not no_longer_ships(content, m):
            for count, took in m.get("growth", []):
                yield point(m, f"{str(m['size']).capitalize()}, {section.cases[m['case']]}", count, took)


def point(m: Facts, panel: str, size: Any, took: float) -> Facts:
    return {"panel": panel, "who": m["who"], "size": size, "seconds": took}


if __name__ == "__main__":
    sys.exit(main())
