"""``Moments``: the sufficient statistics of rows for main effects and pairs; moments of shards add up.

    counts     weights of rows in the cells of up to four features (``phi.margins``), exact for whole weights
    sums       weighted sums of the outputs, less a centre, in the cells of one and two features
    squares    weighted sums of their squares

All shards have the same levels, agreed on before. Whole numbers merge to the same bytes in any order; sums of outputs
agree up to rounding. A minimum count refuses moments with a cell of fewer rows, for sites that may not publish them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.argument_checks import check_whole
from exanova.data.distinct import distinct_rows
from exanova.data.encoding import Encoding
from exanova.data.sample import blocks_of
from exanova.data.scaling import find_scaling
from exanova.data.table import Table
from exanova.data.values import align, evaluate, is_model
from exanova.data.weights import check_weights
from exanova.design import passes
from exanova.design.family import Family, dense_family
from exanova.design.memory import readable, resolve_limit
from exanova.errors import InputError, MemoryLimitError, UnknownLevelError
from exanova.messages import Parameter, count_of
from exanova.phi.margins import Margins, count_margins, margins_of
from exanova.typing import Codes, FloatArray, Subset

HIGHEST = 2
"""Largest order of effects: margins of twice as many features are counted."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Sufficient statistics of rows and outputs for effects of up to two features; ``first + second`` merges two.

    Attributes:
        encoding: levels of every feature.
        max_order: 1 or 2.
        counts: weights of rows in the cells of the margins, one margin after the other; int64 if weights are whole.
        sums: (keys, m) weighted sums of the outputs less ``centre`` in the cells of every subset.
        squares: (m,) weighted sums of their squares.
        centre: (m,) numbers near the mean of each output, so that large means cost no digits.
        outputs: names of the outputs; ``single`` if the model has one number per row.
        rows: number of rows.
        shards: hashes of the shards inside.
        min_count: guaranteed minimum number of rows of an occupied cell of any shard; 0 without a guarantee.

    >>> from exanova.data.encoding import Encoding
    >>> levels = Encoding.from_levels(["colour", "size"], [["blue", "red"], [1, 2]])
    >>> X = np.array([["red", 1], ["blue", 2], ["red", 2]], dtype=object)
    >>> first, second = (collect_moments(X[k], np.arange(3.0)[k], levels) for k in (slice(0, 1), slice(1, 3)))
    >>> merged = first + second
    >>> merged.rows, merged.counts.tolist() == collect_moments(X, np.arange(3.0), levels).counts.tolist()
    (3, True)
    """

    encoding: Encoding
    max_order: int
    counts: NDArray[Any]
    sums: FloatArray
    squares: FloatArray
    centre: FloatArray
    outputs: tuple[str, ...]
    single: bool
    rows: int
    shards: tuple[str, ...]
    min_count: int = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each feature."""
        return self.encoding.sizes

    @cached_property
    def cells(self) -> Family:
        """All subsets with all combinations of levels, observed or not."""
        return every_cell(self.sizes, self.max_order)

    @cached_property
    def margins(self) -> Margins:
        """The margins that ``counts`` holds."""
        margins = margins_of(self.cells)
        assert margins is not None
        return margins

    def __add__(self, other: Moments) -> Moments:
        """Moments of two sets of shards together; raises if they do not fit or have a shard in common."""
        check_alike(self, other)
        shift, weight = other.centre - self.centre, other.weight
        return replace(
            self,
            counts=self.counts + other.counts,
            sums=self.sums + (other.sums + weight[:, None] * shift),
            squares=self.squares + (other.squares + 2.0 * shift * other.sums[0] + shift**2 * weight[0]),
            rows=self.rows + other.rows,
            shards=tuple(sorted((*self.shards, *other.shards))),
            min_count=min(self.min_count, other.min_count),
        )

    @property
    def weight(self) -> FloatArray:
        """(keys,) weight of every cell of every subset, from the margins."""
        return np.concatenate([self.table_of(subset).ravel() for subset in self.cells.subsets]).astype(np.float64)

    def table_of(self, subset: Subset) -> NDArray[Any]:
        """Weights of the cells of one subset, one axis per feature: a margin of a margin."""
        margins, wanted = self.margins, set(subset)
        if not len(margins.unions):  # no feature varies
            return np.asarray(self.counts[0])
        inside = [np.isin(margins.unions, [feature]).any(axis=1) for feature in subset]
        k = int(np.flatnonzero(np.logical_and.reduce(inside) if inside else np.ones(len(margins.unions), bool))[0])
        members = [feature for feature in margins.unions[k].tolist() if feature >= 0]
        table = self.counts[margins.start[k] : margins.start[k + 1]].reshape([self.sizes[f] for f in members])
        summed = table.sum(axis=tuple(a for a, feature in enumerate(members) if feature not in wanted))
        return np.asarray(summed)


