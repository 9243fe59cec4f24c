"""Everything shap and shapiq draw, drawn from what is exported."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest

from exanova import FunctionalANOVA
from peers import figures, shap, shapiq

ROWS = list(product(["almond", "foul", "none"], ["one", "two"], ["wood", "path", "(missing)"]))


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(ROWS * 2, columns=["odor", "ring", "habitat"])


def classes(X):
    odor, ring, habitat = (X[c] for c in ("odor", "ring", "habitat"))
    poisonous = 0.1 + 0.6 * (odor == "foul") + 0.1 * ((ring == "two") & (odor == "none")) + 0.05 * (habitat == "path")
    return np.stack([1 - poisonous, poisonous], axis=1)


@pytest.fixture(scope="module")
def several(table):
    return FunctionalANOVA(shrinkage=None, max_order=None).fit(table, classes, output_names=["edible", "poisonous"])


@pytest.fixture(scope="module")
def single(table):
    return FunctionalANOVA(shrinkage=None, max_order=2).fit(table, lambda X: classes(X)[:, 1])


EXPORTS = {
    "one output": lambda single, several, table: single.explain(table).to_shap(),
    "sliced before": lambda single, several, table: several.explain(table)[:, :, "poisonous"].to_shap(),
    "sliced after": lambda single, several, table: several.explain(table).to_shap()[:, :, 1],
}


@pytest.fixture(params=EXPORTS)
def exported(request, single, several, table):
    return EXPORTS[request.param](single, several, table)


SHAP_PLOTS = {
    "bar": lambda e: shap.plots.bar(e, show=False),
    "bar of one row": lambda e: shap.plots.bar(e[0], show=False),
    "beeswarm": lambda e: shap.plots.beeswarm(e, show=False),
    "waterfall": lambda e: shap.plots.waterfall(e[0], show=False),
    "heatmap": lambda e: shap.plots.heatmap(e, show=False),
    "scatter": lambda e: shap.plots.scatter(e[:, "odor"], show=False),
    "scatter coloured": lambda e: shap.plots.scatter(e[:, "odor"], color=e[:, "ring"], show=False),
    "violin": lambda e: shap.plots.violin(e, show=False),
}


@pytest.mark.parametrize("plot", SHAP_PLOTS)
def test_shap_draws_it(plot, exported):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=PendingDeprecationWarning, module=r"shap\..*")
        with figures():
            SHAP_PLOTS[plot](exported)


def test_shap_draws_one_row_that_was_cut_here(several, table):
    with figures():
        shap.plots.waterfall(several.explain(table)[3, :, "poisonous"].to_shap(), show=False)


def test_shap_receives_every_output(several, table):
    e = several.explain(table)
    whole = e.to_shap()
    assert whole.values.shape == (len(table), 3, 2)
    assert whole.output_names == ["edible", "poisonous"]
    assert list(whole.feature_names) == ["odor", "ring", "habitat"]
    assert np.array_equal(whole[:, :, 1].values, e[:, :, "poisonous"].values)
    assert whole.display_data.tolist() == table.to_numpy().tolist()
    assert np.array_equal(whole.data, e.data)
    assert np.array_equal(whole.base_values, e.base_values)


SHAPIQ_PLOTS = {
    "network": lambda i, names, data: shapiq.plot.network_plot(i, feature_names=names, show=False),
    "upset": lambda i, names, data: shapiq.plot.upset_plot(i, feature_names=names, show=False),
    "force": lambda i, names, data: i.plot_force(feature_names=names, show=False),
    "waterfall": lambda i, names, data: i.plot_waterfall(feature_names=names, show=False),
}


@pytest.mark.parametrize("plot", SHAPIQ_PLOTS)
@pytest.mark.parametrize("index", ["k-SII", "STII", "FSII", "Moebius"])
@pytest.mark.parametrize("outputs", ["single", "several"])
def test_shapiq_draws_it(plot, index, outputs, single, several, table):
    anova = single if outputs == "single" else several
    found = anova.interactions(table.iloc[:2], index=index, order=2)
    row = found.to_shapiq(None if outputs == "single" else "poisonous")[1]
    with figures():
        SHAPIQ_PLOTS[plot](row, list(table.columns), table.iloc[1].to_numpy())


def test_shapiq_draws_shapley_values(single, table):
    with figures():
        single.interactions(table.iloc[:1], index="SV", order=1).to_shapiq()[0].plot_waterfall(
            feature_names=list(table.columns), show=False
        )
