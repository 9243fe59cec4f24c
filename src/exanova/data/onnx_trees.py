"""Splits of the tree ensembles in an ONNX graph, where columns of the input reach them unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exanova.data.splits import INSTEAD, ModelSplits, collect
from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.typing import FloatArray

CLOSED = {b"BRANCH_LEQ": True, b"BRANCH_GT": True, b"BRANCH_LT": False, b"BRANCH_GTE": False}
"""Modes of nodes that compare with a threshold, and whether the threshold itself is on the lower side."""

UNCHANGED = ("Identity", "Cast")
"""Operations that pass numbers on."""


def read_onnx(model: Any, names: Sequence[str | None], splits: ModelSplits) -> None:
    """Take in the splits of every tree ensemble of a ``ModelProto``."""
    graph = model.graph
    maker = {output: node for node in graph.node for output in node.output}
    ensembles = [node for node in graph.node if node.op_type.startswith("TreeEnsemble")]
    if not ensembles:
        raise _cannot("finds no tree ensemble in the ONNX file")
    inputs = [entry.name for entry in graph.input]
    passed = set(inputs)
    for node in ensembles:
        _read_ensemble(node, _columns(node.input[0], maker, inputs, names, passed), splits)
    others = [n for n in graph.node if n not in ensembles and not passed & set(n.output) and passed & set(n.input)]
    if others:
        raise _cannot(f"cannot read the ONNX file: its operation {others[0].op_type} reads columns besides the trees")


def _read_ensemble(node: Any, names: Sequence[str | None], splits: ModelSplits) -> None:
    given = {attribute.name: attribute for attribute in node.attribute}
    if "nodes_modes" not in given:
        raise _cannot("does not read this kind of ONNX tree ensemble")
    modes = np.array(list(given["nodes_modes"].strings), dtype=object)
    feature = np.array(given["nodes_featureids"].ints, dtype=np.int64)
    exact = "nodes_values_as_tensor" in given
    values = _tensor(given["nodes_values_as_tensor"].t) if exact else np.array(given["nodes_values"].floats)
    for mode in set(modes.tolist()) - {b"LEAF"}:
        if mode not in CLOSED:
            for position in set(feature[modes == mode].tolist()):
                if names[position] is not None:
                    splits.unreadable[str(names[position])] = "the model reads its values as categories"
            continue
        own = modes == mode
        strength = np.ones(int(own.sum()))
        threshold = values[own].astype(np.float64)
        collect(splits, names, feature[own], threshold, strength, closed=CLOSED[mode], single=not exact)


def _columns(
    tensor: str, maker: dict[str, Any], inputs: Sequence[str], names: Sequence[str | None], passed: set[str]
) -> Sequence[str | None]:
    """The columns of the table in a tensor: of one input for all, or of one input for each, side by side.

    Adds every tensor that was followed to ``passed``.
    """
    passed.add(tensor)
    if tensor in inputs:
        return names if len(inputs) == 1 else [names[inputs.index(tensor)]]
    node = maker.get(tensor)
    if node is not None and node.op_type in UNCHANGED:
        return _columns(node.input[0], maker, inputs, names, passed)
    if node is not None and node.op_type == "Concat":
        return [name for part in node.input for name in _columns(part, maker, inputs, names, passed)]
    kind = "nothing" if node is None else node.op_type
    raise _cannot(f"cannot follow the columns to the trees of the ONNX file, through the operation {kind}")


def _cannot(what: str) -> InputError:
    return InputError(Parameter("strategy", "model"), f" {what}", remedy=INSTEAD)


def _tensor(proto: Any) -> FloatArray:
    """The numbers of a ``TensorProto`` of doubles."""
    return np.frombuffer(proto.raw_data, "<f8") if proto.raw_data else np.array(proto.double_data)
