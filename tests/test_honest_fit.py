"""What is lost adds up to 1 - R2, and effects that cancel are named."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA
from exanova.data.table import Table
from exanova.effects.average_leverage import on_average
from exanova.errors import OverfitWarning
from exanova.other_rows.evaluation import warn_if_it_does_not_hold
from exanova.report.summary import summarise
from exanova.shrink import evaluate
from strategies import MODERATE, examples, fit, on_rows, supports


@examples(40)
@given(case=supports(MODERATE, max_features=4), order=st.integers(1, 3))
def test_the_parts_of_the_loss_add_up_to_what_is_not_explained(case, order):
    certificate = fit(case, max_order=order).certificate_
    varies = np.ptp(case.values, axis=0) > 0
    np.testing.assert_allclose(certificate.loss.total[varies], 1.0 - certificate.r2[varies], atol=1e-9)
    assert (certificate.loss.levels == 0).all()
    assert (certificate.loss.noise == 0).all()


@examples(30)
@given(seed=st.integers(0, 2**32 - 1), bins=st.integers(2, 4))
def test_each_loss_is_counted_where_it_happens(seed, bins):
    """Variance between means of nested groups: equal rows, equal encoded rows, fitted values."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 25, 80) / 4.0
    g = rng.choice(["a", "b", "c"], 80)
    y = x**2 + (g == "a") * x + rng.normal(size=80)
    table = pd.DataFrame({"x": x, "g": g})
    anova = FunctionalANOVA(max_order=1, n_bins={"x": bins}, strategy="uniform", shrinkage=None).fit(table, y)
    loss, total = anova.certificate_.loss, np.var(y)
    equal = pd.Series(y).groupby([x, g]).transform("mean")
    codes = anova.decomposition_.encoding.encode(Table.read(table))
    coded = pd.Series(y).groupby([codes[0], g]).transform("mean")
    assert loss.noise[0] == pytest.approx(np.mean((y - equal) ** 2) / total, abs=1e-9)
    assert loss.levels[0] == pytest.approx(np.mean((equal - coded) ** 2) / total, abs=1e-9)
    assert loss.left_out[0] == pytest.approx(np.mean((coded - anova.predict(table)) ** 2) / total, abs=1e-9)
    assert loss.shrinkage[0] == 0
    assert loss.total[0] == pytest.approx(1.0 - anova.score(table, y), abs=1e-9)


@examples(30)
@given(case=supports(MODERATE, max_features=4), order=st.integers(1, 2))
def test_cancellation_is_the_summed_variance_of_the_effects_over_that_of_their_sum(case, order):
    anova = fit(case, max_order=order)
    effects, p = on_rows(anova, case.rows), case.probability
    apart = sum((p @ values**2 for subset, values in effects.items() if subset), np.zeros(case.values.shape[1]))
    together = sum(effects.values())
    variance = p @ (together - p @ together) ** 2
    rounding = 1e-24 * np.abs(together).max(axis=0) ** 2  # a constant model varies by as much
    seen = variance > np.maximum(1e-9 * apart, rounding)
    np.testing.assert_allclose(anova.certificate_.cancellation[seen], apart[seen] / variance[seen], rtol=1e-6)


def test_independent_features_do_not_cancel_and_twins_do():
    grid = np.array([(a, b, c) for a in range(2) for b in range(3) for c in range(2)])
    y = grid @ [1.0, 2.0, 3.0]
    certificate = FunctionalANOVA(shrinkage=None).fit(grid, y).certificate_
    assert certificate.cancellation[0] == pytest.approx(1.0)
    assert certificate.near_redundant == ()
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 400)
    twin = np.where(rng.random(400) < 0.01, 1 - a, a)
    rows = np.column_stack([a, twin, rng.integers(0, 2, 400)])
    certificate = FunctionalANOVA(max_order=1, shrinkage=None).fit(rows, 10.0 * (a - twin) + rows[:, 2]).certificate_
    assert certificate.near_redundant == (("x0", "x1"),)
    assert certificate.cancels


