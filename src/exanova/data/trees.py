"""Readers of the splits of tree models: scikit-learn, XGBoost, LightGBM, CatBoost, and ONNX tree ensembles.

Models are recognised by their attributes, not by their class, so that none of these libraries is imported. Steps before
the trees in a pipeline are followed where they pass columns on unchanged; other columns are recorded as unreadable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from exanova.data.onnx_trees import read_onnx
from exanova.data.pipelines import follow_pipeline, preprocessed
from exanova.data.splits import INSTEAD, ModelSplits, collect
from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.typing import FloatArray

Names = Sequence[str | None]
"""The column of the table behind each feature of a model; ``None`` for a feature that a pipeline derived."""

READABLE = "trees, forests and boosters of scikit-learn, XGBoost, LightGBM and CatBoost, and ONNX tree ensembles"


def read_splits(model: Any, names: Sequence[str]) -> ModelSplits:
    """The splits of a model on the columns ``names`` of a table.

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor().fit(np.array([[0.0], [1.0], [9.0]]), [0, 0, 1])
    >>> read_splits(tree, ["age"]).of("age").edge.round(5).tolist()
    [5.0]
    """
    if model is None:
        raise InputError(
            Parameter("strategy", "model"), " reads the thresholds of a model, and none was given", remedy=INSTEAD
        )
    splits = ModelSplits()
    _read(_bare(model), _known_names(_bare(model), names), splits)
    return splits


def _read(model: Any, names: Names, splits: ModelSplits) -> None:
    """Take in the splits of ``model``, whose features stand for ``names``."""
    model = _bare(model)
    for has, reader in READERS:
        if has(model):
            return reader(model, names, splits)
    raise InputError(
        Parameter("strategy", "model"),
        f" cannot read the thresholds of a {type(model).__name__}; it reads {READABLE}",
        remedy=["Give such a model itself and not a function around it, or ", *INSTEAD],
    )


def _bare(model: Any) -> Any:
    """The model behind a bound method, a parameter search, or a wrapper with a named model."""
    for attribute in ("__self__", "best_estimator_", "regressor_", "explained_model"):
        inner = getattr(model, attribute, None)
        if inner is not None and not isinstance(model, type):
            return _bare(inner)
    return model


def _known_names(model: Any, names: Sequence[str]) -> Names:
    """The columns in the order of the features of the model: by name if it has them, else by position."""
    own = getattr(model, "feature_names_in_", None)
    if own is not None:
        plain = {_plain(name): name for name in names}  # LightGBM writes names without spaces
        listed = [name if name in names else plain.get(_plain(name), name) for name in map(str, own)]
        absent = [name for name in listed if name not in names]
        if len(absent) == len(names):  # an array has no names of its own
            return names
        if absent:
            raise InputError(f"The model was fitted with the column {absent[0]!r}, which the table does not have.")
        return listed
    width = getattr(model, "n_features_in_", len(names))
    if width != len(names):
        raise InputError(f"The model was fitted with {width} columns, and the table has {len(names)}.")
    return names


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _read_tree(model: Any, names: Names, splits: ModelSplits) -> None:
    """One tree of scikit-learn: float32 values against float64 thresholds."""
    tree = model.tree_
    node = np.flatnonzero(tree.feature >= 0)
    amount = tree.weighted_n_node_samples * tree.impurity
    gain = amount[node] - amount[tree.children_left[node]] - amount[tree.children_right[node]]
    collect(splits, names, tree.feature[node], tree.threshold[node], gain, closed=True, single=True)


def _read_members(model: Any, names: Names, splits: ModelSplits) -> None:
    """An ensemble: its output does not change where none of its members changes."""
    if (
        getattr(model, "init_", None) is not None
        and hasattr(model, "train_score_")
        and model.init not in (None, "zero")
    ):
        _read(model.init_, names, splits)
    if getattr(model, "passthrough", False):
        problem = " cannot read a stack that passes its features on (passthrough=True)"
        raise InputError(Parameter("strategy", "model"), problem, remedy=INSTEAD)
    members = np.ravel(np.array(model.estimators_, dtype=object))
    of_members = getattr(model, "estimators_features_", [range(len(names))] * len(members))
    for member, features in zip(members, of_members, strict=True):
        if not isinstance(member, str):
            _read(member, [names[k] for k in features], splits)


def _read_calibrated(model: Any, names: Names, splits: ModelSplits) -> None:
    for member in model.calibrated_classifiers_:
        _read(member.estimator, names, splits)


def _read_histogram(model: Any, names: Names, splits: ModelSplits) -> None:
    """Histogram gradient boosting: float64, and categorical features put first."""
    if getattr(model, "_preprocessor", None) is not None:
        names = preprocessed(model._preprocessor, names, splits)
    for nodes in (tree.nodes for trees in model._predictors for tree in trees):
        inner = nodes[nodes["is_leaf"] == 0]
        for position in np.unique(inner["feature_idx"][inner["is_categorical"] == 1]).tolist():
            _note_categories(names[position], splits)
        inner = inner[inner["is_categorical"] == 0]
        feature, threshold = inner["feature_idx"].astype(np.int64), inner["num_threshold"]
        collect(splits, names, feature, threshold, inner["gain"].astype(np.float64), closed=True, single=False)


def _read_xgboost(model: Any, names: Names, splits: ModelSplits) -> None:
    """XGBoost: float32 against float32, and the threshold itself goes up."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    own = booster.feature_names or [f"f{k}" for k in range(booster.num_features())]
    position = {name: k for k, name in enumerate(own)}
    listed = []
    for text in booster.get_dump(dump_format="json", with_stats=True):
        for node in _nodes(json.loads(text), "children"):
            if "split" in node and not isinstance(node.get("split_condition"), int | float):
                _note_categories(names[position[node["split"]]], splits)
            elif "split" in node:
                threshold = float(np.float32(node["split_condition"]))  # the text has as many digits as that takes
                listed.append((position[node["split"]], threshold, node.get("gain", 1.0)))
    _collect_listed(listed, names, splits, closed=False, single=True)


