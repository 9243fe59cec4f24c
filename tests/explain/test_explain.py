"""Shapley values of rows: the laws they obey, other answers to the same question, and every kind of row."""

from __future__ import annotations

import warnings
from itertools import combinations, product
from math import factorial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA, Support
from exanova.design import few, passes
from exanova.errors import (
    InputError,
    MemoryLimitError,
    ModelError,
    NotFittedError,
    OutsideSupportError,
    OutsideSupportWarning,
    UnknownFeatureError,
    UnknownLevelError,
)
from exanova.phi import feature_shares
from exanova.progress import Progress
from strategies import MODERATE, Case, examples, fit, supports

LAW = 1e-10
"""Relative to the largest value of the model."""

ORDERS = st.sampled_from([None, 2, 3, None, 2, 3, 1, 0])  # without interactions there is little to share
TIES = st.sampled_from(["share", "first"])


def scale(values):
    return max(1.0, float(np.abs(values).max()))


def explained(case, rows=None, model=None, max_order=None, **parameters):
    anova = fit(case, max_order=max_order, **parameters)
    return anova.explain(case.rows if rows is None else rows, model)


@st.composite
def independent(draw, max_features=4, max_rows=60):
    """A complete table whose counts are a product of margins, in the order of ``np.ndindex``; and the margins."""
    case = draw(supports(weights=("equal",), max_features=max_features, max_rows=max_rows, complete=True))
    rows = np.array(list(product(*map(range, case.sizes))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="margins"))
    margins = [rng.integers(1, 4, n) for n in case.sizes]
    weight = np.prod([margin[column] for margin, column in zip(margins, rows.T, strict=True)], axis=0)
    return Case(rows, weight, case.values, "product"), [m / m.sum() for m in margins]


def mean_over(f, axis, margin):
    shape = [-1 if k == axis else 1 for k in range(f.ndim)]
    return np.broadcast_to((f * margin.reshape(shape)).sum(axis=axis, keepdims=True), f.shape)


def brute_force(margins, f):
    """(sizes.., d, m) Shapley values of the marginal game, over all coalitions."""
    d = len(margins)
    game = {}
    for k in range(d + 1):
        for inside in combinations(range(d), k):
            v = f
            for i in set(range(d)) - set(inside):
                v = mean_over(v, i, margins[i])
            game[inside] = v
    out = np.zeros((*f.shape[:-1], d, f.shape[-1]))
    for i in range(d):
        others = [j for j in range(d) if j != i]
        for k in range(d):
            weight = factorial(k) * factorial(d - k - 1) / factorial(d)
            for inside in combinations(others, k):
                out[..., i, :] += weight * (game[tuple(sorted((*inside, i)))] - game[inside])
    return out


# Laws


@given(supports(weights=MODERATE), ORDERS, TIES)
@examples(60)
def test_values_base_and_residual_are_the_model(case, max_order, ties):
    e = explained(case, model=case.values, max_order=max_order, ties=ties)
    total = e.values.sum(axis=1) + e.base_values + e.residual
    assert np.abs(total - case.values).max() <= LAW * scale(case.values)
    if max_order is None:
        assert np.abs(e.residual).max() <= LAW * scale(case.values)


@given(supports(weights=MODERATE), ORDERS)
@examples(30)
def test_without_the_model_they_add_up_to_the_fitted_part(case, max_order):
    anova = fit(case, max_order=max_order)
    e = anova.explain(case.rows)
    assert e.residual is None
    assert np.abs(e.values.sum(axis=1) + e.base_values - anova.predict(case.rows)).max() <= LAW * scale(case.values)
    mean = case.probability @ case.values
    assert np.allclose(e.base_values, mean, rtol=0, atol=LAW * scale(case.values))


