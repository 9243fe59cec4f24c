"""Pages from results: one for each experiment, and the overview. The only place that knows Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Result = Mapping[str, Any]
"""What :func:`experiments.harness.keep` wrote."""

OVERVIEW = """The decomposition of this library is that of Ferrere, Bousquet, Gamboa, Loubes and Muré, "Exact Functional
ANOVA Decomposition for Categorical Inputs Models" (2026). These pages run the experiments of that paper again, each
with its own model, and put the paper's figures beside ours. `make paper DATA=folder` makes them all, `python -m
experiments NAME` one of them. Times were taken on different machines and cannot be compared; ranks, norms and errors
can. A model that is trained again is another model, so what depends on it agrees only roughly."""


def write_pages(out: Path, order: Sequence[str]) -> None:
    """Make every page from the results in a folder; experiments come in the given order, then by name."""
    results = {path.stem: json.loads(path.read_text("utf-8")) for path in (out / "results").glob("*.json")}
    names = [name for name in order if name in results] + sorted(set(results) - set(order))
    for name in names:
        (out / f"{name}.md").write_text(page(name, results[name]), encoding="utf-8")
    (out / "index.md").write_text(overview({name: results[name] for name in names}), encoding="utf-8")


def page(name: str, result: Result) -> str:
    """The page of one experiment."""
    parts = [f"# {result['title']}", flowing(result["about"]), f"**Model.** {flowing(result['model'])}"]
    if result["rows"]:
        header = ["", "the paper", "here", "remark"]
        parts.append(table(header, [[r["what"], r["paper"], r["ours"], r["why"]] for r in result["rows"]]))
    for given in result["tables"]:
        parts += [flowing(given["caption"]), table(given["header"], given["rows"])]
    for figure in result["figures"]:
        parts.append(f"![{figure['caption']}]({figure['file']})\n\n*{figure['caption']}*")
    parts += [*map(flowing, result["remarks"]), "## Checked", checked(result["checks"]), made_by(name, result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def flowing(text: str) -> str:
    """A paragraph in one line, however it was written down."""
    return " ".join(text.split())


def checked(checks: Sequence[Mapping[str, Any]]) -> str:
    """One line for each condition."""
    return "\n".join(f"- {c['what']}: {c['measured']}{'' if c['holds'] else ' **does not hold**'}" for c in checks)


def made_by(name: str, result: Result) -> str:
    """How to run it again, and with what it was run."""
    libraries = ", ".join(f"{library} {number}" for library, number in result["versions"].items())
    quick = " on small tables, to see that it runs" if result["quick"] else ""
    return f"*`python -m experiments {name}`{quick}: {result['seconds']:.0f} s in all, with {libraries}.*"


def overview(results: Mapping[str, Result]) -> str:
    """The page with the chief figures of all experiments."""
    rows = [
        [f"[{result['title']}]({name}.md)" if first else "", r["what"], r["paper"], r["ours"]]
        for name, result in results.items()
        for first, r in _chief(result)
    ]
    count = sum(len(result["checks"]) for result in results.values())
    failed = sum(not check["holds"] for result in results.values() for check in result["checks"])
    seconds = sum(result["seconds"] for result in results.values())
    parts = [
        "# The paper, run again",
        flowing(OVERVIEW),
        table(["experiment", "", "the paper", "here"], rows),
        f"Of {count} conditions that were checked in these runs, {'all' if not failed else count - failed} hold. All "
        f"experiments together took {seconds / 60:.0f} minutes.",
    ]
    return "\n\n".join(parts) + "\n"


def _chief(result: Result) -> list[tuple[bool, Mapping[str, Any]]]:
    rows = [row for row in result["rows"] if row["chief"]]
    return [(k == 0, row) for k, row in enumerate(rows)]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; columns without any text are left out."""
    used = [k for k, name in enumerate(header) if name or any(row[k] for row in rows)]
    lines = [[header[k] for k in used], ["---"] * len(used), *([row[k] for k in used] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
