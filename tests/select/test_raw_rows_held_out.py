"""A selection is judged by rows like those of another sample: combinations that occur often are not all held out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.data.draws import plan_draws
from exanova.data.observe import read_rows
from exanova.data.sample import Sample
from exanova.errors import OverfitWarning
from strategies import examples


def drawn(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    rows = rng.integers(0, 3, size=(n, 4))
    y = (rows[:, 0] == 0) - 0.7 * (rows[:, 1] == 1) + ((rows[:, 0] == 1) & (rows[:, 2] == 2)) + rng.normal(size=n)
    return rows, y


@pytest.mark.parametrize("how", [{"shrinkage": None}, {}, {"selection": "lasso"}, {"selection": "canonical"}])
def test_fit_on_other_rows_of_a_selection_in_a_table_of_few_combinations(how):
    """400 rows of 81 combinations: without a fifth of the combinations R2 would be .2 too low."""
    found, fresh = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverfitWarning)
            anova = FunctionalANOVA(max_terms=45, **how).fit(*drawn(400, rng))
        found.append(anova.certificate_.r2_eval[0])
        fresh.append(anova.score(*drawn(10_000, rng)))
    assert np.mean(found) == pytest.approx(np.mean(fresh), abs=0.09)


def a_sample(rows: np.ndarray, y: np.ndarray, weight: np.ndarray | None, kind: str) -> Sample:
    read = read_rows(rows.astype(str), sample_weight=weight, n_bins=None, strategy="quantile", min_frequency=None)
    plan = plan_draws(read.weight, read.kept, read.n_rows, read.index, weights=kind)
    return read.sampled(read.model_values(y), plan).sample


@examples(40)
@given(seed=st.integers(0, 10**6), noisy=st.booleans(), kind=st.sampled_from(["frequency", "probability", "none"]))
def test_two_parts_of_the_raw_rows_are_the_whole(seed, noisy, kind):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, size=(60, 2))
    y = rows.sum(axis=1) + noisy * rng.normal(size=60)
    weight = {"none": None, "frequency": rng.integers(1, 5, size=60), "probability": rng.exponential(size=60)}[kind]
    sample = a_sample(rows, y, weight, "auto" if kind == "none" else kind)
    train, held, known = sample.split_raw(0.3, seed)
    codes = [tuple(code) for code in sample.codes.T]
    both = np.zeros((sample.n_rows, 2 + sample.n_outputs))
    for part in (train, held):
        at = [codes.index(tuple(code)) for code in part.codes.T]
        both[at, 0] += part.weight
        both[at, 1] += part.copies
        both[at, 2:] += part.weight[:, None] * part.values
        assert part.weight.dtype.kind == sample.weight.dtype.kind
    np.testing.assert_allclose(both[:, 0], sample.weight)
    np.testing.assert_allclose(both[:, 1], sample.copies)
    np.testing.assert_allclose(both[:, 2:] / both[:, :1], sample.values, atol=1e-12)
    np.testing.assert_array_equal(known, sample.values[[codes.index(tuple(code)) for code in held.codes.T]])
    assert all(present.all() for present in train.levels_present())
    total = int(sample.copies.sum())
    assert 0 < held.copies.sum() <= 0.3 * total


def test_rows_that_all_differ_are_split_as_distinct_rows():
    rows = np.array([[a, b] for a in range(6) for b in range(6)])
    sample = a_sample(rows, rows.prod(axis=1) * 1.0, None, "auto")
    (train, held, known), (kept, out) = sample.split_raw(0.25, 3), sample.split(0.25, 3)
    np.testing.assert_array_equal(train.codes, kept.codes)
    np.testing.assert_array_equal(held.codes, out.codes)
    np.testing.assert_array_equal(known, out.values)
