"""``strategy="model"``: a cut at the thresholds of trees loses nothing, and says so where it cannot be made."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from exanova import FunctionalANOVA
from exanova.data import Table, learn_encoding, observe
from exanova.data.splits import ColumnSplits, edges_of
from exanova.data.thresholds import cut_at_thresholds
from exanova.data.trees import read_splits
from exanova.errors import InputError

RNG = np.random.default_rng(7)
N = 400
NUMBERS = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N),
        "income": np.exp(RNG.normal(10, 1, N)).round(2),
        "never read": RNG.normal(size=N),
        "rate": RNG.normal(size=N).astype(np.float32),
    }
)
TARGET = (NUMBERS["age"] > 40) * 2.0 + np.log(NUMBERS["income"]) * (NUMBERS["rate"] > 0.2)
READ = ["age", "income", "rate"]


def ignoring(columns, model):
    """A model that passes on only some columns."""
    keep = ColumnTransformer([("keep", "passthrough", columns)], remainder="drop")
    return Pipeline([("keep", keep), ("model", model)])


def loss(frame, model, **options):
    """The variance inside cells, and the encoding."""
    seen = observe(frame, model, strategy="model", **options)
    return float(np.abs(seen.values.within).max()), seen.encoding


MODELS = {
    "tree": DecisionTreeRegressor(max_leaf_nodes=20, random_state=0),
    "forest": RandomForestRegressor(8, max_depth=3, random_state=0),
    "extra trees": ExtraTreesRegressor(8, max_depth=3, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=15, max_depth=2, random_state=0),
    "histogram": HistGradientBoostingRegressor(max_iter=10, max_leaf_nodes=4),
    "bagging": BaggingRegressor(DecisionTreeRegressor(max_depth=3), 5, max_features=0.7, random_state=0),
    "voting": VotingRegressor([("a", DecisionTreeRegressor(max_depth=3)), ("b", DecisionTreeRegressor(max_depth=4))]),
    "stack": StackingRegressor([("a", DecisionTreeRegressor(max_depth=3))], LinearRegression(), cv=2),
    "search": GridSearchCV(DecisionTreeRegressor(random_state=0), {"max_depth": [2, 3]}, cv=2),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["pandas", "numpy"])
def test_a_cut_at_the_thresholds_of_trees_loses_nothing(name, kind):
    given = NUMBERS if kind == "pandas" else NUMBERS.to_numpy(dtype=float)
    model = clone(MODELS[name]).fit(given, TARGET)
    within, encoding = loss(given, model)
    assert within == 0.0
    assert max(encoding.sizes) <= 64
    assert observe(given, model, n_bins=4).values.within.max() > 0


def test_classifiers_and_bound_methods_are_read():
    label = TARGET.gt(TARGET.median())
    boosted = GradientBoostingClassifier(n_estimators=10, max_depth=2).fit(NUMBERS, label)
    assert loss(NUMBERS, boosted)[0] == 0.0
    assert loss(NUMBERS, boosted.decision_function)[0] == 0.0
    calibrated = CalibratedClassifierCV(DecisionTreeClassifier(max_depth=3), cv=2).fit(NUMBERS, label)
    assert loss(NUMBERS, calibrated)[0] == 0.0


def test_a_column_that_the_model_never_reads_is_one_level():
    model = ignoring(READ, DecisionTreeRegressor(max_depth=4)).fit(NUMBERS, TARGET)
    within, encoding = loss(NUMBERS, model)
    assert within == 0.0
    assert encoding.labels[2] == ("(any value)",)


@pytest.mark.parametrize("copies", [0, 1, 2000])
def test_copies_of_rows_do_not_show_that_intervals_lose_nothing(copies):
    """Every row is alone in its cell but for its copies, which say nothing of other rows there."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(800, 8)), columns=list("abcdefgh"))
    given = pd.concat([rows, rows.sample(copies, replace=True, random_state=0)])
    anova = FunctionalANOVA(max_order=1, sampled=False, n_bins=16)
    certificate = anova.fit(given, lambda table: np.sin(40 * table["a"])).certificate_
    assert certificate.within_variance.tolist() == [0.0]
    assert certificate.bins == ""


