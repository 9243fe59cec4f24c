"""Only the ratios of real weights count, whatever their size."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.apart.moments import collect_moments
from exanova.data import Support, check_weights
from exanova.data.learning import learn_encoding
from exanova.data.table import Table
from exanova.errors import InputError

N = 90
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.choice(list("xyz"), N), "b": RNG.normal(size=N), "c": RNG.choice(["u", "v"], N)})
Y = (X["a"] == "x") + X["b"] + RNG.normal(0, 0.3, N)
WEIGHT = RNG.random(N) + 0.1
REPLICATES = WEIGHT[:, None] * RNG.integers(1, 3, (N, 4))

WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "shrunk": ({}, {}),
    "exact": ({"shrinkage": None}, {}),
    "orders": ({"shrinkage": None, "max_order": None, "n_bins": 4}, {}),
    "clusters": ({}, {"clusters": np.arange(N) // 2}),
    "strata": ({}, {"strata": np.arange(N) % 2}),
    "held out": ({}, {"eval_set": 0.3}),
    "log": ({"link": "log"}, {}),
}


def fitted(scale: float, way: str) -> FunctionalANOVA:
    parameters, said = WAYS[way]
    outputs = np.exp(Y) if way == "log" else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        return FunctionalANOVA(**parameters).fit(X, outputs, sample_weight=WEIGHT * scale, **said)


def numbers(anova: FunctionalANOVA) -> np.ndarray:
    certificate = anova.certificate_
    tables = [(effect.values.ravel(), effect.stderr.ravel()) for effect in anova.effects_.values()]
    return np.concatenate([anova.intercept_, certificate.r2, certificate.r2_eval, *np.hstack(tables)])


@pytest.mark.parametrize("way", WAYS)
@given(scale=st.one_of(st.integers(-1000, 1000).map(lambda k: 2.0**k), st.integers(-300, 300).map(lambda k: 10.0**k)))
@example(scale=1e-300)
@example(scale=1e-160)
@example(scale=1e200)
@settings(max_examples=2, deadline=None)
def test_a_power_times_all_real_weights_changes_nothing_but_rounding(way, scale):
    np.testing.assert_allclose(numbers(fitted(scale, way)), numbers(fitted(1.0, way)), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_replicate_weights_of_any_size(scale):
    def errors(scale):
        given = (REPLICATES * scale, 0.25)
        anova = FunctionalANOVA().fit(X, Y, sample_weight=WEIGHT * scale, replicate_weights=given)
        return anova.effects_["a"].stderr

    np.testing.assert_allclose(errors(scale), errors(1.0), rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_weights_in_a_file_of_any_size(scale, tmp_path):
    def from_file(scale):
        X.assign(p=Y, w=WEIGHT * scale).to_parquet(tmp_path / "rows.parquet")
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            return FunctionalANOVA().fit(tmp_path / "rows.parquet", "p", sample_weight="w")

    np.testing.assert_allclose(numbers(from_file(scale)), numbers(from_file(1.0)), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_a_distribution_on_any_scale(scale):
    pmf = np.array([[0.3, 0.2], [0.4, 0.1]])
    model = np.array([1.0, 2.0, 3.0, 5.0])
    tables = [
        FunctionalANOVA(sampled=False).fit(Support.from_pmf(own), model).effects_["x0", "x1"].values
        for own in (pmf, pmf * scale)
    ]
    np.testing.assert_allclose(*tables, rtol=1e-12)


def test_no_row_of_positive_weight_is_lost():
    weight = check_weights([1e300, 1e-300, 0.0], 3)
    assert (weight > 0).tolist() == [True, True, False]


def test_weights_that_add_up_to_more_than_a_float_are_those_of_their_ratios():
    np.testing.assert_array_equal(np.diff(check_weights([1e308] * 4, 4)), 0)


def test_ordinary_weights_stay_as_they_are():
    np.testing.assert_array_equal(check_weights([0.5, 1e30], 2), [0.5, 1e30])
    assert check_weights([3.0, 5.0], 2).tolist() == [3, 5]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_weights_of_several_places_are_not_divided_by_each(scale):
    levels = learn_encoding(Table.read(X[["a", "c"]]))
    with pytest.raises(InputError, match="divide the weights of all places by the same number"):
        collect_moments(X[["a", "c"]], Y, levels, sample_weight=WEIGHT * scale)


@pytest.mark.parametrize("tiny", [1e-160, 1e-200, 1e-300])
@pytest.mark.parametrize("shrinkage", ["auto", None])
@pytest.mark.parametrize("kind", ["auto", "probability"])
def test_weights_whose_squares_vanish_are_like_other_small_ones(tiny, shrinkage, kind):
    # Warnings of NumPy are errors in the tests.
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(list("uvw"), 240), rng.choice(list("pq"), 240)])
    y = (X[:, 0] == "u") * 1.0 + rng.normal(size=240)
    light, own = rng.random(240) < 0.5, rng.uniform(0.5, 2.0, 240)

    def fitted(small):
        anova = FunctionalANOVA(shrinkage=shrinkage)
        return anova.fit(X, y, sample_weight=np.where(light, small, own), weights=kind)

    found, like = fitted(tiny), fitted(1e-60)
    np.testing.assert_allclose(found.certificate_.r2_eval, like.certificate_.r2_eval, rtol=1e-9)
    for name, effect in found.effects_.items():
        np.testing.assert_allclose(effect.stderr, like.effects_[name].stderr, rtol=1e-6)


@pytest.mark.parametrize("tiny", [1e-160, 1e-200, 1e-300])
@pytest.mark.filterwarnings("ignore::exanova.errors.InexactWarning")
def test_cells_of_small_weights_alone_have_rows(tiny):
    X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]] * 20 + [["c", "u"]] * 5)
    y = np.random.default_rng(0).normal(size=len(X))
    weight = np.where(X[:, 0] == "c", tiny, np.linspace(0.5, 1.0, len(X)))
    anova = FunctionalANOVA(max_order=1, shrinkage=None).fit(X, y, sample_weight=weight, weights="probability")
    anova.errors()
    assert np.isclose(dict(zip(anova.effects_["x0"].levels, anova.effects_["x0"].rows, strict=True))["c",], 5.0)