@given(supports(weights=MODERATE), ORDERS)
@examples(30)
def test_a_spread_residual_goes_to_all_features_alike(case, max_order):
    anova = fit(case, max_order=max_order)
    apart = anova.explain(case.rows, case.values)
    spread = anova.explain(case.rows, case.values, residual="spread")
    assert not spread.residual.any()
    total = spread.values.sum(axis=1) + spread.base_values
    assert np.abs(total - case.values).max() <= LAW * scale(case.values)
    d = case.rows.shape[1]
    assert np.allclose(spread.values - apart.values, apart.residual[:, None, :] / d, rtol=0, atol=1e-12 * scale(total))


def test_a_spread_residual_needs_the_model(anova, table):
    with pytest.raises(InputError, match="needs the model"):
        anova.explain(table, residual="spread")
    with pytest.raises(InputError, match="'report' or 'spread'"):
        anova.explain(table, risk, residual="elsewhere")


@given(supports(weights=MODERATE, max_features=3), st.sampled_from([1, 2, None]), st.data())
@examples(40)
def test_identical_columns_share_alike(case, max_order, data):
    twin = data.draw(st.integers(0, case.rows.shape[1] - 1), label="twin")
    rows = np.hstack([case.rows, case.rows[:, [twin]]])
    doubled = Case(rows, case.weight, case.values, case.kind)
    e = explained(doubled, max_order=max_order, ties="share")
    assert np.abs(e.values[:, twin] - e.values[:, -1]).max() <= LAW * scale(case.values)


@given(independent(max_features=3), st.data())
@examples(30)
def test_a_feature_the_model_does_not_use_gets_nothing_under_independence(drawn, data):
    case, _ = drawn
    extra = data.draw(st.integers(2, 3), label="levels")
    rows = np.array([[*row, level] for row in case.rows for level in range(extra)])
    values, counts = np.repeat(case.values, extra, axis=0), np.tile(np.arange(1, extra + 1), len(case.rows))
    e = explained(Case(rows, np.repeat(case.weight, extra) * counts, values, "product"))
    assert np.abs(e.values[:, -1]).max() <= LAW * scale(values)


