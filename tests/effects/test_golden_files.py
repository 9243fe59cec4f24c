"""Golden files: what the first release wrote has to load in every later one.

``PYTHONPATH=tests python tests/effects/test_golden_files.py --write`` writes the golden file of a new version of the
format. Those that are there stay for ever.
"""

from __future__ import annotations

import datetime
import itertools
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import exanova
from exanova import FunctionalANOVA
from exanova.effects import storage

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "v1.exanova"


def golden_rows():
    """Every combination but one of three features, among them a missing value, a date and an interval."""
    day = datetime.date(2024, 2, 29)
    return [
        (colour, when, age)
        for colour in ("blue", "red", None)
        for when in (day, day + datetime.timedelta(days=1))
        for age in (18.0, 30.0, 65.0)
        if (colour, when, age) != ("red", day, 65.0)
    ]


def golden_table():
    return pd.DataFrame(golden_rows(), columns=["colour", "when", "age"])


def golden_model(X):
    late = np.array([d.day == 1 for d in X["when"]], dtype=float)
    old = (X["age"].to_numpy() > 40).astype(float)
    red = (X["colour"] == "red").to_numpy(dtype=float)
    return np.stack([1.0 + 2.0 * red * late + old, 0.5 * X["colour"].isna().to_numpy() - late], axis=1)


def golden():
    """What the golden file was made of: all orders, two outputs, weights."""
    weight = np.arange(1, len(golden_rows()) + 1)
    anova = FunctionalANOVA(
        shrinkage=None, max_order=None, n_bins={"age": 2}, strategy="uniform", handle_unknown="ignore"
    )
    return anova.fit(golden_table(), golden_model, sample_weight=weight, output_names=["left", "right"])


def test_the_golden_file_still_loads_and_says_what_it_was_made_to_say():
    loaded = exanova.load(GOLDEN)
    X, f = golden_table(), golden_model(golden_table())
    p = np.arange(1, len(X) + 1) / np.arange(1, len(X) + 1).sum()
    assert loaded.output_names_ == ("left", "right")
    assert loaded.feature_names_in_.tolist() == ["colour", "when", "age"]
    assert loaded.categories_[0] == ("blue", "red", None)
    assert loaded.categories_[1][0] == datetime.date(2024, 2, 29)
    assert loaded.get_params()["n_bins"] == {"age": 2}
    assert loaded.handle_unknown == "ignore"
    assert np.abs(loaded.predict(X) - f).max() < 1e-12
    e = loaded.explain(X, golden_model)
    assert np.abs(e.values.sum(axis=1) + e.base_values - f).max() < 1e-12
    assert np.abs(e.residual).max() < 1e-12
    assert np.allclose(loaded.intercept_, p @ f, rtol=0, atol=1e-12)
    for features, effect in loaded.effects_.items():
        assert effect.probability.sum() == pytest.approx(1.0)
        if features:
            assert np.abs(effect.probability @ effect.values).max() < 1e-12
    shares = loaded.importance("variance")
    for output in ("left", "right"):
        assert shares["value"][shares["output"] == output].sum() == pytest.approx(1.0)
    mean = np.einsum("n,ndm->dm", p, np.abs(e.values))
    table = loaded.importance("shapley")
    for name, output, value in zip(table["feature"], table["output"], table["value"], strict=True):
        place = e.feature_names.index(name), e.output_names.index(output)
        assert value == pytest.approx(mean[place], abs=1e-12)
    certificate = loaded.certificate_
    assert certificate.exact
    assert certificate.saturated
    assert certificate.r2 == pytest.approx([1.0, 1.0])
    assert loaded.plan_.distinct_rows == len({(c, w, a > 40) for c, w, a in golden_rows()})
    again = golden()  # edges of bins are rounder today; the rows fall in the same ones
    for features, effect in loaded.effects_.items():
        np.testing.assert_allclose(effect.values, again.effects_[features].values, atol=1e-12)
    assert str(loaded).startswith("Functional ANOVA of 2 outputs")


def more_rows():
    """Every combination of four features but those in which the first two agree and the last two do."""
    rows = np.array(list(itertools.product(range(3), repeat=4)))
    return rows[(rows[:, 0] != rows[:, 1]) | (rows[:, 2] != rows[:, 3])]


def more_values(rows):
    return 2.0 * (rows[:, 0] == 1) + 3.0 * (rows[:, 1] == rows[:, 2]) - rows[:, 3]


MORE = {
    "v1-screened": {"max_order": 3, "max_terms": 20},
    "v1-paper": {"basis": "paper", "ties": "first"},
}
"""Further files that exanova 0.1 wrote of these rows, and their parameters."""


@pytest.mark.parametrize("name", MORE)
def test_files_of_the_first_release_predict_and_name_what_they_selected(name):
    loaded = exanova.load(GOLDEN.with_name(f"{name}.exanova"))
    rows = more_rows()
    fresh = FunctionalANOVA(**{"shrinkage": None, **MORE[name]}).fit(rows, more_values(rows))
    assert np.abs(loaded.predict(rows) - more_values(rows)).max() < 1e-12
    assert np.abs(loaded.explain(rows).values - fresh.explain(rows).values).max() < 1e-12
    assert loaded.effects_.keys() == fresh.effects_.keys()
    assert {k: v for k, v in loaded.get_params().items() if k in MORE[name]} == MORE[name]
    assert loaded.paper_functions_ == fresh.paper_functions_
    assert (loaded.selection_ is None) == (fresh.selection_ is None) == (name == "v1-paper")
    assert loaded.certificate_.rank == fresh.certificate_.rank


def test_the_golden_file_is_of_version_one_and_stays_as_it_is():
    body = GOLDEN.read_bytes()
    assert body.startswith(b"EXANOVA\n\x01\x00\x00\x00")
    assert len(body) < 20_000
    assert not any(word in body for word in (b"/home", b"/tmp", b"/work", b"/Users"))


def write_golden():
    """Write the golden file of the present version, unless it already exists."""
    path = GOLDEN.with_name(f"v{storage.VERSION}.exanova")
    if path.exists():
        sys.exit(f"{path.name} is there; a golden file is never written again.")
    path.parent.mkdir(exist_ok=True)
    golden().save(path)
    print(f"wrote {path.name}")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("PYTHONPATH=tests python tests/effects/test_golden_files.py --write")
    write_golden()
