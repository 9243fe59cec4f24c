"""Which effects the rows determine: from the fit, from a file, or from the Gram matrix on first use.

Neither iterations nor shrinkage need the rank of the functions. The Gram matrix determines it on any route, by the
elimination that the moments route uses, so that all routes name the same effects: for shrunken fits of moderate size
with the fit, for others when a query needs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from exanova import parallel, tolerances
from exanova.basis.functions import Basis, build_basis, dimensions, order_slices, too_large_for_tables
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.effects.redundancy import sharing_subsets
from exanova.infer.fitted_sample import FittedSample
from exanova.infer.identified import Dependences
from exanova.phi.operator import Phi
from exanova.shrink import cost
from exanova.solve import elimination
from exanova.solve.evidence import Solution, Solved
from exanova.solve.request import Request
from exanova.typing import FloatArray

CHEAP_FUNCTIONS = 2000
"""Functions up to which dependences are computed whenever they are needed: a factorisation of a second."""

MOST_FUNCTIONS = 15_000
"""Functions up to which they are computed at all: beyond, a factorisation takes minutes."""


@dataclass(eq=False)
class Sharing:
    """The effects that other subsets can express in part, and the dependences behind them.

    Attributes:
        family: cells of the family.
        fitted: the rows, or ``None`` for a decomposition read from a file.
        unique: whether every effect is determined; ``None`` if the fit did not determine it.
        known: numbers of the subsets that share, as far as the fit or the file determines them.
    """

    family: Family
    fitted: FittedSample | None
    unique: bool | None
    known: frozenset[int] = frozenset()
    _dependences: Dependences | None = field(default=None, repr=False)

    def subsets(self, *, however_long: bool = False) -> frozenset[int]:
        """Numbers of the subsets that are not determined; computed if unknown and that is cheap."""
        if self.unique is None and self._can_look(MOST_FUNCTIONS if however_long else CHEAP_FUNCTIONS):
            assert self.fitted is not None
            self._dependences, self.known = find_dependences(
                self.fitted.sample, self.family, self.fitted.request.threads
            )
            self.unique = not self.known
        return self.known

    @property
    def dependences(self) -> Dependences | None:
        """The dependences among the functions; ``None`` if there are none, or none are known."""
        if self._dependences is None and self.fitted is not None:
            self._dependences = self.fitted.dependences
        return self._dependences

    def as_array(self) -> FloatArray:
        """(S,) 1 for a subset that is determined, else 0, as files hold it."""
        out = np.ones(len(self.family.subsets))
        out[list(self.known)] = 0.0
        return out

    def _can_look(self, most: int) -> bool:
        return self.fitted is not None and _fits(self._functions, self.fitted.request, most)

    @cached_property
    def _functions(self) -> float:
        """Number of functions; counted once, since every effect asks whether it is determined."""
        assert self.fitted is not None
        return _functions_with_tables(self.family, self.fitted.request)


def affordable(family: Family, request: Request, most: int) -> bool:
    """Whether the functions have tables, are at most ``most``, and their Gram matrix fits in memory."""
    return _fits(_functions_with_tables(family, request), request, most)


def _functions_with_tables(family: Family, request: Request) -> float:
    """Number of functions; infinite if some have no table."""
    if request.basis != "pure" or too_large_for_tables(family).any():
        return math.inf
    return float(dimensions(family).sum())


def _fits(functions: float, request: Request, most: int) -> bool:
    return functions <= most and 24 * functions**2 <= request.memory_limit


def with_rank(solved: Solved, sample: Sample, request: Request) -> Solved:
    """A shrunken fit with the rank of its functions and their dependences, unless they are many or near rounding."""
    shrunk = solved.shrinkage is not None and solved.shrinkage.posterior is not None
    if not shrunk or solved.solution.rank_known or not affordable(solved.family, request, cost.RANKED):
        return solved
    if sample.weight.min() < tolerances.GRAM_DIRECTION * sample.weight.max():
        return solved
    basis, ranks, smallest, null, independent = _eliminated(sample, solved.family, request.threads)
    if smallest < tolerances.GRAM_DIRECTION:
        return solved
    solution: Solution = replace(
        solved.solution,
        kept=np.ones(basis.n_functions, dtype=bool),
        rank_by_order=ranks,
        null=null,
        independent=independent,
        rank_known=True,
    )
    return replace(solved, solution=solution, basis=basis)


def find_dependences(sample: Sample, family: Family, threads: int = 1) -> tuple[Dependences | None, frozenset[int]]:
    """The dependences among all functions of a family on the rows, and the numbers of the subsets they change."""
    basis, _, _, null, independent = _eliminated(sample, family, threads)
    if independent is None and not null.shape[1]:
        return None, frozenset()
    shared = frozenset(s for s, _ in sharing_subsets(null, basis.subset_of_function(), independent))
    return Dependences.of(basis, null, independent), shared


def _eliminated(
    sample: Sample, family: Family, threads: int
) -> tuple[Basis, tuple[int, ...], float, FloatArray, FloatArray | None]:
    """The functions, their rank by order, the smallest direction that was kept, and the dependences."""
    with parallel.suitable_blas(0):
        basis = build_basis(family)
    gamma = np.asfortranarray(Phi(family, sample, threads).gram(basis))
    with parallel.blas_threads(threads), parallel.suitable_blas(float(len(gamma)) ** 3):
        factor = elimination.factorise(gamma, order_slices(family, basis), "share")
        null, independent = elimination.dependences(factor)
    ranks = tuple(part.rank for part in factor.orders)
    return basis, ranks, min(part.smallest for part in factor.orders), null, independent