@pytest.mark.parametrize("order", [1, 2])
def test_the_mean_leverage_tells_the_same_as_each_row_of_a_balanced_table(order):
    cells = np.array(np.meshgrid([0, 1, 2], [0, 1], [0, 1, 2])).reshape(3, -1).T
    rows = np.repeat(cells, 4, axis=0)
    y = np.random.default_rng(order).normal(size=len(rows))
    measured = FunctionalANOVA(max_order=order, shrinkage=None, sampled=True).fit(rows, y + rows[:, 0]).certificate_
    assert measured.eval_method == "leaving out each row"
    again = on_average(measured, len(rows))
    np.testing.assert_allclose(again.r2_eval, measured.r2_eval, atol=1e-10)
    np.testing.assert_allclose(again.mse_eval, measured.mse_eval, rtol=1e-10)
    assert on_average(measured, measured.rank) is measured  # as many rows as directions: each may fit itself


@pytest.mark.parametrize("route", ["grid", "dense", "moments", "matrix-free", "completion"])
def test_the_fit_on_other_rows_is_always_there(route, monkeypatch):
    """Also where rows are not left out one by one, because there are no functions, or that would take too long."""
    monkeypatch.setattr(evaluate, "CHEAP_WORK", 0.0)
    cells = np.array(np.meshgrid([0, 1, 2], [0, 1], [0, 1])).reshape(3, -1).T
    rows = np.concatenate([cells, cells[np.random.default_rng(0).integers(0, 12, 400)]])
    y = rows[:, 0] + np.random.default_rng(1).normal(size=len(rows))
    anova = FunctionalANOVA(max_order=None, route=route, shrinkage=None, sampled=True).fit(rows, y)
    certificate = anova.certificate_
    kept = 1.0 - certificate.rank / len(rows)
    np.testing.assert_allclose(1.0 - certificate.r2_eval, (1.0 - certificate.r2) / kept**2)
    assert certificate.holds is not None
    assert certificate.eval_method == "leaving out a row of average leverage"


def test_the_mean_of_the_model_is_known_at_every_level(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 3, 200), "b": rng.integers(0, 2, 200)}).astype(str)
    y = 100.0 + rng.normal(size=200)
    weight = rng.integers(1, 4, 200)
    anova = FunctionalANOVA().fit(table, y, sample_weight=weight)
    anova.save(tmp_path / "a.exanova")
    for found in (anova, exanova.load(tmp_path / "a.exanova")):
        effect = found.effects_["a"]
        for (level,), mean in zip(effect.levels, effect.model_mean[:, 0], strict=True):
            own = (table["a"] == level).to_numpy()
            np.testing.assert_allclose(mean, np.average(y[own], weights=weight[own]))
        assert np.isnan(found.effects_["a", "b"].model_mean).all()


@pytest.mark.parametrize("uses_it", [True, False])
def test_what_a_column_that_is_left_out_explains_is_not_put_on_orders_alone(uses_it, tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.choice(list("uvw"), 300), "comment": [f"text {k}" for k in rng.permutation(300)]})

    def model(table):
        return (table["a"] == "u") + uses_it * 1.0 * table["comment"].str.endswith("7")

    with pytest.warns(UserWarning, match="'comment'"):
        anova = FunctionalANOVA(max_order=None).fit(rows, model)
    anova.save(tmp_path / "kept.exanova")
    anova.report(tmp_path / "report.html")
    for certificate in (anova.certificate_, exanova.load(tmp_path / "kept.exanova").certificate_):
        assert certificate.columns_out == ("comment",)
        assert "left out        comment: in no effect" in str(certificate)
        assert ("bins, merged levels and columns left out" in str(certificate)) == uses_it
        assert "bins and merged levels" not in str(certificate)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert ("bins, merged levels and columns left out" in page) == uses_it
    many = rows.assign(**{name: rng.normal(size=300) for name in "xyz"})  # no two rows are equal without the comment
    with pytest.warns(UserWarning, match="'comment'"):
        apart = FunctionalANOVA(max_order=1).fit(many, model).certificate_
    assert ("orders, terms and columns left out" in str(apart)) == uses_it
    assert "orders and terms left out" not in str(apart)
    own = FunctionalANOVA().fit(rows[["a"]], model(rows)).certificate_
    assert own.columns_out == ()
    assert "columns" not in str(own)


