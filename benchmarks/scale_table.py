"""The jobs of the table that began the work on scale, each in CPU seconds, and Algorithm 1 at equal rank."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

BEFORE: dict[str, str] = {
    "Gram of all pairs, 20 x 10 levels, 50,000 rows": "31.7",
    "Gram of all pairs, 30 x 6 levels, 100,000 rows": "29.7",
    "Gram of all pairs, 30 x 4 levels, 50,000 rows": "2.1",
    "Gram of all pairs, 30 x 3 levels, 50,000 rows": "0.42",
    "10^7 rows, 10 features, some 33,000 distinct: NumPy codes": "7.9",
    "10^7 rows, 10 features, some 33,000 distinct: pandas categories": "33.8",
    "10^7 rows, 10 features, some 33,000 distinct: polars categories": "30.7",
    "3 x 10^6 rows from pyarrow dictionaries": "53.9",
    "10^6 rows, 30 x 6 levels, all distinct, order 2": "339, 286 of them counting",
    "10^6 rows, 12 x 8 levels, nearly all distinct: Gram of all pairs": "26.2",
    "main effects of a column of 30,000 levels, 10^6 rows": "refused (37 GB)",
    "pairs with a column of 10,000 levels, 10^6 rows": "1,067",
    "eight variables, complete table, all orders": "6.5",
    "eight variables, 30 % holes, all orders": "8.2",
    "nine variables, 30 % holes, all orders": "not measured",
}
"""The jobs, and CPU seconds before, as they were measured then."""


def run(job: str, data: Path | None) -> dict[str, Any]:
    """One measurement, in this process: CPU seconds of the job alone, and what came out of it."""
    if job.startswith("Gram"):
        return _gram(job)
    if "some 33,000 distinct" in job or "dictionaries" in job:
        return _reading(job)
    if "all orders" in job:
        return _all_orders(9 if "nine" in job else 8, complete="complete" in job)
    if job.startswith("paper:"):
        assert data is not None
        return _paper(job, data)
    return {
        "10^6 rows, 30 x 6 levels, all distinct, order 2": lambda: _fit(_random(10**6, (6,) * 30)),
        "10^6 rows, 12 x 8 levels, nearly all distinct: Gram of all pairs": lambda: _gram("12 x 8 levels, 1,000,000"),
        "main effects of a column of 30,000 levels, 10^6 rows": lambda: _fit(
            _random(10**6, (30_000, 5, 4)), max_order=1
        ),
        "pairs with a column of 10,000 levels, 10^6 rows": lambda: _fit(_random(10**6, (10_000, 5, 4, 3))),
    }[job]()


def _random(rows: int, sizes: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, sizes, size=(rows, len(sizes))).astype(np.int32)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def _least(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of the fastest of three runs: other programs take the caches of a short one."""
    return min((_timed(work) for _ in range(3)), key=lambda found: found[0])


def _warm() -> None:
    """Load what is loaded once."""
    X = _random(300, (3,) * 5)
    _fitted(X, max_order=2)


def _fitted(X: Any, **choices: Any) -> Any:
    from exanova import FunctionalANOVA

    values = np.asarray(X[:, 0] * 1.0 + X[:, 1] * X[:, -1]) if isinstance(X, np.ndarray) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {"shrinkage": None, "n_jobs": 1, "n_bins": None, "max_levels": None, **choices}
        return FunctionalANOVA(**given).fit(X, values)


def _fit(X: np.ndarray, **choices: Any) -> dict[str, Any]:
    _warm()
    seconds, anova = _timed(lambda: _fitted(X, **choices))
    found = anova.certificate_
    return {"cpu": seconds, "said": f"{found.n_functions:,} functions, route {found.route}, R2 {found.r2[0]:.6f}"}


def _gram(job: str) -> dict[str, Any]:
    from exanova.basis.functions import build_basis
    from exanova.data.sample import Sample
    from exanova.design.family import build_family
    from exanova.phi.operator import Phi

    words = job.replace(",", "").split()
    at = words.index("x")
    features, levels, rows = int(words[at - 1]), int(words[at + 1]), int(words[at + 3])
    codes = np.unique(_random(rows, (levels,) * features), axis=0).T.astype(np.uint8).copy()
    weight = np.ones(codes.shape[1], dtype=np.int64)
    sample = Sample(codes, weight, (levels,) * features, np.zeros((len(weight), 1)), len(weight))
    subsets = [subset for order in range(3) for subset in combinations(range(features), order)]
    family = build_family(codes, sample.mass, sample.sizes, subsets, 1)
    basis = build_basis(family)
    small = sample.only(np.arange(len(weight)) < 500)
    few = build_family(small.codes, small.mass, small.sizes, [(), (0,), (1,), (0, 1)], 1)
    Phi(few, small).gram(build_basis(few))
    seconds, gram = _timed(lambda: Phi(family, sample).gram(basis))
    return {"cpu": seconds, "said": f"{len(gram):,} functions"}


