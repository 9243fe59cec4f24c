"""Which functions of a growing family raise the rank, decided exactly for any weights.

Linear independence on the support does not depend on the weights of the rows, so every distinct row counts once in the
Gram matrices here, which consist of whole numbers. The span of a family (`SpanChoice`) depends on its cells alone. The
paper's functions (`PaperChoice`) are +-1 over the weights of cells, which are counts or doubles; modulo a prime neither
is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.basis.paper import paper_numerators
from exanova.design.family import Family
from exanova.design.subsets import by_order
from exanova.phi.counted_family import CountedFamily
from exanova.phi.growing_family import GrowingFamily
from exanova.phi.growing_gram import Algebra, gram_rows
from exanova.phi.monomials import Coordinates
from exanova.phi.residues import are_counts, cell_weights_modulo, modulo, paper_coordinates
from exanova.solve.evidence import Solution
from exanova.solve.residue_factor import AgreedProfile
from exanova.typing import Codes, FloatArray, IntArray, Subset

FLOATING = "functions chosen in floating point"
ROUNDED = f"{FLOATING} (exact arithmetic distinguishes some by the rounding of the weights alone)"
"""How functions were chosen if not exactly; the second, if the exact choice led to an unsolvable system."""

BATCH = 2048
"""Functions of a given family that are tested in one batch."""


class SpanChoice:
    """The indicators of each subset of a growing family (main effects first) that raise the rank.

    ``counted``: a given family with its common rows, if these are known. It takes the place of one that grows; rows
    then count as often as they occur, which changes no rank.

    Attributes:
        chosen: for each subset, numbers of its own functions that raised the rank.
    """

    def __init__(
        self,
        codes: Codes,
        sizes: Sequence[int],
        threads: int = 1,
        max_rank: int | None = None,
        counted: CountedFamily | None = None,
    ) -> None:
        once = np.ones(codes.shape[1], dtype=np.int64)
        self._cells = counted or GrowingFamily(codes, once, sizes, threads)
        self._profile = AgreedProfile(max_rank)
        self.chosen: list[IntArray] = []

    @property
    def family(self) -> Family:
        """Cells of the family so far; every distinct row has weight one, unless its common rows were given."""
        return self._cells.family

    @property
    def rank(self) -> int:
        """Rank so far, the intercept included."""
        return self._profile.rank

    @property
    def how(self) -> str:
        """How the choice was made, with its error probability."""
        error = self._profile.error
        known = f"error probability below {error:.0e}" if error else "proved, as each of them raised the rank"
        return f"functions chosen exactly modulo primes ({known})"

    def rank_of_subset(self) -> IntArray:
        """(S,) rank added by each subset."""
        return np.array([len(numbers) for numbers in self.chosen], dtype=np.int64)

    def add(self, subsets: Sequence[Subset]) -> NDArray[np.bool_]:
        """Append subsets of one order: which of their functions raise the rank; the first time the intercept's too."""
        first = self._cells.extend(subsets)
        nothing = np.zeros(0, dtype=np.int64)
        self.chosen += [nothing] * (first - len(self.chosen))  # missing proper subsets are added without functions
        sizes = self._sizes(first)
        offered = [*self.chosen, *(np.arange(size) for size in sizes)]
        kept = self._profile.append(lambda primes, known: self._gram_rows(offered, primes, first if known else 0))
        self.chosen += [np.flatnonzero(part) for part in np.split(kept, np.cumsum(sizes)[:-1])]
        return kept

    def add_useful(self, subsets: Sequence[Subset]) -> int:
        """Append those of the subsets, all of one order, that raise the rank; returns their number."""
        assert isinstance(self._cells, GrowingFamily)  # all subsets of a given family are kept
        self.add(subsets)
        before = len(self.chosen) - len(subsets)
        useful = [s for s in range(before, len(self.chosen)) if len(self.chosen[s])]
        if len(useful) < len(subsets):
            self._cells.keep_of_last(before, useful)
            self.chosen[before:] = [self.chosen[s] for s in useful]
        return len(useful)

    def _sizes(self, first: int) -> list[int]:
        """Number of functions of each subset from number ``first`` on."""
        bounds = np.searchsorted(self._cells.indicators.cell, self.family.cell_start[first:])
        return [int(size) for size in np.diff(bounds)]

    def _gram_rows(self, offered: list[IntArray], primes: Sequence[int], first: int) -> list[FloatArray | None]:
        """Rows of the Gram matrix of the functions ``offered`` of each subset, from subset number ``first`` on."""
        bounds = np.searchsorted(self._cells.indicators.cell, self.family.cell_start)
        numbers = np.concatenate([start + own for start, own in zip(bounds, offered, strict=False)])
        known = sum(map(len, offered[:first]))
        counts = self._cells.counts(numbers[known:], numbers)
        largest = counts.max(initial=0.0)
        return [counts if largest < prime else modulo(counts.copy(), prime) for prime in primes]


