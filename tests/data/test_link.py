"""Links: which function of the output is decomposed, what is averaged first, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import exanova
from exanova import FunctionalANOVA
from exanova.data.link import LINKS
from exanova.errors import InputError

CELLS = ["region", "car"]


def policies(seed=0, n=4000):
    """Single policies with their exposure and number of claims; most have none."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"region": rng.choice(["north", "south", "east"], n), "car": rng.choice(["small", "large"], n)}
    )
    exposure = rng.uniform(0.2, 1.0, n)
    rate = 0.2 * np.where(table["region"] == "north", 1.5, 1.0) * np.where(table["car"] == "large", 2.0, 1.0)
    return table, exposure, rng.poisson(rate * exposure)


@pytest.mark.parametrize("name", ["identity", "log", "logit"])
def test_a_link_has_an_inverse_and_a_slope(name):
    link, at = LINKS[name], np.linspace(0.05, 0.95, 7)[:, None]
    assert np.allclose(link.back(link.forward(at)), at)
    step = 1e-6
    assert np.allclose((link.forward(at + step) - link.forward(at - step)) / (2 * step), link.slope(at), rtol=1e-6)


def test_outputs_of_rows_are_averaged_by_weight_before_the_log():
    table, exposure, claims = policies()
    anova = FunctionalANOVA(link="log", shrinkage=None).fit(
        table, claims / exposure, sample_weight=exposure, output_names=["rate"]
    )
    assert anova.output_names_ == ("log(rate)",)
    sums = pd.DataFrame({**table, "claims": claims, "exposure": exposure}).groupby(CELLS).sum()
    rates = (sums["claims"] / sums["exposure"]).rename("rate").reset_index()
    assert np.allclose(anova.predict(rates[CELLS]), np.log(rates["rate"]))
    assert np.allclose(anova.predict(rates[CELLS], scale="response"), rates["rate"])
    weights = sums["exposure"].to_numpy()
    assert np.isclose(anova.intercept_[0], np.average(np.log(rates["rate"]), weights=weights))
    assert "link: log; effects add up on the log of the output" in str(anova)


def test_the_standard_error_of_a_linked_mean_is_that_of_the_delta_method():
    table, exposure, claims = policies()
    one = FunctionalANOVA(link="log", shrinkage=None, max_order=1).fit(
        table[["car"]], claims / exposure, sample_weight=exposure
    )
    effect = one.effects_["car"]
    large = (table["car"] == "large").to_numpy()
    logs, errors = [], []
    for own in (large, ~large):
        rate = claims[own].sum() / exposure[own].sum()
        spread = ((claims[own] - rate * exposure[own]) ** 2).sum() / exposure[own].sum() ** 2
        logs.append(np.log(rate))
        errors.append(spread / rate**2)
    contrast = effect.values[0, 0] - effect.values[1, 0]
    assert np.isclose(contrast, logs[0] - logs[1])
    cells = one.decomposition_.family.cells_of(1)
    block = one.decomposition_.uncertainty.all_cells[0, cells, cells]
    w = np.array([1.0, -1.0])
    assert np.isclose(w @ block @ w, sum(errors), rtol=0.01)


def test_values_of_a_model_are_linked_one_by_one():
    table, _, _ = policies(n=200)

    def model(rows):
        return np.where(rows["region"] == "north", 0.3, 0.1) * np.where(rows["car"] == "large", 2.0, 1.0)

    anova = FunctionalANOVA(link="log", sampled=False).fit(table, model)
    assert np.allclose(anova.predict(table), np.log(model(table)))
    assert np.isclose(anova.effects_["region", "car"].norm2[0], 0.0, atol=1e-20)
    assert anova.score(table, model) == pytest.approx(1.0)
    e = anova.explain(table, model)
    assert np.allclose(e.residual, 0.0, atol=1e-12)
    assert np.allclose(np.exp(e.values.sum(axis=1) + e.base_values), model(table))
    odds = FunctionalANOVA(link="logit", sampled=False).fit(table, model)
    assert np.allclose(odds.predict(table, scale="response"), model(table))


def test_outputs_at_new_rows_are_linked_like_those_of_the_fit():
    table, exposure, claims = policies()
    rate = claims / exposure
    anova = FunctionalANOVA(link="log", shrinkage=None).fit(table, rate, sample_weight=exposure)
    assert np.isclose(anova.score(table, rate, sample_weight=exposure), anova.certificate_.r2[0])
    split = anova.difference(table, by="region", model=rate, sample_weight=exposure)
    for contrast in split:
        assert np.isclose(contrast.by_subset.sum() + contrast.residual[0], contrast.total[0], atol=1e-12)
        assert np.isclose(contrast.residual[0], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("link", "values", "words"),
    [
        ("log", [0.5, 0.0, 2.0, 0.0], r"outputs above 0, but .* 0 in row 1 \(2 of 4 rows: 1, 3\)"),
        ("log", [0.5, -1.0, 2.0, 3.0], "-1 in row 1"),
        ("logit", [0.5, 0.2, 1.0, 0.3], r"above 0 and below 1, but .* 1 in row 2"),
    ],
)
@pytest.mark.parametrize("as_model", [False, True])
def test_values_outside_of_a_link_are_refused_with_their_rows(link, values, words, as_model):
    X = np.array([["a"], ["b"], ["c"], ["d"]])
    with pytest.raises(InputError, match=words):
        FunctionalANOVA(link=link).fit(X, (lambda rows: np.array(values)) if as_model else np.array(values))


def test_links_that_do_not_exist_are_refused():
    X = np.array([["a"], ["b"]])
    with pytest.raises(InputError, match="link='probit' was given; expected 'identity', 'log' or 'logit'"):
        FunctionalANOVA(link="probit").fit(X, np.array([0.1, 0.2]))
    with pytest.raises(InputError, match="expected 'link' or 'response'"):
        FunctionalANOVA(sampled=False).fit(X, np.array([0.1, 0.2])).predict(X, scale="odds")


def test_files_keep_the_link(tmp_path):
    table, exposure, claims = policies()
    anova = FunctionalANOVA(link="log").fit(table, claims / exposure, sample_weight=exposure, output_names=["rate"])
    anova.save(tmp_path / "a.exanova")
    again = exanova.load(tmp_path / "a.exanova")
    assert again.get_params()["link"] == "log"
    assert np.array_equal(again.predict(table, scale="response"), anova.predict(table, scale="response"))
    assert str(again.relativities()) == str(anova.relativities())
    again.set_params(link="identity")
    assert np.array_equal(again.predict(table, scale="response"), anova.predict(table, scale="response"))


def test_held_out_rows_are_linked_once():
    table, exposure, claims = policies()
    rate = claims / exposure
    half = len(table) // 2
    eval_set = (table[half:], lambda rows: np.full(len(rows), 0.3))
    anova = FunctionalANOVA(link="log").fit(table[:half], rate[:half], sample_weight=exposure[:half], eval_set=eval_set)
    assert np.isfinite(anova.certificate_.mse_eval).all()
    assert anova.certificate_.mse_eval[0] < 1.0
