"""Models of the command line: ONNX files as converters make them, functions, estimators, and what cannot be one."""

from __future__ import annotations

import importlib
import json
import pickle
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

import exanova
from cli_helpers import LOANS, RISK, TABLE, inside, refused

CLASSES = np.array(["low", "medium", "high"])[(RISK * 4).astype(int).clip(0, 2)]
NUMBERS = LOANS.apply(lambda column: pd.factorize(column)[0])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the table as text and as numbers, and no modules left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    TABLE.to_csv("loans.csv", index=False)
    NUMBERS.to_csv("numbers.csv", index=False)
    yield tmp_path
    sys.modules.pop("score", None)


def explained(capsys, *words):
    """What ``explain`` found, all orders, and the file it wrote."""
    words = (*words, "--population", "--max-order", "all", "--save", "m.exanova", "--force", "--json")
    ended = inside(capsys, "explain", *words)
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out), exanova.load("m.exanova")


def written(folder, model):
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return "model.onnx"


ARRAY = LOANS.to_numpy(dtype=object)


@pytest.mark.parametrize(("zipmap", "names"), [(True, ["high", "low", "medium"]), (False, None), ("columns", None)])
def test_onnx_of_one_tensor_and_the_ways_to_give_probabilities(folder, capsys, zipmap, names):
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(ARRAY, CLASSES)
    options = {"zipmap": zipmap}
    converted = convert_sklearn(model, initial_types=[("input", StringTensorType([None, 3]))], options=options)
    found, again = explained(capsys, "loans.csv", "--model", written(folder, converted), "--features", "job,home,term")
    assert np.allclose(again.predict(LOANS), model.predict_proba(ARRAY), atol=1e-6)
    assert len(found["outputs"]) == 3
    if names:
        assert found["outputs"] == names
    found, _ = explained(
        capsys, "loans.csv", "--model", "model.onnx", "--features", "job,home,term", "--output-names", "h,l,m"
    )
    assert found["outputs"] == ["h", "l", "m"]


def test_onnx_finds_its_columns_by_the_names_converters_make(folder, capsys):
    renamed = LOANS.rename(columns={"home": "home-type", "term": "term of loan"})
    model = make_pipeline(make_column_transformer((OneHotEncoder(), list(renamed))), LinearRegression()).fit(
        renamed, RISK
    )
    renamed.assign(other="x")[["other", "term of loan", "job", "home-type"]].to_csv("renamed.csv", index=False)
    converted = to_onnx(model, renamed.astype(object)[:1])
    found, again = explained(capsys, "renamed.csv", "--model", written(folder, converted))
    assert list(again.feature_names_in_) == ["job", "home-type", "term of loan"]
    assert found["outputs"] == ["output 0"]
    assert again.predict(renamed).shape == (12,)
    assert np.allclose(again.predict(renamed), model.predict(renamed), atol=1e-6)


@pytest.mark.parametrize("kind", [FloatTensorType, Int64TensorType])
def test_onnx_of_numbers(folder, capsys, kind):
    model = DecisionTreeRegressor(random_state=0).fit(NUMBERS.to_numpy(), RISK)
    converted = convert_sklearn(model, initial_types=[("X", kind([None, 3]))])
    _, again = explained(capsys, "numbers.csv", "--model", written(folder, converted))
    assert np.allclose(again.predict(NUMBERS), RISK, atol=1e-6)


def test_bins_at_the_thresholds_of_an_onnx_file_and_of_a_pickle_lose_nothing(folder, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 80, 300), "rate": rng.normal(size=300).round(3)})
    model = DecisionTreeRegressor(max_leaf_nodes=9).fit(table.to_numpy(), table["age"] * (table["rate"] > 0.3))
    table.to_csv("t.csv", index=False)
    joblib.dump(model, "m.joblib")
    written(folder, convert_sklearn(model, initial_types=[("X", FloatTensorType([None, 2]))]))
    for words in (["m.joblib", "--trust-pickle"], ["model.onnx"]):
        _, again = explained(capsys, "t.csv", "--model", *words, "--strategy", "model")
        assert again.certificate_.within_variance.tolist() == [0.0]
        assert max(map(len, again.categories_)) <= 9


