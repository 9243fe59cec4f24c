"""Every order of a function on a small table of probabilities: complete and dependent, and with cells missing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Facts
from benchmarks.peers.answers import Rows, Tables, compared, fit_of, orthogonality, store, tables_of
from benchmarks.peers.measuring import Job, Settings, measured
from exanova import FunctionalANOVA, Support, reference
from exanova.errors import InexactWarning
from exanova.typing import FloatArray, Subset

LEVELS = 3
COMPLETE = {"full mild": 0.0, "full strong": 0.0}
MISSING = {"holes 30": 0.3, "holes 60": 0.6}


@dataclass(frozen=True)
class Grid:
    """A table of probabilities, zero where a combination cannot occur, and a function on it."""

    pmf: FloatArray
    values: FloatArray

    @property
    def occurring(self) -> Any:
        """Which cells have mass."""
        return self.pmf > 0

    @property
    def rows(self) -> Rows:
        """The cells that occur, as rows."""
        return Rows(np.array(np.nonzero(self.pmf)), self.pmf[self.occurring], self.pmf.shape)


def sizes(settings: Settings, case: str) -> list[int]:
    """Numbers of variables."""
    if settings.quick:
        return [4]
    return {"full mild": list(range(2, 11)), "full strong": [2, 4, 6, 8, 10]}.get(case, [2, 4, 5, 6, 7, 8])


def jobs(settings: Settings) -> dict[str, Job]:
    """Every measurement, ours first."""
    found: dict[str, Job] = {}
    for case in ("full mild", "holes 30") if settings.quick else (*COMPLETE, *MISSING):
        paper = ("dense solve", dense_solve) if case in COMPLETE else ("Algorithm 1", algorithm1)
        for d in sizes(settings, case):
            for who, work in (("exanova", ours), ("purify", purified), paper):
                found[f"{case} / {d} / {who}"] = partial(work, settings, case, d)
    return found


def grid(case: str, d: int) -> Grid:
    """Three levels each: nearly even weights (mild) or squared normal ones (strong); no level is lost to the holes."""
    rng = np.random.default_rng(d)
    shape = (LEVELS,) * d
    weights = rng.normal(size=shape) ** 2 if case == "full strong" else rng.dirichlet(np.full(LEVELS**d, 5.0))
    values = rng.normal(size=shape)
    while True:
        pmf = weights.reshape(shape) * (rng.random(shape) >= MISSING.get(case, 0.0))
        if all(pmf.sum(axis=tuple(set(range(d)) - {i})).all() for i in range(d)):
            return Grid(pmf / pmf.sum(), values)


def kept(settings: Settings, case: str, d: int) -> Path:
    """Where our answer lies."""
    return settings.work / f"{case}-{d}.npz"


def described(answer: Any, given: Grid) -> Facts:
    """What is measured on every answer."""
    rows, values = given.rows, given.values[given.occurring]
    return {
        "orthogonality": orthogonality(answer, rows),
        "model_rows": len(values),
        "never": 0.0,
        **fit_of(answer, values, rows.p),
    }


def ours(settings: Settings, case: str, d: int) -> Facts:
    given = grid(case, d)
    values = given.values[given.occurring]

    def work() -> FunctionalANOVA:
        anova = FunctionalANOVA(shrinkage=None, max_order=None, n_jobs=settings.threads)
        return anova.fit(Support.from_pmf(given.pmf), values)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InexactWarning)
        facts, anova = measured(work, settings.limit)
    tables = tables_of(anova, given.rows)
    store(kept(settings, case, d), tables)
    found = anova.certificate_
    facts |= {"route": found.route, "iterations": found.iterations, "rank": found.rank, "unique": found.unique}
    return facts | described(Tables(tables, given.rows), given)


def purified(settings: Settings, case: str, d: int) -> Facts:
    """interpret's purify on the dense tensor; what is never looked at is 0."""
    from interpret.utils import purify

    given = grid(case, d)
    scores = np.where(given.occurring, given.values, 0.0)
    facts, (pure, lower, mean) = measured(lambda: purify(scores, given.pmf), settings.limit)
    tables: dict[Subset, FloatArray] = {(): np.asarray(mean), tuple(range(d)): pure}
    tables |= {tuple(axes): table for axes, table in lower}
    answer = Tables(tables, given.rows)
    return facts | described(answer, given) | compared(kept(settings, case, d), answer, given.rows)


def dense_solve(settings: Settings, case: str, d: int) -> Facts:
    """All functions of the paper at once, one system of equations."""
    given = grid(case, d)
    rows, values = given.rows, given.values[given.occurring]

    def work() -> dict[Subset, FloatArray]:
        return reference.effects(*reference.full_support_solve(rows.codes, rows.p, rows.sizes, values))

    facts, answer = measured(work, settings.limit)
    return facts | described(answer, given) | compared(kept(settings, case, d), answer, rows)


def algorithm1(settings: Settings, case: str, d: int) -> Facts:
    """The functions the paper's greedy algorithm keeps, then their system of equations."""
    given = grid(case, d)
    rows, values = given.rows, given.values[given.occurring]

    def work() -> dict[Subset, FloatArray]:
        basis = reference.algorithm1(rows.codes, rows.p, rows.sizes)
        c = reference.restricted_solve(basis.Phi, rows.p, values)
        return reference.effects(basis.selected, basis.Phi, c)

    facts, answer = measured(work, settings.limit)
    return facts | described(answer, given) | compared(kept(settings, case, d), answer, rows)
