"""The sampling design: which rows were drawn independently, as far as the distinct rows do not determine it.

Standard errors depend on it. By default every row is one draw. Whole-number weights count draws (a row of weight 3 is
three equal ones); other weights are inverse probabilities of being drawn, so that a row is one draw whatever its
weight. Rows may be drawn in clusters, separately in strata, or have columns of replicate weights from a survey
institute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from exanova.argument_checks import check_choice
from exanova.data.alignment import to_rows
from exanova.data.weights import refuse_mask
from exanova.errors import InputError, InputTypeError
from exanova.messages import Parameter, count_of
from exanova.typing import FloatArray, IntArray

MANY_COUNTS = 20
"""Mean of whole weights above which they are checked more closely: survey weights are often as large, counts rarely."""

FEWEST_SURVEYED = 200
"""Rows from which whole weights may be those of a survey: a shorter table, of which some columns are used, is more
likely one of counts."""

Kind = Literal["frequency", "probability"]


@dataclass(frozen=True, eq=False)
class Draws:
    """The k raw rows behind the distinct ones.

    Attributes:
        group: (k,) distinct row of each.
        weight: (k,) their weights.
        kind: what the weights are, ``"frequency"`` or ``"probability"``.
        values: (k, m) normalised model values, or ``None`` where equal rows have equal values.
        cluster: (k,) number of the cluster of each, or ``None``.
        stratum: (k,) number of the stratum of each, or ``None``.
        replicates: (k, B) replicate weights, or ``None``.
        scale: (B,) factor of the squared deviation of each replicate, or ``None``.
        copies: (k,) how many rows of equal weight each of these stands for, where weights are probabilities; ``None``
            for one each.
        squares: (k,) sum of the squared weights of those rows, where their weights differ; ``None`` where they are
            equal.
    """

    group: IntArray
    weight: NDArray[Any]
    kind: Kind
    values: FloatArray | None = None
    cluster: IntArray | None = None
    stratum: IntArray | None = None
    replicates: FloatArray | None = None
    scale: FloatArray | None = None
    copies: FloatArray | None = None
    squares: FloatArray | None = None

    @property
    def counts(self) -> FloatArray:
        """(k,) how many draws each of these stands for."""
        if self.kind == "frequency":
            return self.weight.astype(np.float64)
        return np.ones(len(self.weight)) if self.copies is None else self.copies

    @property
    def squared(self) -> FloatArray:
        """(k,) sum of the squared weights of the draws that each of these stands for."""
        return np.asarray(self.weight**2 / self.counts) if self.squares is None else self.squares

    @property
    def in_clusters(self) -> bool:
        """Whether some rows were drawn together; clusters of one row are rows."""
        return self.cluster is not None and bool(np.rint(self.counts.sum()) > int(self.cluster.max()) + 1)

    @property
    def across_rows(self) -> bool:
        """Whether some rows that were drawn together are not equal."""
        if self.cluster is None:
            return False
        own = np.zeros(int(self.cluster.max()) + 1, dtype=np.int64)
        own[self.cluster] = self.group
        return bool((own[self.cluster] != self.group).any())

    def among(self, kept: NDArray[np.bool_]) -> Draws:
        """The draws of the distinct rows ``kept`` (r,), renumbered."""
        return self.only(kept[self.group])

    def only(self, mine: NDArray[np.bool_]) -> Draws:
        """Some of the draws, (k,); distinct rows, clusters and strata without any are no longer numbered."""
        return Draws(
            _renumbered(self.group[mine]),
            self.weight[mine],
            self.kind,
            None if self.values is None else self.values[mine],
            None if self.cluster is None else _renumbered(self.cluster[mine]),
            None if self.stratum is None else _renumbered(self.stratum[mine]),
            None if self.replicates is None else self.replicates[mine],
            self.scale,
            None if self.copies is None else self.copies[mine],
            None if self.squares is None else self.squares[mine],
        )

    @property
    def kinds(self) -> IntArray:
        """(k,) a number for each: the same for equal rows of equal weight and values, whichever stand for several."""
        own = [self.group, self.weight / self.counts, *(() if self.values is None else self.values.T)]
        order = np.lexsort(own[::-1])
        new = np.any([np.diff(column[order], prepend=column[order[:1]]) != 0 for column in own], axis=0)
        out = np.empty(len(order), dtype=np.int64)
        out[order] = np.cumsum(new)
        return out

    def thinned(self, part: NDArray[np.int64], counts: NDArray[np.int64]) -> Draws:
        """The same with ``part`` (k,) of the ``counts`` (k,) raw rows that each of these stands for."""
        share = part / counts
        weight = part if self.kind == "frequency" else self.weight * share
        copies = None if self.copies is None else self.copies * share
        squares = None if self.squares is None else self.squares * share
        return replace(self, weight=weight, copies=copies, squares=squares)


def _renumbered(labels: IntArray) -> IntArray:
    """Labels 0, 1, .. without gaps, in their order.

    >>> _renumbered(np.array([4, 0, 4, 2])).tolist()
    [2, 0, 2, 1]
    """
    return np.asarray((np.cumsum(np.bincount(labels) > 0) - 1)[labels], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class DrawPlan:
    """How the rows given to a fit were drawn, one entry for each of the k rows of positive weight.

    Attributes:
        kind: what the weights are.
        cluster, stratum, replicates, scale: as in :class:`Draws`.
    """

    kind: Kind
    cluster: IntArray | None = None
    stratum: IntArray | None = None
    replicates: FloatArray | None = None
    scale: FloatArray | None = None

    def draws(self, group: IntArray, weight: NDArray[Any], values: FloatArray, noisy: bool) -> Draws | None:
        """The draws behind distinct rows; ``None`` where their weights determine them.

        Args:
            group: (k,) distinct row of each raw row.
            weight: (k,) weights.
            values: (k, m) normalised values.
            noisy: whether values differ between equal rows.
        """
        plain = self.cluster is None and self.stratum is None and self.replicates is None
        if plain and self.kind == "frequency" and not noisy:
            return None
        kept = values if noisy else None
        return Draws(group, weight, self.kind, kept, self.cluster, self.stratum, self.replicates, self.scale)


def plan_draws(
    weight: NDArray[Any],
    kept: IntArray | None,
    n: int,
    index: Any,
    *,
    weights: str = "auto",
    clusters: Any = None,
    strata: Any = None,
    replicate_weights: Any = None,
) -> DrawPlan:
    """Check the design of the n rows, of which ``kept`` (k,) have the positive weights ``weight`` (k,).

    All of them are kept for ``None``.

    >>> plan_draws(np.array([1, 2]), np.array([0, 1]), 2, None).kind
    'frequency'
    >>> plan_draws(np.array([0.5, 2.0]), np.array([0, 1]), 2, None, clusters=["a", "a"]).cluster.tolist()
    [0, 0]
    """
    kind = weight_kind(weights, weight.dtype.kind == "i")
    if clusters is None and strata is None and replicate_weights is None:
        return DrawPlan(kind, None, None)
    kept = np.arange(n) if kept is None else kept
    if replicate_weights is not None:
        refuse_both(clusters, strata)
    cluster, stratum = _labels(clusters, kept, n, index, "clusters"), _labels(strata, kept, n, index, "strata")
    if cluster is not None and stratum is not None:
        refuse_crossing(cluster, stratum)
    if replicate_weights is None:
        return DrawPlan(kind, cluster, stratum)
    columns, scale = _replicates(replicate_weights, kept, n, index)
    return DrawPlan(kind, None, None, columns, scale)


def weight_kind(given: str, whole: bool) -> Kind:
    """The kind of the weights, from the parameter and whether they are all whole numbers."""
    check_choice("weights", given, ("auto", "frequency", "probability"))
    if given == "auto":
        return "frequency" if whole else "probability"
    if given == "frequency" and not whole:
        raise InputError(
            Parameter("weights", given),
            " was given, but the weights are not whole numbers; frequencies count equal rows. Leave ",
            Parameter("weights"),
            " out, or say ",
            Parameter("weights", "probability"),
            ".",
        )
    return "frequency" if given == "frequency" else "probability"


def do_not_look_like_counts(weight: NDArray[Any], row: IntArray, outputs: FloatArray | None, widest: int) -> bool:
    """Whether whole weights (k,) are too large to be counts of equal rows.

    Counted rows differ in their values, numbered by ``row`` (k,), or in a few different (k, m) outputs, and no
    column of theirs has nearly as many different values as there are rows: ``widest`` is the most that one has.

    >>> weight, row, outputs = np.full(300, 90), np.arange(300), np.zeros((300, 1))
    >>> do_not_look_like_counts(weight, row, outputs, 2), do_not_look_like_counts(weight, row // 2, outputs, 2)
    (False, True)
    """
    k = len(weight)
    if weight.dtype.kind != "i" or are_small(k, float(weight.sum())):
        return False
    return look_surveyed(k, widest, Repeats.of_arrays(row, outputs))


@dataclass(frozen=True)
class Repeats:
    """How often rows with whole weights repeat, asked only as far as it matters.

    Attributes:
        rows: whether some rows are equal.
        pairs: whether some rows are equal and have equal outputs; ``None`` where a model is called.
        outputs: how many outputs are different.
    """

    rows: Callable[[], bool]
    pairs: Callable[[], bool] | None
    outputs: Callable[[], int]

    @classmethod
    def of_arrays(cls, row: IntArray, outputs: FloatArray | None) -> Repeats:
        """Those of rows with the numbers (k,) and the outputs (k, m), or ``None``."""
        k = len(row)

        def repeat() -> bool:
            return len(np.unique(row)) < k

        if outputs is None:
            return cls(repeat, None, lambda: 0)
        known = outputs
        return cls(
            repeat,
            lambda: len(np.unique(np.column_stack([row, known]), axis=0)) < k,
            lambda: len(np.unique(known, axis=0)),
        )


def are_small(rows: int, total: float) -> bool:
    """Whether whole weights of that many rows are no larger than counts often are, or of too few rows to tell.

    >>> are_small(1000, 3000.0), are_small(1000, 90000.0)
    (True, False)
    """
    return rows < FEWEST_SURVEYED or total <= MANY_COUNTS * rows


def look_surveyed(rows: int, widest: int, repeats: Repeats) -> bool:
    """Whether rows with large whole weights do not look as if they had been counted."""
    if 2 * widest > max(rows, MANY_COUNTS):
        return True
    if repeats.pairs is None or not repeats.rows():
        return repeats.rows()
    return repeats.pairs() or 2 * repeats.outputs() > rows


def _labels(given: Any, kept: IntArray, n: int, index: Any, what: str) -> IntArray | None:
    """(k,) numbers 0, 1, .. of what the rows belong to."""
    if given is None:
        return None
    refuse_mask(given, f"The {what}")
    labels = np.asarray(to_rows(given, index, f"The {what}"))
    if labels.shape != (n,):
        raise InputError(f"{what}= has the shape {labels.shape}; expected ({n},): one label for each row.")
    missing = np.array([label is None or label != label for label in labels[kept].tolist()])
    if missing.any():
        raise InputError(
            f"{what}= has no label in {count_of(int(missing.sum()), 'row')}, the first is row {int(kept[missing][0])}; "
            "give every row a label, or weight 0."
        )
    try:
        return np.unique(labels[kept], return_inverse=True)[1].astype(np.int64).ravel()
    except TypeError as error:
        raise InputTypeError(f"{what}= mixes labels that cannot be ordered; give text, or numbers.") from error


def refuse_both(clusters: Any, strata: Any) -> None:
    """Refuse clusters or strata given with replicate weights."""
    if clusters is not None or strata is not None:
        raise InputError(
            Parameter("replicate_weights"),
            " were given with ",
            Parameter("clusters"),
            " or ",
            Parameter("strata"),
            "; replicate weights already describe how the rows were drawn. Give one or the other.",
        )


def refuse_crossing(cluster: IntArray, stratum: IntArray) -> None:
    """Raise if rows (k,) of one cluster lie in several strata."""
    first = np.full(int(cluster.max()) + 1, -1)
    first[cluster] = stratum
    if (first[cluster] != stratum).any():
        raise InputError(
            "a cluster of ",
            Parameter("clusters"),
            " lies in several strata; every cluster is drawn inside one stratum. Where clusters are numbered anew in "
            "each stratum, give labels made of both, such as stratum + '/' + cluster.",
        )


def _replicates(given: Any, kept: IntArray, n: int, index: Any) -> tuple[FloatArray, FloatArray]:
    """(k, B) columns and their (B,) factors."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise InputError(
            "replicate_weights= needs the columns and their scale factor, as a pair (columns, scale): 1/B for BRR, "
            "1/(B (1 - rho)^2) for Fay's method, (B - 1)/B for the delete-one jackknife, with B columns."
        )
    refuse_mask(given[0], "The replicate weights")
    try:
        columns = np.asarray(to_rows(given[0], index, "The replicate weights"), dtype=np.float64)
        scale = np.asarray(given[1], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError("replicate_weights= holds something that is not a number.") from error
    if columns.ndim != 2 or len(columns) != n or not columns.shape[1]:
        raise InputError(f"the columns of replicate_weights= have the shape {columns.shape}; expected ({n}, B).")
    columns = columns[kept]
    if not np.isfinite(columns).all() or (columns < 0).any() or not (columns.sum(axis=0) > 0).all():
        raise InputError("replicate weights have to be finite, at least 0, and not all 0 in a column.")
    if scale.shape not in ((), (columns.shape[1],)) or not np.isfinite(scale).all() or (scale < 0).any():
        raise InputError(f"the scale of replicate_weights= is {given[1]!r}; expected a number, or one for each column.")
    return columns, np.broadcast_to(scale, (columns.shape[1],)).copy()
