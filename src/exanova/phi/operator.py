"""``Phi``: the operator between the cells of a family and rows. Every computation on rows goes through it.

With cell_A(i) the cell of subset A that row i falls in, p_i its probability and phi_j the functions of a basis:

    synthesise   cells -> rows   out[i]    = sum over A of  T[A, cell_A(i)]
    analyse      rows -> cells   out[A, a] = sum over rows i with cell_A(i) = a of  y[i]
    gram         functions       out[j, k] = sum over i of  p_i phi_j(x_i) phi_k(x_i)

``analyse`` is the transpose of ``synthesise``; ``gram`` is the product of the two around diag(p), counted in whole
numbers if weights are whole. All three are sums over rows. The implementation (NumPy for small work, compiled loops
for large, products of matrices for dense families of pairs, axis by axis for complete tables) is chosen here and in
the modules below, never by callers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exanova.basis.functions import Basis
from exanova.data.sample import KnownRows, NewRows, Sample
from exanova.design import few, passes
from exanova.design.family import Family
from exanova.design.products import PairProducts, products_are_faster
from exanova.phi.feature_shares import share_among_features
from exanova.phi.gram import CommonRows, common_rows
from exanova.phi.projection import projected
from exanova.progress import Progress
from exanova.typing import Codes, FloatArray, IntArray

FEW_VALUES = 200_000
"""Rows times functions up to which these are multiplied at the rows, if no counts are needed."""

MANY_PASSES = 64
"""Passes to expect where many follow: as many as iterations have."""


class Phi:
    """The cells of a family, or of a run of its subsets, at rows.

    Args:
        family: the subsets and their cells.
        rows: a sample or other known rows, whose cells were all observed; or new rows, which are checked.
        threads: threads to use; no result depends on their number.
        subsets: a run of subsets, by number; by default all of them.
        repeated: whether many passes follow, so that preparing them is worthwhile.

    >>> sample = Sample(np.array([[0, 0, 1]], dtype=np.uint8), np.ones(3), (2,), np.zeros((3, 1)), 3)
    >>> from exanova.design.family import build_family
    >>> phi = Phi(build_family(sample.codes, sample.mass, (2,), [(), (0,)]), sample)
    >>> phi.analyse(np.array([[1.0], [2.0], [4.0]]))[:, 0].tolist()
    [7.0, 3.0, 4.0]
    >>> phi.synthesise(np.array([[10.0], [1.0], [2.0]]))[:, 0].tolist()
    [11.0, 11.0, 12.0]
    """

    def __init__(
        self,
        family: Family,
        rows: Sample | KnownRows | NewRows,
        threads: int = 1,
        *,
        subsets: slice | None = None,
        repeated: bool = False,
    ) -> None:
        self.family, self._rows, self._threads = family, rows, threads
        self._new = isinstance(rows, NewRows)
        self._subsets = subsets or slice(0, len(family.subsets))
        self._repeated, self._times = repeated, MANY_PASSES if repeated else 1
        self._parts = rows.parts if isinstance(rows, Sample) else (slice(0, rows.codes.shape[1]),)

    @property
    def codes(self) -> Codes:
        """(d, n) levels of the rows."""
        return self._rows.codes

    def synthesise(self, tables: FloatArray) -> FloatArray:
        """(n, m) sum of the (cells, m) ``tables`` of the subsets at every row; cells never observed add nothing."""
        at_keys = self.family.to_keys(tables)
        if self._products:
            return self._products.gather(at_keys)
        if len(self._parts) == 1:
            return self._gathered(self.codes, at_keys)
        out = np.empty((self.codes.shape[1], tables.shape[1]))
        for rows in self._parts:
            out[rows] = self._gathered(self._codes_at(rows), at_keys)
        return out

    def analyse(self, values: FloatArray) -> FloatArray:
        """(cells, m) sums of (n, m) ``values`` over the rows in each cell; zero outside the run of subsets."""
        if self._products:
            return self._in_cells(self._products.scatter(values))
        sums = self._scattered(self._codes_at(self._parts[0]), values[self._parts[0]])
        for rows in self._parts[1:]:
            sums += self._scattered(self._codes_at(rows), values[rows])
        return self._in_cells(sums)

    def analyse_residual(self, tables: FloatArray, fitted: FloatArray) -> FloatArray:
        """(cells, m) sums of probability times (values less ``tables``) over the rows in each cell, block by block.

        ``fitted`` (n, m) receives the sum of the tables at every row.
        """
        assert isinstance(self._rows, Sample)
        sample = self._rows
        if self._products:
            fitted[:] = self.synthesise(tables)
            return self.analyse(sample.probability[:, None] * (sample.values - fitted))
        at_keys = self.family.to_keys(tables)

        def weighted(rows: slice) -> FloatArray:
            fitted[rows] = self._gathered(self._codes_at(rows), at_keys)
            return np.asarray(sample.probability[rows, None] * (sample.values[rows] - fitted[rows]))

        return self.analyse_blocks(weighted)

    def analyse_blocks(self, of: Callable[[slice], FloatArray]) -> FloatArray:
        """(cells, m) sums over the rows in each cell of what ``of`` gives for a block of a sample, (b, m)."""
        assert isinstance(self._rows, Sample)
        sums: FloatArray | None = None
        for rows in self._rows.each_block():
            own = self._scattered(self._codes_at(rows), of(rows))
            sums = own if sums is None else np.add(sums, own, out=sums)
        assert sums is not None
        return self._in_cells(sums)

    def _codes_at(self, rows: slice) -> Codes:
        """(d, b) codes of a block of rows; the array itself if these are all of them."""
        whole = rows.start == 0 and rows.stop == self.codes.shape[1]
        return self.codes if whole else np.ascontiguousarray(self.codes[:, rows])

    def _gathered(self, codes: Codes, at_keys: FloatArray) -> FloatArray:
        return passes.gather(self._layout, codes, at_keys, self._threads, new=self._new, times=self._times)

    def _scattered(self, codes: Codes, values: FloatArray) -> FloatArray:
        chosen = None if self._is_whole else self._subsets
        return passes.scatter(self.family.layout, codes, values, chosen, self._threads, times=self._times)

    def _in_cells(self, sums: FloatArray) -> FloatArray:
        """Sums over the keys of the run of subsets as (cells, m), zero elsewhere."""
        family, run = self.family, self._subsets
        if self._is_whole:
            return sums[family.cell_key]
        cells = slice(int(family.cell_start[run.start]), int(family.cell_start[run.stop]))
        out = np.zeros((family.n_cells, sums.shape[1]))
        out[cells] = sums[family.cell_key[cells] - int(family.layout.key_start[run.start])]
        return out

    def gram(
        self,
        basis: Basis,
        *,
        progress: Progress | None = None,
        counted: bool = True,
        common: CommonRows | None = None,
    ) -> FloatArray:
        """(q, q) inner products of the functions of ``basis`` under the probabilities of the rows.

        ``counted=False`` multiplies the functions at the rows where these are few: faster, and the same up to rounding.
        ``common`` are the common rows, if they were counted before; they may be overwritten.
        """
        assert isinstance(self._rows, Sample)
        if not counted and not basis.implicit and self._rows.n_rows * basis.n_functions <= FEW_VALUES:
            at_rows = self.functions(basis)
            return np.asarray((at_rows * self._rows.probability[:, None]).T @ at_rows)
        common = common or self.common_rows(progress)
        return projected(self.family, common.indicators, common.gram, basis)

    def common_rows(self, progress: Progress | None = None) -> CommonRows:
        """Weights of the rows common to every two indicators of cells, from which ``gram`` follows for any basis."""
        assert isinstance(self._rows, Sample)
        rows = self._rows
        return common_rows(self.family, rows.codes, rows.weight, self._threads, progress, rows.parts)

    def functions(self, basis: Basis, numbers: range | None = None, rows: slice = slice(None)) -> FloatArray:
        """(n, k) the functions of some subsets (by default all) at every row (or at some), side by side.

        ``basis`` begins with the first of ``numbers``.
        """
        chosen = range(len(self.family.subsets)) if numbers is None else numbers
        columns = [basis.table(k)[self.cells(s, rows)] for k, s in enumerate(chosen) if basis.tables[k].shape[1]]
        return np.hstack(columns) if columns else np.zeros((self.codes[:, rows].shape[1], 0))

    def share(self, tables: FloatArray, progress: Progress | None = None) -> FloatArray:
        """(n, d, m) for each feature, the sum of the (cells, m) ``tables`` of all subsets with it, at every row."""
        at_keys = self.family.to_keys(tables)
        return share_among_features(self.family, at_keys, self.codes, self._threads, progress)

    def cells(self, s: int, rows: slice | IntArray | None = None) -> IntArray:
        """(n,) cell of every row (or of some) inside subset number ``s``; -1 for a combination never observed."""
        codes = self.codes if rows is None else self.codes[:, rows]
        return passes.cells_of_rows(self.family.layout, codes, s, new=self._new)

    def outside(self) -> NDArray[np.bool_]:
        """(n,) whether a row falls in a cell of some subset that was never observed."""
        if few.applies(self.codes.shape[1], len(self.family.subsets)):
            return few.outside(self.family.layout, self.codes)
        return passes.outside(self.family.layout, self.codes, self._threads)

    @property
    def _is_whole(self) -> bool:
        return self._subsets == slice(0, len(self.family.subsets))

    @cached_property
    def _layout(self) -> passes.Layout:
        if self._is_whole:
            return self.family.layout
        return self.family.layout.part(self._subsets.start, self._subsets.stop)

    @cached_property
    def _products(self) -> PairProducts | None:
        """Passes by products of matrices, if many passes over a dense family of pairs follow."""
        large = len(self._layout.order) * self.codes.shape[1] * self._times >= passes.COMPILED_FROM
        if not (self._repeated and large and products_are_faster(self._layout)):
            return None
        return PairProducts(self._layout, self.codes, self._threads)
