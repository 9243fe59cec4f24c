"""The gap between two sets of rows: its parts by brute force from effect tables, and their standard errors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from benchmarks import difference_coverage
from hypothesis import given
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA
from exanova.errors import InputError, OutsideSupportWarning
from strategies import examples

NAMES = ["a", "b", "c"]


def table(seed=0, n=200, noise=0.5):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.5, a % 2, rng.integers(0, 2, n))
    c = rng.integers(0, 3, n)
    frame = pd.DataFrame({"a": a, "b": b, "c": c}).astype(str)
    frame["sex"] = np.where(rng.random(n) < 0.3 + 0.2 * a, "f", "m")
    frame["dept"] = rng.choice(["x", "y", "z"], n)
    y = 0.5 * a + b * (c == 1) - 0.3 * (c == 2) + noise * rng.normal(size=n)
    return frame, y


def fitted(frame, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA(**{"shrinkage": None, **given}).fit(frame[NAMES], y)


def by_hand(anova, rows, weight):
    """Mean of every effect over rows, from its table."""
    out = []
    for names in anova.effects_:
        effect = anova.effects_[names]
        values = dict(zip(effect.levels, effect.values[:, 0], strict=True))
        at = [values.get(tuple(levels), 0.0) for levels in rows[list(names)].itertuples(index=False)]
        out.append(np.average(at, weights=weight))
    return np.array(out)


@examples(12)
@given(seed=st.integers(0, 50), order=st.integers(1, 3), weighted=st.booleans())
def test_parts_are_differences_of_means_of_effects_and_add_up(seed, order, weighted):
    frame, y = table(seed, 120)
    anova = fitted(frame, y, max_order=order)
    weight = np.random.default_rng(seed).integers(0, 4, len(frame)) if weighted else None
    found = anova.difference(frame, by="sex", model=y, sample_weight=weight, stderr=False)[0]
    women = (frame["sex"] == "f").to_numpy()
    w = np.ones(len(frame)) if weight is None else weight
    expected = by_hand(anova, frame[women], w[women]) - by_hand(anova, frame[~women], w[~women])
    assert np.allclose(found.by_subset[:, 0], expected, atol=1e-12)
    means = [np.average(y[own], weights=w[own]) for own in (women, ~women)]
    assert np.allclose(found.means[:, 0], means)
    assert np.isclose(found.total[0], means[0] - means[1], atol=1e-12)
    assert np.isclose(found.by_subset.sum() + found.residual[0], found.total[0], atol=1e-13)
    assert np.isclose(found.by_feature.sum() + found.residual[0], found.total[0], atol=1e-13)
    assert (found.by_subset[0] == 0).all()


def test_two_tables_of_any_library_are_the_two_groups_of_one():
    frame, y = table()
    anova = fitted(frame, y)
    women = (frame["sex"] == "f").to_numpy()
    whole = anova.difference(frame, by="sex", model=y)[0]
    halves = [frame[women], pl.from_pandas(frame[~women])]
    apart = anova.difference(*halves, (y[women], y[~women]))[0]
    mask = anova.difference(frame, model=y, by=women)[0]
    for other in (apart, mask):
        for name in ("by_subset", "by_feature", "residual", "total", "by_subset_stderr", "total_stderr"):
            assert np.allclose(getattr(other, name), getattr(whole, name), equal_nan=True), name
    assert (mask.group, mask.against) == ("True", "False")


def test_more_groups_are_each_compared_with_all_others_and_strata_apart():
    frame, y = table()
    anova = fitted(frame, y)
    found = anova.difference(frame, by="dept", model=y, stderr=False)
    assert [(c.group, c.against) for c in found] == [("x", "all others"), ("y", "all others"), ("z", "all others")]
    inside = anova.difference(frame, by="sex", within="dept", model=y, stderr=False)
    assert [c.stratum for c in inside] == ["dept=x", "dept=y", "dept=z"]
    for contrast, name in zip(inside, "xyz", strict=True):
        own = (frame["dept"] == name).to_numpy()
        alone = anova.difference(frame[own], by="sex", model=y[own], stderr=False)[0]
        assert np.allclose(contrast.by_subset, alone.by_subset)
    frame.loc[(frame["dept"] == "x"), "sex"] = "f"
    left = anova.difference(frame, by="sex", within="dept", stderr=False)
    assert len(left) == 2
    assert "only one group within 'dept=x'" in left.notes[0]


def test_groups_of_features_take_the_place_of_features():
    frame, y = table()
    anova = fitted(frame, y)
    found = anova.difference(frame, by="sex", groups={"ab": ["a", "b"]})
    subsets, parts = found.subsets, found[0].by_subset[:, 0]
    inside = sum(p for s, p in zip(subsets, parts, strict=True) if s and set(s) <= {"a", "b"})
    across = sum(p for s, p in zip(subsets, parts, strict=True) if set(s) & {"a", "b"} and "c" in s)
    assert found.features == ("ab", "c")
    assert np.isclose(found[0].by_feature[0, 0], inside + across / 2)
    assert list(found.to_frame()["group"])[-1] == "(total)"


def test_standard_errors_of_rows_of_the_fit_are_those_of_numerical_derivatives():
    """No residual, so that nothing stands for noise: the influence of a row is the derivative by its weight."""
    frame, _ = table(3, 60)
    y = (frame["a"] == "1") * 1.0 + (frame["b"] == "1") * (frame["c"] == "2") * 2.0

    def split(weight):
        anova = FunctionalANOVA(shrinkage=None, max_order=3).fit(
            frame[NAMES], y, sample_weight=weight, weights="probability"
        )
        found = anova.difference(frame, by="sex", sample_weight=weight)[0]
        return found, np.concatenate([found.by_subset[1:, 0], found.by_feature[:, 0], found.total])

    n, step = len(frame), 1e-4
    found, _ = split(np.full(n, 1.5))
    moved = []
    for i in range(n):
        pair = []
        for sign in (1, -1):
            weight = np.full(n, 1.5)
            weight[i] += sign * 1.5 * step
            pair.append(split(weight)[1])
        moved.append((pair[0] - pair[1]) / (2 * step))
    expected = np.sqrt(np.sum(np.square(moved), axis=0) * n / (n - 1))
    errors = np.concatenate([found.by_subset_stderr[1:, 0], found.by_feature_stderr[:, 0], found.total_stderr])
    assert np.allclose(errors, expected, rtol=1e-4, atol=1e-8)


def test_standard_errors_over_other_rows_add_up_from_effects_and_rows():
    frame, y = table()
    anova, (other, _) = fitted(frame, y, max_order=1), table(1, 150)
    found = anova.difference(other, by="sex")
    covariance, family = anova.decomposition_.uncertainty.all_cells[0], anova.decomposition_.family
    women = (other["sex"] == "f").to_numpy()
    for k, names in enumerate(found.subsets[1:], start=1):
        effect = anova.effects_[names]
        place = {levels[0]: j for j, levels in enumerate(effect.levels)}
        at = np.array([place[level] for level in other[names[0]]])
        shares = [np.bincount(at[own], minlength=len(place)) / own.sum() for own in (women, ~women)]
        block = covariance[family.cells_of(k), family.cells_of(k)]
        difference = shares[0] - shares[1]
        variance = difference @ block @ difference
        variance += sum(effect.values[at[own], 0].var(ddof=1) / own.sum() for own in (women, ~women))
        assert np.isclose(found[0].by_subset_stderr[k, 0] ** 2, variance)
    assert "independently" in found.included


def test_the_whole_difference_with_the_model_is_that_of_two_means():
    frame, y = table()
    anova = fitted(frame, y)
    found = anova.difference(frame, by="sex", model=y)[0]
    women = (frame["sex"] == "f").to_numpy()
    variance = sum(y[own].var() / own.sum() for own in (women, ~women)) * len(y) / (len(y) - 1)
    assert np.isclose(found.total_stderr[0] ** 2, variance)


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_intervals_of_parts_cover_those_of_the_population(other, shrinkage):
    facts = difference_coverage.coverage(500, 60, 2, shrinkage, other, seed=1)
    assert set(facts) == {"subsets", "features", "total"} | ({"residual"} if shrinkage is None else set())
    for kind in facts:
        assert 0.87 < facts[kind]["coverage"] <= 1.0, (kind, facts)
        assert 0.75 < facts[kind]["stderr_over_spread"] < 1.3, (kind, facts)


def test_rows_in_another_order_are_still_those_of_the_fit():
    frame, y = table()
    order = np.random.default_rng(0).permutation(len(y))
    for noise in (y, np.round(y)):
        anova = fitted(frame, noise)
        same = anova.difference(frame, by="sex", model=noise)
        mixed = anova.difference(frame.iloc[order], by="sex", model=noise[order])
        assert "vary together" in same.included
        assert same.included == mixed.included
        assert np.allclose(same[0].by_subset_stderr, mixed[0].by_subset_stderr)
    unknown = anova.difference(frame.iloc[order], by="sex")
    assert "independently" in unknown.included
    assert "independently" in anova.difference(frame[1:], by="sex", model=noise[1:]).included


def test_clusters_of_the_fit_are_clusters_of_the_difference():
    frame, y = table()
    twice = pd.concat([frame, frame], ignore_index=True)
    once = fitted(frame, y).difference(frame, by="sex", model=y)[0]
    anova = FunctionalANOVA(shrinkage=None).fit(twice[NAMES], np.tile(y, 2), clusters=np.tile(np.arange(len(y)), 2))
    found = anova.difference(twice, by="sex", model=np.tile(y, 2))[0]
    assert np.allclose(found.by_subset, once.by_subset)
    assert np.allclose(found.total_stderr, once.total_stderr)
    assert np.allclose(found.by_subset_stderr, once.by_subset_stderr, rtol=0.01)


def test_refits_and_the_closed_form_agree_over_other_rows():
    frame, y = table()
    anova, (other, _) = fitted(frame, y, max_order=1), table(1, 150)
    linear = anova.difference(other, by="sex")[0].by_subset_stderr[1:]
    anova.errors("bootstrap", n_refits=200)
    assert np.allclose(anova.difference(other, by="sex")[0].by_subset_stderr[1:] / linear, 1.0, atol=0.2)
    assert "refits" in anova.difference(frame, by="sex", model=y).included


def test_a_file_says_what_its_errors_include(tmp_path):
    frame, y = table()
    anova = fitted(frame, y)
    anova.save(tmp_path / "a.exanova")
    again = exanova.load(tmp_path / "a.exanova")
    other, _ = table(1, 150)
    before, after = anova.difference(other, by="sex"), again.difference(other, by="sex")
    assert np.allclose(before[0].by_subset_stderr, after[0].by_subset_stderr)
    assert "the file holds no rows" in after.included
    del again.decomposition_.uncertainty._stored["covariance"]
    again.decomposition_.uncertainty._engine = None
    bare = again.difference(other, by="sex")
    assert "the sampling of the rows alone" in bare.included
    assert (bare[0].total_stderr < after[0].total_stderr).all()
    groups = again.difference(other, by="b")  # the part of b is the same at all rows of a group: only its effect errs
    assert np.isnan(groups[0].by_subset_stderr[groups.subsets.index(("b",))]).all()
    assert not (groups[0].by_subset_stderr == 0.0).any()


DESIGNS = {
    "clusters": {"clusters": np.arange(200) // 4},
    "strata": {"strata": np.arange(200) % 2},
    "replicate weights": {"replicate_weights": (np.random.default_rng(0).exponential(size=(200, 30)), 1 / 30)},
}


@pytest.mark.parametrize("design", DESIGNS)
def test_rows_compared_one_by_one_are_said_where_those_of_the_fit_were_drawn_otherwise(design, tmp_path):
    frame, y = table()
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(frame[NAMES], y, **DESIGNS[design])
    one_by_one = "taken as drawn one by one, although those of the fit were not"
    assert one_by_one not in anova.difference(frame, by="sex", model=y).included
    assert one_by_one in anova.difference(table(1)[0], by="sex").included
    anova.errors()
    anova.save(tmp_path / "a.exanova")
    assert one_by_one in exanova.load(tmp_path / "a.exanova").difference(frame, by="sex", model=y).included
    plain = fitted(frame, y)
    assert one_by_one not in plain.difference(table(1)[0], by="sex").included


def test_a_population_has_no_errors_but_other_rows_have():
    frame, y = table(noise=0.0)
    anova = fitted(frame, y, sampled=False)
    assert anova.difference(frame, by="sex").included.startswith("none")
    assert np.isnan(anova.difference(frame, by="sex")[0].total_stderr).all()
    other = anova.difference(frame[:100], by="sex")
    assert "the sampling of the rows alone" in other.included
    assert (other[0].total_stderr > 0).all()


def test_parts_that_are_not_identified_are_said_and_their_sum_has_an_error():
    frame, y = table()
    twice = frame.assign(b2=frame["b"])
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(twice[[*NAMES, "b2"]], y)
    found = anova.difference(twice, by="sex", groups={"b": ["b", "b2"]})
    parts = dict(zip(found.subsets, found[0].by_subset_stderr[:, 0], strict=True))
    known = dict(zip(found.subsets, found[0].identified, strict=True))
    assert np.isnan(parts["b",])
    assert np.isfinite(parts["a",])
    assert known == {(): True, ("a",): True, ("b",): False, ("c",): True, ("b2",): False}
    assert np.isfinite(found[0].by_feature_stderr).all()
    assert any("a convention" in note for note in found.notes)
    assert "a convention" in str(found)


def test_rows_outside_the_support_are_counted_and_told():
    frame, y = table(n=40)
    anova = fitted(frame, y, max_order=3, handle_unknown="ignore")
    other = pd.concat([frame, frame.assign(a="9")], ignore_index=True)
    with pytest.warns(OutsideSupportWarning):
        found = anova.difference(other, by="sex")
    assert sum(found[0].outside) >= 40
    assert "never observed" in str(found)


def test_tables_and_text_hold_the_parts():
    frame, y = table()
    anova = FunctionalANOVA(shrinkage=None).fit(frame[NAMES], np.column_stack([y, -y]), output_names=["up", "down"])
    found = anova.difference(frame, by="sex", model=np.column_stack([y, -y]))
    lines = found.to_frame("subset")
    up = lines[lines["output"] == "up"]
    assert list(up["subset"])[-2:] == ["(residual)", "(total)"]
    assert np.isclose(up["value"][:-1].sum(), up["value"].iloc[-1])
    assert (np.abs(up["value"].to_numpy()[:-3]) >= np.abs(up["value"].to_numpy()[1:-2])).all()
    text = str(found)
    assert "f against m: mean of up" in text
    assert "f against m: mean of down" in text
    assert "standard errors: the sampling of the rows" in text
    assert "<table>" in found._repr_html_()
    assert "2 outputs" not in repr(found)
    assert "1 contrast" in repr(found)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "needs two sets of rows"),
        ({"rows_b": "frame", "by": "sex"}, "needs two sets of rows"),
        ({"rows_b": "frame", "within": "dept"}, "within= was given without by="),
        ({"by": "nobody"}, "no column 'nobody'"),
        ({"by": [1, 2]}, "one label for each row"),
        ({"by": "number"}, "200 different values; expected up to 50 groups"),
        ({"by": "one"}, "only one group, '1'"),
        ({"rows_b": "frame", "model": np.zeros(200)}, "a pair of outputs"),
        ({"rows_b": "frame", "sample_weight": np.ones(200)}, "a pair: at rows_a and at rows_b"),
    ],
)
def test_what_cannot_be_compared_is_refused(given, words):
    frame, y = table()
    anova = fitted(frame, y)
    frame = frame.assign(number=range(200), one=1)
    given = {k: frame if isinstance(v, str) and v == "frame" else v for k, v in given.items()}
    with pytest.raises(InputError, match=words):
        anova.difference(frame, **given)


def test_a_set_of_one_row_has_no_error():
    frame, y = table()
    found = fitted(frame, y).difference(frame[:1], frame[1:50])[0]
    assert np.isnan(found.total_stderr).all()
    assert np.isfinite(found.total).all()


def test_a_part_of_a_difference_is_asked_for_by_feature_or_subset():
    frame, y = table()
    with pytest.raises(InputError, match="expected 'feature' or 'subset'"):
        fitted(frame, y).difference(frame, by="sex").to_frame("cell")


def test_the_error_of_a_residual_does_not_depend_on_the_order_of_rows():
    """Equal rows with other outputs: whichever row of the fit each is matched with, the residual is its own."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 3, (200, 3)).astype(str)
    y = rng.normal(size=200) + (X[:, 0] == "1")
    anova = FunctionalANOVA(max_order=1, shrinkage=None, sampled=True).fit(X, y)
    side = rng.random(200) < 0.4
    whole = anova.difference(X, by=side, model=y)[0]
    order = np.concatenate([np.flatnonzero(side), np.flatnonzero(~side)])
    apart = anova.difference(X[order], by=side[order], model=y[order])[0]
    np.testing.assert_allclose(np.abs(apart.residual), np.abs(whole.residual), atol=1e-12)
    np.testing.assert_allclose(apart.residual_stderr, whole.residual_stderr, rtol=1e-6)