def collect_moments(
    X: Any,
    model: Any,
    levels: Encoding,
    *,
    max_order: int = 2,
    sample_weight: Any = None,
    min_count: int = 0,
    output_names: Sequence[str] | None = None,
    response_method: str = "auto",
    memory_limit: int | float | str | None = None,
    threads: int = 1,
) -> Moments:
    """The moments of the rows of ``X`` and of a model, or of its outputs there.

    Args:
        X: a table with all features of ``levels``.
        model: a callable, a fitted estimator, or outputs for each row.
        levels: levels of every feature; the same for all shards.
        max_order: 1 or 2.
        sample_weight: (n,) weights of the rows.
        min_count: refuse if some cell of the margins has fewer rows than this, but at least one.
        output_names: names of the outputs.
        response_method: method of an estimator.
        memory_limit: most memory for the margins.
        threads: threads to use.
    """
    return collect_blocks(
        [(X, model, sample_weight)],
        levels,
        max_order=max_order,
        min_count=min_count,
        output_names=output_names,
        response_method=response_method,
        memory_limit=memory_limit,
        threads=threads,
    )


def collect_blocks(
    blocks: Iterable[tuple[Any, Any, Any]],
    levels: Encoding,
    *,
    max_order: int = 2,
    min_count: int = 0,
    output_names: Sequence[str] | None = None,
    response_method: str = "auto",
    memory_limit: int | float | str | None = None,
    threads: int = 1,
) -> Moments:
    """The moments of all rows of blocks ``(X, model, sample_weight)``, as one shard; otherwise as ``collect_moments``.

    The minimum count is that of the rows of all blocks together.
    """
    if max_order not in (1, HIGHEST) or isinstance(max_order, bool):
        raise InputError.given("max_order", max_order, "1 or 2: moments hold the counts of up to four features")
    check_whole("min_count", min_count, least=0)
    _check_memory(levels.sizes, max_order, resolve_limit(memory_limit))
    calling = (output_names, response_method)
    moments: Moments | None = None
    rows: NDArray[Any] = np.zeros(0)
    for block in blocks:
        own, own_rows = _of_block(block, levels, max_order, min_count, calling, threads)
        moments, rows = (own, own_rows) if moments is None else (moments + own, rows + own_rows)
    if moments is None:
        raise InputError("the table has no rows", expected="at least one")
    _check_counts(moments.margins, rows, levels, min_count)
    return replace(moments, shards=(identity(moments),))


def _of_block(
    block: tuple[Any, Any, Any],
    levels: Encoding,
    max_order: int,
    min_count: int,
    calling: tuple[Sequence[str] | None, str],
    threads: int,
) -> tuple[Moments, NDArray[Any]]:
    """The moments of a block, of no shard yet, and its rows in the cells of the margins."""
    X, model, sample_weight = block
    output_names, response_method = calling
    table = Table.read(X).select(levels.names)
    weight, kept = check_weights(sample_weight, table.n_rows, table.index, added=True), None
    n, index = table.n_rows, table.index
    if not weight.all():
        kept = np.flatnonzero(weight)
        table, weight = table.rows(kept), weight[kept]
    codes = _known_codes(levels, table)
    if is_model(model):
        first, group = distinct_rows(codes) if levels.is_lossless else distinct_rows(levels.raw_codes(table))
        values = evaluate(model, table, first, response_method=response_method, output_names=output_names)
        values = replace(values, values=values.values[group])
    else:
        values = align(model, n, index=index, kept=kept, output_names=output_names)
    centre = find_scaling(values.values, weight).centre
    moments = Moments(
        levels,
        max_order,
        np.zeros(0),
        np.zeros((0, 0)),
        centre,
        centre,
        values.output_names,
        values.single,
        table.n_rows,
        (),
        min_count,
    )
    weight = np.ascontiguousarray(weight)
    counts, sums, squares = _counted(moments, codes, weight, values.values - centre, threads)
    rows = _rows_in_cells(moments, codes, weight, counts, threads)
    return replace(moments, counts=counts, sums=sums, squares=squares), rows


def _known_codes(levels: Encoding, table: Table) -> Codes:
    """Codes of all rows; an unknown level is refused, with advice for moments."""
    try:
        return levels.encode(table).astype(np.min_scalar_type(max(levels.sizes)))
    except UnknownLevelError as error:
        raise UnknownLevelError(
            error.problem,
            remedy="add them to the levels that all shards share (`exanova levels --add`), or leave the rows out",
        ) from error


def every_cell(sizes: Sequence[int], max_order: int) -> Family:
    """The family of all features with several levels, and their pairs, with every combination as a cell."""
    varying = [i for i, n in enumerate(sizes) if n > 1]
    subsets: list[Subset] = [s for k in range(1, max_order + 1) for s in combinations(varying, k)]
    counts = {s: np.ones([sizes[i] for i in s]) for s in subsets}
    return dense_family(sizes, counts, 1.0)


def merge_moments(parts: Sequence[Moments]) -> Moments:
    """The moments of all parts together; raises if they do not fit or have a shard in common."""
    if not parts:
        raise InputError("no moments were given; expected at least one.")
    return reduce(lambda first, second: first + second, parts)


