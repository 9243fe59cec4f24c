"""Memory that fits and queries really take, beside what was planned: one process a case, rows made on the spot.

    python -m benchmarks.memory             every case
    python -m benchmarks.memory dense grid  those whose names begin so

Measured is the largest resident memory during the call, less what was resident before it, when the package had been
imported, its kernels loaded by a small fit of the same kind, and the rows made. Planned is ``plan_.memory`` of the fit,
or what the query was priced at.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from exanova import FunctionalANOVA
from exanova.design import passes
from exanova.design.memory import readable
from exanova.queries import query as queries
from exanova.solve.plan import Plan

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Case:
    """A table to make, parameters of the fit, and the query that is measured in place of it, if any.

    Attributes:
        rows, columns, levels, outputs: shape of the table, of random levels, and of the values.
        complete: every combination of levels, ``rows`` apart.
        weights: "none", "counts", "real", or "uneven" over six orders of magnitude.
        repeat: rows of which only this many differ.
        kind: what the levels are: "numbers", as few bytes as they need, "long" numbers of eight bytes, or "text".
        many: levels of the first column, if they are more than those of the others.
        numbers: how many columns more hold numbers that are cut.
        source: whether the rows are read from a Parquet file.
        clusters: in how many clusters rows were drawn; 0 where they are independent.
        query: "explain", "interactions", "components" or "report" of the same rows; the fit comes before.
    """

    columns: int
    levels: int
    rows: int = 0
    outputs: int = 1
    complete: bool = False
    weights: str = "none"
    repeat: int = 0
    kind: str = "numbers"
    many: int = 0
    numbers: int = 0
    source: bool = False
    clusters: int = 0
    query: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)

    def table(self) -> np.ndarray[Any, Any]:
        """(n, d) levels, int8 where they fit, made column by column."""
        rng, kind = np.random.default_rng(0), np.int8 if max(self.levels, self.many) < 128 else np.int32
        if self.complete:
            shape = (self.levels,) * self.columns
            return np.stack([c.ravel() for c in np.indices(shape, dtype=np.int8, sparse=False)], axis=1)
        if self.kind == "long":
            kind = np.int64
        out = np.empty((self.rows, self.columns), dtype=object if self.kind == "text" else kind)
        count = self.repeat or self.rows
        for k, column in enumerate(out.T):
            size = self.many if self.many and k == 0 else self.levels
            codes = np.resize(rng.integers(0, size, count, dtype=kind), self.rows)
            levels = np.array([f"level {z}" for z in range(size)], dtype=object)
            column[:] = levels[codes] if self.kind == "text" else codes
        return np.column_stack([out, rng.normal(size=(self.rows, self.numbers))]) if self.numbers else out

    def sample_weight(self) -> np.ndarray[Any, Any] | None:
        """(n,) weights of the rows, if they have any."""
        rng, n = np.random.default_rng(2), self.levels**self.columns if self.complete else self.rows
        made: dict[str, Callable[[], np.ndarray[Any, Any]]] = {
            "counts": lambda: rng.integers(1, 9, n),
            "real": lambda: rng.uniform(0.2, 3.0, n),
            "uneven": lambda: 10.0 ** rng.uniform(-6, 0, n),
        }
        return None if self.weights == "none" else made[self.weights]()

    def smaller(self) -> Case:
        """The same kind of case on few rows, to load everything that is loaded late."""
        if self.complete:
            return Case(**{**self.__dict__, "columns": 3, "levels": 3})
        few = {"rows": 60, "columns": 4, "levels": 3, "repeat": 0, "many": 0, "numbers": min(self.numbers, 1)}
        few["clusters"] = min(self.clusters, 20)
        budget = {"max_terms": 20} if "max_terms" in self.parameters else {}
        return Case(**{**self.__dict__, **few, "parameters": {**self.parameters, **budget}})


SHRUNK, SMALL = {"shrinkage": "auto"}, {"memory_limit": "500 MB"}
MOMENTS = {"route": "moments", "max_order": 2}
CASES: dict[str, Case] = {
    "grid, all at once": Case(9, 4, complete=True, parameters={"max_order": None}),
    "grid, three outputs": Case(8, 4, outputs=3, complete=True, parameters={"max_order": None}),
    "grid, top down": Case(7, 5, complete=True, weights="uneven", parameters={"max_order": None}),
    "dense": Case(20, 4, 3000, parameters={"route": "dense"}),
    "dense, redundant": Case(20, 4, 1200, parameters={"route": "dense"}),
    "dense, three outputs": Case(16, 4, 6000, outputs=3, parameters={"route": "dense"}),
    "moments, rows alone": Case(30, 4, 20_000, parameters=MOMENTS),
    "moments, counts": Case(30, 4, 20_000, weights="counts", parameters=MOMENTS),
    "moments, real weights": Case(30, 4, 20_000, weights="real", parameters=MOMENTS),
    "moments, many levels": Case(6, 15, 30_000, weights="real", parameters=MOMENTS),
    "moments, redundant": Case(24, 4, 1500, weights="real", parameters=MOMENTS),
    "moments, order 3": Case(14, 3, 20_000, parameters={"route": "moments", "max_order": 3}),
    "moments, ten outputs": Case(16, 4, 50_000, outputs=10, parameters=MOMENTS),
    "matrix-free": Case(20, 4, 100_000, parameters={"route": "matrix-free"}),
    "matrix-free, three outputs": Case(12, 6, 60_000, outputs=3, parameters={"route": "matrix-free"}),
    "matrix-free, many features": Case(60, 3, 60_000, parameters={"route": "matrix-free"}),
    "completion": Case(8, 3, 8000, parameters={"max_order": None, "route": "completion"}),
    "rows, few distinct": Case(10, 5, 3_000_000, repeat=1000, parameters={"max_order": 1}),
    "rows, all distinct": Case(30, 6, 1_000_000, parameters={"max_order": 1}),
    "rows, few columns": Case(4, 100, 3_000_000, parameters={"max_order": 1}),
    "rows, long numbers": Case(10, 5, 1_000_000, kind="long", parameters={"max_order": 1}),
    "rows, text": Case(10, 5, 1_000_000, kind="text", parameters={"max_order": 1}),
    "levels": Case(6, 1000, 50_000, parameters={"max_order": 1}),
    "screen": Case(300, 4, 5000, parameters={"max_terms": 2000}),
    "screen, long": Case(40, 4, 200_000, parameters={"max_terms": 1000}),
    "screen, wide": Case(1000, 4, 2000, parameters={"max_terms": 4000}),
    "clusters": Case(7, 4, 400_000, repeat=20_000, clusters=40_000, parameters=SHRUNK),
    "clusters, exact": Case(7, 4, 400_000, repeat=20_000, clusters=40_000),
    "clusters, from a file": Case(
        7, 4, 1_000_000, repeat=20_000, source=True, clusters=100_000, parameters={**SHRUNK, **SMALL}
    ),
    "a number, from a file": Case(7, 4, 1_000_000, source=True, numbers=1, parameters={**SMALL, "n_bins": "auto"}),
    "canonical": Case(30, 4, 20_000, parameters={"max_terms": 2000, "selection": "canonical"}),
    "canonical, first": Case(30, 4, 20_000, parameters={"max_terms": 1500, "selection": "canonical", "ties": "first"}),
    "lasso": Case(30, 4, 20_000, parameters={"selection": "lasso", "max_terms": 1500}),
    "lasso, wide": Case(200, 3, 5000, parameters={"selection": "lasso", "max_terms": 600}),
    "explain": Case(30, 4, 300_000, query="explain", parameters={"max_order": 1}),
    "interactions": Case(20, 3, 60_000, query="interactions"),
    "components": Case(20, 3, 60_000, query="components"),
    "report": Case(30, 4, 200_000, query="report", parameters={"max_order": 1}),
}


def main(names: list[str]) -> None:
    """Print the table, a line as soon as its case is done."""
    print(f"{'case':28} {'route':20} {'planned':>9} {'measured':>9}  measured / planned")
    for name in CASES:
        if not names or any(name.startswith(n) for n in names):
            found = measured(CASES[name])
            share = found["measured"] / found["planned"]
            print(
                f"{name:28} {found['route']:20} {readable(found['planned']):>9} {readable(found['measured']):>9}"
                f"  {share:.2f}",
                flush=True,
            )


def measured(case: Case) -> dict[str, Any]:
    """``planned`` and ``measured`` bytes of a case, ``foreseen`` and spent ``seconds`` of processor time, ``route``."""
    code = f"from benchmarks.memory import Case, work; work(Case(**{case.__dict__!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return dict(json.loads(done.stdout))


def work(case: Case) -> None:
    """Do a case in this process and print what was found."""
    warnings.simplefilter("ignore")
    _load(case)
    call = _call(case)
    before, start = _resident_from_now(), time.process_time()
    plan, route = call()
    spent = time.process_time() - start
    planned = {"planned": plan} if isinstance(plan, int) else {"planned": plan.memory, "foreseen": plan.seconds}
    print(json.dumps({**planned, "measured": _largest() - before, "seconds": spent, "route": route}))


def _load(case: Case) -> None:
    """Do a small case of the same kind, with kernels, so that nothing is imported or compiled while it is measured."""
    large, passes.COMPILED_FROM = passes.COMPILED_FROM, 0
    _call(case.smaller())()
    passes.COMPILED_FROM = large


def _call(case: Case) -> Callable[[], tuple[Plan | int, str]]:
    rng, table = np.random.default_rng(1), case.table()
    values = rng.normal(size=(len(table), case.outputs))
    if case.kind != "text":  # main effects and a pair that a shrunken fit can find
        values += np.sin(table[:, :1]) + np.cos(table[:, :1] * table[:, 1:2])
    weight = case.sample_weight()
    anova = FunctionalANOVA(**{"n_jobs": 2, "shrinkage": None, "n_bins": None, **case.parameters})

    labels = rng.integers(0, case.clusters, len(table)) if case.clusters else None
    if labels is not None:  # so that rows of a cluster share something
        values += rng.normal(size=(case.clusters, 1))[labels]
    if case.source:
        return _from_file(anova, table, values[:, 0], labels)
    planned = anova.plan(table, sample_weight=weight, n_outputs=case.outputs)

    def fit() -> tuple[Plan | int, str]:
        anova.fit(table, values, sample_weight=weight, clusters=labels)
        known = planned if labels is None else anova.plan_  # a plan made before does not know of clusters
        return known, known.route

    if not case.query:
        return fit
    fit()
    return lambda: _query(anova, case.query, table)


def _from_file(
    anova: FunctionalANOVA,
    table: np.ndarray[Any, Any],
    values: np.ndarray[Any, Any],
    labels: np.ndarray[Any, Any] | None,
) -> Any:
    """Fit to rows in a Parquet file with a column of predictions; the plan is made for one without.

    Of rows in clusters it is that of the fit, since a plan made before does not know of them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(tempfile.mkdtemp())
    rows = pa.table({f"x{k}": np.ascontiguousarray(column) for k, column in enumerate(table.T)})
    pq.write_table(rows, folder / "rows.parquet")
    predicted = rows.append_column("y", pa.array(values))
    predicted = predicted if labels is None else predicted.append_column("cluster", pa.array(labels))
    pq.write_table(predicted, folder / "predicted.parquet")
    planned = anova.plan(folder / "rows.parquet")

    def fit() -> tuple[Plan | int, str]:
        anova.fit(folder / "predicted.parquet", "y", clusters=None if labels is None else "cluster")
        known = planned if labels is None else anova.plan_
        return known, known.route

    return fit


def _query(anova: FunctionalANOVA, query: str, table: np.ndarray[Any, Any]) -> tuple[int, str]:
    priced: list[int] = []
    check = queries.check_memory

    def noted(what: str, size: int, memory_limit: int | float | str | None) -> None:
        priced.append(size)
        check(what, size, memory_limit)

    queries.check_memory = noted
    asked: dict[str, Callable[[], Any]] = {
        "explain": lambda: anova.explain(table),
        "interactions": lambda: anova.interactions(table),
        "components": lambda: anova.components(table),
        "report": lambda: anova.report(_place(), X=table),
    }
    kept = asked[query]()
    del kept
    return max(priced, default=1), query


def _place() -> str:
    return str(Path(tempfile.mkdtemp()) / "report.json")


def _resident_from_now() -> int:
    """Resident memory now; what was larger before is forgotten where the system allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return _largest()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def _largest() -> int:
    """Largest resident memory so far (since it was last forgotten), in bytes."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main(sys.argv[1:])