@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_an_output_that_is_constant_has_no_difference_and_no_error(shrinkage):
    """Beside one that varies, or alone; nothing is divided by its spread."""
    frame, y = table(3, 150)
    for outputs in (np.zeros(150), np.full((150, 1), 3.0), np.stack([np.full(150, 3.0), y], axis=1)):
        anova = FunctionalANOVA(max_order=1, shrinkage=shrinkage).fit(frame, outputs)
        for other in (frame, frame.iloc[:100]):
            found = anova.difference(other, by="sex", model=outputs[: len(other)])[0]
            assert found.total[0] == 0.0
            assert found.total_stderr[0] == 0.0
            assert not found.by_subset_stderr[:, 0].any()
            assert not np.nan_to_num(found.residual_stderr[0])


@pytest.mark.parametrize("shrinkage", [None, "auto"])
@pytest.mark.parametrize("same", [True, False])
def test_a_group_of_one_row_has_no_standard_errors_and_that_is_said(shrinkage, same):
    """Nothing is known of how other rows of its kind would vary; the parts still add up."""
    frame, y = table()
    anova = fitted(frame, y, shrinkage=shrinkage)
    rows, values = (frame, y) if same else (frame[:150], y[:150])
    for size in (1, 2):
        group = np.where(np.arange(len(rows)) < size, "few", np.where(rows["sex"] == "f", "f", "m"))
        found = anova.difference(rows, by=group, model=values)
        few, *others = (found[k] for k in (1, 0, 2))
        assert (few.group, few.rows[0]) == ("few", size)
        for name in ("by_subset_stderr", "by_feature_stderr", "total_stderr"):
            first = int(name == "by_subset_stderr")  # the mean is in no difference
            assert np.isfinite(getattr(few, name)[first:]).any() == (size > 1), name
            assert all(np.isfinite(getattr(other, name)[first:]).all() for other in others), name
        assert np.isclose(few.total[0], y[:size].mean() - y[size : len(rows)].mean())
        note = "no standard errors of few against all others: a single row does not show how much rows vary"
        assert (note in found.notes) == (size == 1)


