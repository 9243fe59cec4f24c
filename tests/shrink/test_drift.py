"""Ratios without a row: the gradients of its error and of its density are those of dense matrices, by differences."""

from __future__ import annotations

import numpy as np
import pytest
from test_continued import fitted, table

import exanova.shrink.fit as shrunken_fit
from exanova import FunctionalANOVA
from exanova.shrink import by_cells, drift


def test_errors_move_with_the_ratios_as_dense_matrices_say(monkeypatch):
    """Against derivatives by differences of e_i and of log p_i, and one step of Newton without the row."""
    caught = {}

    def spy(*given):
        caught["given"], caught["found"] = given, drift.drift(*given)
        return caught["found"]

    monkeypatch.setattr(shrunken_fit, "drift", spy)
    fitted(table(0, 30))
    rows, ratio, inverse, residual, precision, tau, information = caught["given"]
    kernels = [rows.of.kernels[k].dense()[np.ix_(at, at)] for k, at in enumerate(rows.cells)]
    y = residual + sum(w * k for w, k in zip(ratio, kernels, strict=True)) @ (precision[:, None] * residual)

    def of_rows(logs):
        c = np.diag(1.0 / precision) + sum(w * k for w, k in zip(np.exp(logs), kernels, strict=True))
        inverted = np.linalg.inv(c)
        kept = np.diag(inverted) - precision**2 / precision.sum()
        error = (inverted @ y)[:, 0] / kept
        return error, 0.5 * (np.log(kept) - kept * error**2 / tau[0])

    logs, step = np.log(ratio), 1e-5
    np.testing.assert_allclose(np.linalg.inv(inverse), np.linalg.inv(inverse).T, atol=1e-9)
    moves, density = np.empty((2, len(y), len(logs)))
    for k, direction in enumerate(np.eye(len(logs))):
        up, down = of_rows(logs + step * direction), of_rows(logs - step * direction)
        moves[:, k], density[:, k] = ((a - b) / (2 * step) for a, b in zip(up, down, strict=True))
    wanted = np.einsum("rk,rk->r", moves, -np.linalg.solve(information, density.T).T)
    error = np.abs(of_rows(logs)[0])
    np.testing.assert_allclose(caught["found"][:, 0], np.clip(wanted, -error, error), atol=1e-5 * error.max())
    assert np.abs(wanted).max() > 1e-3 * error.max()


def test_blocks_of_rows_do_not_change_the_gradients_and_too_many_rows_have_none(monkeypatch):
    rows = table(0, 30)
    plain = fitted(rows).certificate_.r2_eval
    monkeypatch.setattr(drift, "DRIFTING_BYTES", 0)
    assert fitted(rows).certificate_.r2_eval == pytest.approx(plain, rel=1e-9)
    monkeypatch.setattr(drift, "MOST_WORK", 0)
    assert fitted(rows).certificate_.r2_eval[0] > plain[0]


def test_kernels_at_few_rows_are_the_same_without_compiled_loops(monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, (150, 4))
    y = X[:, 0] * X[:, 1] + rng.normal(size=150)
    found = []
    for loaded in (False, True):
        monkeypatch.setattr(by_cells, "worth_loading", lambda *_, loaded=loaded: loaded)
        found.append(FunctionalANOVA(sampled=True).fit(X, y).certificate_.r2_eval[0])
    assert found[0] == pytest.approx(found[1], rel=1e-9)
