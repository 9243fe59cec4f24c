"""From what was measured to the page: ``python -m benchmarks.coverage_page`` writes docs/coverage.md again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.harness import Facts
from benchmarks.peers.page import table

DOCS = Path(__file__).resolve().parent.parent / "docs"
WANTED = (0.93, 0.97)
"""Coverage of 95 % intervals that counts as met."""

FEWEST = 200
"""Intervals below which a coverage says too little to be listed as a failure."""

METHOD = """\
"Does it hold on other rows?" is answered by standard errors in closed form. This page tests them. The table
is the population: its effects are computed from all of its rows. Samples are drawn from it with replacement, each is
fitted exactly (`shrinkage=None, sampled=True`), and each 95 % interval either holds the effect of the population or
does not. The model is a random forest that is trained once on the population and then fixed; the two synthetic
populations are random dependent distributions, one of them with holes, under a function with effects of three orders.

An interval counts if its cell has 30 rows or more in the sample. Effects that the rows do not determine have no
interval, by design; they are counted separately, as are cells with fewer rows and cells that are missing in the sample.
**Coverage** should be 95 %, and between 93 and 97 % counts as met (otherwise the figure is **bold**); ± is its own
standard error from the number of samples. **Error / spread** is the standard error that is reported over the standard
deviation of the estimates from sample to sample: 1 is right, below 1 is too optimistic (median over cells)."""

SHORT = """\
Coverage averaged over all sample sizes, in percent; importances E[f²] and E|f| are those of clear effects (see below),
E|Shapley| are mean absolute Shapley values of all features."""

SHAPLEY = """\
Shapley values of {explained} rows of the population, explained by each sample. A value counts if all the cells that
enter it count."""

MEAN_SHAPLEY = """\
`importance("shapley", level=0.95)`: the mean absolute Shapley value of every feature."""

IMPORTANCE = """\
`importance(level=0.95)` by effect: E[f²] and E|f|. An effect is *clear* if its norm is at least three times the root
mean squared error of its cells. An importance cannot be negative, and near zero its estimate is neither normally
distributed nor unbiased: intervals of E[f²] invert a noncentral chi-square distribution, those of E|f| correct for the
bias of absolute values, and both end at 0 where an effect is not distinguishable from zero."""

SHRUNKEN = """\
The same for the default fit, whose effects are shrunk: the spread over samples is measured from the rows, as for an
exact fit, and the squared bias of shrinkage is the one that the prior expects. That is right on average over effects,
not for each one: weak effects are pulled towards zero, and their importances have wide intervals. Effects that the rows
do not determine are left out as above; where nothing was shrunk (the rows determine every function) the intervals are
those of the exact fit."""

DISCOVERED = """\
`significance()` controls the false discovery rate at 5 %. Here the discoveries are counted: eight features, three of
which have no main effect, 36 effects of which 8 are not zero, noise of standard deviation 0.5. *False* is the mean
share of significant effects that are zero; *detected* is the share of the nonzero effects that were significant; *never
read* is the number of samples in which an effect of a feature that the function never reads was significant."""

CLUSTERS = """\
Runs of neighbouring rows of the table ({clusters}) are drawn
whole. Neighbours are similar, so a sample holds less information than its number of rows suggests. *Given* is
`fit(..., clusters=...)`; *not given* treats the rows as independent, and shows what goes wrong. The last column keeps
only cells in which at least 30 clusters have rows."""

BOOTSTRAP = """\
One sample of each population: linear errors over those of {refits} refits with random weights, for cells with 30 rows
or more, and the seconds of both. The refits themselves scatter by 5 %."""

REASONS = """\
The reasons, as far as they are known:

- *Few clusters.* With 25 clusters an effect may depend on three of them, whatever its number of rows. Intervals are
  those of Student's t for the clusters that have rows in a cell; of importances, for the median cell. Below some forty
  clusters the intervals of importances are too narrow: the true uncertainty is larger.
- *Squares and absolute values.* Near zero, estimates of E[f²] and E|f| are skewed, and their intervals are
  conservative: where an effect is weak, or estimated from 500 rows, they cover somewhat more than 95 %.
- *Mushroom.* Nearly all of its effects are not identified. The few that are have cells with few rows, and the coverage
  of E[f²] of clear ones rests on few intervals (see the table).

Residuals of a least-squares fit are smaller than the noise they represent, with 175 functions on 500 rows by about a
fifth. The errors are corrected for that by the leverage of every row; without it Nursery at order 2 would cover 89 %
with 500 rows."""


def main() -> int:
    """Write the page again from its file."""
    print(write_page(json.loads((DOCS / "coverage.json").read_text(encoding="utf-8")), DOCS))
    return 0


def write(found: Facts, folder: Path) -> Path:
    """Keep what was measured, and make the page of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "coverage.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return write_page(found, folder)


