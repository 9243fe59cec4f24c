"""What is measured: each job is one computation in a process of its own, and returns plain facts.

Ours time the whole of ``FunctionalANOVA.fit``, from rows of text and an array of outputs to certified effects;
those of the reference start from codes and end at coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import tables
from benchmarks.harness import Facts, clocked, once, size, timed
from benchmarks.phases import cached_words
from exanova import FunctionalANOVA, Support, parallel, reference
from exanova.basis.functions import dimensions
from exanova.data.sample import Sample
from exanova.design.family import build_family
from exanova.design.memory import available
from exanova.design.subsets import up_to_order
from exanova.solve.request import Request
from exanova.solve.run import decompose
from exanova.typing import FloatArray, Subset

Family = tuple[Subset, ...]
"""Subsets of features in canonical order."""


@dataclass(frozen=True)
class Settings:
    """How large and how long; ``quick`` shows that everything runs, ``full`` lets the reference finish."""

    data: Path
    quick: bool = False
    full: bool = False
    seconds: float = 120.0

    @property
    def patience(self) -> float | None:
        """Seconds Algorithm 1 may take."""
        return None if self.full else (5.0 if self.quick else self.seconds)

    @property
    def grids(self) -> list[int]:
        """Cells of the Nursery grids that are decomposed, the last one being the case of the table."""
        return [720, 2160] if self.quick else [2160, 4320, 12960]


def nursery(settings: Settings, cells: int, dependent: bool) -> Facts:
    case = tables.nursery(settings.data, cells, dependent)
    return fitted(case, FunctionalANOVA(shrinkage=None, max_order=None), repeats=5)


def nursery_reference(settings: Settings, cells: int, dependent: bool) -> Facts:
    support, values = tables.nursery(settings.data, cells, dependent).observed()
    codes, p, sizes = support.codes, support.probability, support.sizes
    # The functions as a list and as a matrix, the matrix times p, Gamma, and the copy the solver factorises.
    needed = 5 * 8 * prod(sizes) ** 2
    if needed > 0.8 * available():
        return {"skipped": f"the reference would need {size(needed)}, {size(available())} are free"}
    facts, expansion = once(lambda: reference.full_support_solve(codes, p, sizes, values))
    error = float(np.abs(expansion.Phi @ expansion.c - values).max())
    return facts | {"rank": expansion.Phi.shape[1], "reconstruction": error}


def poker_case(settings: Settings) -> tables.Case:
    return tables.poker(settings.data, 4000 if settings.quick else None)


def poker(settings: Settings, **choices: Any) -> Facts:
    return fitted(poker_case(settings), FunctionalANOVA(max_order=2, **{"shrinkage": None, **choices}))


def connect4_case(settings: Settings, share: float = 1.0) -> tables.Case:
    rows, features, trees = (6000, 14, 10) if settings.quick else (67557, 42, 100)
    return tables.connect4(settings.data, int(share * rows), features, trees)


def connect4(settings: Settings, share: float = 1.0, **choices: Any) -> Facts:
    return fitted(connect4_case(settings, share), FunctionalANOVA(max_order=2, **{"shrinkage": None, **choices}))


def forest(settings: Settings) -> Facts:
    return once(lambda: connect4_case(settings))[0]


def algorithm1(settings: Settings, case: Callable[[Settings], tables.Case], patience: float | None) -> Facts:
    """Algorithm 1 up to order two, then the restricted solve, as far as patience goes."""
    support, values = case(settings).observed()
    codes, p, sizes = support.codes, support.probability, support.sizes
    basis = reference.algorithm1(codes, p, sizes, max_order=2, max_seconds=patience)
    seconds, c = clocked(lambda: reference.restricted_solve(basis.Phi, p, values))
    return {
        "seconds": basis.seconds + seconds,
        "selecting": basis.seconds,
        "rank": len(basis.selected),
        "tried": basis.tried,
        "stopped": basis.stopped,
        "last": list(basis.selected[-1][0]),
        "r2": explained(values - basis.Phi @ c, values, p),
    }


def engine(settings: Settings, case: Callable[[Settings], tables.Case], family: Callable[[Support], Family]) -> Facts:
    """The engine alone on a family of subsets, from codes to effects."""
    support, values = case(settings).observed()
    chosen = family(support)
    data = Sample(support.codes, support.weight, support.sizes, values, support.n_rows)
    request = Request(subsets=chosen, threads=parallel.thread_count(None), memory_limit=int(0.8 * available()))
    facts, found = timed(lambda: decompose(data, request))
    functions = found.basis.n_functions if found.basis else found.plan.functions
    return facts | {"rank": found.solution.rank, "functions": functions, "subsets": len(chosen)}


def pairs_of(support: Support) -> Family:
    """Every subset of up to two features, in canonical order."""
    return tuple(up_to_order([i for i, n in enumerate(support.sizes) if n > 1], 2))


def up_to(last: list[int], support: Support) -> Family:
    """The subsets up to ``last``: where Algorithm 1 stopped inside it, the same functions and a few more."""
    limit = (len(last), tuple(last))
    return tuple(takewhile(lambda subset: (len(subset), subset) <= limit, pairs_of(support)))


def half_of(support: Support) -> Family:
    """The first subsets that have half of all functions of up to two features."""
    subsets = pairs_of(support)
    family = build_family(support.codes, support.weight.astype(float), support.sizes, subsets, threads=2)
    functions = np.cumsum(dimensions(family))
    return subsets[: int(np.searchsorted(functions, functions[-1] / 2)) + 1]


def gram(settings: Settings, how: str) -> Facts:
    """The Gram matrix of all indicators of Connect-4 up to order two: by counts, or by dsyrk of the same columns."""
    from exanova.phi import gram as module
    from exanova.phi.monomials import monomials, reference_levels

    support, _ = connect4_case(settings).observed()
    codes = support.codes
    weight = np.ones(codes.shape[1], dtype=np.int64)
    family = build_family(codes, weight.astype(float), support.sizes, pairs_of(support), threads=2)
    basis = monomials(family, reference_levels(family))
    facts = {"columns": len(basis), "rows": codes.shape[1], "words": -(-codes.shape[1] // 64)}
    if how == "counts":
        threads = parallel.thread_count(None)
        found, result = timed(lambda: module.counted_gram(family, basis, codes, weight, threads))
    else:
        columns = dense_columns(codes, module.single_levels(family, basis), basis)
        found, result = timed(lambda: blas_gram(columns))
    return facts | found | {"trace": float(np.trace(result))}


def dense_columns(codes: Any, singles: list[tuple[int, int]], basis: Any) -> FloatArray:
    """(rows, columns) indicators as floating-point numbers, ready for BLAS without a copy."""
    dense = np.empty((codes.shape[1], len(basis)), order="F")
    dense[:, 0] = 1.0
    for q, (feature, level) in enumerate(singles, start=1):
        dense[:, q] = codes[feature] == level
    for q in range(1 + len(singles), len(basis)):
        np.multiply(dense[:, basis.prefix[q]], dense[:, basis.last[q]], out=dense[:, q])
    return dense


def blas_gram(columns: FloatArray) -> FloatArray:
    from scipy.linalg.blas import dsyrk

    return np.asarray(dsyrk(1.0, columns, trans=1))


def machine(settings: Settings) -> Facts:
    """Words a second that every core together can AND and count when nothing has to be fetched from memory."""
    threads = parallel.thread_count(None)
    seconds, words = clocked(lambda: cached_words(threads, 200_000 if settings.quick else 2_000_000))
    return {"seconds": seconds, "words_per_second": words, "threads": threads}


def fitted(case: tables.Case, anova: FunctionalANOVA, repeats: int = 3) -> Facts:
    """Time ``fit`` and say what came out of it."""
    facts, _ = timed(lambda: anova.fit(case.X, case.values, sample_weight=case.weight), repeats)
    found, plan = anova.certificate_, anova.plan_
    return facts | {
        "rank": found.rank,
        "functions": found.n_functions,
        "rows": plan.distinct_rows,
        "route": found.route,
        "iterations": found.iterations,
        "planned": plan.memory,
        "r2": found.r2.tolist(),
        "orthogonality": found.orthogonality,
        "reconstruction": found.reconstruction,
        "notes": list(found.notes),
    }


def explained(error: FloatArray, values: FloatArray, p: FloatArray) -> list[float]:
    """R2 of each output."""
    variance = p @ (values - p @ values) ** 2
    return [float(share) for share in 1 - (p @ error**2) / variance]


def jobs(settings: Settings) -> dict[str, Callable[[], Facts]]:
    """Every job by name, in the order in which they run; those that wait for another's result are not here."""
    everything: dict[str, Callable[..., Facts]] = {}
    for dependent in (False, True):
        kind = "dependent" if dependent else "uniform"
        for cells in settings.grids:
            everything[f"nursery {kind} {cells}"] = partial(nursery, cells=cells, dependent=dependent)
            if cells < 12960 or settings.full:
                name = f"nursery {kind} {cells} reference"
                everything[name] = partial(nursery_reference, cells=cells, dependent=dependent)
    everything["poker"] = poker
    everything["poker paper first"] = partial(poker, basis="paper", ties="first")
    everything["poker reference"] = partial(algorithm1, case=poker_case, patience=patience_for_all(settings))
    everything["forest"] = forest
    everything["connect4"] = connect4
    everything["connect4 paper first"] = partial(connect4, basis="paper", ties="first")
    everything["connect4 reference"] = partial(algorithm1, case=connect4_case, patience=settings.patience)
    everything["gram counts"] = partial(gram, how="counts")
    everything["gram dsyrk"] = partial(gram, how="dsyrk")
    everything["machine"] = machine
    everything["connect4 half rows"] = partial(connect4, share=0.5)
    everything["connect4 engine"] = partial(engine, case=connect4_case, family=pairs_of)
    everything["connect4 half functions"] = partial(engine, case=connect4_case, family=half_of)
    return {name: partial(job, settings) for name, job in everything.items()}


def patience_for_all(settings: Settings) -> float | None:
    """Poker's reference is to finish: it gets more than twice the time of the others."""
    return None if settings.patience is None else 2.5 * settings.patience


def followers(settings: Settings, facts: dict[str, Facts]) -> dict[str, Callable[[], Facts]]:
    """Jobs whose size another one decided: the engine on what Algorithm 1 reached before its time was over."""
    cases = {"poker": poker_case, "connect4": connect4_case}
    references = {name: facts.get(f"{name} reference", {}) for name in cases}
    return {
        f"{name} at rank": partial(engine, settings, cases[name], partial(up_to, found["last"]))
        for name, found in references.items()
        if found.get("stopped") == "max_seconds"
    }
