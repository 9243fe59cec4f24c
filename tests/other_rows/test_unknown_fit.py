"""Where the fit on other rows cannot be measured, the certificate says why, and gives no verdict."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from exanova import FunctionalANOVA
from exanova.other_rows import evaluation


def table(rows: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (rows, 4))
    return X, X[:, 0] * X[:, 1] + rng.normal(size=rows)


def one_cluster():
    X, y = table()
    return FunctionalANOVA().fit(X, y, clusters=np.zeros(len(X), dtype=int))


def one_cluster_with_joined_levels():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"job": rng.integers(0, 80, 900).astype(str), "z": rng.integers(0, 3, 900)})
    y = (X["job"].astype(int) % 3 + X["z"] + rng.normal(size=900)).to_numpy()
    return FunctionalANOVA().fit(X, y, clusters=np.zeros(len(X), dtype=int))


@pytest.mark.parametrize("fit", [one_cluster, one_cluster_with_joined_levels])
def test_one_cluster_leaves_no_other_rows(fit):
    certificate = fit().certificate_
    assert certificate.r2_eval is None
    assert certificate.holds is None
    assert certificate.eval_method == "all rows are in one cluster"
    assert "not measured: all rows are in one cluster" in str(certificate)


def test_what_would_take_too_long_is_said_to(monkeypatch):
    monkeypatch.setattr(evaluation, "other_rows", lambda *_: None)
    X, y = table(60)
    certificate = FunctionalANOVA(shrinkage=None, max_order=3).fit(X, y).certificate_
    assert certificate.r2_eval is None
    assert "not measured: there are about as many functions as rows" in str(certificate)