def span_ranks(codes: Codes, sizes: Sequence[int], family: Sequence[Subset], threads: int = 1) -> tuple[int, ...]:
    """Rank added by each order of a family (closed downward, in canonical order) on the rows of ``codes``.

    >>> codes = np.array([[0, 0, 1], [0, 1, 1]], dtype=np.uint8)
    >>> span_ranks(codes, (2, 2), [(), (0,), (1,), (0, 1)])
    (1, 2, 0)
    """
    span, reached = SpanChoice(codes, sizes, threads), [0, 1]
    for order, subsets in by_order(family):
        if order:
            span.add(subsets)
            reached.append(span.rank)
    return tuple(b - a for a, b in pairwise(reached))


class PaperChoice(SpanChoice):
    """The paper's greedy choice: functions that raise the rank, in the order of arrival."""

    def __init__(
        self,
        codes: Codes,
        weight: NDArray[Any],
        sizes: Sequence[int],
        threads: int = 1,
        max_rank: int | None = None,
        counted: CountedFamily | None = None,
    ) -> None:
        super().__init__(codes, sizes, threads, max_rank, counted)
        self._codes, self._weight = codes, weight
        self._labels: dict[Subset, IntArray] = {}
        self._known: dict[int, Coordinates] = {}

    def add(self, subsets: Sequence[Subset]) -> NDArray[np.bool_]:
        """Append subsets of one order: which of their functions raise the rank; the first time the intercept's too."""
        known = len(self.chosen)
        kept = super().add(subsets)
        # Coordinates computed above belong to all candidates, not to those that were chosen.
        self._known = {prime: self._known[prime][:known] for prime in self._profile.primes}
        return kept

    def add_family(self, family: Sequence[Subset]) -> NDArray[np.bool_]:
        """(q,) which functions of a complete family, given in canonical order, raise the rank."""
        batches = [subsets for order, subsets in by_order(family) if order]
        batches = [batch for subsets in batches for batch in self._batches(subsets)]
        return np.concatenate([self.add(batch) for batch in batches]) if batches else np.ones(1, dtype=bool)

    def _batches(self, subsets: list[Subset]) -> list[list[Subset]]:
        """Subsets of one order in batches of about ``BATCH`` functions; main effects form one batch."""
        if len(subsets[0]) == 1:
            return [subsets]
        functions = np.cumsum([prod(int(self.family.sizes[i]) - 1 for i in s) for s in subsets])
        cuts = np.flatnonzero(np.diff(functions // BATCH)) + 1
        return [subsets[a:b] for a, b in pairwise([0, *cuts.tolist(), len(subsets)])]

    def _sizes(self, first: int) -> list[int]:
        new = range(first, len(self.family.subsets))
        self._labels.update((self.family.subsets[s], labels_of(self.family, s)) for s in new)
        return [len(self._labels[self.family.subsets[s]]) for s in new]

    def _gram_rows(self, offered: list[IntArray], primes: Sequence[int], first: int) -> list[FloatArray | None]:
        by_prime = {prime: self._coordinates(offered, prime) for prime in primes}
        algebras = [Algebra(known, prime) for prime, known in by_prime.items() if known is not None]
        rows = iter(gram_rows(self._cells, algebras, first) if algebras else [])
        return [None if by_prime[prime] is None else next(rows) for prime in primes]

    def _coordinates(self, offered: list[IntArray], prime: int) -> Coordinates | None:
        """Coordinates modulo a prime of the functions ``offered``; ``None`` if it divides the weight of a cell."""
        known = self._known.setdefault(prime, [])
        new = range(len(known), len(offered))
        # Proper subsets that were missing have no candidates and no labels.
        labels = [self._labels[self.family.subsets[s]][offered[s]] if len(offered[s]) else None for s in new]
        if isinstance(self._cells, CountedFamily):
            cells = np.mod(self.family.weight, prime)
        else:
            cells = cell_weights_modulo(self.family, self._codes, self._weight, len(known), prime)
        added = paper_coordinates(self.family, self._cells.indicators, new, labels, cells, prime)
        if added is None:
            return None
        known += added
        return known


def labels_of(family: Family, s: int) -> IntArray:
    """(k, |A|) the z of the paper's functions of a subset that do not vanish on the support."""
    sizes = family.sizes_of(s)
    labels = list(product(*(range(n - 1) for n in sizes)))
    z = np.array(labels, dtype=np.int64).reshape(len(labels), len(sizes))
    return z[paper_numerators(family.codes_of(s), sizes, z).any(axis=0)]


def can_be_solved(solution: Solution, weight: NDArray[Any]) -> bool:
    """Whether to accept a solution for functions chosen exactly; for counts always, and its evidence shows the quality.

    Rounded weights break dependences that hold for the intended weights, for example those of independent features. A
    broken dependence leaves a direction too small to be resolved in a Gram matrix.
    """
    doubtful = solution.smallest_kept < tolerances.rank_of_gram(len(solution.kept))
    return are_counts(weight) or (solution.converged and not doubtful)