def test_what_calls_for_care_is_the_first_thing_in_a_report(tmp_path):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 300)
    second = np.where(rng.random(300) < 0.9, first, rng.integers(0, 4, 300))
    table = pd.DataFrame({"a": first, "b": second, "c": rng.integers(0, 9, 300), "d": rng.integers(0, 9, 300)})
    y = 3.0 * first - 3.0 * second + rng.normal(size=300)
    with pytest.warns(OverfitWarning):
        anova = FunctionalANOVA(shrinkage=None).fit(table.astype(str), y)
    anova.report(tmp_path / "r.md")
    anova.report(tmp_path / "r.html")
    text = (tmp_path / "r.md").read_text()
    order = ["Read this first", "Does it hold on other rows?** No", "Do effects cancel?", "What the model does"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert "mean of the model at the level" in text
    page = (tmp_path / "r.html").read_text()
    assert page.index("Does it hold on other rows?") < page.index('id="does"')
    good = FunctionalANOVA(max_order=1).fit(table[["c"]].astype(str), table["c"].astype(float))
    first, *others = summarise(good.decomposition_).read_first
    assert (first["question"], others) == ("Does it hold on other rows?", [])


@pytest.mark.parametrize("given", [{}, {"route": "moments"}, {"max_order": None}], ids=str)
@pytest.mark.parametrize("n", [150, 400])
def test_an_exact_fit_of_more_functions_than_rows_knows_how_it_does_on_other_rows(given, n, monkeypatch):
    """Low orders express what they can without a row too; the mean leverage says nothing where rows decide alone."""
    rng = np.random.default_rng(n)

    def drawn(count):
        x = rng.random((count, 4)).round(3)
        return x, np.sin(6 * x[:, 0]) + 3 * x[:, 1] * x[:, 2]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anova = FunctionalANOVA(shrinkage=None, handle_unknown="ignore", n_bins=16, **given).fit(*drawn(n))
        fresh = anova.score(*drawn(5000))
    certificate = anova.certificate_
    assert certificate.n_functions > n
    assert certificate.r2_eval is not None
    assert certificate.r2_eval[0] == pytest.approx(fresh, abs=0.08)
    monkeypatch.setattr(evaluate, "WORK_OF_NEARLY_ALL", 0.0)
    again = FunctionalANOVA(shrinkage=None, n_bins=16).fit(*drawn(n)).certificate_
    assert again.r2_eval is None
    assert again.holds is None


@pytest.mark.parametrize("ridge", [0.01, 0.3, 3.0])
def test_a_fit_with_a_ridge_knows_how_it_does_on_other_rows(ridge):
    found, fresh = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 3, size=(5400, 4))
        y = (rows[:, 0] == 0) + rows[:, 1] * (rows[:, 2] == 2) + rng.normal(size=len(rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            anova = FunctionalANOVA(ridge=ridge).fit(rows[:400], y[:400])
        found.append(anova.certificate_.r2_eval[0])
        fresh.append(anova.score(rows[400:], y[400:]))
    assert np.mean(found) == pytest.approx(np.mean(fresh), abs=0.05)


@pytest.mark.parametrize("ridge", [0.02, 0.2])
def test_a_ridge_on_cells_of_one_row_knows_how_it_does_on_other_rows(ridge):
    """Without the row its cell was never observed: the fit without it is a ridge on other functions."""
    found, fresh = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 8, size=(4080, 2))
        y = np.sin(rows[:, 0]) + (rows[:, 1] == 2) + 0.3 * rng.normal(size=len(rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            anova = FunctionalANOVA(ridge=ridge, n_bins=None).fit(rows[:80], y[:80])
            fresh.append(anova.score(rows[80:], y[80:]))
        certificate = anova.certificate_
        assert certificate.n_functions > 40
        assert certificate.holds is not None
        assert certificate.notes == (f"ridge={ridge} shrinks the effects; ridge=0 is exact",)
        found.append(certificate.r2_eval[0])
    assert np.mean(found) == pytest.approx(np.mean(fresh), abs=0.06)


@pytest.mark.parametrize(
    ("other", "failing", "said"),
    [
        ([0.50, 1.0, -0.01], (2,), "R2 of 'weak' is 0.02 on these rows and -0.01 leaving out each row; more rows"),
        ([0.20, 1.0, -0.01], (0, 2), "R2 of 'strong' is 0.58 on these rows and 0.20 leaving out each row (and 1 other"),
        ([0.20, 0.7, -0.01], (0, 1, 2), "(and 2 other outputs)"),
    ],
)
def test_outputs_that_do_not_hold_are_named(other, failing, said):
    """Not those whose R2 falls most: of a weak output little can fall, and nothing may remain."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 3, size=(60, 2))
    names = ["strong", "constant", "weak"]
    known = FunctionalANOVA(max_order=1).fit(rows, rng.normal(size=(60, 3)), output_names=names).decomposition_
    measured = replace(known.certificate, r2=np.array([0.58, 1.0, 0.02]), r2_eval=np.array(other))
    with pytest.warns(OverfitWarning) as caught:
        warn_if_it_does_not_hold(replace(known, certificate=measured))
    assert measured.failing == failing
    assert said in str(caught[0].message)
    numbers = "" if len(failing) == 3 else f" (output {', '.join(str(k + 1) for k in failing)} of 3)"
    assert f"the fit does NOT hold on other rows{numbers}\n" in str(measured)
    because = summarise(replace(known, certificate=measured)).read_first[0]["because"]
    named = ", ".join(names[k] for k in failing)
    expected = "It holds for no output." if len(failing) == 3 else f"It does not hold for {named}; it holds for the"
    assert expected in because


@pytest.mark.parametrize(
    ("given", "remedies"),
    [
        ({}, []),
        ({"max_order": 1}, []),
        ({"shrinkage": None}, [{"max_order": 1}, {"shrinkage": "auto"}]),
        ({"shrinkage": None, "max_order": 1}, [{"shrinkage": "auto"}]),
        ({"ties": "first"}, [{"max_order": 1}]),
        ({"ties": "first", "max_order": 1}, []),
    ],
)
def test_a_remedy_is_named_only_where_it_can_be_followed_and_it_helps(given, remedies):
    """More of other rows is explained with it, and the report names the same ones."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 4, size=(110, 5))
    y = rows[:, 0] + (rows[:, 1] > 1) * (rows[:, 2] > 1) + 2.5 * rng.normal(size=len(rows))
    with pytest.warns(OverfitWarning) as caught:
        anova = FunctionalANOVA(**given).fit(rows, y)
    because = summarise(anova.decomposition_).read_first[0]["because"]
    for said in (str(caught[0].message), because):
        named = [text for text in ("max_order=", "shrinkage='auto'") if text in said]
        assert named == [
            text for remedy in remedies for text in ("max_order=", "shrinkage='auto'") if text[:5] in str(remedy)
        ]
        assert "ore rows" in said
    for remedy in remedies:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = FunctionalANOVA(**(given | remedy)).fit(rows, y)
        assert other.certificate_.r2_eval[0] > anova.certificate_.r2_eval[0] + 0.02


@pytest.mark.parametrize("count", [1, 40])
def test_held_out_rows_whose_outputs_do_not_vary_say_nothing_of_r2(count, tmp_path):
    """R2 is not defined on them: the fit neither holds nor fails there, and nothing is warned of."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.integers(0, 3, 200), "b": rng.integers(0, 3, 200)}).astype(str)
    y = 1.0 * (rows["a"] == "1") + 0.1 * rng.normal(size=200)
    other = rows[:count]
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverfitWarning)
        anova = FunctionalANOVA().fit(rows, y, eval_set=(other, np.full(count, 0.5)))
    certificate = anova.certificate_
    assert (certificate.r2_eval, certificate.holds) == (None, None)
    expected = np.mean((0.5 - anova.predict(other)) ** 2)
    np.testing.assert_allclose(certificate.mse_eval, expected)
    assert "not measured: the outputs of the held-out rows do not vary" in str(certificate)
    anova.report(tmp_path / "r.md")
    assert "was not measured: the outputs of the held-out rows do not vary." in (tmp_path / "r.md").read_text()
    two = FunctionalANOVA().fit(
        rows, np.stack([y, y**2], axis=1), eval_set=(rows[:50], np.stack([y[:50], 0 * y[:50]], axis=1))
    )
    assert np.isnan(two.certificate_.r2_eval).tolist() == [False, True]
    assert two.certificate_.failing == ()
    assert two.certificate_.holds
    assert "unknown on held-out rows: the fit holds" in str(two.certificate_)
    two.report(tmp_path / "r.json")
    assert "NaN" not in (tmp_path / "r.json").read_text()
    constant = FunctionalANOVA().fit(rows, np.full(200, 0.3), eval_set=(other, np.full(count, 0.3)))
    assert constant.certificate_.r2_eval.tolist() == [1.0]