def test_the_certificate_says_that_nothing_is_lost():
    model = GradientBoostingRegressor(n_estimators=20, max_depth=2, random_state=0).fit(NUMBERS, TARGET)
    anova = FunctionalANOVA(shrinkage=None, strategy="model").fit(NUMBERS, model)
    assert anova.certificate_.within_variance.tolist() == [0.0]
    rows, cells = len(NUMBERS), anova.decomposition_.sample.n_rows
    said = f"lose nothing: {rows:,} rows became {cells:,} combinations of levels, outputs equal within each"
    assert anova.certificate_.bins == said
    assert f"bins            {said}" in str(anova.certificate_)
    twice = pd.concat([NUMBERS, NUMBERS])
    assert FunctionalANOVA(shrinkage=None, strategy="model").fit(twice, model).certificate_.bins == said
    coarse = FunctionalANOVA(shrinkage=None, n_bins=3, max_order=1).fit(NUMBERS, model)
    assert coarse.certificate_.bins == ""
    assert "bins and merged levels" in str(coarse.certificate_)
    assert anova.certificate_.r2[0] == pytest.approx(1.0)  # trees of depth two have pairs and no more


def test_missing_values_are_a_level_of_their_own():
    holed = NUMBERS.astype(float)
    holed.loc[::7, "income"] = np.nan
    model = HistGradientBoostingRegressor(max_iter=10, max_leaf_nodes=4).fit(holed, TARGET)
    within, encoding = loss(holed, model)
    assert within == 0.0
    assert encoding.levels[1][-1] is None
    imputed = make_pipeline(SimpleImputer(), DecisionTreeRegressor(max_depth=4)).fit(holed, TARGET)
    assert loss(holed, imputed)[0] == 0.0


def test_categories_of_histogram_boosting_keep_their_place():
    mixed = NUMBERS.assign(kind=pd.Categorical(RNG.choice(list("uvw"), N)))[["kind", *NUMBERS.columns]]
    y = TARGET + (mixed["kind"] == "u") * 5
    model = HistGradientBoostingRegressor(max_iter=10, max_leaf_nodes=4, categorical_features="from_dtype").fit(
        mixed, y
    )
    within, encoding = loss(mixed, model)
    assert within == 0.0
    assert encoding.sizes[0] == 3
    coded = mixed.assign(kind=RNG.integers(0, 60, N))
    numbered = HistGradientBoostingRegressor(max_iter=5, categorical_features=["kind"]).fit(coded, y)
    with pytest.raises(InputError, match=r"'kind' \(the model reads its values as categories.*n_bins=\{'kind': None\}"):
        loss(coded, numbered)
    assert loss(coded, numbered, n_bins={"kind": None})[1].sizes[0] == coded["kind"].nunique()


def test_a_pipeline_is_read_where_it_passes_columns_on():
    mixed = NUMBERS.assign(kind=RNG.choice(list("uvw"), N))
    prepare = ColumnTransformer(
        [("codes", OneHotEncoder(), ["kind"]), ("rest", "passthrough", ["rate", "age", "income"])], remainder="drop"
    )
    model = Pipeline(
        [("prepare", prepare), ("same", FunctionTransformer()), ("trees", DecisionTreeRegressor(max_depth=5))]
    )
    model.fit(mixed, TARGET + (mixed["kind"] == "u"))
    within, encoding = loss(mixed, model)
    assert within == 0.0
    assert encoding.sizes[2] == 1


def test_a_pipeline_that_changes_a_column_says_so():
    scaled = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3)).fit(NUMBERS, TARGET)
    with pytest.raises(InputError, match=r"4 columns: 'age' \(the step 'standardscaler' .*'rate' .*'quantile'"):
        loss(NUMBERS, scaled)
    partly = ColumnTransformer([("scale", StandardScaler(), ["income"]), ("rest", "passthrough", ["age", "rate"])])
    model = Pipeline([("p", partly), ("m", DecisionTreeRegressor(max_depth=3))]).fit(NUMBERS, TARGET)
    with pytest.raises(InputError, match=r"1 column: 'income' \(the transformer 'scale' of the pipeline"):
        loss(NUMBERS, model)


@pytest.mark.parametrize("model", [lambda rows: rows["age"], LinearRegression().fit(NUMBERS, TARGET)])
def test_what_has_no_trees_is_refused(model):
    with pytest.raises(InputError, match="strategy='model' cannot read the thresholds of a"):
        loss(NUMBERS, model)


def test_the_table_has_the_columns_of_the_model():
    named = DecisionTreeRegressor(max_depth=3).fit(NUMBERS, TARGET)
    with pytest.raises(InputError, match="'income', which the table does not have"):
        read_splits(named, ["age"])
    bare = DecisionTreeRegressor(max_depth=3).fit(NUMBERS.to_numpy(dtype=float), TARGET)
    with pytest.raises(InputError, match="fitted with 4 columns, and the table has 1"):
        read_splits(bare, ["age"])


