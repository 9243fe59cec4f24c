"""Deviation from orthogonality: conditional means against loops in exact fractions."""

from __future__ import annotations

import time
from collections import defaultdict
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, assembly, estimator
from exanova.design.family import build_family
from exanova.design.subsets import close_downward
from exanova.effects import orthogonality
from exanova.effects.orthogonality import conditional_means
from strategies import examples, proper_subsets, supports

PATHS = {
    "as chosen": {},
    "dense": {"FILLED": 10**9},
    "dense, one by one": {"STACKED": 1},
    "sparse": {"DENSE": 0, "FILLED": 0},
}


@st.composite
def effect_tables(draw):
    """A support with holes, a family up to order 4 on it, and any values on its cells: nothing is orthogonal."""
    case = draw(supports(("counts",), max_features=5, max_levels=4, max_rows=40, complete=draw(st.booleans())))
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    every = [s for k in range(min(4, len(varying)) + 1) for s in combinations(varying, k)]
    chosen = draw(st.lists(st.sampled_from(every), max_size=4), label="family")
    family = build_family(
        case.rows.T.astype(np.uint8), case.weight.astype(float), case.sizes, close_downward([*chosen, every[-1]])
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="values"))
    return case, family, rng.integers(-64, 65, (family.n_cells, draw(st.integers(1, 3)))) / 16.0


def by_loops(case, family, values):
    """The definition, one row of the support at a time, in exact fractions."""
    rows, weight = case.rows.tolist(), [Fraction(int(w)) for w in case.weight]
    total, worst = sum(weight), [Fraction(0)] * values.shape[1]
    for s, subset in enumerate(family.subsets):
        table = dict(zip(map(tuple, family.codes_of(s).T.tolist()), values[family.cells_of(s)].tolist(), strict=True))
        for smaller in proper_subsets(subset):
            sums: dict[tuple[int, ...], list[Fraction]] = {}
            masses: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
            for row, w in zip(rows, weight, strict=True):
                b = tuple(row[i] for i in smaller)
                here = table[tuple(row[i] for i in subset)]
                before = sums.get(b, [Fraction(0)] * len(here))
                sums[b] = [t + w * Fraction(v) / total for t, v in zip(before, here, strict=True)]
                masses[b] += w / total
            for b, found in sums.items():
                worst = [max(old, abs(v) / masses[b]) for old, v in zip(worst, found, strict=True)]
    return np.array([float(v) for v in worst])


@pytest.mark.parametrize("path", PATHS)
@examples(25)
@given(drawn=effect_tables())
def test_conditional_means_are_those_of_the_definition(path, drawn):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PATHS[path].items():
            patch.setattr(orthogonality, name, value)
        case, family, values = drawn
        means = conditional_means(family, values)
    np.testing.assert_allclose(means, by_loops(case, family, values), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("path", PATHS)
def test_every_margin_counts_and_not_the_total_alone(path, monkeypatch):
    """One effect of order 3 whose total and one-feature means vanish, and only E[f | x0, x1] does not."""
    for name, value in PATHS[path].items():
        monkeypatch.setattr(orthogonality, name, value)
    grid = np.array(list(np.ndindex(2, 2, 2)))
    family = build_family(grid.T.astype(np.uint8), np.ones(8), (2, 2, 2), close_downward([(0, 1, 2)]))
    values = np.zeros((family.n_cells, 1))
    values[family.cells_of(family.position[0, 1, 2]), 0] = (-1.0) ** (grid[:, 0] + grid[:, 1])
    assert conditional_means(family, values).tolist() == [1.0]


def test_a_level_that_no_row_holds_has_no_conditional_mean():
    codes = np.array([[0, 0, 2, 2], [0, 1, 0, 1]], dtype=np.uint8)
    family = build_family(codes, np.ones(4), (3, 2), close_downward([(0, 1)]))
    values = np.zeros((family.n_cells, 1))
    values[family.cells_of(family.position[0, 1]), 0] = [1.0, 1.0, -1.0, -1.0]
    assert conditional_means(family, values).tolist() == [1.0]


def test_what_is_no_number_is_not_passed_over():
    codes = np.array([[0, 1]], dtype=np.uint8)
    family = build_family(codes, np.ones(2), (2,), close_downward([(0,)]))
    assert np.isnan(conditional_means(family, np.array([[0.0, 0.0], [1.0, np.nan], [-1.0, 0.0]]))).tolist() == [
        False,
        True,
    ]


@pytest.mark.parametrize("weights", ["even", "uneven"])
def test_evidence_costs_no_more_than_the_answer(weights, monkeypatch):
    """All 256 subsets of a complete table: every margin of every effect once took hundreds of times as long."""
    rng, seconds = np.random.default_rng(0), defaultdict(list)

    def timed(module, name):
        function = getattr(module, name)

        def called(*arguments):
            started = time.process_time()
            try:
                return function(*arguments)
            finally:
                seconds[name].append(time.process_time() - started)

        monkeypatch.setattr(module, name, called)

    timed(estimator, "fit_sample"), timed(assembly, "certify")
    rows = np.indices((4,) * 8, dtype=np.uint8).reshape(8, -1).T
    for _ in range(2):
        weight = rng.uniform(1, 2, len(rows)) if weights == "uneven" else None
        FunctionalANOVA(shrinkage=None, max_order=None, n_jobs=1).fit(
            rows, rng.normal(size=len(rows)), sample_weight=weight
        )
    assert min(seconds["certify"]) <= min(seconds["fit_sample"])