NEARLY_ZERO = float(np.float32(1e-35))
"""Numbers no larger than this are zeros to LightGBM."""


def _read_lightgbm(model: Any, names: Names, splits: ModelSplits) -> None:
    """LightGBM: float64, and the threshold itself goes down; where zeros count as missing, they stand apart."""
    booster = getattr(model, "booster_", model)
    listed, zeros = [], set()
    for tree in booster.dump_model()["tree_info"]:
        for node in _nodes(tree["tree_structure"], "left_child", "right_child"):
            if node.get("decision_type") == "==":
                _note_categories(names[node["split_feature"]], splits)
            elif "threshold" in node:
                listed.append((node["split_feature"], node["threshold"], node.get("split_gain", 1.0)))
                zeros |= {node["split_feature"]} if node.get("missing_type") == "Zero" else set()
    _collect_listed(listed, names, splits, closed=True, single=False)
    strongest = max((strength for _, _, strength in listed), default=1.0)
    for closed, end in ((False, -NEARLY_ZERO), (True, NEARLY_ZERO)):
        _collect_listed([(k, end, strongest) for k in zeros], names, splits, closed=closed, single=False)


def _read_catboost(model: Any, names: Names, splits: ModelSplits) -> None:
    """CatBoost: float32, and the border itself goes down; the gains of its borders are not available."""
    for position in (*model.get_cat_feature_indices(), *model.get_text_feature_indices()):
        _note_categories(names[position], splits)
    listed = [(int(k), border, 1.0) for k, borders in model.get_borders().items() for border in borders]
    _collect_listed(listed, names, splits, closed=True, single=True)


def _read_pipeline(model: Any, names: Names, splits: ModelSplits) -> None:
    steps = [step for _, step in model.steps]
    _read(steps[-1], follow_pipeline(model.steps[:-1], names, splits), splits)


def _note_categories(column: str | None, splits: ModelSplits) -> None:
    if column is not None:
        splits.unreadable[column] = "the model reads its values as categories"


def _collect_listed(
    listed: Sequence[tuple[int, float, float]], names: Names, splits: ModelSplits, *, closed: bool, single: bool
) -> None:
    """Splits listed as (feature, threshold, strength)."""
    table: FloatArray = np.array(listed, dtype=np.float64).reshape(-1, 3)
    feature = table[:, 0].astype(np.int64)
    collect(splits, names, feature, table[:, 1], table[:, 2], closed=closed, single=single)


def _nodes(root: dict[str, Any], *children: str) -> Iterator[dict[str, Any]]:
    """Every node of a tree of dictionaries."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        for key in children:
            below = node.get(key, [])
            waiting += below if isinstance(below, list) else [below]


def _has(*attributes: str) -> Callable[[Any], bool]:
    return lambda model: any(hasattr(model, attribute) for attribute in attributes)


READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Names, ModelSplits], None]], ...] = (
    (_has("steps"), _read_pipeline),
    (_has("get_booster", "get_dump"), _read_xgboost),
    (_has("booster_", "dump_model"), _read_lightgbm),
    (_has("get_borders"), _read_catboost),
    (_has("_predictors"), _read_histogram),
    (_has("tree_"), _read_tree),
    (_has("calibrated_classifiers_"), _read_calibrated),
    (_has("estimators_"), _read_members),
    (lambda model: type(model).__name__ == "ModelProto", read_onnx),
)
"""A test for each kind of model, and its reader; the first match is used."""