def write_page(found: Facts, folder: Path) -> Path:
    """The page in a folder."""
    path = folder / "coverage.md"
    path.write_text("\n\n".join(parts(found)) + "\n", encoding="utf-8")
    return path


def parts(found: Facts) -> Iterator[str]:
    """Every paragraph and table of the page."""
    rows = [line for line in found["sampling"] if line["cluster"] == 1]
    clusters = [line for line in found["sampling"] if line["cluster"] > 1]
    repeats = ", ".join(f"{count} of {int(n):,} rows" for n, count in found["repeats"].items())
    yield "# Do the intervals cover?"
    yield METHOD
    yield (
        f"Samples of each population: {repeats}.\n`make coverage DATA=folder` draws and fits all of them "
        f"again, here in {found['minutes']:.0f} minutes on one core, and writes this page."
    )
    yield "## In short"
    yield SHORT
    yield table(*averages(rows))
    yield "## Cells of effects"
    yield table(*cells(rows))
    yield "## Shapley values"
    yield SHAPLEY.format(explained=found["explained"])
    yield table(*plain(rows, "shapley"))
    yield MEAN_SHAPLEY
    yield table(*plain(rows, "mean_shapley"))
    yield "## Importances"
    yield IMPORTANCE
    yield table(*importances(rows))
    if clusters:
        sizes = {line["title"]: line["cluster"] for line in clusters}
        yield "## Clusters drawn whole"
        yield CLUSTERS.format(clusters=", ".join(f"{title}: {size} rows" for title, size in sizes.items()))
        yield table(*clustered(clusters))
    if found.get("shrunk"):
        yield "## Shrunken effects"
        yield SHRUNKEN
        yield table(*shrunken(found["shrunk"]))
    if found.get("discoveries"):
        yield "## Which effects differ from zero"
        yield DISCOVERED
        yield table(*discovered(found["discoveries"]))
    yield "## Comparison with the bootstrap"
    yield BOOTSTRAP.format(refits=max(line["refits"] for line in found["bootstrap"]))
    yield table(*bootstrap(found["bootstrap"]))
    yield "## Where it falls short"
    yield shortfalls(rows, [line for line in clusters if line["said"]])


Table = tuple[Sequence[str], list[list[str]]]


def named(line: Facts) -> list[str]:
    return [line["title"], str(line["order"]), f"{line['functions']:,}", f"{line['n']:,}"]


NAMED = ("population", "order", "functions", "rows")


def averages(lines: Sequence[Facts]) -> Table:
    """Coverage of each population on the average of its sizes."""
    kinds = ("cells", "shapley", "l2", "l1", "mean_shapley")
    out = []
    for key in dict.fromkeys((line["title"], line["order"]) for line in lines):
        own = [line for line in lines if (line["title"], line["order"]) == key]
        out.append([key[0], str(key[1]), *(averaged([line[kind] for line in own]) for kind in kinds)])
    return ("population", "order", "cells", "Shapley values", "E[f²]", "E\\|f\\|", "E\\|Shapley\\|"), out


def averaged(found: Sequence[Facts]) -> str:
    """The mean of some coverages, where there are any."""
    shown = [one["coverage"] for one in found if one["coverage"] is not None]
    if not shown:
        return "no intervals"
    mean = sum(shown) / len(shown)
    text = f"{100 * mean:.1f}"
    return text if met({"coverage": mean}) else f"**{text}**"


def cells(lines: Sequence[Facts]) -> Table:
    """Coverage of cells, and what was not counted."""
    header = (*NAMED, "intervals", "coverage", "error / spread", "few rows", "not identified", "missing")
    out = []
    for line in lines:
        found, apart = line["cells"], line["apart"]
        shares = [percent(apart[key]) for key in ("few_rows", "unidentified", "missing")]
        out.append([*named(line), f"{found['intervals']:,}", covered(found), number(found), *shares])
    return header, out


def plain(lines: Sequence[Facts], key: str) -> Table:
    """Coverage of one kind of number, without the populations that have no interval of it."""
    header = (*NAMED, "intervals", "coverage", "error / spread")
    shown = [line for line in lines if line[key]["intervals"]]
    return header, [[*named(s), f"{s[key]['intervals']:,}", covered(s[key]), number(s[key])] for s in shown]


