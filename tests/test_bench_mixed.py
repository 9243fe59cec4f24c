"""The page on mixed tables says what was measured, and its models and measurements run on a small table."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from benchmarks import mixed_fits, mixed_page, native_models, tree_peers
from benchmarks.mixed_tables import Mixed


def small(classes: bool) -> Mixed:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(18, 90, 160), "home": rng.choice(["own", "rent", "other"], 160)})
    X.loc[::20, "home"] = np.nan
    y = 0.02 * X["age"] + (X["home"] == "rent") + 0.1 * rng.normal(size=160)
    return Mixed("Small", X, (y > y.median()).to_numpy().astype(int) if classes else y.to_numpy(), classes)


@pytest.mark.parametrize("kind", native_models.KINDS)
def test_every_kind_of_model_is_explained_without_a_parameter(kind):
    for package in ("lightgbm", "xgboost", "catboost"):
        if kind == package:
            pytest.importorskip(package, reason=f"{package} is not in the test group")
    for classes in (False, True):
        task = mixed_fits.Task(small(classes), kind)
        found = mixed_fits.judged(task)
        assert "failed" not in found
        assert found["held_out"] > 0.5
        assert len(task.held) == 32
    assert mixed_fits.judged(task, n_bins={"age": 4})["functions"] < found["functions"]


def case(title: str, held_out: float, seconds: float) -> dict:
    facts = {"held_out": held_out, "seconds": seconds}
    bins = {f"{bins} bins{kind}": facts for bins in mixed_page.BINS for kind in ("", ", exact")}
    return {"title": title, "rows": 100, "columns": 3, "numbers": 2, "default": facts} | bins


def test_the_page_counts_who_is_behind_and_who_is_slow(tmp_path):
    found = {
        "ours": {"a linear": case("A", 0.9, 1.0), "b forest": case("B", 0.7, 5.0), "c linear": case("C", 0.5, 0.1)},
        "machine": {
            "a linear": {"held_out": 0.91, "seconds": 20.0},
            "b forest": {"held_out": 0.8, "seconds": 20.0},
            "c linear": {"failed": "not done after 1800 s", "seconds": 1800.0},
        },
        "trees": {},
        "versions": {"interpret": "0.7"},
        "limit": 60,
    }
    page = mixed_page.write(found, tmp_path).read_text(encoding="utf-8")
    assert "works in 3 of 3 cases" in page
    assert "less 0.02: 1 of 2 (mean difference -0.055)" in page
    assert "tenth of its time: 1 of 2" in page
    assert "Further behind: B (random forest) -0.100." in page
    assert "More than a tenth of the time: B (random forest) 0.25." in page
    assert "- c linear, EBM: not done after 1800 s" in page
    assert json.loads((tmp_path / "mixed-tables.json").read_text(encoding="utf-8")) == found


def test_answers_about_trees_are_measured_alike(monkeypatch):
    pytest.importorskip("xgboost", reason="xgboost is not in the test group")
    monkeypatch.setitem(tree_peers.TABLES, "small", lambda: small(False))
    monkeypatch.setattr(tree_peers, "TREES", 5)
    facts = tree_peers.measured("small", 2)
    ours = facts["found"]["exanova"]
    assert facts["lost"] == 0.0
    assert ours["orthogonality"] < 1e-12
    assert ours["changed"] < 1e-8
    if "TreeSHAP" in facts["found"]:
        assert facts["found"]["TreeSHAP"]["held_out"] == pytest.approx(1.0, abs=1e-6)