def test_a_group_in_one_cluster_has_no_standard_errors():
    frame, y = table()
    cluster = np.arange(len(y)) // 10
    anova = FunctionalANOVA(shrinkage=None).fit(frame[NAMES], y, clusters=cluster)
    for clusters in (1, 2):
        found = anova.difference(frame, by=cluster < clusters, model=y)
        assert np.isfinite(found[0].total_stderr).all() == (clusters > 1)
        assert any("a single cluster" in note for note in found.notes) == (clusters == 1)


def test_a_row_that_counts_as_several_has_standard_errors():
    frame, y = table()
    weight = np.where(np.arange(len(y)) == 0, 3, 1)
    anova = FunctionalANOVA(shrinkage=None).fit(frame[NAMES], y, sample_weight=weight)
    found = anova.difference(frame, by=np.arange(len(y)) == 0, model=y, sample_weight=weight)
    assert np.isfinite(found[0].total_stderr).all()


def test_groups_written_alike_are_apart_and_missing_ones_come_last():
    frame, y = table(n=12)
    anova = fitted(frame, y)
    labels = np.array(["(missing)", None, "a", 1, "1", 2] * 2, dtype=object)
    found = anova.difference(frame, by=labels, stderr=False)
    assert [c.group for c in found] == ["1", "2", "'(missing)'", "'1'", "a", "(missing)"]
    assert [c.rows[0] for c in found] == [2] * 6
    days = pd.to_datetime("2024-05-01") + pd.to_timedelta(np.arange(12) % 2, "D")
    assert anova.difference(frame, by=days, stderr=False)[0].name == "2024-05-01 against 2024-05-02"
    numbers = np.array([1, 1.0, np.nan, 2] * 3, dtype=object)
    assert [c.group for c in anova.difference(frame, by=numbers, stderr=False)] == ["1", "2", "(missing)"]


@pytest.mark.parametrize("residual", [True, False])
def test_a_notebook_shows_the_largest_parts_and_counts_the_others(residual):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (200, 6)), columns=list("abcdef"))
    y = frame.to_numpy() @ np.arange(6.0) + frame["a"] * frame["b"] + rng.normal(size=200)
    found = FunctionalANOVA(shrinkage=None).fit(frame, y).difference(frame, by="a", model=y if residual else None)
    shown = found._repr_html_()
    names = [name for name, *_ in found.parts(found[0], "subset")]
    assert [name for name in names if f">{name}<" in shown] == [*names[:12], *names[21:]]
    assert "and 9 more parts" in shown