def _reading(job: str) -> dict[str, Any]:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    sizes = (2, 2, 2, 3, 3, 3, 4, 4, 5, 8)
    rows = 3 * 10**6 if "dictionaries" in job else 10**7
    kinds = _random(33_813, sizes)
    codes = kinds[np.random.default_rng(1).integers(0, len(kinds), rows)].astype(np.int8)
    values = codes[:, 0] * 1.0 + codes[:, 1] * codes[:, -1]
    names = [np.array([f"level {k}" for k in range(size)]) for size in sizes]
    columns: dict[str, Any] = {f"x{i}": codes[:, i].copy() for i in range(len(sizes))}
    X: Any = codes
    if "pandas" in job:
        X = pd.DataFrame({n: pd.Categorical.from_codes(c, names[i]) for i, (n, c) in enumerate(columns.items())})
    if "polars" in job or "dictionaries" in job:
        arrays = [pa.DictionaryArray.from_arrays(c, names[i]) for i, c in enumerate(columns.values())]
        X = pa.table(dict(zip(columns, arrays, strict=True)))
        X = pl.from_arrow(X) if "polars" in job else X
    _warm()
    from exanova import FunctionalANOVA

    seconds, anova = _timed(lambda: FunctionalANOVA(shrinkage=None, n_jobs=1, n_bins=None).fit(X, values))
    return {"cpu": seconds, "said": f"{anova.plan_.distinct_rows:,} distinct rows"}


def _all_orders(features: int, complete: bool) -> dict[str, Any]:
    sizes = (3,) * features
    grid = np.indices(sizes).reshape(features, -1).T
    rng = np.random.default_rng(0)
    X = grid if complete else grid[rng.random(len(grid)) >= 0.3]
    weight = rng.gamma(1.0, size=len(X)) + 0.05
    values = rng.normal(size=len(X))
    from exanova import FunctionalANOVA

    _warm()
    anova = FunctionalANOVA(max_order=None, sampled=False, n_jobs=1)
    seconds, _ = _timed(lambda: anova.fit(X, values, sample_weight=weight))
    found = anova.certificate_
    return {"cpu": seconds, "said": f"{len(X):,} rows, rank {found.rank:,}, route {found.route}"}


PAPER = {"paper: Poker": 600.0, "paper: Connect-4": 200.0, "paper: Nursery": 60.0}
"""Seconds that Algorithm 1 is given on each table."""


def _paper(job: str, data: Path) -> dict[str, Any]:
    """Algorithm 1 as far as it gets, and the same functions by the engine."""
    from benchmarks import tables
    from exanova import FunctionalANOVA, reference

    name = {"Poker": "poker_train", "Connect-4": "connect4", "Nursery": "nursery"}[job.removeprefix("paper: ")]
    X, labels = tables.read(data, name)
    values, order = tables.one_hot(labels), 2 if "Nursery" not in job else None
    support, means = tables.Case(X, values).observed()
    p = support.probability
    seconds, basis = _timed(
        lambda: reference.algorithm1(support.codes, p, support.sizes, max_order=order, max_seconds=PAPER[job])
    )
    more, _ = _timed(lambda: reference.restricted_solve(basis.Phi, p, means))
    rank = len(basis.selected)
    whole = basis.stopped in ("no more candidates", "full rank")
    budget = {} if whole else {"selection": "canonical", "max_terms": rank}
    _warm()
    paper = {"basis": "paper", "ties": "first", "max_order": order, "shrinkage": None, "sampled": False, "n_jobs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, anova = _least(lambda: FunctionalANOVA(**paper, **budget).fit(X, values))
        pure = {**paper, "basis": "pure", "ties": "share"}
        default, other = _least(lambda: FunctionalANOVA(**pure, **budget).fit(X, values))
    return {
        "cpu": ours,
        "reference": seconds + more,
        "rank": rank,
        "ours": int(anova.certificate_.rank),
        "default": default,
        "default_rank": int(other.certificate_.rank),
        "rows": support.n_rows,
        "said": basis.stopped,
    }
