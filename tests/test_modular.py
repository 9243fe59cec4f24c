"""The exact choice of the paper's functions: rank profiles modulo primes against rational elimination."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova import reference
from exanova.basis.tables import build_basis
from exanova.design.subsets import up_to_order
from exanova.moments.gram import cell_index, collect
from exanova.moments.modular import PRIMES, gram_modulo, product_modulo, usable_primes
from exanova.solve.modular import GrowingProfile, agreed, raises_rank, rank_profile
from oracles import cell_masses, dot, project, reduce_rows
from strategies import examples, supports

PRIME = PRIMES[0]


def rational_profile(matrix):
    """Columns that the earlier ones do not span, over the rationals."""
    pivots = reduce_rows([[Fraction(int(v)) for v in row] for row in matrix], len(matrix[0]))[1]
    return [j in pivots for j in range(len(matrix[0]))]


@st.composite
def dependent_columns(draw, most=12):
    """(r, q) small whole numbers, some columns combinations of earlier ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    r, q = draw(st.integers(1, 8)), draw(st.integers(1, most))
    columns = rng.integers(-3, 4, (r, q))
    for j in range(1, q):
        if draw(st.booleans()):
            columns[:, j] = columns[:, :j] @ rng.integers(-2, 3, j)
    return columns


@examples(100)
@given(columns=dependent_columns(), weight=st.integers(1, 9))
def test_the_profile_modulo_a_prime_is_the_rational_one(columns, weight):
    gram = weight * columns.T @ columns
    expected = rational_profile(columns.tolist())
    assert rational_profile(gram.tolist()) == expected  # a Gram matrix has the profile of its columns
    assert rank_profile(np.mod(gram, PRIME).astype(float), PRIME).tolist() == expected


@pytest.mark.parametrize("q", [63, 64, 65, 200])
def test_the_profile_of_more_functions_than_a_panel(q):
    rng = np.random.default_rng(q)
    expected = rng.random(q) < 0.6
    columns = np.triu(rng.integers(-1, 2, (q, q)), 1) + np.eye(q, dtype=np.int64)  # independent, all of them
    for j in np.flatnonzero(~expected):
        columns[:, j] = columns[:, rng.integers(0, j, 2)].sum(axis=1) if j else 0
    found = rank_profile(np.mod(columns.T @ columns, PRIME).astype(float), PRIME)
    assert found.tolist() == expected.tolist()


@examples(60)
@given(columns=dependent_columns(most=20), cuts=st.lists(st.integers(0, 20), max_size=3), most=st.integers(1, 20))
def test_functions_that_arrive_in_batches_have_the_same_profile_up_to_the_largest_rank(columns, cuts, most):
    gram = np.mod(columns.T @ columns, PRIME).astype(float)
    whole = rank_profile(gram, PRIME)
    ends = sorted({min(c, len(gram)) for c in cuts} | {len(gram)} - {0})
    profile, limited = GrowingProfile(PRIME), GrowingProfile(PRIME, most)
    start, found, few = 0, [], []
    for end in (e for e in ends if e):
        found += profile.append(gram[start:end, :end]).tolist()
        few += limited.append(gram[start:end, :end]).tolist()
        start = end
    assert found == whole.tolist()
    assert few == (whole & (np.cumsum(whole) <= most)).tolist()


@examples(40)
@given(columns=dependent_columns(most=20), share=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_forgetting_functions_that_added_nothing_changes_no_later_choice(columns, share, seed):
    gram = np.mod(columns.T @ columns, PRIME).astype(float)
    whole, q = rank_profile(gram, PRIME), 1 + int(share * (len(gram) - 1))
    profile = GrowingProfile(PRIME)
    keep = profile.append(gram[:q, :q]) | (np.random.default_rng(seed).random(q) < 0.5)
    profile.forget(keep, q)
    assume(q < len(gram))
    left = np.concatenate([np.flatnonzero(keep), np.arange(q, len(gram))])
    later = profile.append(gram[np.ix_(range(q, len(gram)), left)])
    assert later.tolist() == whole[q:].tolist()


@given(seed=st.integers(0, 2**32 - 1), prime=st.sampled_from([7, *PRIMES]))
def test_products_modulo_a_prime_are_those_of_whole_numbers(seed, prime):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, prime, (3, 50)), rng.integers(0, prime, (50, 4))
    expected = [[sum(int(a) * int(b) for a, b in zip(u, v, strict=True)) % prime for v in right.T] for u in left]
    assert product_modulo(left.astype(float), right.astype(float), prime).tolist() == expected