def test_too_many_thresholds_are_joined_at_little_loss():
    x = pd.DataFrame({"x": RNG.uniform(0, 10, 3000)})
    y = np.where(x["x"] < 1, 40 * x["x"], 40.0) + 0.01 * RNG.normal(size=3000)
    forest = RandomForestRegressor(20, random_state=0).fit(x, y)
    assert loss(x, forest)[1].sizes == (64,)
    by_model, _ = loss(x, forest, n_bins=8)
    by_rows = float(observe(x, forest, n_bins=8).values.within.max())
    assert by_model < by_rows / 4


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=5), st.booleans(), st.data())
@settings(max_examples=200)
def test_an_edge_is_where_a_comparison_in_float32_turns(thresholds, closed, data):
    threshold = np.array(thresholds, dtype=np.float64) + data.draw(st.sampled_from([0.0, 1e-9, -1e-9]))
    if not closed:
        threshold = threshold.astype(np.float32).astype(np.float64)
    edge = edges_of(threshold, closed=closed, single=True)
    for t, e in zip(threshold, edge, strict=True):
        for x in (e, np.nextafter(e, -np.inf)):
            goes_up = not (np.float32(x) <= t if closed else np.float32(x) < t)
            assert goes_up == (x >= e)


@given(st.floats(-1e6, 1e6), st.booleans())
def test_an_edge_is_where_a_comparison_in_float64_turns(t, closed):
    (e,) = edges_of(np.array([t]), closed=closed, single=False)
    below = np.nextafter(e, -np.inf)
    assert (e > t, below > t) == (True, False) if closed else (e >= t, below >= t) == (True, False)


@given(
    st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=3, max_size=30, unique=True),
    st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=20),
    st.integers(2, 9),
)
def test_rows_on_two_sides_of_a_threshold_are_told_apart(values, edges, most):
    values = np.sort(np.array(values) + 0.0)
    splits = ColumnSplits(np.array(edges) + 0.0, np.ones(len(edges)))
    whole = cut_at_thresholds(values, np.ones(len(values)), splits, 1000)
    codes = np.searchsorted(whole[1:-1], values, side="right")
    sides = [tuple(value >= np.array(edges)) for value in values]
    assert [a == b for a, b in zip(codes[1:], codes[:-1], strict=True)] == [
        a == b for a, b in zip(sides[1:], sides[:-1], strict=True)
    ]
    few = cut_at_thresholds(values, np.ones(len(values)), splits, most)
    assert len(few) - 1 <= most
    assert set(few[1:-1]) <= set(whole[1:-1])


def at_thresholds(frame, splits):
    """Rows at every threshold and at the floats, of both precisions, on its two sides."""
    out = frame.astype(float).copy()
    for column in frame:
        edge = splits.of(column).edge
        single = edge.astype(np.float32)
        near = [np.nextafter(single, np.float32(end)).astype(float) for end in (np.inf, -np.inf)]
        cells = np.concatenate([edge, np.nextafter(edge, np.inf), np.nextafter(edge, -np.inf), single, *near])[: N // 2]
        out.loc[: len(cells) - 1, column] = cells
    return out


@pytest.mark.parametrize("kind", ["boosting", "forest", "histogram", "xgboost", "lightgbm", "catboost"])
def test_nothing_is_lost_at_the_thresholds_themselves(kind):
    numbers = NUMBERS.drop(columns="never read")
    holed = numbers.astype(float).mask(RNG.random(numbers.shape) < 0.05)
    made = {
        "boosting": lambda: GradientBoostingRegressor(n_estimators=20, max_depth=2).fit(numbers, TARGET),
        "forest": lambda: RandomForestRegressor(5, max_depth=3).fit(holed, TARGET),
        "histogram": lambda: HistGradientBoostingRegressor(max_iter=15, max_depth=2).fit(holed, TARGET),
        "xgboost": lambda: pytest.importorskip("xgboost").XGBRegressor(n_estimators=20, max_depth=2).fit(holed, TARGET),
        "lightgbm": lambda: (
            pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=20, max_depth=2, verbose=-1).fit(holed, TARGET)
        ),
        "catboost": lambda: (
            pytest.importorskip("catboost")
            .CatBoostRegressor(iterations=20, depth=2, verbose=0, allow_writing_files=False)
            .fit(holed, TARGET)
        ),
    }
    model = made[kind]()
    rows = at_thresholds(numbers, read_splits(model, list(numbers)))
    assert loss(rows, model)[0] == 0.0
    if kind != "boosting":
        assert loss(rows.mask(RNG.random(rows.shape) < 0.1), model)[0] == 0.0


