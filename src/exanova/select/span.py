"""Which subsets of a growing family raise the rank, decided exactly: counts of common rows, modulo primes.

The functions of a family closed downward span what the indicators of its cells span, whatever the basis. Their Gram
matrix holds counts, so that elimination modulo a prime tells what every subset adds, however rare its cells are:
in floating point, directions of 1e-10 after directions of 1 cannot be told from rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from exanova.design.cells import CellIndex, extend, intercept_index
from exanova.design.subsets import by_order, canonical_key, proper_parts
from exanova.moments import growing
from exanova.moments.bitsets import Words, pack_more
from exanova.moments.gram import single_levels
from exanova.moments.modular import PRIMES, residues
from exanova.moments.monomials import monomials, reference_levels
from exanova.solve.modular import GrowingProfile
from exanova.solve.routes import Data
from exanova.typing import FloatArray, IntArray, Subset


class GrowingSpan:
    """The span of a family that grows by subsets of one order at a time; weights must be whole numbers."""

    def __init__(self, data: Data, threads: int) -> None:
        self._data, self._threads = data, threads
        self._weight = data.weight.astype(np.float64)
        self._planes = growing.planes(data.codes, data.weight)
        self._words: list[Words] = [np.zeros((0, 0), dtype=np.uint64) for _ in self._planes]
        self._reference = np.zeros(len(data.sizes), dtype=np.int64)
        self._profiles = [GrowingProfile(prime) for prime in PRIMES[:2]]
        # Indicators that raised the rank, by their numbers; and the rank each subset brought.
        self._members = np.zeros(0, dtype=np.int64)
        self._gained: list[int] = []
        self.index: CellIndex = intercept_index(data.sizes, float(self._weight.sum()))

    @property
    def rank(self) -> int:
        """Rank so far, the intercept included."""
        return sum(self._gained)

    def add(self, subsets: Sequence[Subset]) -> None:
        """Append subsets, the first time the main effects."""
        self._append(subsets, useful_only=False)

    def add_useful(self, subsets: Sequence[Subset]) -> int:
        """Append those of the subsets, all of one order, that raise the rank; how many they are."""
        return self._append(subsets, useful_only=True)

    def rank_of_subset(self) -> IntArray:
        """(S,) what each subset added to the rank."""
        return np.array(self._gained, dtype=np.int64)

    def truncate(self, n_subsets: int) -> None:
        """Forget all but the first ``n_subsets`` subsets; nothing can be appended afterwards."""
        self.index, self._gained = self.index.restricted(n_subsets), self._gained[:n_subsets]

    def _append(self, subsets: Sequence[Subset], useful_only: bool) -> int:
        self._add_parts(subsets)
        first = len(self._gained)
        wider = self._extended(subsets)
        if not first:
            self._reference = reference_levels(wider)
        indicators = monomials(wider, self._reference)
        words = self._packed(wider)
        new = np.flatnonzero(indicators.cell >= wider.cell_start[first])
        raised = self._raised(words, new)
        subset_of = np.searchsorted(wider.cell_start, indicators.cell[new[raised]], side="right") - 1
        gained = np.bincount(subset_of - first, minlength=len(wider.subsets) - first)
        if not useful_only:
            self.index, self._words = wider, words
            self._members = np.concatenate([self._members, new[raised]])
            self._gained += gained.tolist()
            return len(subsets)
        useful = [subset for subset, count in zip(subsets, gained, strict=True) if count]
        if useful:
            self._keep(wider, useful, gained[gained > 0], indicators.cell[new[raised]])
        return len(useful)

    def _keep(self, wider: CellIndex, useful: list[Subset], gained: IntArray, cells: IntArray) -> None:
        """Append the useful ones of the subsets that were looked at; ``cells`` of ``wider`` raised the rank."""
        old = self.index
        self.index = self._extended(useful)
        self._words = self._packed(self.index)
        positions = [wider.position[subset] for subset in useful]
        here = np.concatenate([np.arange(wider.cell_start[s], wider.cell_start[s + 1]) for s in positions])
        moved = np.searchsorted(here, cells) + old.n_cells
        self._members = np.concatenate([self._members, monomials(self.index, self._reference).number[moved]])
        self._gained += gained.tolist()

    def _add_parts(self, subsets: Sequence[Subset]) -> None:
        """Cells of parts that are not there: they add nothing themselves, but cells are found through them."""
        missing = {part for s in subsets for part in proper_parts(s)} - set(self.index.position)
        for _, group in by_order(sorted(missing, key=canonical_key)):
            self.index = self._extended(group)
            self._gained += [0] * len(group)
            self._words = self._packed(self.index)

    def _extended(self, subsets: Sequence[Subset]) -> CellIndex:
        return extend(self.index, subsets, self._data.codes, self._weight, self._threads)

    def _packed(self, index: CellIndex) -> list[Words]:
        indicators = monomials(index, self._reference)
        singles = single_levels(index, indicators)
        return [
            pack_more(words, codes, singles, indicators)
            for words, (_, codes) in zip(self._words, self._planes, strict=True)
        ]

    def _raised(self, words: list[Words], new: IntArray) -> NDArray[np.bool_]:
        """(new,) which of the new indicators raise the rank; the profiles forget the others."""
        columns = np.concatenate([self._members, new])
        counts = np.zeros((len(new), len(columns)))
        rows = np.arange(len(self._members), len(columns))
        for bits, (factor, _) in zip(words, self._planes, strict=True):
            growing.count_rows(bits[columns], rows, counts, factor, self._threads)
        found = [self._raised_modulo(profile, counts) for profile in self._profiles]
        if not np.array_equal(found[0], found[1]):
            raise ArithmeticError("two primes disagree on the rank of whole-number counts: this cannot be chance")
        return found[0]

    def _raised_modulo(self, profile: GrowingProfile, counts: FloatArray) -> NDArray[np.bool_]:
        raised = profile.append(residues(counts.copy(), profile.prime))
        profile.forget(raised, counts.shape[1])
        return raised
