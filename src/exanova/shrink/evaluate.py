"""How well the rows predict each other: each left out of the fit in closed form, for shrunken and for exact fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exanova import parallel
from exanova.basis.functions import Basis
from exanova.data.sample import KnownRows, Sample
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.shrink.cost import leaving_out
from exanova.shrink.equal_rows import Equal, takes_weights_for_alike
from exanova.shrink.left_out import (
    FEWEST_SAMPLED,
    LeftOut,
    left_out_by_leverage,
    left_out_by_products,
    left_out_of_exact,
    rows_to_leave_out,
)
from exanova.solve.evidence import Solved
from exanova.solve.request import Request
from exanova.solve.survey import load_of
from exanova.typing import FloatArray, IntArray

LARGEST = 15_000
"""Functions beyond which a factorisation takes minutes."""


CHEAP_WORK = 2e9
"""Multiplications up to which rows are left out of an exact fit if shrinkage was not requested: a tenth of a second."""

NEARLY_ALL = 0.5
"""Rank over rows above which the mean leverage says little of single rows: many of them determine a direction alone."""

WORK_OF_NEARLY_ALL = 1e11
"""Multiplications up to which rows are left out of such an exact fit: a second or two, a part of what the fit takes."""


@dataclass(frozen=True, eq=False)
class OtherRows:
    """The fit on rows that it was not fitted to.

    Attributes:
        mse: (m,) mean squared error in normalised units, beside the variance within equal rows.
        method: how it was measured, in words.
    """

    mse: FloatArray
    method: str


def other_rows(sample: Sample, solved: Solved, request: Request) -> OtherRows | None:
    """The fit of every row by the others; ``None`` where it would cost more than the fit itself."""
    shrunk = solved.shrinkage
    if shrunk is not None and shrunk.left_out_mse is not None and shrunk.left_out is not None:
        return OtherRows(shrunk.left_out_mse, _how(len(shrunk.left_out), sample))
    if not request.sampled or why_none(sample, solved, request) is not None:
        return None
    assert solved.basis is not None
    largest = WORK_OF_NEARLY_ALL if is_nearly_all(solved, float(sample.copies.sum())) else CHEAP_WORK
    if not request.shrinkage and _work(sample.n_rows, solved.basis.n_functions) > largest:
        return None
    try:
        left_out = leave_rows_out(sample, solved, request)
    except ArithmeticError:  # under weights too uneven for a Gram matrix the fit itself is flagged
        return None
    kept = ", without repeating the selection" if request.selection else ""
    return OtherRows(left_out.mse, _how(len(left_out.rows), sample) + kept)


def is_nearly_all(solved: Solved, rows: float) -> bool:
    """Whether functions are so many that the mean leverage of a row does not say how well rows are predicted."""
    return solved.solution.rank > NEARLY_ALL * rows


def _work(rows: int, functions: int) -> float:
    """Multiplications to leave rows out, by the products of functions or of rows."""
    r, q = float(rows), float(functions)
    return min(q**2 * (q + min(r, max(q, FEWEST_SAMPLED))), r**2 * (q + r))


def _how(left_out: int, sample: Sample) -> str:
    alike = ", assuming that equal rows have equal weights" if takes_weights_for_alike(sample) else ""
    return f"leaving out {'each row' if left_out == sample.n_rows else f'{left_out:,} rows drawn at random'}{alike}"


def why_none(sample: Sample, solved: Solved, request: Request) -> str | None:
    """Why rows cannot be left out of an exact fit in closed form; ``None`` where they can."""
    if solved.basis is None:
        return "the grid route has no functions; every combination of levels occurs"
    if solved.basis.implicit or solved.basis.n_functions > LARGEST:
        return f"{solved.basis.n_functions:,} functions are too many"
    if solved.basis.labels is not None and not solved.solution.kept.all():
        return "the fit is not the least-squares fit of all its functions"
    if request.ridge and is_nearly_all(solved, float(sample.copies.sum())):
        return "a ridge continues pairs into cells that would not be observed without the row"
    if exact_bytes(sample, solved.basis.n_functions) > request.memory_limit:
        return "the Gram matrix does not fit in the memory limit"
    return None


def exact_bytes(sample: Sample, functions: int) -> int:
    """Bytes of the Gram matrix, its factor and blocks of rows."""
    load = load_of(sample, sample.n_outputs)
    return load.peak(leaving_out(functions, load))


def leave_rows_out(sample: Sample, solved: Solved, request: Request) -> LeftOut:
    """Leave every distinct row out of an exact fit, or some drawn at random; see :func:`why_none` first."""
    basis, family = solved.basis, solved.family
    assert basis is not None
    with parallel.blas_threads(request.threads):
        phi, p, equal = Phi(family, sample, request.threads), sample.probability, Equal.of(sample)
        passed = solved.passed_over
        residual = sample.values - (phi.synthesise(solved.values) if passed is None else passed.fitted)
        known = solved.solution.leverage
        at_once = None if known is None else left_out_by_leverage(known, residual, p, equal)
        if at_once is not None:
            return at_once
        chosen, at_rows = np.arange(sample.n_rows), _Functions(sample, family, basis)
        order = family.layout.order[basis.subset_of_function()]
        if sample.n_rows < basis.n_functions:
            with parallel.suitable_blas(float(sample.n_rows) ** 3):
                return left_out_by_products(at_rows(chosen), sample.values, p, order, equal, request.ridge)
        gamma = solved.gram
        if gamma is None or len(gamma) < basis.n_functions or request.ridge:
            gamma = phi.gram(basis, counted=False)
        chosen = rows_to_leave_out(sample.n_rows, len(gamma), seed=request.random_state)
        with parallel.suitable_blas(float(len(gamma)) ** 3):
            c = solved.solution.coefficients
            return left_out_of_exact(gamma, c, at_rows, residual, p, chosen, order, equal, request.ridge)


class _Functions:
    """The functions of a family at rows given by their numbers."""

    def __init__(self, sample: Sample, family: Family, basis: Basis) -> None:
        self._sample, self._family, self._basis = sample, family, basis

    def __call__(self, rows: IntArray) -> FloatArray:
        codes = np.ascontiguousarray(self._sample.codes[:, rows])
        return Phi(self._family, KnownRows(codes)).functions(self._basis)
