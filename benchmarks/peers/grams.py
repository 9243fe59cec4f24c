"""The weighted Gram matrix of the indicators of categories and of pairs of them: beside tabmat, scipy.sparse and BLAS.

All work on the same columns: the mean, every level but one of each feature, and their products. Building columns is
apart for the peers, which keep them from one product to the next; ours packs its bits within the time.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Facts, clocked
from benchmarks.jobs import dense_columns
from benchmarks.peers.measuring import Job, Settings, measured
from exanova.design.family import build_family
from exanova.phi import gram as moments
from exanova.phi.monomials import monomials, reference_levels
from exanova.typing import FloatArray

LEVELS = 4
KINDS = ("counts", "weights")


def jobs(settings: Settings) -> dict[str, Job]:
    """Every measurement, ours first."""
    found: dict[str, Job] = {}
    for kind in KINDS[:1] if settings.quick else KINDS:
        for d in [4] if settings.quick else [4, 8, 12, 16, 20]:
            for who, work in PEERS.items():
                found[f"gram {kind} / {d} / {who}"] = partial(measure, settings, kind, d, who, work)
    return found


class Given:
    """Rows of d features, their weights, and the columns whose products are wanted."""

    def __init__(self, settings: Settings, kind: str, d: int) -> None:
        rng = np.random.default_rng(d)
        n = 2000 if settings.quick else 50_000
        self.codes = np.ascontiguousarray(rng.integers(0, LEVELS, (d, n)).astype(np.uint8))
        self.weight: Any = rng.integers(1, 4, n) if kind == "counts" else rng.exponential(size=n)
        self.threads = settings.threads
        subsets = [(), *((i,) for i in range(d)), *combinations(range(d), 2)]
        self.family = build_family(self.codes, self.weight.astype(float), [LEVELS] * d, subsets, self.threads)
        self.reference = reference_levels(self.family)
        self.basis = monomials(self.family, self.reference)

    @property
    def columns(self) -> FloatArray:
        """(n, q) the columns as floating-point numbers."""
        return dense_columns(self.codes, moments.single_levels(self.family, self.basis), self.basis)

    @property
    def without_reference(self) -> Any:
        """(d, n) levels numbered so that 0 is the one left out and the others keep their order."""
        codes, left_out = self.codes.astype(np.int64), np.asarray(self.reference)[:, None]
        return np.where(codes == left_out, 0, codes + (codes < left_out))


def measure(settings: Settings, kind: str, d: int, who: str, work: Any) -> Facts:
    given = Given(settings, kind, d)
    building, product = clocked(lambda: work(given))
    facts, found = measured(product, settings.limit)
    found = np.asarray(found)
    path: Path = settings.work / f"gram-{kind}-{d}.npy"
    facts |= {"columns": len(given.basis), "rows": given.codes.shape[1], "building": building}
    if who == "exanova":
        np.save(path, found)
    elif path.exists():
        ours = np.load(path)
        facts["difference"] = float(np.abs(ours - found).max() / np.abs(ours).max())
    return facts


def counted(given: Given) -> Any:
    """Ours: population counts for whole numbers, sums over the pairs of cells of every row for real ones."""
    if given.weight.dtype.kind == "i":
        weight = given.weight.astype(np.int64)
        return lambda: moments.counted_gram(given.family, given.basis, given.codes, weight, given.threads)
    return lambda: moments.weighted_gram(given.family, given.basis, given.codes, given.weight, given.threads)


def tabmat_sandwich(given: Given) -> Any:
    """One categorical column a feature and a pair, the level left out (or any of the two of a pair) dropped."""
    import tabmat

    levels = given.without_reference
    n = levels.shape[1]
    blocks: list[Any] = [tabmat.DenseMatrix(np.ones((n, 1)))]
    blocks += [tabmat.CategoricalMatrix(row, drop_first=True) for row in levels]
    for i, j in combinations(range(len(levels)), 2):
        both = (levels[i] > 0) & (levels[j] > 0)
        cell = np.where(both, levels[i] * LEVELS + levels[j], 0)
        blocks.append(tabmat.CategoricalMatrix(cell, drop_first=True))
    matrix, weight = tabmat.SplitMatrix(blocks), given.weight.astype(np.float64)
    return lambda: matrix.sandwich(weight)


def scipy_sparse(given: Given) -> Any:
    from scipy import sparse

    columns = sparse.csr_array(given.columns)
    transposed, weight = sparse.csr_array(columns.T), given.weight.astype(np.float64)
    return lambda: (transposed @ (sparse.diags_array(weight) @ columns)).toarray()


def dense_blas(given: Given) -> Any:
    """One symmetric product of the columns, weighted as they are multiplied."""
    from scipy.linalg.blas import dsyrk

    columns, root = given.columns, np.sqrt(given.weight.astype(np.float64))

    def product() -> FloatArray:
        upper = np.asarray(dsyrk(1.0, columns * root[:, None], trans=1))
        return upper + np.triu(upper, 1).T

    return product


PEERS = {
    "exanova": counted,
    "tabmat sandwich": tabmat_sandwich,
    "scipy.sparse": scipy_sparse,
    "dense BLAS": dense_blas,
}
