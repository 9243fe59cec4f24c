"""Files: every answer of a decomposition comes back."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import re
import uuid
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import exanova
from exanova import FunctionalANOVA
from exanova.effects import storage
from exanova.errors import InexactWarning, OutsideSupportWarning
from exanova.explain.importance import KINDS

# What is saved: one decomposition of every kind


def strings():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"odor": rng.choice(["none", "foul", "müffig", "日本"], 60), "ring": rng.choice(["1", "2"], 60)})
    X["twin"] = X["ring"]  # redundant, so that the certificate has something to say
    X["still"] = "constant"
    return (
        FunctionalANOVA(shrinkage=None, max_order=None),
        X,
        rng.normal(size=(60, 3)),
        {"output_names": ["a", "b", "game"]},
    )


def dates_and_missing():
    rng = np.random.default_rng(2)
    days = [datetime.date(2024, 5, k) for k in (1, 2, 3)]
    X = pl.DataFrame(
        {
            "day": [days[k] for k in rng.integers(0, 3, 50)],
            "colour": [("red", "blue", None)[k] for k in rng.integers(0, 3, 50)],
            "flag": [bool(k) for k in rng.integers(0, 2, 50)],
        }
    )
    return (
        FunctionalANOVA(shrinkage=None, max_order=2),
        X,
        rng.normal(size=50),
        {"sample_weight": rng.uniform(0.1, 2, 50)},
    )


def bins():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"age": rng.normal(size=80), "income": rng.normal(size=80), "job": rng.choice(["a", "b"], 80)})
    X.loc[3, "age"] = np.nan
    return (
        FunctionalANOVA(shrinkage=None, n_bins={"age": 4, "income": 3}, strategy="quantile"),
        X,
        rng.normal(size=80),
        {},
    )


def rare():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(
        {"city": rng.choice(list("abcdefgh"), 90, p=[0.4, 0.4, *[0.2 / 6] * 6]), "sex": rng.choice([1, 2], 90)}
    )
    return (
        FunctionalANOVA(shrinkage=None, min_frequency=10, handle_unknown="ignore", strict=False),
        X,
        rng.normal(size=(90, 2)),
        {},
    )


def array():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (70, 4))
    return FunctionalANOVA(shrinkage=None, max_order=3, memory_limit="2 GB", n_jobs=2), X, rng.normal(size=70), {}


def paper():
    _, X, y, _ = array()
    return FunctionalANOVA(shrinkage=None, basis="paper", ties="first", max_order=2), X[:20], y[:20], {}


def levels_of_every_type():
    zone = datetime.timezone(datetime.timedelta(hours=2))
    cells = [
        *("text", 7, -2.5, float("inf"), True, None, b"\x00\xff", decimal.Decimal("1.50")),
        *(datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 0, 1, 5), datetime.time(3, 4)),
        *(
            datetime.datetime(2024, 2, 29, 12, tzinfo=zone),
            datetime.timedelta(days=-1, microseconds=3),
            uuid.UUID(int=9),
        ),
    ]
    X = np.empty((2 * len(cells), 2), dtype=object)
    X[:, 0], X[:, 1] = cells * 2, ["u"] * len(cells) + ["v"] * len(cells)
    return FunctionalANOVA(shrinkage=None), X, np.random.default_rng(6).normal(size=len(X)), {}


def intercept_alone():
    _, X, y, _ = array()
    return FunctionalANOVA(shrinkage=None, max_order=0), X, y, {}


def family_and_held_out():
    rng = np.random.default_rng(7)
    X = pl.DataFrame({name: rng.choice(list("uvw"), 60).tolist() for name in "abcd"})
    return FunctionalANOVA(shrinkage=None, subsets=[("a", "b"), ("c", 3)]), X, rng.normal(size=60), {"eval_set": 0.2}


MAKERS = (
    strings,
    family_and_held_out,
    dates_and_missing,
    bins,
    rare,
    array,
    paper,
    levels_of_every_type,
    intercept_alone,
)


def fitted(maker):
    anova, X, y, more = maker()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InexactWarning)
        return anova.fit(X, y, **more), X, y


def answers(anova, X, y):
    """Everything a fitted object answers, as plain data and arrays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideSupportWarning)
        e, parts = anova.explain(X, y), anova.components(X)
        found = anova.interactions(X, order=2)
        out = {
            "predict": anova.predict(X),
            "components": (parts.values, parts.subsets, parts.outside, parts.output_names, frame(parts.to_frame())),
            "explain": (e.values, e.base_values, e.residual, e.data, e.display_data, e.outside, frame(e.to_frame())),
            "names": (e.feature_names, e.output_names, repr(e), repr(found), repr(parts)),
            "interactions": (found.values, found.subsets, found.order, frame(found.to_frame())),
            "score": anova.score(X, y),
        }
    for kind in KINDS:
        out[kind] = frame(anova.importance(kind))
    for kind in ("l1", "l2", "variance"):
        out[f"{kind} by subset"] = frame(anova.importance(kind, by="subset"))
    out["compare"] = frame(anova.compare(anova).to_frame()), str(anova.compare(anova))
    out["effects"] = [
        (k, e.levels, e.probability, e.values, e.output_names, frame(e.to_frame()), repr(e))
        for k, e in anova.effects_.items()
    ]
    certificate = anova.certificate_
    out["certificate"] = [getattr(certificate, f) for f in certificate.__dataclass_fields__], str(certificate)
    out["unique"] = certificate.unique, certificate.exact
    # Standard errors of norms need rows, which a file does not hold: they are printed by the fitted object alone.
    out["plan"], out["text"] = anova.plan_, (re.sub(r" ± \S+", "", str(anova)), repr(anova))
    out["parameters"] = anova.get_params()
    out["fitted"] = (anova.intercept_, anova.feature_names_in_, anova.n_features_in_, anova.output_names_)
    out["selected"], out["categories"] = anova.paper_functions_, anova.categories_
    out["types"] = [[type(level) for level in levels] for levels in anova.categories_]
    return out


