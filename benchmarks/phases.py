"""What bounds a fit: seconds and work of its phases, beside what the machine does at its best.

The functions where the time goes are watched while a fit runs. Each has a kind of work (words of 64 rows compared,
floating-point operations, table reads) that is counted from its arguments, so that its speed stands beside the limit:
the same work on data in the first cache, or one large product of matrices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Facts, clocked
from exanova import parallel
from exanova.design import passes
from exanova.design.family import build_family
from exanova.design.passes import Layout
from exanova.design.products import PairProducts
from exanova.phi import gram, growing_family
from exanova.phi.gram_kernels import WORDS, count_cached
from exanova.select.gains import PairScreen
from exanova.solve.float_factor import FloatFactor
from exanova.solve.residue_factor import ResidueFactor


@dataclass(frozen=True)
class Watched:
    """One function: where it is, what its work is called, and how much of it a call does."""

    phase: str
    holder: Any
    name: str
    unit: str
    work: Callable[..., float]


def _factor_flops(factor: FloatFactor, gamma_rows: Any, *_: Any, **__: Any) -> float:
    """New rows against all kept directions, and against each other."""
    new, old = len(gamma_rows), factor.rank
    return float(new) * old * old + float(new) ** 2 * old + float(new) ** 3 / 3


def _profile_flops(profile: ResidueFactor, rows: Any, *_: Any, **__: Any) -> float:
    """The same, without the symmetry of new functions against each other."""
    new, old = len(rows), profile.rank
    return float(new) * old * old + 2 * float(new) ** 2 * old + float(new) ** 3


def _form_flops(products: PairProducts, values: Any, *_: Any) -> float:
    """A quadratic form of all columns at every row, for every output."""
    columns = products._one_hot._columns
    return 2.0 * columns.shape[1] * float(len(columns)) ** 2 * values.shape[1]


def _rows_and_subsets(layout: Layout, codes: Any, *rest: Any, **named: Any) -> float:
    subsets = next((r for r in (*rest, *named.values()) if isinstance(r, slice)), slice(0, len(layout.order)))
    return float(codes.shape[1]) * (subsets.stop - subsets.start)


WATCHED = (
    Watched("common rows of indicators", growing_family, "count_rows", "words", lambda w, rows, *_: w.size * len(rows)),
    Watched("all indicators at once", gram, "count_common", "words", lambda w, *_: w.size * len(w) / 2),
    Watched("factor", FloatFactor, "append", "double flops", _factor_flops),
    Watched("factor modulo primes", ResidueFactor, "append", "double flops", _profile_flops),
    Watched(
        "sums of all pairs",
        PairScreen,
        "_products",
        "single flops",
        lambda screen, weight, *_: 2.0 * len(weight) * float(screen._start[-1] + 1) ** 2,
    ),
    Watched("rows by products, reading", PairProducts, "gather", "double flops", _form_flops),
    Watched("rows by products, adding", PairProducts, "scatter", "double flops", _form_flops),
    Watched("reading tables at rows", passes, "gather", "reads", _rows_and_subsets),
    Watched("adding rows to tables", passes, "scatter", "reads", _rows_and_subsets),
)


@contextmanager
def watched() -> Iterator[dict[str, Facts]]:
    """Seconds, calls and work of every watched phase inside the block."""
    found: dict[str, Facts] = {w.phase: {"seconds": 0.0, "calls": 0, "work": 0.0, "unit": w.unit} for w in WATCHED}
    originals = [getattr(w.holder, w.name) for w in WATCHED]
    for w, original in zip(WATCHED, originals, strict=True):
        setattr(w.holder, w.name, _timed(original, w, found[w.phase]))
    try:
        yield found
    finally:
        for w, original in zip(WATCHED, originals, strict=True):
            setattr(w.holder, w.name, original)


def _timed(original: Callable[..., Any], w: Watched, facts: Facts) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        work = w.work(*arguments, **named)
        start = time.perf_counter()
        result = original(*arguments, **named)
        facts["seconds"] += time.perf_counter() - start
        facts["work"] += work
        facts["calls"] += 1
        return result

    return call


def limits(threads: int = 2) -> dict[str, float]:
    """Work a second at the machine's best, for each kind of work."""
    return {
        "words": cached_words(threads),
        "double flops": _product(np.float64, threads),
        "single flops": _product(np.float32, threads),
        "reads": _cached_reads(threads),
    }


def cached_words(threads: int, repeats: int = 400_000) -> float:
    """Words a second that every core together can AND and count when nothing has to be fetched from memory."""
    rng = np.random.default_rng(1)
    pairs = [tuple(rng.integers(0, 2**63, size=(2, WORDS), dtype=np.uint64)) for _ in range(threads)]
    parallel.run(lambda pair: count_cached(pair[0], pair[1], 10), pairs, threads)
    work = partial(parallel.run, lambda pair: count_cached(pair[0], pair[1], repeats), pairs, threads)
    return threads * repeats * WORDS / _fastest(work)


def _product(dtype: type[np.floating[Any]], threads: int, size: int = 3000) -> float:
    a = np.random.default_rng(0).normal(size=(size, size)).astype(dtype)
    with parallel.blas_threads(threads):
        return 2.0 * size**3 / _fastest(lambda: a @ a)


def _fastest(work: Callable[[], Any], repeats: int = 4) -> float:
    """Seconds of the best of a few runs: a limit is the best that was seen, anything else running only hides it."""
    return min(clocked(work)[0] for _ in range(repeats))


def _cached_reads(threads: int, rows: int = 500_000) -> float:
    """Reads of eight pairs of binary features, over and over: few cells, few columns of codes."""
    codes = np.random.default_rng(0).integers(0, 2, (8, rows), dtype=np.uint8)
    subsets = [(), *((i,) for i in range(8)), *((i, i + 1) for i in range(7))]
    family = build_family(codes, np.ones(rows), (2,) * 8, subsets)
    tables = np.ones((family.n_keys, 1))
    return rows * len(subsets) / _fastest(lambda: passes.gather(family.layout, codes, tables, threads))


def lines(phases: dict[str, Facts], machine: dict[str, float], total: float) -> list[str]:
    """One line a phase: its share of the fit, its speed, the limit."""
    out = []
    for phase, facts in sorted(phases.items(), key=lambda item: -item[1]["seconds"]):
        if facts["calls"]:
            speed, limit = facts["work"] / facts["seconds"], machine[facts["unit"]]
            spent = f"{facts['seconds']:7.2f} s  {facts['seconds'] / total:5.0%}"
            out.append(f"  {phase:<28} {spent}  {speed:.1e} {facts['unit']}/s, {speed / limit:.2f} of {limit:.1e}")
    rest = total - sum(facts["seconds"] for facts in phases.values())
    return [*out, f"  {'everything else':<28} {rest:7.2f} s  {rest / total:5.0%}"]