def importances(lines: Sequence[Facts]) -> Table:
    """Coverage of importances of clear and of weak effects."""
    header = (*NAMED, "clear", "E[f²]", "E\\|f\\|", "weak", "E[f²], weak", "E\\|f\\|, weak")
    out = []
    for line in lines:
        clear, weak = ([line[f"{prefix}{kind}"] for kind in ("l2", "l1")] for prefix in ("", "weak_"))
        if clear[0]["intervals"] or weak[0]["intervals"]:
            shown = [[f"{pair[0]['intervals']:,}", *map(covered, pair)] for pair in (clear, weak)]
            out.append([*named(line), *shown[0], *shown[1]])
    return header, out


def shrunken(lines: Sequence[Facts]) -> Table:
    """Coverage of shrunken effects."""
    absolute = ("E\\|f\\|", "E\\|Shapley\\|", "E[f²], weak", "E\\|f\\|, weak")
    header = (*NAMED, "samples", "cells", "Shapley", "E[f²]", *absolute)
    keys = ("cells", "shapley", "l2", "l1", "mean_shapley", "weak_l2", "weak_l1")
    return header, [[*named(s), f"{s['samples']}", *(covered(s[key]) for key in keys)] for s in lines]


def discovered(lines: Sequence[Facts]) -> Table:
    """False and true discoveries."""
    header = ("rows", "samples", "shrinkage", "false", "detected", "never read")
    return header, [
        [
            f"{line['n']:,}",
            str(line["samples"]),
            line["shrinkage"] or "None",
            percent(line["false"], 1),
            percent(line["found"]),
            f"{line['never']} of {line['samples']}",
        ]
        for line in lines
    ]


def clustered(lines: Sequence[Facts]) -> Table:
    """Coverage with whole clusters drawn, given to the fit and not given."""
    header = (
        "population",
        "rows",
        "clusters",
        "clusters=",
        "cells",
        "Shapley",
        "E[f²]",
        "E\\|f\\|",
        "E\\|Shapley\\|",
        "cells, 30 clusters",
    )
    return header, [
        [
            line["title"],
            f"{line['n']:,}",
            f"{line['n'] // line['cluster']:,}",
            "given" if line["said"] else "not given",
            *(covered(line[key]) for key in ("cells", "shapley", "l2", "l1", "mean_shapley", "cells_of_many_units")),
        ]
        for line in lines
    ]


def bootstrap(lines: Sequence[Facts]) -> Table:
    """Linear errors over those of refits."""
    header = ("population", "order", "rows", "cells", "linear / bootstrap", "5 % to 95 %", "linear s", "bootstrap s")
    out = []
    for line in lines:
        if line["ratio"]:
            low, middle, high = (f"{value:.2f}" for value in line["ratio"])
            seconds = [f"{line['seconds'][key]:.2g}" for key in ("linear", "bootstrap")]
            start = [line["title"], str(line["order"]), f"{line['n']:,}", f"{line['cells']:,}"]
            out.append([*start, middle, f"{low} to {high}", *seconds])
    return header, out


def shortfalls(rows: Sequence[Facts], clusters: Sequence[Facts]) -> str:
    """Every line of the tables whose coverage is not as it should be, and why."""
    kinds = {
        "cells": "cells",
        "shapley": "Shapley values",
        "l2": "E[f²] of clear effects",
        "l1": "E|f| of clear effects",
        "mean_shapley": "mean absolute Shapley values",
    }
    out = []
    for kind, words in kinds.items():
        missed = [
            f"{line['title']} order {line['order']}, {line['n']:,} rows"
            + (f" in {line['n'] // line['cluster']} clusters" if line["cluster"] > 1 else "")
            + f" ({percent(line[kind]['coverage'], 1)})"
            for line in (*rows, *clusters)
            if not met(line[kind]) and line[kind]["intervals"] >= FEWEST
        ]
        if missed:
            out.append(f"- {words}: " + "; ".join(missed))
    if not out:
        return "Nowhere: every coverage of at least 200 intervals, of clear effects, is between 93 and 97 %."
    return "Outside 93 to 97 %, among coverages of at least 200 intervals:\n\n" + "\n".join(out) + "\n\n" + REASONS


def met(found: Facts) -> bool:
    """Whether a coverage is as it should be, or there is none."""
    return found["coverage"] is None or WANTED[0] <= round(found["coverage"], 3) <= WANTED[1]


def covered(found: Facts) -> str:
    """A coverage with its margin, bold where it is not as it should be."""
    if found["coverage"] is None:
        return "-"
    text = f"{100 * found['coverage']:.1f} ± {100 * found['margin']:.1f}"
    return text if met(found) else f"**{text}**"


def number(found: Facts) -> str:
    ratio = found["stderr_over_spread"]
    return "-" if ratio is None else f"{ratio:.2f}"


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


if __name__ == "__main__":
    sys.exit(main())