def frame(table):
    rows = table.rows() if isinstance(table, pl.DataFrame) else table.to_numpy().tolist()
    return type(table), list(table.columns), rows


def same(a, b):
    """Equal to the last bit and in type, NaN equal to itself."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and same(a.tolist(), b.tolist())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a is b or a == b or (a != a and b != b)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("kind_of_path", [str, Path])
def test_everything_a_fitted_object_answers_a_loaded_one_answers(maker, kind_of_path, tmp_path):
    anova, X, y = fitted(maker)
    path = kind_of_path(tmp_path / "it.exanova")
    assert anova.save(path) is None
    loaded = exanova.load(path)
    expected, found = answers(anova, X, y), answers(loaded, X, y)
    for name, answer in expected.items():
        assert same(answer, found[name]), name
    assert os.listdir(tmp_path) == ["it.exanova"]
    loaded.save(tmp_path / "again.exanova")
    assert (tmp_path / "again.exanova").read_bytes() == Path(path).read_bytes()


def test_text_that_is_no_unicode_comes_back(tmp_path):
    """What ``os.fsdecode`` makes of a file name in another encoding."""
    X = np.array([["\udc80"], ["b"]], dtype=object)
    anova = FunctionalANOVA(shrinkage=None).fit(X, np.array([1.0, 2.0]))
    anova.save(tmp_path / "it")
    loaded = exanova.load(tmp_path / "it")
    assert loaded.categories_ == anova.categories_
    assert np.array_equal(loaded.predict(X), anova.predict(X))


def test_parameters_may_be_numbers_of_numpy(tmp_path):
    _, X, y = fitted(bins)
    given = {"max_order": np.int64(2), "n_bins": {"age": np.int32(3), "income": 3}, "memory_limit": np.float64(1e9)}
    FunctionalANOVA(**{"shrinkage": None, **given}).fit(X, y).save(tmp_path / "it")
    loaded = exanova.load(tmp_path / "it").get_params()
    assert {name: loaded[name] for name in given} == given
    assert type(loaded["max_order"]) is int


def test_interactions_given_in_another_way_come_back_as_subsets(tmp_path):
    _, X, y = fitted(array)
    anova = FunctionalANOVA(shrinkage=None, subsets={0: [1, 2]}).fit(X, y)
    anova.save(tmp_path / "it")
    loaded = exanova.load(tmp_path / "it")
    assert loaded.get_params()["subsets"] == [("x0", "x1"), ("x0", "x2")]
    assert list(loaded.fit(X, y).effects_) == list(anova.effects_)


def test_a_loaded_object_compares_with_a_fitted_one_and_fits_again(tmp_path):
    anova, X, y = fitted(strings)
    anova.save(tmp_path / "it")
    loaded = exanova.load(tmp_path / "it")
    assert not any(c.difference.any() for c in anova.compare(loaded).changes)
    again = loaded.fit(X, y + 1.0)
    assert again.intercept_ == pytest.approx(anova.intercept_ + 1.0)


def test_saving_does_not_change_what_is_saved(tmp_path):
    anova, X, y = fitted(rare)
    before = answers(anova, X, y)
    anova.save(tmp_path / "it")
    assert same(before, answers(anova, X, y))


def test_no_row_and_no_pickle_is_in_the_file(tmp_path):
    anova, X, _ = fitted(array)
    anova.save(tmp_path / "it")
    document, arrays = storage.read(tmp_path / "it")
    assert all(array.dtype != object for array in arrays.values())
    assert all(len(X) not in array.shape for array in arrays.values())
    json.dumps(document)


@pytest.mark.parametrize("missing", ["polars", "pandas"])
def test_tables_are_made_with_a_library_that_is_installed(tmp_path, monkeypatch, missing):
    kind = {"polars": pl, "pandas": pd}[missing]
    X = kind.DataFrame({"a": ["u", "v", "u"], "b": ["x", "x", "y"]})
    FunctionalANOVA(sampled=False).fit(X, np.array([0.0, 1.0, 3.0])).save(tmp_path / "saved.exanova")
    there = exanova.data.table.find_spec
    monkeypatch.setattr(exanova.data.table, "find_spec", lambda name: None if name == missing else there(name))
    again = exanova.load(tmp_path / "saved.exanova")
    assert again.decomposition_.schema.kind == {"polars": "pandas", "pandas": "polars"}[missing]
    assert list(again.effects_["a"].to_frame()["a"]) == ["u", "v"]
