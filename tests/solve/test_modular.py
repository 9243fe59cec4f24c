"""The exact choice of functions: rank profiles modulo primes against rational elimination, whatever the weights."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from exanova import reference
from exanova.design.subsets import up_to_order
from exanova.errors import InputError
from exanova.phi import growing_gram, residues
from exanova.phi.gram_kernels import reduce_in_place
from exanova.phi.growing_gram import Algebra, gram_rows
from exanova.phi.residues import modulo, primes, product_modulo, weights_modulo
from exanova.solve import choice as choices
from exanova.solve.choice import PaperChoice, SpanChoice, labels_of
from exanova.solve.residue_factor import AgreedProfile, ResidueFactor, error_bound
from oracles import cell_masses, dot, project, reduce_rows
from strategies import examples, supports

PRIMES = list(islice(primes(), 5))
PRIME = PRIMES[0]
UNEVEN = 1_048_447  # its inverse rounds up: quotients of large multiples less one do too
seeds = st.integers(0, 2**32 - 1)


def rational_profile(columns):
    """Columns that the earlier ones do not span, over the rationals; ``columns`` is a list of rows."""
    pivots = reduce_rows([[Fraction(v) for v in row] for row in columns], len(columns[0]))[1]
    return [j in pivots for j in range(len(columns[0]))]


@st.composite
def dependent_columns(draw, most=12):
    """(r, q) small whole numbers, some columns combinations of earlier ones."""
    rng = np.random.default_rng(draw(seeds))
    r, q = draw(st.integers(1, 8)), draw(st.integers(1, most))
    columns = rng.integers(-3, 4, (r, q))
    for j in range(1, q):
        if draw(st.booleans()):
            columns[:, j] = columns[:, :j] @ rng.integers(-2, 3, j)
    return columns


def rank_profile(gram, prime):
    return ResidueFactor(prime).append(np.mod(gram, prime).astype(float))


def source(gram, kept, new):
    """Rows of a Gram matrix as an AgreedProfile asks for them: of the functions kept so far, and new ones."""
    functions = np.concatenate([kept, new]).astype(int)

    def rows(wanted, first):
        return [np.mod(gram[np.ix_(functions[first:], functions)], prime).astype(float) for prime in wanted]

    return rows


def grown(gram, cuts, profile):
    """What an AgreedProfile keeps of functions that arrive in batches."""
    kept = np.zeros(0, dtype=int)
    for start, end in zip([0, *cuts], [*cuts, len(gram)], strict=True):
        new = np.arange(start, end)
        kept = np.concatenate([kept, new[profile.append(source(gram, kept, new))]])
    return np.isin(np.arange(len(gram)), kept).tolist()


# Arithmetic


def test_the_primes_are_those_between_two_powers_of_two():
    sieve = np.ones(2**20, dtype=bool)
    sieve[:2] = False
    for n in range(2, 2**10):
        sieve[n * n :: n] = False
    expected = np.flatnonzero(sieve)[::-1]
    assert list(primes()) == expected[expected > 2**19].tolist()


whole_numbers = st.lists(
    st.one_of(
        st.integers(-(2**53) + 2**20, 2**53 - 2**20),
        st.builds(lambda q, d: q * PRIME + d, st.integers(-(2**32), 2**32), st.integers(-2, 2)),
        st.builds(lambda q, d: q * UNEVEN + d, st.integers(2**32, 2**33), st.integers(-1, 1)),
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("compiled_from", [0, 10**9])
@example(numbers=[q * UNEVEN - 1 for q in range(2**33 - 2000, 2**33)], prime=UNEVEN)
@example(numbers=[q * PRIMES[1] for q in (8_385_540_032, 6_386_942_366)], prime=PRIMES[1])  # rounds down
@given(numbers=whole_numbers, prime=st.sampled_from([7, UNEVEN, *PRIMES]))
def test_residues_are_those_of_whole_numbers(compiled_from, numbers, prime):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(residues, "COMPILED_FROM", compiled_from)
        found = modulo(np.array(numbers, dtype=float), prime)
    assert found.tolist() == [n % prime for n in numbers]


def test_residues_of_as_many_numbers_as_the_compiled_pass_is_for():
    rng = np.random.default_rng(0)
    numbers = rng.integers(-(2**53) + 2**20, 2**53 - 2**20, (2, residues.COMPILED_FROM // 2))
    expected = np.mod(numbers, PRIME)
    assert modulo(numbers.astype(float), PRIME).tolist() == expected.tolist()
    flat = numbers.ravel().astype(float)
    reduce_in_place(flat, float(PRIME))
    assert flat.tolist() == expected.ravel().tolist()


@pytest.mark.parametrize(("compiled_from", "terms"), [(0, 8192), (10**9, 8192), (0, 3), (10**9, 3)])
@given(seed=seeds, prime=st.sampled_from([7, *PRIMES]), width=st.integers(1, 50))
def test_products_modulo_a_prime_are_those_of_whole_numbers(compiled_from, terms, seed, prime, width):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, prime, (3, width)), rng.integers(0, prime, (width, 4))
    expected = [[sum(int(a) * int(b) for a, b in zip(u, v, strict=True)) % prime for v in right.T] for u in left]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(residues, "COMPILED_FROM", compiled_from)
        patch.setattr(residues, "TERMS", terms)
        assert product_modulo(left.astype(float), right.astype(float), prime).tolist() == expected


@pytest.mark.parametrize("compiled_from", [0, 10**9])
def test_products_of_the_largest_residues_are_exact_beyond_the_terms_added_at_once(compiled_from, monkeypatch):
    monkeypatch.setattr(residues, "COMPILED_FROM", compiled_from)
    for count in (8191, 8192, 8193, 20_001):
        odd = np.full((1, count), float(PRIME - 2))  # squares of even numbers would need fewer digits
        assert product_modulo(odd, odd.T, PRIME).tolist() == [[4 * count % PRIME]]
    assert residues.TERMS * (PRIME - 1) ** 2 < 2**53 - 2**35


@given(
    weights=st.lists(st.floats(min_value=5e-324, max_value=1e308), min_size=1, max_size=6),
    prime=st.sampled_from([7, *PRIMES]),
)
@example(weights=[5e-324, 1e308, 0.1, 3.0], prime=PRIME)
def test_doubles_are_whole_numbers_times_powers_of_two_modulo_a_prime(weights, prime):
    found = weights_modulo(np.array(weights), prime)
    exact = [Fraction(w) for w in weights]
    assert found.tolist() == [w.numerator * pow(w.denominator, -1, prime) % prime for w in exact]


# Profiles


@examples(100)
@given(columns=dependent_columns(), weight=st.integers(1, 9))
def test_the_profile_modulo_a_prime_is_the_rational_one(columns, weight):
    gram = weight * columns.T @ columns
    expected = rational_profile(columns.tolist())
    assert rational_profile(gram.tolist()) == expected  # a Gram matrix has the profile of its columns
    assert rank_profile(gram, PRIME).tolist() == expected


@pytest.mark.parametrize("q", [63, 64, 65, 200])
def test_the_profile_of_more_functions_than_a_panel(q):
    rng = np.random.default_rng(q)
    expected = rng.random(q) < 0.6
    columns = np.triu(rng.integers(-1, 2, (q, q)), 1) + np.eye(q, dtype=np.int64)  # independent, all of them
    for j in np.flatnonzero(~expected):
        columns[:, j] = columns[:, rng.integers(0, j, 2)].sum(axis=1) if j else 0
    assert rank_profile(columns.T @ columns, PRIME).tolist() == expected.tolist()
    assert grown(columns.T @ columns, [q // 3, q // 2], AgreedProfile()) == expected.tolist()


@examples(60)
@given(columns=dependent_columns(most=20), cuts=st.sets(st.integers(1, 19), max_size=3), most=st.integers(1, 20))
def test_functions_that_arrive_in_batches_have_the_same_profile_up_to_the_largest_rank(columns, cuts, most):
    gram = columns.T @ columns
    whole = np.array(rational_profile(columns.tolist()))
    cuts = sorted(c for c in cuts if c < len(gram))
    assert grown(gram, cuts, AgreedProfile()) == whole.tolist()
    assert grown(gram, cuts, AgreedProfile(most)) == (whole & (np.cumsum(whole) <= most)).tolist()


# Unlucky primes


@examples(100)
@given(
    columns=dependent_columns(most=20),
    cuts=st.sets(st.integers(1, 19), max_size=3),
    unlucky=st.permutations([2, 3, 5, 7, 11]),
    place=st.integers(0, 2),
    most=st.sampled_from([None, 3]),
)
def test_primes_that_miss_directions_are_outvoted(columns, cuts, unlucky, place, most):
    """Small primes miss directions all the time. One among large ones never decides, nor do many beside a large one."""
    gram = columns.T @ columns
    whole = np.array(rational_profile(columns.tolist()))
    whole &= np.cumsum(whole) <= (most or len(whole))
    cuts = sorted(c for c in cuts if c < len(gram))
    for candidates in ([*PRIMES[:place], unlucky[0], *PRIMES[place:]], [PRIMES[0], *unlucky, *PRIMES[1:]]):
        assert grown(gram, cuts, AgreedProfile(most, candidates)) == whole.tolist()


def watched(rows, asked):
    """The rows that a profile asks for, noted in ``asked`` as (primes, first)."""

    def inner(wanted, first):
        asked.append((list(wanted), first))
        return rows(wanted, first)

    return inner


def test_one_prime_is_enough_until_a_function_is_left_out():
    """Functions that are independent modulo a prime are independent: nothing has to be confirmed."""
    gram, asked = np.diag([1, 2, 3, 4, 0, 5]), []
    profile = AgreedProfile(max_rank=5)
    assert profile.append(watched(source(gram, [], [0, 1]), asked)).tolist() == [True, True]
    assert profile.append(watched(source(gram, [0, 1], [2, 3]), asked)).tolist() == [True, True]
    assert (asked, profile.error) == ([(PRIMES[:1], 0), (PRIMES[:1], 2)], 0.0)
    assert profile.append(watched(source(gram, [0, 1, 2, 3], [4, 5]), asked)).tolist() == [False, True]
    assert asked[2:] == [(PRIMES[:1], 4), (PRIMES[1:2], 0)]
    assert (profile.primes, profile.error) == (PRIMES[:2], error_bound(5, PRIMES[1:2] * 2))


def test_functions_beyond_the_largest_rank_need_no_second_prime():
    profile = AgreedProfile(max_rank=2)
    assert grown(np.diag([1, 1, 1, 0]), [1], profile) == [True, True, False, False]
    assert (profile.primes, profile.error) == (PRIMES[:1], 0.0)


def test_a_prime_that_misses_a_direction_half_way_is_replaced_and_the_new_one_starts_from_what_is_kept():
    gram, asked = np.diag([0, 1, 1, 7, 1, 11, 1]), []
    profile = AgreedProfile(candidates=[7, PRIMES[0], 11, PRIMES[1]])
    assert profile.append(watched(source(gram, [], [0, 1, 2]), asked)).tolist() == [False, True, True]
    assert profile.append(watched(source(gram, [1, 2], [3, 4]), asked)).tolist() == [True, True]
    assert profile.append(watched(source(gram, [1, 2, 3, 4], [5, 6]), asked)).tolist() == [True, True]
    assert asked[:2] == [([7], 0), ([PRIMES[0]], 0)]
    assert asked[2:] == [([7, PRIMES[0]], 2), ([11], 0), ([PRIMES[0], 11], 4), ([PRIMES[1]], 0)]
    assert (profile.rank, profile.primes) == (6, PRIMES[:2])


def test_a_fresh_prime_that_misses_what_is_kept_already_is_not_used():
    profile = AgreedProfile(candidates=[7, PRIMES[0], 13, PRIMES[1]])
    assert grown(np.diag([0, 13, 1, 7, 1]), [3], profile) == [False, True, True, True, True]
    assert profile.primes == PRIMES[:2]


@pytest.mark.parametrize("diagonal", [[1, 77, 7, 11], [1, 7, 11, 1], [1, 1, 7, 11]])
def test_both_primes_may_turn_out_wrong(diagonal):
    assert grown(np.diag([0, *diagonal]), [2], AgreedProfile(candidates=[7, 11, *PRIMES])) == [False] + [True] * 4


def test_when_no_prime_is_left_the_error_says_what_to_do():
    profile = AgreedProfile(candidates=PRIMES)
    with pytest.raises(InputError, match=r"primes were tried.*merge levels, or use basis='pure'"):
        profile.append(lambda wanted, first: [None for _ in wanted])


def test_the_bound_on_the_error_is_the_share_of_wrong_choices():
    """Modulo small primes errors can be counted: random symmetric matrices, whose pivots are random residues."""
    rng, q, trials, pair = np.random.default_rng(0), 6, 3000, [11, 13]
    missed = 0
    for _ in range(trials):
        grams = [rng.integers(0, p, (q, q)) for p in pair]
        kept = [rank_profile(np.tril(g) + np.tril(g, -1).T, p) for g, p in zip(grams, pair, strict=True)]
        missed += bool(np.array_equal(*kept) and not kept[0].all())
    bound = error_bound(q, pair)
    assert 0 < missed / trials < bound + 4 * np.sqrt(bound / trials)


def test_the_bound_is_small_at_the_ranks_that_occur():
    assert error_bound(15_000, PRIMES[:2]) < 2e-8
    assert error_bound(400, PRIMES[:2]) == 400 / (PRIMES[0] * PRIMES[1])


# The paper's functions and the span, on supports


WEIGHTS = {
    "counts": lambda rng, r: rng.integers(1, 9, r),
    "multiples of both primes": lambda rng, r: rng.integers(1, 9, r) * PRIMES[0] * PRIMES[1],
    "some multiples of both primes": lambda rng, r: np.where(rng.random(r) < 0.5, 1, PRIMES[0] * PRIMES[1]),
    "beyond doubles": lambda rng, r: rng.integers(1, 9, r) * 2**54 + 1,
    "real": lambda rng, r: rng.uniform(0.2, 3.0, r),
    "halves": lambda rng, r: rng.integers(1, 9, r) * 0.5,
    "twenty orders of magnitude": lambda rng, r: 10.0 ** rng.uniform(-20, 0, r),
}


def codes_of(case):
    return np.ascontiguousarray(case.rows.T).astype(np.uint8)


def functions_of(index):
    """(A, z) of every function of the paper, in order."""
    return [(s, tuple(z)) for k, s in enumerate(index.subsets) for z in labels_of(index, k).tolist()]


def exact_phi(case, weight, subset, z):
    """phi without the total of the weights, in fractions: signs over the weight of the cell."""
    rows = [tuple(row) for row in case.rows.tolist()]
    masses = cell_masses(rows, [Fraction(w) for w in weight.tolist()], subset)
    signs = [Fraction(1)] * len(rows)
    for i, level in zip(subset, z, strict=True):
        last = case.sizes[i] - 1
        signs = [v * ((row[i] == level) - (row[i] == last)) for v, row in zip(signs, rows, strict=True)]
    return [v / masses[project(row, subset)] for v, row in zip(signs, rows, strict=True)]


@pytest.mark.parametrize("kind", WEIGHTS)
@examples(12)
@given(case=supports(("equal",), max_features=4, max_rows=24), order=st.integers(1, 4), seed=seeds)
def test_the_papers_functions_are_chosen_exactly_whatever_the_weights(kind, case, order, seed):
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    assume(varying)
    weight = WEIGHTS[kind](np.random.default_rng(seed), len(case.rows))
    found = PaperChoice(codes_of(case), weight, case.sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "BATCH", 5)
        kept = found.add_family(up_to_order(varying, order))
    phi = [exact_phi(case, weight, s, z) for s, z in functions_of(found.family)]
    assert kept.tolist() == rational_profile([list(row) for row in zip(*phi, strict=True)])


@examples(40)
@given(case=supports(("equal", "counts"), max_features=4), order=st.integers(1, 4))
def test_the_papers_functions_are_kept_as_algorithm_1_keeps_them(case, order):
    assume(all(n > 1 for n in case.sizes))
    found = PaperChoice(codes_of(case), case.weight, case.sizes)
    kept = found.add_family(up_to_order(range(len(case.sizes)), order))
    expected = reference.algorithm1(case.rows.T, case.probability, case.sizes, max_order=order).selected
    assert tuple(f for f, k in zip(functions_of(found.family), kept, strict=True) if k) == expected


@examples(30)
@given(case=supports(max_features=3, max_rows=24), order=st.integers(1, 3), block=st.sampled_from([3, 2048]))
def test_the_gram_matrix_modulo_a_prime_is_the_rational_one(case, order, block):
    """Every row counts once; the functions carry the weights of their cells."""
    assume(all(n > 1 for n in case.sizes))
    found = PaperChoice(codes_of(case), case.weight, case.sizes)
    found.add_family(up_to_order(range(len(case.sizes)), order))
    everything = [np.arange(len(labels_of(found.family, s))) for s in range(len(found.family.subsets))]
    found._known.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing_gram, "COUNT_BLOCK", block)
        coordinates = found._coordinates(everything, PRIME)
        modulo = gram_rows(found._cells, [Algebra(coordinates, PRIME)], 0)[0]
    phi = [exact_phi(case, case.weight, s, z) for s, z in functions_of(found.family)]
    exact = [[dot(f, g) for g in phi] for f in phi]
    assert modulo.tolist() == [[v.numerator * pow(v.denominator, -1, PRIME) % PRIME for v in row] for row in exact]


def test_a_prime_that_divides_the_weight_of_a_cell_is_replaced_when_the_cell_comes():
    rng = np.random.default_rng(1)
    rows = np.unique(rng.integers(0, 3, (40, 3)), axis=0)
    weight = np.ones(len(rows), dtype=np.int64)
    alone = (rows[:, :2] == rows[0, :2]).all(axis=1)
    weight[0] += PRIMES[0] - alone.sum()  # the cell of the first pair weighs as much as the first prime
    found = PaperChoice(np.ascontiguousarray(rows.T).astype(np.uint8), weight, (3, 3, 3))
    found.add([(0,), (1,), (2,)])
    assert found._profile.primes == PRIMES[:1]
    found.add([(0, 1)])
    assert found._profile.primes[0] == PRIMES[1]


def large_rank(rows, prime=2**61 - 1):
    """Rank of a matrix of whole numbers modulo a prime of 61 bits, in Python's own integers."""
    left, rank = [[int(v) % prime for v in row] for row in rows], 0
    while left:
        row = left.pop()
        at = next((j for j, v in enumerate(row) if v), None)
        if at is None:
            continue
        rank += 1
        inverse = pow(row[at], -1, prime)
        row = np.array([v * inverse % prime for v in row], dtype=object)
        left = [r if not r[at] else (np.array(r, dtype=object) - r[at] * row) % prime for r in left]
    return rank