def check_alike(first: Moments, second: Moments) -> None:
    """Raise unless two sets of moments can be added."""
    common = set(first.shards) & set(second.shards)
    if common:
        raise InputError(
            f"{count_of(len(common), 'shard is', 'shards are')} in both: "
            f"{', '.join(name[:12] for name in sorted(common)[:3])}; every shard counts once, "
            "and merging it again would double its weight. Leave one of them out."
        )
    if first.encoding.to_json() != second.encoding.to_json():
        raise InputError(
            f"the moments have different levels ({_difference(first.encoding, second.encoding)}); collect all of them "
            "with the same file of levels."
        )
    if first.max_order != second.max_order:
        raise InputError(
            f"moments of order {first.max_order} and of order {second.max_order} were given; collect all of them with "
            "the same order."
        )
    if (first.outputs, first.single) != (second.outputs, second.single):
        raise InputError(
            f"the moments have different outputs, {', '.join(first.outputs)} and {', '.join(second.outputs)}; give "
            "them the same names."
        )


def identity(moments: Moments) -> str:
    """SHA-256 of the levels and of all numbers: the same for the same rows, and nothing can be read from it."""
    digest = hashlib.sha256(json.dumps(moments.encoding.to_json()).encode("ascii"))
    for array in (moments.counts, moments.sums, moments.squares, moments.centre):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _counted(
    empty: Moments, codes: Codes, weight: NDArray[Any], values: FloatArray, threads: int
) -> tuple[NDArray[Any], FloatArray, FloatArray]:
    """Counts, sums and squares of rows, block by block."""
    cells, margins, parts = empty.cells, empty.margins, (slice(0, len(weight)),)
    whole = slice(0, len(margins.unions))
    counts = count_margins(margins, codes, weight, parts, whole, threads)
    sums, squares = np.zeros((cells.n_keys, values.shape[1])), np.zeros(values.shape[1])
    for rows in blocks_of(parts):
        weighted = weight[rows, None] * values[rows]
        sums += passes.scatter(cells.layout, np.ascontiguousarray(codes[:, rows]), weighted, threads=threads)
        squares += np.einsum("rm,rm->m", weighted, values[rows])
    if not len(margins.unions):  # no feature varies: the total weight alone
        counts = np.array([weight.sum()], dtype=weight.dtype)
    return counts, sums, squares


def _rows_in_cells(
    empty: Moments, codes: Codes, weight: NDArray[Any], counts: NDArray[Any], threads: int
) -> NDArray[Any]:
    """Rows in the cells of the margins, however they are weighted."""
    if (weight == 1).all() or not empty.min_count:
        return counts
    ones, whole = np.ones(len(weight), dtype=np.int64), slice(0, len(empty.margins.unions))
    return count_margins(empty.margins, codes, ones, (slice(0, len(ones)),), whole, threads)


def _check_counts(margins: Margins, rows: NDArray[Any], levels: Encoding, min_count: int) -> None:
    """Refuse moments with cells of fewer rows than a site may publish."""
    few = np.flatnonzero((rows > 0) & (rows < min_count))
    if not len(few):
        return
    k = int(np.searchsorted(margins.start, few[0], side="right")) - 1
    names = " x ".join(levels.names[i] for i in margins.unions[k].tolist() if i >= 0)
    raise InputError(
        f"{len(few):,} of {np.count_nonzero(rows):,} occupied cells of the margins have fewer than {min_count} rows, "
        f"for example one of {names}",
        remedy=[
            "Agree on fewer levels (",
            Parameter("n_bins"),
            ", ",
            Parameter("min_frequency"),
            ") or fewer features, collect ",
            Parameter("max_order", 1),
            ", whose margins have two features instead of four, or add rows",
        ],
    )


def _check_memory(sizes: Sequence[int], max_order: int, limit: int) -> None:
    """Refuse margins that would not fit in memory, before any is listed."""
    varying = np.array([n for n in sizes if n > 1], dtype=np.float64)
    powers = [float((varying**k).sum()) for k in range(1, 5)]
    cells = _elementary(powers, min(2 * max_order, max(1, len(varying))))
    if 16 * cells > limit:
        raise MemoryLimitError(
            f"the margins of {2 * max_order} of these {len(varying)} features have {cells:,.0f} cells and need about "
            f"{readable(16 * cells)}; the memory limit is {readable(limit)}",
            remedy=[
                "What would fit: fewer levels (",
                Parameter("n_bins"),
                ", ",
                Parameter("min_frequency"),
                "), fewer features, or ",
                Parameter("max_order", 1),
            ],
        )


def _elementary(powers: Sequence[float], order: int) -> float:
    """Sum of the products of that many different numbers, from the sums of their powers (Newton's identities)."""
    elementary = [1.0]
    for k in range(1, order + 1):
        elementary.append(sum((-1) ** (i - 1) * elementary[k - i] * powers[i - 1] for i in range(1, k + 1)) / k)
    return elementary[order]


def _difference(first: Encoding, second: Encoding) -> str:
    """The first difference, in a few words."""
    if first.names != second.names:
        return f"features {', '.join(first.names[:5])} and {', '.join(second.names[:5])}"
    name = next(a.name for a, b in zip(first.features, second.features, strict=True) if a != b)
    return f"those of {name!r}"