@given(supports(weights=MODERATE, max_outputs=2), st.sampled_from([1, 2, None]), TIES, st.floats(-3, 3), st.data())
@examples(30)
def test_values_are_linear_in_the_model(case, max_order, ties, factor, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    other = rng.normal(size=case.values.shape)
    mixed = factor * case.values + 2.0 * other
    e, o, both = (explained(case.with_values(f), max_order=max_order, ties=ties) for f in (case.values, other, mixed))
    assert np.abs(factor * e.values + 2.0 * o.values - both.values).max() <= LAW * scale(mixed) * 10


@given(independent())
@examples(40)
def test_independent_inputs_give_the_shapley_values_of_the_marginal_game(drawn):
    case, margins = drawn
    f = case.values.reshape(*case.sizes, -1)
    expected = brute_force(margins, f).reshape(len(case.rows), len(margins), -1)
    assert np.abs(explained(case).values - expected).max() <= LAW * scale(f)


def test_dependent_inputs_do_not_give_the_marginal_game():
    weight = np.array([[8, 1], [1, 8]])
    case = Case(np.array(list(np.ndindex(2, 2))), weight.ravel(), np.array([[0.0], [0.0], [1.0], [1.0]]), "counts")
    expected = brute_force([np.array([0.5, 0.5])] * 2, case.values.reshape(2, 2, 1)).reshape(4, 2, 1)
    assert np.abs(explained(case).values - expected).max() < 1e-12  # additive: both games agree
    interacting = case.with_values(np.array([[0.0], [0.0], [0.0], [1.0]]))
    expected = brute_force([np.array([0.5, 0.5])] * 2, interacting.values.reshape(2, 2, 1)).reshape(4, 2, 1)
    assert np.abs(explained(interacting).values - expected).max() > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_shap_exact_explainer_agrees_on_independent_inputs(seed, monkeypatch):
    from peers import interpreted, shap

    interpreted(monkeypatch)
    rng = np.random.default_rng(seed)
    sizes = (3, 2, 4, 2)[: 2 + seed]
    margins = [rng.integers(1, 3, n) for n in sizes]
    rows = np.array(list(product(*map(range, sizes))))
    weight = np.prod([m[c] for m, c in zip(margins, rows.T, strict=True)], axis=0)
    tensor = rng.normal(size=sizes)
    background = np.repeat(rows, weight, axis=0).astype(float)

    def model(X):
        return tensor[tuple(np.asarray(X).astype(int).T)]

    masker = shap.maskers.Independent(background, max_samples=len(background))
    expected = shap.explainers.Exact(model, masker)(rows.astype(float))
    anova = FunctionalANOVA(shrinkage=None, max_order=None).fit(background.astype(int), model)
    e = anova.explain(rows)
    assert np.abs(e.values - expected.values).max() < LAW
    assert np.abs(e.base_values - expected.base_values).max() < LAW


# How they are computed does not matter


@given(supports(weights=MODERATE), st.sampled_from([None, 2, 3]), st.data())
@examples(25)
def test_the_three_ways_to_share_effects_agree_to_the_last_bit(case, max_order, data):
    """All subsets at once for few rows, one after the other, and compiled: also outside of the support."""
    anova = fit(case, max_order=max_order, handle_unknown="ignore")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    mixed = np.stack([rng.permutation(column) for column in case.rows.T], axis=1)
    rows = np.vstack([case.rows, mixed, np.full((1, case.rows.shape[1]), 99)])[-few.ROWS :]

    def ask(compiled_from, few_rows):
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", OutsideSupportWarning)
            patch.setattr(passes, "COMPILED_FROM", compiled_from)
            patch.setattr(few, "ROWS", few_rows)
            patch.setattr(few, "MORE_ROWS", few_rows)
            patch.setattr(feature_shares, "CHUNK", 7)
            return anova.explain(rows)

    together, apart, compiled = ask(10**9, few.ROWS), ask(10**9, 0), ask(0, 0)
    for other in (apart, compiled):
        assert np.array_equal(together.values, other.values)
        assert np.array_equal(together.outside, other.outside)


def test_neither_threads_nor_chunks_change_a_bit(anova, table, monkeypatch):
    once = anova.explain(table, risk)
    monkeypatch.setattr(feature_shares, "CHUNK", 2)
    for n_jobs in (1, 2, 4):
        again = FunctionalANOVA(shrinkage=None, max_order=2, n_jobs=n_jobs).fit(table, risk).explain(table, risk)
        assert np.array_equal(again.values, once.values)


def test_long_work_shows_its_progress(table, monkeypatch, capsys):
    monkeypatch.setattr("exanova.progress.PATIENCE", -1.0)
    monkeypatch.setattr(Progress, "_show", lambda self, note="": self._stream.write(f"{self._name} {self._done}\n"))
    anova = FunctionalANOVA(shrinkage=None, verbose=True).fit(table, risk)
    capsys.readouterr()
    anova.explain(table, risk)
    anova.interactions(table)
    shown = capsys.readouterr().err
    assert "model values" in shown
    assert f"explaining rows {len(table)}" in shown
    assert f"interactions of rows {len(table)}" in shown


def test_what_does_not_fit_in_memory_is_refused_before_it_is_computed(anova, table):
    anova.set_params(memory_limit=100)
    for ask in (anova.explain, anova.interactions, anova.components):
        with pytest.raises(MemoryLimitError, match="fewer rows"):
            ask(table)


def test_an_unfitted_object_says_so(table):
    for ask in ("explain", "interactions", "predict", "components"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(FunctionalANOVA(shrinkage=None), ask)(table)
    for ask in ("importance", "save"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(FunctionalANOVA(shrinkage=None), ask)(*(["x"] if ask == "save" else []))


# Rows of every kind


def cells():
    rows = [(o, r, h) for o in ("almond", "foul", "none") for r in ("one", "two") for h in ("wood", "path")]
    return [row for row in rows if row not in {("foul", "two", "wood"), ("foul", "two", "path")}]


def risk(table):
    """Two classes, with an interaction of odor and ring; for any of the table libraries."""
    odor, ring = (np.asarray(table[name]).astype(str) for name in ("odor", "ring"))
    poisonous = 0.1 + 0.6 * (odor == "foul") + 0.2 * ((odor == "none") & (ring == "two"))
    return np.stack([1 - poisonous, poisonous], axis=1)


@pytest.fixture
def table():
    rows = cells()
    return pd.DataFrame(rows + rows[:3], columns=["odor", "ring", "habitat"])


@pytest.fixture
def anova(table):
    return FunctionalANOVA(shrinkage=None, max_order=2).fit(table, risk, output_names=["edible", "poisonous"])


def test_what_an_explanation_holds(anova, table):
    e = anova.explain(table, risk)
    n = len(table)
    assert e.values.shape == (n, 3, 2)
    assert e.base_values.shape == e.residual.shape == (n, 2)
    assert e.feature_names == ("odor", "ring", "habitat")
    assert e.output_names == ("edible", "poisonous")
    assert e.display_data.tolist() == table.to_numpy().tolist()
    labels = [["almond", "foul", "none"], ["one", "two"], ["path", "wood"]]
    assert e.data.dtype == np.float64
    assert e.data.tolist() == [[labels[i].index(v) for i, v in enumerate(row)] for row in table.to_numpy()]
    assert e.outside.shape == (n,)
    assert not e.outside.any()
    assert len(e) == n


def test_a_model_with_one_number_a_row_has_no_axis_of_outputs(table):
    e = FunctionalANOVA(shrinkage=None).fit(table, lambda t: risk(t)[:, 1]).explain(table, lambda t: risk(t)[:, 1])
    assert e.values.shape == (len(table), 3)
    assert e.base_values.shape == e.residual.shape == (len(table),)
    with pytest.raises(InputError, match="indices were given"):
        e[:, :, 0]


NEW = pd.DataFrame({"odor": ["foul", "none"], "ring": ["two", "two"], "habitat": ["wood", "path"]})


def test_a_combination_never_seen_counts_as_zero_and_is_flagged(anova):
    with pytest.warns(OutsideSupportWarning, match="1 of 2 rows"):
        e = anova.explain(NEW)
    assert e.outside.tolist() == [True, False]
    main = {name: anova.effects_[name] for name in ("odor", "ring", "habitat")}
    seen = anova.effects_["odor", "habitat"], anova.effects_["ring", "habitat"]
    value = {name: effect.values[effect.levels.index((NEW[name][0],))] for name, effect in main.items()}
    pairs = [effect.values[effect.levels.index(tuple(NEW[list(effect.features)].loc[0]))] / 2 for effect in seen]
    expected = [value["odor"] + pairs[0], value["ring"] + pairs[1], value["habitat"] + pairs[0] + pairs[1]]
    assert np.abs(e.values[0] - np.array(expected)).max() < 1e-12
    with pytest.warns(OutsideSupportWarning):
        i = anova.interactions(NEW)
    assert i.outside.tolist() == [True, False]


def test_the_warning_points_at_the_caller_and_can_be_an_error(anova):
    with pytest.warns(OutsideSupportWarning) as caught:
        anova.explain(NEW)
    assert caught[0].filename == __file__
    anova.set_params(strict=True)
    for ask in (anova.explain, anova.interactions, anova.predict, anova.components):
        with pytest.raises(OutsideSupportError, match="first in row 0"):
            ask(NEW)


def test_an_unknown_level_is_an_error_unless_ignored(anova, table):
    new = table.iloc[:2].assign(odor=["musty", "foul"])
    for ask in (anova.explain, anova.interactions, lambda X: anova.score(X, risk)):
        with pytest.raises(UnknownLevelError, match=r"'odor'.*'musty'"):
            ask(new)
    anova.set_params(handle_unknown="ignore")
    with pytest.warns(OutsideSupportWarning):
        e = anova.explain(new, risk)
    assert e.outside.tolist() == [True, False]
    assert e.data[0, 0] == -1.0
    assert e.display_data[0, 0] == "(unknown)"
    assert not e.values[0, 0].any()  # every effect that reads the unknown level is 0
    total = e.values.sum(axis=1) + e.base_values + e.residual
    assert np.abs(total - risk(new)).max() < 1e-12
    assert "(unknown)" in set(e.to_frame()["level"])


def test_a_missing_value_is_unknown_unless_it_was_learned(anova, table):
    new = table.iloc[:2].assign(odor=[None, "foul"])
    with pytest.raises(UnknownLevelError, match="missing"):
        anova.explain(new)
    learned = FunctionalANOVA(shrinkage=None).fit(new, np.array([1.0, 2.0])).explain(new)
    assert learned.display_data[0, 0] == "(missing)"


def test_columns_are_found_by_name_and_further_ones_left_aside(anova, table):
    e = anova.explain(table, risk)
    other = table[["habitat", "odor", "ring"]].assign(extra=1.5)
    again = anova.explain(other, risk)
    assert again.feature_names == e.feature_names
    assert np.array_equal(again.values, e.values)
    assert np.array_equal(again.residual, e.residual)
    assert again.display_data.tolist() == e.display_data.tolist()


def test_a_missing_column_is_named(anova, table):
    for ask in (anova.explain, anova.interactions, lambda X: anova.explain(X, risk)):
        with pytest.raises(InputError, match="no column 'ring'"):
            ask(table.drop(columns="ring"))


def test_an_array_is_read_by_position_and_needs_every_column(anova, table):
    e = anova.explain(table.to_numpy())
    assert np.array_equal(e.values, anova.explain(table).values)
    with pytest.raises(InputError, match="2 columns, but 3 are expected"):
        anova.explain(table.to_numpy()[:, :2])


LIBRARIES = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": lambda t: pa.Table.from_pandas(t)}


@pytest.mark.parametrize("fitted", LIBRARIES)
@pytest.mark.parametrize("asked", LIBRARIES)
def test_rows_may_come_from_another_table_library(fitted, asked, table):
    anova = FunctionalANOVA(shrinkage=None).fit(LIBRARIES[fitted](table), risk)
    seen = []

    def model(X):
        seen.append(X)
        return risk(X)

    e = anova.explain(LIBRARIES[asked](table), model)
    assert np.array_equal(e.values, FunctionalANOVA(shrinkage=None).fit(table, risk).explain(table).values)
    assert np.abs(e.residual).max() < 1e-12
    assert type(seen[0]) is type(LIBRARIES[asked](table))  # the model sees the rows as they were given
    assert type(e.to_frame()) is type(LIBRARIES[fitted](table))  # tables are of the kind that was fitted


def test_the_model_is_called_once_for_each_distinct_row_with_the_fitted_columns(anova, table):
    seen = []

    def model(X):
        seen.append(X)
        return risk(X)

    shuffled = pd.concat([table, table])[["habitat", "ring", "odor"]].assign(extra=range(2 * len(table)))
    e = anova.explain(shuffled, model)
    assert len(seen) == 1
    assert list(seen[0].columns) == ["odor", "ring", "habitat"]
    assert len(seen[0]) == len(cells()) == len(seen[0].drop_duplicates())
    assert np.array_equal(e.residual[: len(table)], e.residual[len(table) :])


def test_rows_that_are_binned_alike_are_still_different_to_the_model():
    X = pd.DataFrame({"age": np.linspace(0.0, 1.0, 20), "sex": ["f", "m"] * 10})
    anova = FunctionalANOVA(shrinkage=None, n_bins={"age": 2}).fit(X, lambda t: t["age"].to_numpy())
    e = anova.explain(X, lambda t: t["age"].to_numpy())
    assert len(np.unique(e.residual.round(9))) > 2
    assert np.abs(e.values.sum(axis=1) + e.base_values + e.residual - X["age"]).max() < 1e-12


def test_another_model_is_measured_against_the_same_decomposition(anova, table):
    e = anova.explain(table, lambda t: np.add(risk(t), [0.0, 1.0]))
    assert np.allclose(e.residual - anova.explain(table, risk).residual, [0.0, 1.0], rtol=0, atol=1e-12)


def test_outputs_may_be_given_in_place_of_the_model(anova, table):
    assert np.array_equal(anova.explain(table, risk(table)).residual, anova.explain(table, risk).residual)
    with pytest.raises(InputError, match="rows"):
        anova.explain(table, risk(table)[:3])


def test_a_model_with_another_number_of_outputs_is_refused(anova, table):
    with pytest.raises(InputError, match="gives 1 outputs, the decomposition has 2"):
        anova.explain(table, lambda t: risk(t)[:, 0])
    with pytest.raises(ModelError, match="raised KeyError"):
        anova.explain(table, lambda t: t["no such column"])


def test_a_distribution_without_rows_explains_rows_too():
    support = Support.from_pmf(np.array([[0.4, 0.1], [0.2, 0.3]]), feature_names=["a", "b"])
    anova = FunctionalANOVA(shrinkage=None).fit(support, np.array([0.0, 1.0, 1.0, 4.0]))
    e = anova.explain(pd.DataFrame({"b": [1, 0], "a": [1, 0]}))
    assert np.allclose(e.values.sum(axis=1) + e.base_values, [4.0, 0.0])


def test_no_input_is_changed(table):
    before, values = table.copy(deep=True), risk(table)
    kept = values.copy()
    anova = FunctionalANOVA(shrinkage=None).fit(table, values)
    e = anova.explain(table, values, residual="spread")
    anova.interactions(table)
    anova.components(table)
    anova.score(table, values, sample_weight=np.ones(len(table)))
    e.values[:] = 7.0  # what was handed out is not what is kept
    exported = anova.explain(table).to_shap()
    exported.values[:] = exported.data[:] = exported.base_values[:] = 7.0
    pd.testing.assert_frame_equal(table, before)
    assert np.array_equal(values, kept)
    assert np.abs(anova.explain(table).values).max() < 1.0
    frozen = table.to_numpy(dtype="U8")
    frozen.flags.writeable = values.flags.writeable = False
    FunctionalANOVA(shrinkage=None).fit(frozen, values).explain(frozen, values, residual="spread")


# Slices


def same(part, values, base, residual, data, display, outside):
    assert np.array_equal(part.values, values)
    assert np.array_equal(part.base_values, base)
    assert np.array_equal(part.residual, residual)
    assert np.array_equal(part.data, data)
    assert np.array_equal(np.asarray(part.display_data, dtype=object), np.asarray(display, dtype=object))
    assert np.array_equal(part.outside, outside)


MASK = np.arange(len(cells()) + 3) % 3 == 0


@pytest.mark.parametrize("rows", [0, -1, slice(2, 5), [4, 1], MASK, MASK.tolist(), np.array([1, 1]), slice(None)])
@pytest.mark.parametrize(("features", "positions"), [(slice(None),) * 2, ("ring", 1), (["habitat", "odor"], [2, 0])])
@pytest.mark.parametrize(("outputs", "numbers"), [(slice(None),) * 2, ("poisonous", 1), (["poisonous"], [1]), (0, 0)])
def test_slices_are_those_of_the_arrays(anova, table, rows, features, positions, outputs, numbers):
    e = anova.explain(table, risk)
    part = e[rows, features, outputs]
    same(
        part,
        e.values[:, :, numbers][:, positions][rows],
        e.base_values[:, numbers][rows],
        e.residual[:, numbers][rows],
        e.data[:, positions][rows],
        e.display_data[:, positions][rows],
        e.outside[rows],
    )
    assert part.feature_names == tuple(np.array(e.feature_names)[positions].reshape(-1))
    assert part.output_names == tuple(np.array(e.output_names)[numbers].reshape(-1))
    assert part.game == e.game
    frame = part.to_frame()
    assert len(frame) == part.outside.size * len(part.feature_names)
    columns = ["value"] if np.ndim(np.array(e.output_names)[numbers]) == 0 else list(part.output_names)
    assert np.array_equal(frame[columns].to_numpy().ravel(), part.values.ravel())
    assert repr(part).endswith(f"; {e.game}>")


def test_slices_may_be_cut_again_along_what_is_left(anova, table):
    e = anova.explain(table, risk)
    assert np.array_equal(e[0]["odor"].values, e[0, "odor"].values)
    assert np.array_equal(e[:, "odor"][3].values, e[3, "odor"].values)
    assert np.array_equal(e[:, :, "poisonous"][1:3, "ring"].values, e[1:3, "ring", "poisonous"].values)
    assert np.array_equal(e[..., "poisonous"].values, e[:, :, "poisonous"].values)
    assert np.array_equal(e[2, ..., "edible"].values, e[2, :, "edible"].values)
    assert e[0, "odor", "edible"].values.ndim == 0
    assert len(e[np.zeros(len(e), dtype=bool)].to_frame()) == 0


def test_slices_that_do_not_exist_are_named(anova, table):
    e = anova.explain(table)
    for key in ((slice(None), "colour"), (slice(None), ["odor", "colour"])):
        with pytest.raises(UnknownFeatureError, match="no feature 'colour'; they are odor, ring, habitat"):
            e[key]
    with pytest.raises(UnknownFeatureError, match="no output 'tasty'; they are edible, poisonous"):
        e[:, :, "tasty"]
    with pytest.raises(InputError, match=r"rows have no names.*e\[:, 'odor'\]"):
        e["odor"]
    with pytest.raises(InputError, match="4 indices"):
        e[0, 0, 0, 0]
    with pytest.raises(InputError, match="3 indices"):
        e[:, :, "edible"][0, 0, 0]
    with pytest.raises(IndexError):
        e[len(table)]


# Tables, and the name of the game


def test_the_long_table_has_one_line_for_each_row_and_feature(anova, table):
    e = anova.explain(table)
    frame = e.to_frame()
    assert list(frame.columns) == ["row", "feature", "level", "edible", "poisonous"]
    assert frame["row"].tolist() == [n for n in range(len(table)) for _ in range(3)]
    assert frame["feature"].tolist() == ["odor", "ring", "habitat"] * len(table)
    assert frame["level"].tolist() == table.to_numpy().ravel().tolist()
    assert np.array_equal(frame[["edible", "poisonous"]].to_numpy(), e.values.reshape(-1, 2))


def test_an_output_named_like_a_column_keeps_its_numbers(table):
    anova = FunctionalANOVA(shrinkage=None).fit(table, risk, output_names=["game", "row"])
    e, i = anova.explain(table), anova.interactions(table)
    assert list(e.to_frame().columns) == ["row", "feature", "level", "game", "row_"]
    assert np.array_equal(e.to_frame()["game"], e.values[:, :, 0].ravel())
    assert np.array_equal(i.to_frame()["row_"], i.values[:, :, 1].ravel())


def test_every_object_and_every_table_names_its_game(anova, table):
    e, i = anova.explain(table), anova.interactions(table)
    compared = anova.compare(anova)
    for thing in (e, e[0], e[:, "odor"], i, compared, anova.components(table), anova.effects_, anova.effects_["odor"]):
        assert "joint distribution" in repr(thing)
        assert "not the marginal game" in repr(thing)
    assert "joint distribution" in str(anova)
    assert "joint distribution" in str(compared)
    kinds = ("l1", "l2", "shapley", "variance", "shapley-effects")
    for frame in (e.to_frame(), i.to_frame(), compared.to_frame(), *map(anova.importance, kinds)):
        assert "joint distribution" in frame.attrs["game"]
        assert "game" not in frame


def test_real_table_adds_up(data_directory):
    X = pd.read_csv(data_directory / "mushroom.csv.gz", dtype=str, keep_default_na=False)
    poisonous = (X.pop("class") == "p").to_numpy(dtype=float)
    chosen = X[["odor", "spore-print-color", "gill-color", "ring-type", "habitat", "veil-type"]]
    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(chosen, poisonous)
    e = anova.explain(chosen, poisonous)
    assert np.abs(e.values.sum(axis=1) + e.base_values + e.residual - poisonous).max() < LAW
    assert not e[:, "veil-type"].values.any()  # a constant column
    assert anova.importance("shapley")["feature"][0] == "odor"