def test_onnx_and_rows_that_do_not_fit(folder, capsys):
    model = DecisionTreeRegressor().fit(NUMBERS.to_numpy(), RISK)
    written(folder, convert_sklearn(model, initial_types=[("X", Int64TensorType([None, 3]))]))
    loans = ("explain", "loans.csv", "--model", "model.onnx")
    refused(inside(capsys, *loans), "takes 3 features and the table has 7", "--features")
    refused(inside(capsys, *loans, "--features", "job,home,term"), "'job' does not hold numbers", "tensor(int64)")
    NUMBERS.assign(job=None).to_csv("holes.csv", index=False)
    refused(inside(capsys, "explain", "holes.csv", "--model", "model.onnx"), "'job' has missing values")
    NUMBERS.assign(job=0.5).to_csv("halves.csv", index=False)
    refused(inside(capsys, "explain", "halves.csv", "--model", "model.onnx"), "does not hold whole numbers")


def test_what_is_no_onnx_model(folder, capsys):
    (folder / "bad.onnx").write_bytes(pickle.dumps({"a": 1}))
    refused(inside(capsys, "explain", "loans.csv", "--model", "bad.onnx"), "'bad.onnx' cannot be read as ONNX")
    refused(inside(capsys, "explain", "loans.csv", "--model", "none.onnx"), "no such file")


# Estimators


def test_an_estimator_chooses_its_own_columns(folder, capsys):
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(LOANS[["term", "job"]], CLASSES)
    joblib.dump(model, "model.joblib")
    found, again = explained(capsys, "loans.csv", "--model", "model.joblib", "--trust-pickle")
    assert list(again.feature_names_in_) == ["term", "job"]
    assert found["outputs"] == ["high", "low", "medium"]
    assert np.allclose(again.predict(LOANS), model.predict_proba(LOANS[["term", "job"]]))


def test_an_estimator_fitted_on_arrays_gets_arrays(folder, capsys):
    for name, X in {"numbers.csv": NUMBERS.to_numpy(), "loans.csv": ARRAY}.items():
        model = make_pipeline(OneHotEncoder(), LinearRegression()).fit(X, RISK)
        (folder / "model.pkl").write_bytes(pickle.dumps(model))
        words = (name, "--model", "model.pkl", "--trust-pickle", "--features", "job,home,term")
        _, again = explained(capsys, *words)
        frame = LOANS if name == "loans.csv" else NUMBERS
        assert np.allclose(again.predict(frame), model.predict(X))


def test_a_pickle_finds_the_functions_of_a_module_in_the_working_folder(folder, capsys, monkeypatch):
    """A pipeline with a FunctionTransformer holds only the name of its function, and the module where to find it."""
    (folder / "score.py").write_text("def plain(rows):\n    return rows.to_numpy()\n")
    with monkeypatch.context() as here:
        here.syspath_prepend(str(folder))
        plain = importlib.import_module("score").plain
        model = make_pipeline(FunctionTransformer(plain), OneHotEncoder(), LinearRegression()).fit(LOANS, RISK)
        joblib.dump(model, "model.joblib")
    del sys.modules["score"]
    features = ",".join(LOANS.columns)
    _, again = explained(capsys, "loans.csv", "--model", "model.joblib", "--trust-pickle", "--features", features)
    assert np.allclose(again.predict(LOANS), model.predict(LOANS))


def test_digits_are_text_for_a_model_that_learned_text(folder, capsys):
    model = make_pipeline(OneHotEncoder(), LinearRegression()).fit(NUMBERS.astype(str), RISK)
    joblib.dump(model, "model.joblib")
    words = ("numbers.csv", "--model", "model.joblib", "--trust-pickle")
    refused(inside(capsys, "explain", *words), "the model raised", "pandas DataFrame")
    _, again = explained(capsys, *words, "--text", "all")
    assert np.allclose(again.predict(NUMBERS.astype(str)), model.predict(NUMBERS.astype(str)))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (pickle.dumps({"not": "a model"}), "is of type dict"),
        (pickle.dumps(LinearRegression)[:-5], "cannot be loaded"),
        (b"\x80\x05cno_such_module\nthing\n.", "cannot be loaded: ModuleNotFoundError"),
        (b"", "cannot be loaded: EOFError"),
    ],
)
def test_pickles_that_are_no_models(folder, capsys, body, words):
    (folder / "model.pkl").write_bytes(body)
    refused(inside(capsys, "explain", "loans.csv", "--model", "model.pkl", "--trust-pickle"), "'model.pkl'", words)