def test_zeros_that_lightgbm_takes_for_missing_stand_apart():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    rows = NUMBERS.assign(rate=NUMBERS["rate"].where(NUMBERS["rate"] > 0, 0.0), income=-NUMBERS["income"])
    rows.loc[::3, "income"] = 0.0
    model = lightgbm.LGBMRegressor(n_estimators=20, max_depth=2, zero_as_missing=True, verbose=-1).fit(rows, TARGET)
    assert loss(rows, model)[0] == 0.0


# --- other libraries ----------------------------------------------------------------------------------------------


def test_xgboost():
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    holed = NUMBERS.assign(income=NUMBERS["income"].where(NUMBERS["age"] < 70))
    model = xgboost.XGBRegressor(n_estimators=20, max_depth=2).fit(holed, TARGET)
    within, encoding = loss(holed, model)
    assert within == 0.0
    assert encoding.levels[1][-1] is None
    plain = xgboost.XGBRegressor(n_estimators=5, max_depth=2).fit(holed.to_numpy(dtype=float), TARGET)
    assert loss(holed.to_numpy(dtype=float), plain)[0] == 0.0
    booster = model.get_booster()
    assert (
        read_splits(booster, list(holed)).of("age").edge.tolist()
        == read_splits(model, list(holed)).of("age").edge.tolist()
    )


def test_lightgbm():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    mixed = NUMBERS.assign(kind=pd.Categorical(RNG.choice(list("uvw"), N)))
    mixed.loc[::9, "income"] = np.nan
    model = lightgbm.LGBMRegressor(n_estimators=10, num_leaves=4, verbose=-1).fit(mixed, TARGET)
    within, encoding = loss(mixed, model)
    assert within == 0.0
    assert encoding.sizes[-1] == 3
    assert read_splits(model.booster_, list(mixed)).of("age").edge.size


def test_catboost():
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    mixed = NUMBERS.assign(kind=RNG.choice(list("uvw"), N))[["kind", *NUMBERS.columns]]
    mixed.loc[::9, "income"] = np.nan
    model = catboost.CatBoostRegressor(
        iterations=20, depth=2, cat_features=["kind"], verbose=0, allow_writing_files=False
    ).fit(mixed, TARGET)
    assert loss(mixed, model)[0] == 0.0


@pytest.mark.parametrize("form", ["one input", "an input a column"])
def test_onnx(form):
    pytest.importorskip("onnx", reason="onnx is not installed")
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from skl2onnx.common.data_types import FloatTensorType

    frame = NUMBERS.astype(np.float32).rename(columns={"never read": "unread"})
    if form == "one input":
        model = RandomForestRegressor(5, max_depth=3, random_state=0).fit(frame.to_numpy(), TARGET)
        types = [("x", FloatTensorType([None, 4]))]
    else:
        model = Pipeline(
            [
                ("same", ColumnTransformer([("keep", "passthrough", ["rate", "age", "income", "unread"])])),
                ("trees", RandomForestRegressor(5, max_depth=3, random_state=0)),
            ]
        ).fit(frame, TARGET)
        types = [(name, FloatTensorType([None, 1])) for name in frame]
    proto = skl2onnx.convert_sklearn(model, initial_types=types)
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])

    class Wrapped:
        explained_model = proto

        def __call__(self, rows):
            given = rows.to_numpy(dtype=np.float32)
            feeds = {"x": given} if form == "one input" else {n: given[:, [k]] for k, n in enumerate(rows.columns)}
            return session.run(None, feeds)[0][:, 0]

    assert loss(frame, Wrapped())[0] == 0.0
    assert loss(pl.from_pandas(frame).to_pandas(), Wrapped())[0] == 0.0


def test_an_edge_of_a_threshold_is_short():
    model = DecisionTreeRegressor(max_depth=3).fit(NUMBERS, TARGET)
    encoding = learn_encoding(Table.read(NUMBERS), strategy="model", model=model)
    for feature in encoding.features:
        assert all(len(repr(edge)) <= 12 for edge in feature.edges[1:-1])
    assert all(float(edge).is_integer() for edge in encoding.features[0].edges)