def test_products_of_the_largest_residues_are_exact_beyond_the_terms_added_at_once():
    ones = np.full((1, 20_000), float(PRIME - 1))
    assert product_modulo(ones, ones.T, PRIME).tolist() == [[20_000 % PRIME]]


# Unlucky primes


def test_a_prime_that_misses_a_direction_is_outvoted():
    gram = np.array([[7, 0], [0, 1]])  # modulo 7 the first function has length zero
    seen = []

    def profile(prime):
        seen.append(prime)
        return rank_profile(np.mod(gram, prime).astype(float), prime)

    assert profile(7).tolist() == [False, True]
    seen.clear()
    assert agreed(profile, [7, *PRIMES]).tolist() == [True, True]
    assert seen == [7, *PRIMES[:2]]
    assert agreed(profile, [PRIMES[0], 7, PRIMES[1]]).tolist() == [True, True]


@examples(40)
@given(columns=dependent_columns(), unlucky=st.sampled_from([2, 3, 5, 7, 11]))
def test_one_small_prime_never_decides(columns, unlucky):
    gram = columns.T @ columns
    found = agreed(lambda p: rank_profile(np.mod(gram, p).astype(float), p), [unlucky, *PRIMES])
    assert found.tolist() == rational_profile(columns.tolist())


def test_primes_that_never_agree_are_an_error():
    answers = iter(np.eye(5, dtype=bool))
    with pytest.raises(ArithmeticError, match="no two primes agree"):
        agreed(lambda prime: next(answers))


def test_a_prime_that_divides_a_count_is_not_used():
    assert usable_primes(np.array([1.0, 5.0])) == list(PRIMES)
    assert usable_primes(np.array([1.0, 3.0 * PRIMES[1]])) == [PRIMES[0], *PRIMES[2:]]


# The paper's functions


def paper_moments(case, order):
    codes = np.ascontiguousarray(case.rows.T).astype(np.uint8)
    index = cell_index(codes, case.weight.astype(float), case.sizes, up_to_order(range(len(case.sizes)), order))
    return collect(index, codes, case.weight, case.values), build_basis(index, "paper", orthonormal=False)


def functions_of(moments, basis):
    """(A, z) of every function, in order."""
    return [(s, tuple(z)) for s, zs in zip(moments.index.subsets, basis.labels, strict=True) for z in zs.tolist()]


@examples(40)
@given(case=supports(("equal", "counts"), max_features=4), order=st.integers(1, 4))
def test_the_papers_functions_are_kept_as_algorithm_1_keeps_them(case, order):
    assume(all(n > 1 for n in case.sizes))
    moments, basis = paper_moments(case, order)
    kept = raises_rank(moments, basis.labels)
    expected = reference.algorithm1(case.rows.T, case.probability, case.sizes, max_order=order).selected
    assert tuple(f for f, k in zip(functions_of(moments, basis), kept, strict=True) if k) == expected


@examples(30)
@given(case=supports(("equal", "counts"), max_features=3, max_rows=24), order=st.integers(1, 3))
def test_the_gram_matrix_modulo_a_prime_is_the_rational_one(case, order):
    """Functions are phi without the total of the weights: signs over the count of the cell."""
    assume(all(n > 1 for n in case.sizes))
    moments, basis = paper_moments(case, order)
    phi = [exact_phi(case, s, z) for s, z in functions_of(moments, basis)]
    counts = [Fraction(int(w)) for w in case.weight]
    found = gram_modulo(moments, basis.labels, PRIME)
    for i, f in enumerate(phi):
        weighted = [w * v for w, v in zip(counts, f, strict=True)]
        for j, g in enumerate(phi):
            exact = dot(weighted, g)
            assert found[i, j] == exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME


def exact_phi(case, subset, z):
    rows = [tuple(row) for row in case.rows.tolist()]
    counts = cell_masses(rows, [Fraction(int(w)) for w in case.weight], subset)
    signs = [Fraction(1)] * len(rows)
    for i, level in zip(subset, z, strict=True):
        last = case.sizes[i] - 1
        signs = [v * ((row[i] == level) - (row[i] == last)) for v, row in zip(signs, rows, strict=True)]
    return [v / counts[project(row, subset)] for v, row in zip(signs, rows, strict=True)]