# Functions

SCORE = """
import sys

number = 3


class Model:
    def predict(self, table):
        return table["job"] == "none"


instance = Model()


def wrong_length(table):
    return [1.0]


def labels(table):
    return table["job"]


def holes(table):
    return [float("nan")] * len(table)


def fails(table):
    raise RuntimeError("first line\\nsecond \\x1b[31m line")
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("score:number", "is of type int"),
        ("score:Model", "is of type type"),
        ("score:instanc", "Did you mean 'instance'?"),
        ("score:wrong_length", "1 rows of outputs for 11 rows"),
        ("score:labels", "not real numbers"),
        ("score:holes", "NaN"),
        ("score:fails", "RuntimeError: first line second \\x1b[31m line"),
        ("scores:predict", "'scores' cannot be imported: ModuleNotFoundError"),
        ("exits:predict", "'exits' cannot be imported: SystemExit: 3"),
        ("breaks:predict", "'breaks' cannot be imported: SyntaxError"),
        ("score", "expected a file ending in .onnx"),
        ("loans.csv", "expected a file ending in .onnx"),
    ],
)
def test_functions_that_are_no_models(folder, capsys, name, words):
    (folder / "score.py").write_text(SCORE)
    (folder / "exits.py").write_text("raise SystemExit(3)")
    (folder / "breaks.py").write_text("def")
    refused(inside(capsys, "explain", "loans.csv", "--features", "job,home,term", "--model", name), words)


def test_an_object_of_a_module_with_predict(folder, capsys):
    (folder / "score.py").write_text(SCORE)
    _, again = explained(capsys, "loans.csv", "--features", "job,home,term", "--model", "score:instance.predict")
    assert np.allclose(again.predict(LOANS), LOANS["job"] == "none")
    _, again = explained(capsys, "loans.csv", "--features", "job,home,term", "--model", "score:instance")
    assert np.allclose(again.predict(LOANS), LOANS["job"] == "none")


def test_without_pandas_a_function_gets_the_table_itself(folder, capsys, monkeypatch):
    (folder / "score.py").write_text(
        "def kind(table):\n    return [float(hasattr(table, 'num_columns'))] * len(table)\n"
    )
    monkeypatch.setattr("exanova.cli.models.find_spec", lambda name: None)
    found, _ = explained(capsys, "loans.csv", "--features", "job,home", "--model", "score:kind")
    assert found["mean"] == [1.0]


class Native:
    """A model that reads categories off the dtype of a column, as LightGBM and XGBoost do."""

    def predict(self, rows):
        return rows["job"].cat.codes.to_numpy() * 1.0 + rows["size"].to_numpy()


def test_categories_from_csv_are_those_of_parquet(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"job": rng.choice(["clerk", "guard", "nurse"], 90), "size": rng.choice([1, 2, 3], 90)})
    joblib.dump(Native(), "m.joblib")
    frame.to_csv("t.csv", index=False)
    frame.astype({"job": "category"}).to_parquet("t.parquet")
    words = ("--model", "m.joblib", "--trust-pickle", "--json", "--quiet")
    refused(inside(capsys, "explain", "t.csv", *words), "--categories all", "Parquet")
    refused(inside(capsys, "explain", "t.csv", *words, "--categories", "jab"), "--categories names", "jab")
    means = []
    for given in (["t.parquet"], ["t.csv", "--categories", "all"], ["t.csv", "--categories", "job"]):
        found = inside(capsys, "explain", *given, *words)
        assert found.code == 0
        means.append(json.loads(found.out)["mean"])
    assert means[0] == means[1] == means[2]