@pytest.mark.parametrize(("seed", "unlucky"), [(0, 0), (130, 1)])
def test_ranks_of_hundreds_of_functions_are_exact(seed, unlucky):
    """The size at which primes of twenty bits are seen to disagree: the first one misses a direction of one support."""
    rng = np.random.default_rng(seed)
    rows = np.unique(rng.integers(0, 4, (420, 6)), axis=0)
    codes = np.ascontiguousarray(rows.T).astype(np.uint8)
    span = SpanChoice(codes, (4,) * 6)
    span.add([(i,) for i in range(6)])
    span.add_useful(list(combinations(range(6), 2)))
    pairs = span.rank
    span.add_useful(list(combinations(range(6), 3)))
    contrasts = [[row == level for level in range(1, 4)] for row in codes]
    columns = [np.ones(len(rows), dtype=int)]
    for order in (1, 2, 3):
        for subset in combinations(range(6), order):
            for levels in np.ndindex(*(3,) * order):
                columns.append(np.prod([contrasts[i][z] for i, z in zip(subset, levels, strict=True)], axis=0))
    order_two = 1 + 18 + 15 * 9
    assert pairs == large_rank(np.array(columns[:order_two]).tolist())
    assert span._profile.primes == PRIMES[unlucky : unlucky + 2]
    assert span.rank == len(rows) == large_rank(np.array(columns).tolist())
