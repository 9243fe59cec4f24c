"""Independent answers to compare with: the decomposition in exact rational arithmetic, and closed forms.

Nothing here imports the package. Supports are lists of rows in plain Python, small enough to read: eight rows
of three features take a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

Row = tuple[int, ...]
Subset = tuple[int, ...]
Vector = list[Fraction]
Matrix = list[Vector]
ZERO, ONE = Fraction(0), Fraction(1)


# Exact linear algebra: a matrix is a list of rows.


def reduce_rows(matrix: Sequence[Sequence[Fraction]], columns: int) -> tuple[Matrix, list[int]]:
    """The reduced row echelon form, zero rows dropped, and its pivots among the first ``columns`` columns.

    >>> reduce_rows([[Fraction(1), Fraction(2)], [Fraction(2), Fraction(4)]], 2)
    ([[Fraction(1, 1), Fraction(2, 1)]], [0])
    """
    rest = [list(row) for row in matrix]
    done: Matrix = []
    pivots: list[int] = []
    for j in range(columns):
        found = next((k for k, row in enumerate(rest) if row[j]), None)
        if found is None:
            continue
        chosen = rest.pop(found)
        pivot = [value / chosen[j] for value in chosen]
        rest = [_clear(row, pivot, j) for row in rest]
        done = [_clear(row, pivot, j) for row in done] + [pivot]
        pivots.append(j)
    return done + [row for row in rest if any(row)], pivots


def _clear(row: Vector, pivot: Vector, j: int) -> Vector:
    factor = row[j]
    return [a - factor * b if b else a for a, b in zip(row, pivot, strict=True)] if factor else row


def null_space(matrix: Sequence[Sequence[Fraction]], columns: int) -> Matrix:
    """A basis, one vector in each row, of {v : matrix v = 0}, v of length ``columns``.

    >>> null_space([[Fraction(1), Fraction(2)]], 2)
    [[Fraction(-2, 1), Fraction(1, 1)]]
    """
    reduced, pivots = reduce_rows(matrix, columns)
    basis = []
    for free in (j for j in range(columns) if j not in pivots):
        vector = [ZERO] * columns
        vector[free] = ONE
        for row, pivot in zip(reduced, pivots, strict=True):
            vector[pivot] = -row[free]
        basis.append(vector)
    return basis


def solve_square(matrix: Sequence[Sequence[Fraction]], rhs: Sequence[Fraction]) -> Vector:
    """The solution of a square, regular system.

    >>> solve_square([[Fraction(2)]], [Fraction(1)])
    [Fraction(1, 2)]
    """
    n = len(rhs)
    reduced, pivots = reduce_rows([[*row, b] for row, b in zip(matrix, rhs, strict=True)], n)
    assert len(pivots) == n, "the system is singular"
    return [row[n] for row in reduced]


def dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    """The sum of products."""
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), ZERO)


def combine(coefficients: Sequence[Fraction], vectors: Sequence[Vector], length: int) -> Vector:
    """The linear combination of the vectors, each of the given length."""
    return [dot(coefficients, [v[k] for v in vectors]) for k in range(length)]


# The spaces of one subset of features.


def cells_of(rows: Sequence[Row], subset: Subset) -> list[Row]:
    """The cells of the subset that occur, sorted."""
    return sorted({project(row, subset) for row in rows})


def project(row: Row, subset: Subset) -> Row:
    """The part of a row that the subset sees."""
    return tuple(row[i] for i in subset)


def cell_masses(rows: Sequence[Row], p: Sequence[Fraction], subset: Subset) -> dict[Row, Fraction]:
    """p_A: the probability of every cell that occurs."""
    masses = dict.fromkeys(cells_of(rows, subset), ZERO)
    for row, mass in zip(rows, p, strict=True):
        masses[project(row, subset)] += mass
    return masses


def weighted_margins(masses: dict[Row, Fraction], subset: Subset) -> Matrix:
    """The matrix whose null space is the pure space: a row for each cell of each next smaller subset."""
    matrix = []
    for left_out in range(len(subset)):
        kept = [k for k in range(len(subset)) if k != left_out]
        margins = {cell: tuple(cell[k] for k in kept) for cell in masses}
        for margin in sorted(set(margins.values())):
            matrix.append([mass if margins[cell] == margin else ZERO for cell, mass in masses.items()])
    return matrix


def pure_tables(rows: Sequence[Row], p: Sequence[Fraction], subset: Subset) -> list[dict[Row, Fraction]]:
    """A basis of W_A as tables over the observed cells: functions of x_A whose weighted margins vanish."""
    masses = cell_masses(rows, p, subset)
    basis = null_space(weighted_margins(masses, subset), len(masses))
    return [dict(zip(masses, vector, strict=True)) for vector in basis]


def indicators(rows: Sequence[Row], family: Sequence[Subset]) -> Matrix:
    """Vectors on the rows that span all functions of the subsets: one for every cell."""
    return [
        [ONE if project(row, subset) == cell else ZERO for row in rows]
        for subset in family
        for cell in cells_of(rows, subset)
    ]


def up_to(d: int, order: int) -> list[Subset]:
    """Every subset of at most ``order`` of d features, by size."""
    return [subset for k in range(order + 1) for subset in combinations(range(d), k)]


# The decomposition.


def exact_decomposition(
    rows: Sequence[Row],
    p: Sequence[Fraction],
    f: Sequence[Fraction],
    max_order: int | None = None,
    family: Sequence[Subset] | None = None,
) -> dict[Subset, dict[Row, Fraction]]:
    """The effect tables of every subset up to ``max_order``, or of a closed family, ties being shared.

    Truncated, f is first projected onto the span. Then, from the highest order K down: among all ways of
    writing what is left, h, as a sum of pure functions of order K and a function of the span of the lower
    orders, take the one of least total energy, the sum of E[f_A^2] over |A| = K; subtract it, go on with
    order K - 1.

    This is the block elimination with pseudo-inverses. With bases orthonormal for each subset the energy is
    |c_K|^2; the Schur complement after the lower orders is Phi_K^T (1 - P) Phi_K, P the projection onto their
    span, so its pseudo-inverse gives the shortest c_K with (1 - P) Phi_K c_K = (1 - P) h, which is the
    condition above; and the back substitution subtracts Phi_K c_K before the next order is solved.

    >>> half = Fraction(1, 2)
    >>> tables = exact_decomposition([(0, 0), (1, 1)], [half, half], [Fraction(3), Fraction(1)])
    >>> [(subset, [str(v) for v in table.values()]) for subset, table in tables.items()]
    [((), ['2']), ((0,), ['1/2', '-1/2']), ((1,), ['1/2', '-1/2']), ((0, 1), ['0', '0'])]
    """
    assert len(set(rows)) == len(rows), "the rows of a support are distinct"
    d = len(rows[0])
    if family is None:
        family = up_to(d, d if max_order is None else min(max_order, d))
    top = max(map(len, family))
    left = list(f) if top == d else weighted_projection(indicators(rows, family), p, f)
    tables: dict[Subset, dict[Row, Fraction]] = {}
    for order in range(top, -1, -1):
        found = least_energy(rows, p, left, order, family)
        for subset, table in found.items():
            left = [value - table[project(row, subset)] for value, row in zip(left, rows, strict=True)]
        tables = found | tables
    assert not any(left), "the fitted part is not the sum of its effects"
    return tables


def weighted_projection(vectors: Matrix, p: Sequence[Fraction], f: Sequence[Fraction]) -> Vector:
    """The projection of f onto the span of the vectors in L2(p)."""
    basis = reduce_rows(vectors, len(f))[0]
    weighted = [[value * mass for value, mass in zip(v, p, strict=True)] for v in basis]
    c = solve_square([[dot(a, b) for b in basis] for a in weighted], [dot(a, f) for a in weighted])
    return combine(c, basis, len(f))


def least_energy(
    rows: Sequence[Row], p: Sequence[Fraction], h: Sequence[Fraction], order: int, family: Sequence[Subset]
) -> dict[Subset, dict[Row, Fraction]]:
    """The pure tables of one order, of least energy, that leave of h only a function of the lower orders.

    Minimise c^T G c subject to N (h - Phi c) = 0, N spanning the vectors orthogonal to the lower orders and G
    the Gram matrix inside each subset: the stationarity conditions [G, B^T; B, 0] [c; multipliers] = [0; b].
    """
    own = [s for s in family if len(s) == order]
    parts = [(s, t) for s in own for t in pure_tables(rows, p, s)]
    phi = [[table[project(row, subset)] for row in rows] for subset, table in parts]
    normals = null_space(indicators(rows, [s for s in family if len(s) < order]), len(rows))
    q = len(parts)
    constraints, pivots = reduce_rows([[*(dot(v, u) for u in phi), dot(v, h)] for v in normals], q)
    assert len(constraints) == len(pivots), "h is not a function of this order and the lower ones"
    c = _minimise(_local_gram([s for s, _ in parts], phi, p), constraints)
    return {
        subset: _sum_tables(cells_of(rows, subset), [(x, t) for x, (s, t) in zip(c, parts, strict=True) if s == subset])
        for subset in own
    }


def exact_paper(
    rows: Sequence[Row],
    p: Sequence[Fraction],
    f: Sequence[Fraction],
    family: Sequence[Subset],
    budget: int | None = None,
) -> dict[Subset, dict[Row, Fraction]]:
    """The paper's Algorithm 1 and its restricted solve: functions phi_A^(z) that raise the rank, in order, at most
    ``budget`` of them; the effects are their combinations that project f."""
    top = [max(row[i] for row in rows) for i in range(len(rows[0]))]
    kept: list[tuple[Subset, dict[Row, Fraction]]] = []
    span: Matrix = []
    for subset in family:
        masses = cell_masses(rows, p, subset)
        for z in product(*(range(top[i]) for i in subset)):
            table = {cell: _contrast(cell, z, [top[i] for i in subset]) / mass for cell, mass in masses.items()}
            vector = [table[project(row, subset)] for row in rows]
            reduced, pivots = reduce_rows([*span, vector], len(rows))
            if len(pivots) > len(span) and (budget is None or len(kept) < budget):
                kept.append((subset, table))
                span = reduced
    phi = [[table[project(row, subset)] for row in rows] for subset, table in kept]
    weighted = [[value * mass for value, mass in zip(v, p, strict=True)] for v in phi]
    c = solve_square([[dot(a, b) for b in phi] for a in weighted], [dot(a, f) for a in weighted])
    return {
        subset: _sum_tables(cells_of(rows, subset), [(x, t) for x, (s, t) in zip(c, kept, strict=True) if s == subset])
        for subset in family
    }


def _contrast(cell: Row, z: Row, top: Sequence[int]) -> Fraction:
    """The product of 1{x_i = z_i} - 1{x_i = last level}."""
    out = ONE
    for level, wanted, last in zip(cell, z, top, strict=True):
        out *= (level == wanted) - (level == last)
    return out


def _local_gram(owners: Sequence[Subset], phi: Matrix, p: Sequence[Fraction]) -> Matrix:
    """E[phi phi'] between functions of the same subset, zero elsewhere."""
    weighted = [[value * mass for value, mass in zip(v, p, strict=True)] for v in phi]
    return [
        [dot(weighted[a], phi[b]) if owners[a] == owners[b] else ZERO for b in range(len(phi))] for a in range(len(phi))
    ]


def _minimise(G: Matrix, constraints: Matrix) -> Vector:
    """The c of least c^T G c with B c = b, the rows of ``constraints`` being [B | b], independent."""
    q, k = len(G), len(constraints)
    system = [G[a] + [row[a] for row in constraints] for a in range(q)]
    system += [row[:q] + [ZERO] * k for row in constraints]
    return solve_square(system, [ZERO] * q + [row[q] for row in constraints])[:q]


def _sum_tables(cells: list[Row], terms: list[tuple[Fraction, dict[Row, Fraction]]]) -> dict[Row, Fraction]:
    return {cell: sum((x * table[cell] for x, table in terms), ZERO) for cell in cells}


# Closed forms in floating point.


def pseudo_inverse_decomposition(
    rows: Sequence[Row], p: NDArray[np.float64], f: NDArray[np.float64], max_order: int | None = None
) -> dict[Subset, NDArray[np.float64]]:
    """The same decomposition from its other definition, in floats, as values on the rows (r,).

    Orthonormal null-space bases, Gamma and mu; the orders eliminated from the lowest, each by the
    pseudo-inverse of its Schur complement; then back substitution from the highest.

    >>> p, f = np.array([0.5, 0.5]), np.array([3.0, 1.0])
    >>> pseudo_inverse_decomposition([(0, 0), (1, 1)], p, f)[(1,)].round(12)
    array([ 0.5, -0.5])
    """
    d = len(rows[0])
    top = d if max_order is None else min(max_order, d)
    subsets = [s for order in range(top + 1) for s in combinations(range(d), order)]
    bases = [orthonormal_columns(rows, p, s) for s in subsets]
    phi = np.hstack(bases)
    owner = np.repeat(np.arange(len(subsets)), [b.shape[1] for b in bases])
    order_of = np.array([len(s) for s in subsets], dtype=int)[owner]
    c = _block_elimination(phi.T @ (p[:, None] * phi), phi.T @ (p * f), order_of)
    return {s: phi[:, owner == k] @ c[owner == k] for k, s in enumerate(subsets)}


def orthonormal_columns(rows: Sequence[Row], p: NDArray[np.float64], subset: Subset) -> NDArray[np.float64]:
    """A basis of W_A, orthonormal in L2(p), on the rows: the null space of the weighted margins, by SVD."""
    cells = cells_of(rows, subset)
    of_row = [cells.index(project(row, subset)) for row in rows]
    root = np.sqrt(np.bincount(of_row, weights=p))
    unit = dict.fromkeys(cells, ONE)
    margins = np.array(weighted_margins(unit, subset), dtype=float).reshape(-1, len(cells)) * root
    _, s, vt = np.linalg.svd(margins) if len(margins) else (None, np.zeros(0), np.eye(len(cells)))
    return (vt[int((s > 1e-10).sum()) :].T / root[:, None])[of_row]


def _block_elimination(
    gamma: NDArray[np.float64], mu: NDArray[np.float64], order_of: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Block LDL^T from the lowest order, singular blocks inverted by their pseudo-inverse."""
    c = np.zeros(len(mu))
    for order in range(int(order_of.max()), -1, -1):
        low, own = order_of < order, order_of == order
        gain = gamma[np.ix_(own, low)] @ np.linalg.pinv(gamma[np.ix_(low, low)], rcond=1e-10, hermitian=True)
        schur = gamma[np.ix_(own, own)] - gain @ gamma[np.ix_(low, own)]
        left = mu - gamma @ c
        values, vectors = np.linalg.eigh(schur)
        keep = values > 1e-9  # absolute: the diagonal of gamma is one, and a block may vanish altogether
        c[own] = vectors[:, keep] @ ((vectors[:, keep].T @ (left[own] - gain @ left[low])) / values[keep])
    return c


def walsh(f: NDArray[np.float64]) -> dict[Subset, float]:
    """Fourier coefficients of f on uniform {0,1}^d, shape (2,) * d: f_A = coefficient * (-1)^(sum of x_A).

    >>> {subset: float(c) for subset, c in walsh(np.array([[0.0, 0.0], [0.0, 1.0]])).items()}
    {(): 0.25, (0,): -0.25, (1,): -0.25, (0, 1): 0.25}
    """
    spectrum = f
    for axis in range(f.ndim):
        zero, one = np.take(spectrum, 0, axis), np.take(spectrum, 1, axis)
        spectrum = np.stack([(zero + one) / 2, (zero - one) / 2], axis)
    subsets = [s for order in range(f.ndim + 1) for s in combinations(range(f.ndim), order)]
    return {s: float(spectrum[tuple(int(i in s) for i in range(f.ndim))]) for s in subsets}


def moebius_independent(
    marginals: Sequence[NDArray[np.float64]], f: NDArray[np.float64]
) -> dict[Subset, NDArray[np.float64]]:
    """The independent case: f_A = sum over B inside A of (-1)^(|A| - |B|) E[f | X_B], by definition.

    f has shape (N_1, .., N_d); the table of A has size 1 on the axes outside A, so the tables broadcast.

    >>> half = np.array([0.5, 0.5])
    >>> moebius_independent([half, half], np.array([[0.0, 0.0], [0.0, 1.0]]))[(0, 1)]
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    subsets = [s for order in range(f.ndim + 1) for s in combinations(range(f.ndim), order)]
    means = {s: _conditional_mean(marginals, f, s) for s in subsets}
    return {
        a: np.asarray(sum((-1.0) ** (len(a) - len(b)) * means[b] for b in subsets if set(b) <= set(a))) for a in subsets
    }


def _conditional_mean(
    marginals: Sequence[NDArray[np.float64]], f: NDArray[np.float64], subset: Subset
) -> NDArray[np.float64]:
    for axis in (i for i in range(f.ndim) if i not in subset):
        shape = [-1 if k == axis else 1 for k in range(f.ndim)]
        f = (f * marginals[axis].reshape(shape)).sum(axis=axis, keepdims=True)
    return f
