"""Which effects the rows determine: from the fit, from a file, or from the Gram matrix on first use.

Routes that solve by iterations and shrunken fits do not determine the rank of the functions. The Gram matrix determines
it on any route, by the elimination that the moments route uses, so that all routes name the same effects.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from exanova import parallel
from exanova.basis.functions import build_basis, dimensions, order_slices, too_large_for_tables
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.effects.redundancy import sharing_subsets
from exanova.infer.fitted_sample import FittedSample
from exanova.infer.identified import Dependences
from exanova.phi.operator import Phi
from exanova.solve import elimination
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
        told: numbers of the subsets that share, as far as the fit or the file determines them.
    """

    family: Family
    fitted: FittedSample | None
    unique: bool | None
    told: frozenset[int] = frozenset()
    _found: Dependences | None = field(default=None, repr=False)

    def subsets(self, *, however_long: bool = False) -> frozenset[int]:
        """Numbers of the subsets that are not determined; computed if unknown and that is cheap."""
        if self.unique is None and self._can_look(MOST_FUNCTIONS if however_long else CHEAP_FUNCTIONS):
            assert self.fitted is not None
            self._found, self.told = find_dependences(self.fitted.sample, self.family, self.fitted.request.threads)
            self.unique = not self.told
        return self.told

    @property
    def dependences(self) -> Dependences | None:
        """The dependences among the functions; ``None`` if there are none, or none are known."""
        if self._found is None and self.fitted is not None:
            self._found = self.fitted.dependences
        return self._found

    def as_array(self) -> FloatArray:
        """(S,) 1 for a subset that is determined, else 0, as files hold it."""
        out = np.ones(len(self.family.subsets))
        out[list(self.told)] = 0.0
        return out

    def _can_look(self, most: int) -> bool:
        """Whether the functions have tables and are not too many."""
        if self.fitted is None or self.fitted.request.basis != "pure" or too_large_for_tables(self.family).any():
            return False
        functions = float(dimensions(self.family).sum())
        return functions <= most and 24 * functions**2 <= self.fitted.request.memory_limit


def find_dependences(sample: Sample, family: Family, threads: int = 1) -> tuple[Dependences | None, frozenset[int]]:
    """The dependences among all functions of a family on the rows, and the numbers of the subsets they change."""
    with parallel.suitable_blas(0):
        basis = build_basis(family)
    gamma = np.asfortranarray(Phi(family, sample, threads).gram(basis))
    with parallel.blas_threads(threads), parallel.suitable_blas(float(len(gamma)) ** 3):
        factor = elimination.factorise(gamma, order_slices(family, basis), "share")
        null, independent = elimination.dependences(factor)
    if independent is None and not null.shape[1]:
        return None, frozenset()
    shared = frozenset(sharing_subsets(null, basis.subset_of_function(), independent))
    return Dependences.of(basis, null, independent), shared
