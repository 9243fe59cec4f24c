"""The functions of a whole family, subset by subset, built in stacks of subsets with the same pattern of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from exanova.basis.holes import has_few_holes
from exanova.basis.names import BasisName
from exanova.basis.paper import orthonormalised, paper_tables
from exanova.basis.projector import LARGEST_TABLE, ImplicitTable, PureProjector, Reflection
from exanova.basis.pure import pure_dimension, pure_tables
from exanova.basis.stacks import Stacks
from exanova.design.family import Family
from exanova.errors import MemoryLimitError
from exanova.messages import Parameter
from exanova.typing import FloatArray, IntArray

STACK_BYTES = 64_000_000
"""Memory of one stack of local problems."""


@dataclass(frozen=True)
class Basis:
    """The functions of every subset of a family.

    Attributes:
        tables: for each subset, (c, k) values of its k functions on its c cells; where a table would be too large, a
            linear map in its place: a reflection for one feature, for a pair a projector with as many coordinates as
            cells.
        start: (S + 1,) number of the first function of each subset.
        labels: for the paper's functions, (k, |A|) the z of each; ``None`` for pure bases.
    """

    tables: tuple[FloatArray | ImplicitTable, ...]
    start: IntArray
    labels: tuple[IntArray, ...] | None = None

    @property
    def n_functions(self) -> int:
        """Functions of all subsets together."""
        return int(self.start[-1])

    @property
    def dimensions(self) -> IntArray:
        """(S,) dimension of the space of each subset."""
        return np.array([t.dimension if isinstance(t, ImplicitTable) else t.shape[1] for t in self.tables])

    @property
    def implicit(self) -> bool:
        """Whether some pair has a projector in place of a table."""
        return any(isinstance(t, PureProjector) for t in self.tables)

    def table(self, s: int) -> FloatArray:
        """The table of one subset; an error if it only has a projector."""
        table = self.tables[s]
        if isinstance(table, Reflection):
            return table.table()
        if isinstance(table, ImplicitTable):
            raise MemoryLimitError(
                f"a pair with {table.shape[0]:,} observed cells is too large for a table of functions, and only the "
                "matrix-free route works without one",
                remedy=[
                    "use ",
                    Parameter("route", "auto"),
                    " and no ",
                    Parameter("selection"),
                    ", or merge levels with ",
                    Parameter("min_frequency"),
                ],
            )
        return table

    def functions_of(self, s: int) -> slice:
        """Numbers of the functions of subset ``s``."""
        return slice(int(self.start[s]), int(self.start[s + 1]))

    @cached_property
    def stacks(self) -> Stacks:
        """Tables of one shape side by side, for products with all of them at once."""
        return Stacks.of([None if isinstance(t, ImplicitTable) else t for t in self.tables])

    def restricted(self, n_subsets: int) -> Basis:
        """The functions of the first ``n_subsets`` subsets alone."""
        labels = None if self.labels is None else self.labels[:n_subsets]
        return Basis(self.tables[:n_subsets], self.start[: n_subsets + 1], labels)

    def subset_of_function(self) -> IntArray:
        """(q,) number of the subset each function belongs to."""
        return np.repeat(np.arange(len(self.tables)), np.diff(self.start))


def build_basis(
    family: Family,
    kind: BasisName = "pure",
    *,
    orthonormal: bool = True,
    first: int = 0,
    largest_pair: int | None = None,
) -> Basis:
    """Functions of the subsets of ``family`` from number ``first`` on.

    ``orthonormal=False`` keeps the paper's functions themselves, as in its Algorithm 1. Pairs of more cells than
    ``largest_pair`` (by default, of more than any table may have) get a projector in place of a table.
    """
    numbers = range(first, len(family.subsets))
    labels: tuple[IntArray, ...] | None = None
    if kind == "pure":
        tables = pure_basis(family, numbers, largest_pair)
    else:
        pairs = [paper_tables(family.codes_of(s), family.sizes_of(s), family.probability_of(s)) for s in numbers]
        tables = [table for table, _ in pairs]
        if orthonormal:
            tables = [orthonormalised(t, family.probability_of(s)) for (t, _), s in zip(pairs, numbers, strict=True)]
        else:
            labels = tuple(z for _, z in pairs)
    start = np.concatenate([[0], np.cumsum([t.shape[1] for t in tables])]).astype(np.int64)
    return Basis(tuple(tables), start, labels)


def dimensions(family: Family, first: int = 0) -> IntArray:
    """(S - first,) dimension of the pure space of each subset, from the patterns of cells alone."""
    out = np.zeros(len(family.subsets) - first, dtype=np.int64)
    for alike in family.alike(range(first, len(family.subsets))):
        out[np.array(alike) - first] = pure_dimension(family.codes_of(alike[0]), family.sizes_of(alike[0]))
    return out


def widths(family: Family) -> IntArray:
    """(S,) columns of the arrays that the tables of each subset are computed in: cells, or fewer where contrasts do."""
    cells = np.diff(family.cell_start).astype(np.int64)
    for s in np.flatnonzero((family.layout.order > 2) & (cells > 1)):
        sizes = family.sizes_of(int(s))
        if cells[s] == prod(sizes) or has_few_holes(int(cells[s]), sizes):
            cells[s] = prod(n - 1 for n in sizes)
    return cells


def join(first: Basis, second: Basis) -> Basis:
    """The functions of two consecutive runs of subsets as one basis."""
    labels = None if first.labels is None or second.labels is None else first.labels + second.labels
    return Basis(
        first.tables + second.tables,
        np.concatenate([first.start, first.start[-1] + second.start[1:]]),
        labels,
    )


def too_large_for_tables(family: Family) -> NDArray[np.bool_]:
    """(S,) subsets with too many cells for a table of functions."""
    return np.asarray((family.layout.order > 1) & (np.diff(family.cell_start) > LARGEST_TABLE))


def refuse_without_table(family: Family) -> None:
    """Raise if a subset of three or more features has too many cells for a table; pairs can do without one."""
    without = np.flatnonzero(too_large_for_tables(family) & (family.layout.order > 2))
    if len(without):
        cells = np.diff(family.cell_start)[without]
        refuse_table(len(family.subsets[int(without[np.argmax(cells)])]), int(cells.max()))


def refuse_table(order: int, cells: int) -> NoReturn:
    """Raise the error of a subset of that many features and cells, which is too large for a table."""
    raise MemoryLimitError(
        f"a subset of {order} features has {cells:,} observed cells, too many for a table of its functions",
        remedy=[
            "merge levels with ",
            Parameter("min_frequency"),
            " or ",
            Parameter("n_bins"),
            ", or use ",
            Parameter("max_order", order - 1),
        ],
    )


def _implicit(family: Family, s: int) -> ImplicitTable:
    sizes = family.sizes_of(s)
    if len(sizes) == 1:
        return Reflection(family.probability_of(s))
    if len(sizes) > 2:
        refuse_table(len(sizes), family.codes_of(s).shape[1])
    return PureProjector(family.codes_of(s), (sizes[0], sizes[1]), family.probability_of(s))


def pure_basis(
    family: Family, numbers: Sequence[int], largest_pair: int | None = None
) -> list[FloatArray | ImplicitTable]:
    """The functions of the subsets with these numbers."""
    tables: dict[int, FloatArray | ImplicitTable] = {}
    for members in family.alike(numbers):
        codes, sizes = family.codes_of(members[0]), family.sizes_of(members[0])
        cells = codes.shape[1]
        if sizes and (cells > LARGEST_TABLE or (largest_pair is not None and len(sizes) == 2 and cells > largest_pair)):
            tables.update((s, _implicit(family, s)) for s in members)
            continue
        at_once = max(1, STACK_BYTES // (16 * cells * cells))
        for a in range(0, len(members), at_once):
            stack = members[a : a + at_once]
            built = pure_tables(codes, sizes, np.stack([family.probability_of(s) for s in stack]))
            tables.update(zip(stack, built, strict=True))
    return [tables[s] for s in numbers]


def on_cells(family: Family, basis: Basis, coefficients: FloatArray, subsets: range | None = None) -> FloatArray:
    """(cells, m) values of every f_A = sum of coefficients times functions, for (q, m) coefficients.

    A run of ``subsets`` leaves the cells of the others at zero.
    """
    out = np.zeros((family.n_cells, coefficients.shape[1]))
    run = range(len(basis.tables)) if subsets is None else subsets
    for stack in basis.stacks.inside(run):
        out[stack.places(family.cell_start, 1)] = stack.tables @ coefficients[stack.places(basis.start, 2)]
    for s in basis.stacks.single:
        if s in run and basis.tables[s].shape[1]:
            out[family.cells_of(s)] = basis.tables[s] @ coefficients[basis.functions_of(s)]
    return out


def on_functions(family: Family, basis: Basis, sums: FloatArray, subsets: range | None = None) -> FloatArray:
    """(q, m) inner products of the functions with a measure given by (cells, m) sums: the adjoint of ``on_cells``."""
    out = np.zeros((basis.n_functions, sums.shape[1]))
    run = range(len(basis.tables)) if subsets is None else subsets
    for stack in basis.stacks.inside(run):
        adjoint = np.swapaxes(stack.tables, 1, 2)
        out[stack.places(basis.start, 2)] = adjoint @ sums[stack.places(family.cell_start, 1)]
    for s in basis.stacks.single:
        if s in run and basis.tables[s].shape[1]:
            out[basis.functions_of(s)] = basis.tables[s].T @ sums[family.cells_of(s)]
    return out


def order_slices(family: Family, basis: Basis) -> list[slice]:
    """Functions of each order, the intercept first."""
    ends = np.flatnonzero(np.diff(family.layout.order, append=family.layout.order[-1] + 1)) + 1
    bounds = [0, *(int(basis.start[end]) for end in ends)]
    return [slice(a, b) for a, b in pairwise(bounds)]
