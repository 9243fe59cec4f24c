"""Moments of parts, merged in any order, give the fit of all rows; shards count once; files are refused if altered."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, load
from exanova.apart.agreed_levels import joined_levels
from exanova.apart.moments import collect_moments, merge_moments
from exanova.apart.moments_file import load_levels, load_moments, save_levels, save_moments
from exanova.data.encoding import Encoding
from exanova.data.learning import learn_encoding
from exanova.data.table import Table
from exanova.errors import FileFormatError, InputError, InputTypeError, MemoryLimitError, UnknownLevelError
from strategies import examples, supports

SAME = 1e-12


def encoding_of(sizes):
    """More levels than occur, so that some have to be dropped after merging."""
    return Encoding.from_levels([f"x{i}" for i in range(len(sizes))], [list(range(n + 1)) for n in sizes])


def parts_of(rows: int, seed: int, count: int) -> list[np.ndarray]:
    label = np.random.default_rng(seed).integers(0, count, rows)
    return [np.flatnonzero(label == k) for k in range(count) if (label == k).any()]


def all_effects(anova) -> dict:
    return {key: anova.effects_[key].values for key in anova.effects_}


def distance(one, other) -> float:
    """Largest difference of two decompositions over all effects, and of their intercepts."""
    a, b = all_effects(one), all_effects(other)
    assert set(a) == set(b)
    scale = max(1.0, np.sqrt(one.decomposition_.variance.max()))
    return max(np.abs(a[key] - b[key]).max(initial=0.0) for key in a) / scale


@examples(40)
@given(case=supports(("equal", "counts", "real")), seed=st.integers(0, 2**32 - 1), order=st.sampled_from([1, 2]))
def test_merged_moments_give_the_fit_of_all_rows(case, seed, order):
    x, y, levels = case.rows, case.values, encoding_of(case.sizes)
    collected = [
        collect_moments(x[k], y[k], levels, max_order=order, sample_weight=case.weight[k])
        for k in parts_of(len(x), seed, 4)
    ]
    assume(len({part.shards for part in collected}) == len(collected))  # parts with the same numbers are one shard
    merged = merge_moments(collected)
    whole = collect_moments(x, y, levels, max_order=order, sample_weight=case.weight)
    if case.weight.dtype.kind == "i":
        assert np.array_equal(merged.counts, whole.counts)
    anova = FunctionalANOVA(max_order=order, shrinkage=None, sampled=False, n_jobs=1)
    fitted = anova.fit(x, y, sample_weight=case.weight)
    apart = FunctionalANOVA(max_order=order, shrinkage=None, n_jobs=1).merge(merged)
    assert apart.certificate_.rank == fitted.certificate_.rank
    assert distance(fitted, apart) < 1e-9  # tiny tables may be far worse conditioned than real ones
    np.testing.assert_allclose(apart.certificate_.r2, fitted.certificate_.r2, atol=1e-9)


def example(rows: int = 900, seed: int = 2):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, (3, 4, 3, 5), (rows, 4))
    x[:, 3] = np.where(rng.random(rows) < 0.5, x[:, 1], x[:, 3])
    y = np.column_stack([np.sin(x[:, 0] * x[:, 1]) + x[:, 2], 1e9 + x @ [1, 2, 3, 4] + rng.normal(size=rows)])
    return x, y, learn_encoding(Table.read(x))


def test_any_split_and_any_order_of_merging_give_the_same_effects():
    x, y, levels = example()
    fitted = FunctionalANOVA(shrinkage=None, route="moments").fit(x, y)
    for count, seed in ((1, 0), (2, 1), (7, 2)):
        parts = [collect_moments(x[k], y[k], levels) for k in parts_of(len(x), seed, count)]
        orders = list(permutations(parts)) if count == 2 else [parts, parts[::-1]]
        for order in orders:
            merged = merge_moments(order)
            assert np.array_equal(merged.counts, collect_moments(x, y, levels).counts)
            assert distance(fitted, FunctionalANOVA(shrinkage=None).merge(merged)) < SAME
    nested = merge_moments([merge_moments(parts[:3]), merge_moments(parts[3:])])
    assert distance(fitted, FunctionalANOVA(shrinkage=None).merge(nested)) < SAME


def test_what_is_measured_from_moments_is_what_rows_say_and_the_rest_is_said_to_be_missing():
    x, y, levels = example()
    fitted = FunctionalANOVA(shrinkage=None, route="moments").fit(x, y).certificate_
    anova = FunctionalANOVA().merge(collect_moments(x, y, levels))
    c = anova.certificate_
    np.testing.assert_allclose(c.r2, fitted.r2, atol=1e-12)
    np.testing.assert_allclose(c.mse, fitted.mse, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(c.relative_mse, fitted.relative_mse, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(c.cancellation, fitted.cancellation, rtol=1e-9)
    assert (c.rank, c.rank_by_order, c.n_functions) == (fitted.rank, fitted.rank_by_order, fitted.n_functions)
    assert c.exact
    assert max(c.orthogonality, c.residual_mean, c.residual) < 1e-14
    assert np.isnan(c.reconstruction)
    assert np.isnan(c.within_variance).all()
    kept = 1.0 - c.rank / 900
    np.testing.assert_allclose(1.0 - c.r2_eval, (1.0 - c.r2) / kept**2)
    np.testing.assert_allclose(c.r2_eval, fitted.r2_eval, atol=0.01)
    assert c.loss is None
    assert c.holds is fitted.holds
    assert "largest error" in c.unmeasured
    assert "leaving out a row of average leverage" in str(c)
    assert "off: moments hold no rows" in c.shrinkage
    assert "moments of 900 rows" in str(anova)
    assert "as moments" in str(anova.plan_)
    with pytest.raises(InputError, match="no rows"):
        anova.importance("shapley")
    np.testing.assert_allclose(anova.predict(x[:5]), FunctionalANOVA(shrinkage=None).fit(x, y).predict(x[:5]))


def test_a_row_dropped_from_one_part_is_noticed():
    """The comparison of this file can fail."""
    x, y, levels = example()
    fitted = FunctionalANOVA(shrinkage=None).fit(x, y)
    assert distance(fitted, FunctionalANOVA(shrinkage=None).merge(collect_moments(x[1:], y[1:], levels))) > 1e-6


def test_a_saved_decomposition_of_moments_is_the_same(tmp_path):
    x, y, levels = example()
    anova = FunctionalANOVA().merge(collect_moments(x, y, levels))
    anova.save(tmp_path / "a.exanova")
    again = load(tmp_path / "a.exanova")
    assert distance(anova, again) == 0.0
    assert again.certificate_.unmeasured == anova.certificate_.unmeasured
    anova.report(tmp_path / "a.json")
    anova.report(tmp_path / "a.md")


# Python


def test_partial_fit_and_merge_are_one_fit():
    x, y, _ = example()
    fitted = FunctionalANOVA(shrinkage=None, route="moments").fit(x, y)
    grown = FunctionalANOVA(shrinkage=None)
    for k in np.array_split(np.arange(len(x)), 3):
        grown.partial_fit(x[k], y[k])
    assert grown.moments_.rows == len(x)
    assert distance(fitted, grown) < SAME
    first, second = (FunctionalANOVA(shrinkage=None).partial_fit(x[k], y[k]) for k in (slice(0, 500), slice(500, 900)))
    assert distance(fitted, first.merge(second)) < SAME
    first.fit(x, y)
    assert not hasattr(first, "moments_")


def test_a_model_is_called_once_per_distinct_row_and_weights_of_zero_are_absent():
    x, _, levels = example()
    calls = []

    def model(rows):
        calls.append(len(rows))
        return rows[:, 0] * rows[:, 1] * 1.0

    weight = np.arange(len(x)) % 3
    found = collect_moments(x, model, levels, sample_weight=weight)
    assert sum(calls) == len(np.unique(x[weight > 0], axis=0))
    given = collect_moments(x, x[:, 0] * x[:, 1] * 1.0, levels, sample_weight=weight)
    assert found.shards == given.shards
    assert found.rows == (weight > 0).sum()


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"max_order": 3}, "max_order"),
        ({"max_order": None}, "max_order"),
        ({"selection": "screen", "max_terms": 20}, "selection"),
        ({"ridge": 0.1}, "ridge"),
        ({"basis": "paper"}, "basis"),
        ({"route": "dense"}, "route"),
        ({"subsets": [("x0", "x1")]}, "subsets"),
    ],
)
def test_parameters_that_moments_cannot_serve_are_refused(parameters, said):
    x, y, _ = example(50)
    with pytest.raises(InputError, match=f"{said}.*cannot be fitted from moments"):
        FunctionalANOVA(**parameters).partial_fit(x, y)


def test_other_things_than_moments_are_not_merged():
    x, y, levels = example(50)
    with pytest.raises(InputTypeError, match="without moments"):
        FunctionalANOVA().merge(FunctionalANOVA().fit(x, y))
    with pytest.raises(InputTypeError, match="levels="):
        FunctionalANOVA().partial_fit(x, y, levels=[1, 2])
    with pytest.raises(InputError, match="no moments"):
        FunctionalANOVA().merge()
    with pytest.raises(InputError, match="max_order"):
        collect_moments(x, y, levels, max_order=3)


# Shards


def test_a_shard_counts_once():
    x, y, levels = example()
    a, b, c = (collect_moments(x[k], y[k], levels) for k in np.array_split(np.arange(900), 3))
    merged = a + b + c
    assert sorted(merged.shards) == sorted({*a.shards, *b.shards, *c.shards})
    for again in (a, b, c, a + b, merged):
        with pytest.raises(InputError, match=r"in both.*double its weight"):
            merged + again
    grown = FunctionalANOVA().partial_fit(x[:300], y[:300])
    with pytest.raises(InputError, match="in both"):
        grown.partial_fit(x[:300], y[:300])


def test_moments_that_do_not_fit_are_refused():
    x, y, levels = example()
    first = collect_moments(x[:300], y[:300], levels)
    other = joined_levels(levels, Encoding.from_levels(levels.names, [[9], [0], [0], [0]]))
    with pytest.raises(InputError, match=r"different levels.*'x0'"):
        first + collect_moments(x[300:], y[300:], other)
    with pytest.raises(InputError, match="order 2 and of order 1"):
        first + collect_moments(x[300:], y[300:], levels, max_order=1)
    with pytest.raises(InputError, match="different outputs"):
        first + collect_moments(x[300:], y[300:], levels, output_names=["a", "b"])
    with pytest.raises(UnknownLevelError, match="add them to the levels that all shards share"):
        collect_moments(x + 1, y, levels)


def test_cells_of_few_rows_are_refused():
    x, y, levels = example()
    smallest = min(int(c) for c in collect_moments(x, y, levels).counts if c)
    collect_moments(x, y, levels, min_count=smallest)
    with pytest.raises(InputError, match=r"occupied cells of the margins have fewer than .* rows") as raised:
        collect_moments(x, y, levels, min_count=smallest + 1)
    assert "max_order=1" in str(raised.value)
    pairs = collect_moments(x, y, levels, max_order=1).counts
    found = collect_moments(x, y, levels, max_order=1, min_count=int(pairs[pairs > 0].min()))
    assert found.min_count == pairs[pairs > 0].min()
    heavy = np.full(900, 50)  # rows count, not their weights
    with pytest.raises(InputError, match="fewer than"):
        collect_moments(x, y, levels, min_count=smallest + 1, sample_weight=heavy)


def test_margins_that_do_not_fit_in_memory_are_refused_before_counting():
    levels = Encoding.from_levels([f"x{i}" for i in range(10)], [list(range(60))] * 10)
    x = np.zeros((5, 10), dtype=int)
    with pytest.raises(MemoryLimitError, match=r"2,721,600,000 cells.*memory limit is 1.0 GB"):
        collect_moments(x, np.zeros(5), levels, memory_limit="1 GB")


# Files


def test_files_of_moments_and_levels_come_back_whole(tmp_path):
    x, y, levels = example()
    found = collect_moments(x, y, levels, min_count=1)
    save_moments(found, tmp_path / "a.moments")
    again = load_moments(tmp_path / "a.moments")
    for name in ("counts", "sums", "squares", "centre"):
        assert np.array_equal(getattr(again, name), getattr(found, name))
    assert (again.shards, again.rows, again.outputs, again.min_count) == (found.shards, 900, found.outputs, 1)
    save_levels(levels, tmp_path / "levels.json")
    assert load_levels(tmp_path / "levels.json") == levels
    anova = FunctionalANOVA().partial_fit(x, y, levels=tmp_path / "levels.json")
    anova.save_moments(tmp_path / "b.moments")
    assert load_moments(tmp_path / "b.moments").shards == found.shards


@pytest.mark.parametrize("place", [30, 2000, -40, -1])
def test_an_altered_or_truncated_file_is_refused(tmp_path, place):
    x, y, levels = example(100)
    save_moments(collect_moments(x, y, levels), tmp_path / "a.moments")
    body = bytearray((tmp_path / "a.moments").read_bytes())
    body[place] ^= 1
    (tmp_path / "b.moments").write_bytes(body)
    with pytest.raises(FileFormatError, match=r"checksum|version|cannot be read"):
        load_moments(tmp_path / "b.moments")
    (tmp_path / "c.moments").write_bytes(body[:place])
    with pytest.raises(FileFormatError):
        load_moments(tmp_path / "c.moments")


def test_files_of_another_kind_are_refused(tmp_path):
    x, y, levels = example(100)
    FunctionalANOVA().fit(x, y).save(tmp_path / "a.exanova")
    with pytest.raises(FileFormatError, match="a decomposition, not moments"):
        load_moments(tmp_path / "a.exanova")
    save_moments(collect_moments(x, y, levels), tmp_path / "a.moments")
    with pytest.raises(FileFormatError, match="moments"):
        load(tmp_path / "a.moments")
    (tmp_path / "levels.json").write_text('{"features": []}', encoding="utf-8")
    with pytest.raises(FileFormatError, match="give the path of a saved file of moments"):
        load_moments(tmp_path)
    with pytest.raises(FileFormatError, match="is not a file of moments saved by exanova"):
        load_moments(tmp_path / "levels.json")
    with pytest.raises(FileFormatError, match="not a file of levels"):
        load_levels(tmp_path / "levels.json")
    with pytest.raises(FileFormatError, match="cannot be read as levels"):
        load_levels(tmp_path / "absent.json")


def test_levels_are_joined_without_moving_bins():
    known = learn_encoding(Table.read(np.column_stack([np.arange(100) % 3, np.linspace(0, 1, 100)])), n_bins=4)
    new = learn_encoding(Table.read(np.column_stack([np.arange(100) % 5, np.linspace(5, 9, 100)])), n_bins=4)
    both = joined_levels(known, new)
    assert both.levels[0] == (0, 1, 2, 3, 4)
    assert both.features[1] == known.features[1]
    assert joined_levels(both, new) == both
    with pytest.raises(InputError, match="--features"):
        joined_levels(known, Encoding.from_levels(["x0"], [[0]]))
