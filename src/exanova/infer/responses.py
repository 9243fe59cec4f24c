"""How effects respond to the weight of a row even if its residual is zero: the pure spaces depend on the weights.

More weight in a cell a of A changes which functions of x_A are pure. The effect f_A, held fixed as a function, then has
a part that belongs to fewer features, and that part moves there. With F (c x L) the functions of all proper subsets of
A, on the cells of A, and Gamma_A = F^T diag(w_A) F,

    lower part of the indicator of a over w_a:   F Gamma_A^+ F[a]^T     (orthogonal to the pure functions of A)
    response, for T_A(a) = 1:   on A itself  -F Gamma_A^+ F[a]^T,   on B inside A  +Phi_B (Gamma_A^+ F[a]^T)_B.

These are the columns of W = (I - H G) V of the closed form, H = Phi Gamma^-1 Phi^T: H decomposes a function of the
family, and a function of x_A is decomposed on the cells of A alone. So W is never formed: its columns are supported on
the subsets of A, and the responses of all of them add up to zero on the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from exanova import tolerances
from exanova.basis.functions import Basis
from exanova.data.sample import KnownRows
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Lower:
    """The functions of all proper subsets of A, by which it responds: a row moves A by -F g, and B in A by Phi_B g_B.

    g = Gamma_A^+ F[a]^T T_A(a) has one entry per function, and these are far fewer than the cells of A.

    Attributes:
        inside: numbers of the proper subsets B of A, with their run of the functions.
        values: (c, L) F, the functions on the cells of A.
        solved: (L, c) Gamma_A^+ F^T.
    """

    inside: tuple[tuple[int, slice], ...]
    values: FloatArray
    solved: FloatArray


@dataclass(frozen=True, eq=False)
class Responses:
    """The non-zero blocks of W, before they are multiplied by the effects.

    Attributes:
        blocks: for each subset B, pairs (C, R) over every C of the family that contains B: R (c_B, c_C), such that
            W[B, C] = R diag(T_C).
        lower: of each subset, the functions that its blocks consist of.
    """

    blocks: tuple[tuple[tuple[int, FloatArray], ...], ...]
    lower: tuple[Lower, ...]

    def applied(self, b: int, values: Sequence[FloatArray]) -> Iterator[tuple[int, FloatArray]]:
        """(C, (c_C, c_B) table on the cells of C whose value at a row is its part of (W s)_B); ``values`` is T_C."""
        for c, block in self.blocks[b]:
            yield c, block.T * values[c][:, None]


def find_responses(family: Family, basis: Basis) -> Responses:
    """The responses of every subset of the family, one small problem per subset."""
    responses: list[list[tuple[int, FloatArray]]] = [[] for _ in family.subsets]
    lowers = [Lower((), np.zeros((1, 0)), np.zeros((0, 1)))]
    for c in range(1, len(family.subsets)):
        lower = _lower(family, basis, c)
        lowers.append(lower)
        for b, own in lower.inside:
            responses[b].append((c, basis.table(b) @ lower.solved[own]))
        responses[c].insert(0, (c, -(lower.values @ lower.solved)))
    return Responses(tuple(map(tuple, responses)), tuple(lowers))


def _lower(family: Family, basis: Basis, c: int) -> Lower:
    """The functions of the proper subsets of subset number ``c``."""
    inside = _proper_parts(family, c)
    places = cells_inside(family, c, inside)
    tables = [basis.table(b) for b in inside]
    values = np.hstack([table[place] for table, place in zip(tables, places, strict=True)])
    solved = _pseudo_inverse(values.T @ (family.probability_of(c)[:, None] * values)) @ values.T
    ends = np.cumsum([table.shape[1] for table in tables]).tolist()
    runs = (slice(first, last) for first, last in zip([0, *ends[:-1]], ends, strict=True))
    return Lower(tuple(zip(inside, runs, strict=True)), values, solved)


def _proper_parts(family: Family, c: int) -> list[int]:
    """Numbers of the subsets strictly inside subset number ``c``; the family is closed downward."""
    subset = family.subsets[c]
    return [family.position[part] for size in range(len(subset)) for part in combinations(subset, size)]


def cells_inside(family: Family, c: int, inside: list[int]) -> list[IntArray]:
    """For each subset of ``inside``, (c_C,) its cell that each cell of subset number ``c`` lies in."""
    own = family.codes_of(c)
    codes = np.zeros((len(family.sizes), own.shape[1]), dtype=np.int32)
    codes[list(family.subsets[c])] = own
    phi = Phi(family, KnownRows(codes))
    return [phi.cells(b) for b in inside]


def _pseudo_inverse(gram: FloatArray) -> FloatArray:
    """Pseudo-inverse of a Gram matrix of functions with unit norm."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > tolerances.rank_of_gram(len(gram))
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)
