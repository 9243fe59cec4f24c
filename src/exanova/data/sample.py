"""``Sample``: the distinct rows of a table with their weights and the values of a model: what is decomposed.

Equal rows are one row with their total weight. Values are centred and in units of their spread (``scaling``), so that a
large mean or a tiny unit costs no digits. What was lost in encoding is kept with them: the variance of
values that were averaged because their rows became equal, and how the raw rows were drawn.

A sample may come in parts. Everything that touches rows is a sum over them and takes one block of rows at a time, so
that codes, weights and values may be memory maps, and temporary arrays are small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exanova.data.draws import Draws
from exanova.data.mapped import release
from exanova.data.scaling import Scaling
from exanova.data.weights import ONE, group_totals
from exanova.errors import InputError
from exanova.messages import Parameter
from exanova.typing import Codes, FloatArray, IntArray

PART_ROWS = 262_144
"""Rows of the largest block that temporary arrays are made for."""


@dataclass(frozen=True, eq=False)
class Sample:
    """r distinct rows, weighted, with the values of a model at each.

    Attributes:
        codes: (d, r) level of every feature, unsigned.
        weight: (r,) total weight of the rows given that equal each: whole numbers if all weights are.
        sizes: levels of each feature.
        values: (r, m) normalised model values, averaged over equal rows.
        rows: number of rows that were given.
        in_blocks: whether the rows were read in blocks, so that no table of them is in memory.
        counted: distinct numbers and times that were counted to cut such rows; of a table in memory, distinct values of
            the column that has most.
        read_bytes: memory that reading in blocks took, about.
        on_disk: whether codes, weights and values are mapped from temporary files.
        within: (r, m) variance of the values that were averaged at each row; ``None`` where there is none.
        noise: (m,) the part of the mean of ``within`` between equal raw rows: outputs given for rows, which differ; the
            rest is between rows that bins or merged levels made equal. ``None`` where there is none.
        scaling: centre and unit of every output; ``None`` where values are in units of the model.
        draws: the raw rows behind the distinct ones, where their weights do not determine them.
        is_distribution: whether a known distribution was given in place of rows.
        clusters: number of clusters that the rows of a table in memory were drawn in, before ``draws`` are known.
        parts: blocks of rows, one after the other, that are read together; one block by default.
    """

    codes: Codes
    weight: NDArray[np.int64] | NDArray[np.float64]
    sizes: tuple[int, ...]
    values: FloatArray
    rows: int
    in_blocks: bool = field(default=False, kw_only=True)
    counted: int = field(default=0, kw_only=True)
    read_bytes: int = field(default=0, kw_only=True)
    on_disk: bool = field(default=False, kw_only=True)
    clusters: int = field(default=0, kw_only=True)
    within: FloatArray | None = None
    noise: FloatArray | None = None
    scaling: Scaling | None = None
    draws: Draws | None = None
    is_distribution: bool = False
    parts: tuple[slice, ...] = ()

    def __post_init__(self) -> None:
        """Fill in the default part, and check that parts are all rows, in order."""
        if not self.parts:
            object.__setattr__(self, "parts", (slice(0, self.n_rows),))
        bounds = [0, *(part.stop for part in self.parts)]
        if [part.start for part in self.parts] != bounds[:-1] or bounds[-1] != self.n_rows:
            raise InputError(f"the parts of a sample of {self.n_rows:,} rows have to follow each other and cover them.")

    @property
    def blocks(self) -> list[slice]:
        """The parts, the large ones cut into blocks that temporary arrays can be made for."""
        return blocks_of(self.parts)

    def each_block(self) -> Iterator[slice]:
        """The blocks, one after the other; those on disk leave memory again."""
        for rows in self.blocks:
            yield rows
            if self.on_disk:
                release(self.codes, self.weight, self.values, self.within)

    @property
    def n_rows(self) -> int:
        """r, the number of distinct rows."""
        return int(self.codes.shape[1])

    @property
    def n_outputs(self) -> int:
        """m, the number of outputs."""
        return int(self.values.shape[1])

    @property
    def mass(self) -> FloatArray:
        """(r,) weights as real numbers."""
        return self.weight.astype(np.float64, copy=False)

    @cached_property
    def probability(self) -> FloatArray:
        """(r,) weights over their total."""
        return np.asarray(self.weight / self.weight.sum(), dtype=np.float64)

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """(r,) weights, if they are whole numbers; ``None`` if they are not."""
        return self.weight.astype(np.int64, copy=False) if self.weight.dtype.kind in "iu" else None

    @property
    def copies(self) -> FloatArray:
        """(r,) how many of the rows given equal each; 1 for real weights."""
        if self.draws is not None:
            draws = self.draws
            counted = np.broadcast_to(ONE, len(draws.group)) if draws.counts is None else draws.counts
            out = np.maximum(group_totals(counted, draws.group, self.n_rows).astype(np.float64), 1.0)
            release(draws.group, draws.weight, draws.copies)
            return out
        return np.ones(self.n_rows) if self.counts is None else self.counts.astype(np.float64)

    @property
    def precision(self) -> FloatArray:
        """(r,) how many rows each distinct row stands for: counts, or of other weights its share of all rows given."""
        kind = ("probability" if self.counts is None else "frequency") if self.draws is None else self.draws.kind
        if kind == "frequency":
            return self.mass
        rows = self.n_rows if self.draws is None else float(self.draws.counts.sum())
        return np.asarray(self.probability * rows)

    @cached_property
    def varying(self) -> list[int]:
        """Features with more than one level; the others never enter."""
        return [i for i, n in enumerate(self.sizes) if n > 1]

    @property
    def weighted_values(self) -> FloatArray:
        """(r, m) probability times value."""
        return self.probability[:, None] * self.values

    @cached_property
    def mean(self) -> FloatArray:
        """(m,) mean of every output."""
        return self.expected(lambda rows: self.values[rows])

    @cached_property
    def variance(self) -> FloatArray:
        """(m,) variance of every output between the distinct rows."""
        return self.expected(lambda rows: (self.values[rows] - self.mean) ** 2)

    @cached_property
    def within_variance(self) -> FloatArray:
        """(m,) mean variance of the values that were averaged at a row."""
        within = self.within
        return np.zeros(self.n_outputs) if within is None else self.expected(lambda rows: within[rows])

    @cached_property
    def spread(self) -> FloatArray:
        """(m,) largest deviation of every output from its mean: the scale that errors are measured against."""
        out = np.zeros(self.n_outputs)
        for rows in self.each_block():
            np.maximum(out, np.abs(self.values[rows] - self.mean).max(axis=0, initial=0.0), out=out)
        return out

    def expected(self, of: Callable[[slice], FloatArray]) -> FloatArray:
        """(k,) expectation over the rows of what ``of`` gives for a block of them, (b, k)."""
        total: FloatArray | float = 0.0
        for rows in self.each_block():
            total = total + self.probability[rows] @ of(rows)
        return np.asarray(total)

    @property
    def rows_in_memory(self) -> int:
        """Rows that a table in memory holds for this sample; of rows read in blocks, those that are kept."""
        return (self.n_rows if self.draws is None else len(self.draws.group)) if self.in_blocks else self.rows

    def only(self, kept: NDArray[np.bool_]) -> Sample:
        """The distinct rows ``kept`` (r,) alone."""
        return replace(
            self,
            codes=np.ascontiguousarray(self.codes[:, kept]),
            weight=self.weight[kept],
            values=self.values[kept],
            within=None if self.within is None else self.within[kept],
            draws=None if self.draws is None else self.draws.among(kept),
            parts=(),
            on_disk=False,
        )

    def levels_present(self) -> list[NDArray[np.bool_]]:
        """For each feature, (N,) which of its levels occur in these rows: part of a sample may lack some."""
        return [np.bincount(row, minlength=size) > 0 for row, size in zip(self.codes, self.sizes, strict=True)]

    def without_absent_levels(self) -> Sample:
        """The same rows with the levels that occur numbered again, in their order: no level has probability zero."""
        present = self.levels_present()
        number = [np.cumsum(levels) - 1 for levels in present]
        codes = np.stack([new[row] for new, row in zip(number, self.codes, strict=True)]).astype(self.codes.dtype)
        return replace(self, codes=codes, sizes=tuple(int(levels.sum()) for levels in present))

    def split(self, share: float, seed: int | None) -> tuple[Sample, Sample]:
        """Distinct rows split at random: those to fit, and a share to evaluate the fit on.

        Rows that were drawn in clusters are split by clusters, so that the two parts are independent. Every level keeps
        a row to be fitted on: levels that occur only in held-out rows would be unknown. Refuses a split that leaves
        nothing to evaluate on.
        """
        if self.draws is None or self.draws.cluster is None or not self.draws.across_rows:
            held = held_out(self.codes, self.sizes, share, seed)
            return self.only(~held), self.only(held)
        cluster = self.draws.cluster
        out = held_clusters(self.codes[:, self.draws.group], self.sizes, cluster, share, seed)[cluster]
        return self.of_draws(~out), self.of_draws(out)

    def split_to_choose(self, share: float, seed: int | None) -> tuple[Sample, Sample]:
        """The same to choose by, not to judge by: where no cluster can be spared, rows of one may be on both sides.

        Clusters are few then, or each has levels of its own.
        """
        try:
            return self.split(share, seed)
        except InputError:
            held = held_out(self.codes, self.sizes, share, seed)
            return self.only(~held), self.only(held)

    def split_raw(self, share: float, seed: int | None) -> tuple[Sample, Sample, FloatArray]:
        """Raw rows split at random, so that equal rows may be on both sides, as those of another sample would be.

        The third part are the values at the rows held out, averaged over all equal rows. Distinct rows are split
        (:meth:`split`) where all rows differ, where they were drawn in clusters, and where values of equal rows differ
        but were added up. Every level keeps a row to be fitted on.
        """
        draws, counts = self.draws, self._raw_counts()
        lumped = self.within is not None and (draws is None or draws.values is None)
        together = draws is not None and draws.cluster is not None and draws.across_rows
        if lumped or together or counts.sum() == self.n_rows:
            return self._split_apart(share, seed)
        group = np.arange(self.n_rows) if draws is None else draws.group
        out = drawn_alike(group if draws is None else draws.kinds, counts, share, seed)
        for row, size in zip(self.codes, self.sizes, strict=True):
            fitted = np.bincount(row[group], weights=counts - out, minlength=size) > 0
            for level in np.flatnonzero(~fitted):
                out[np.flatnonzero(row[group] == level)[0]] = 0
        if not out.any():
            return self._split_apart(share, seed)
        held = np.bincount(group[out > 0], minlength=self.n_rows) > 0
        return self._of_raw(counts, counts - out), self._of_raw(counts, out), self.values[held]

    def _split_apart(self, share: float, seed: int | None) -> tuple[Sample, Sample, FloatArray]:
        train, held = self.split(share, seed)
        return train, held, held.values

    def _raw_counts(self) -> NDArray[np.int64]:
        """How many raw rows each draw stands for, or each distinct row where their weights are all that is known."""
        own = self.copies if self.draws is None else self.draws.counts
        return np.maximum(np.rint(own), 1).astype(np.int64)

    def _of_raw(self, counts: NDArray[np.int64], part: NDArray[np.int64]) -> Sample:
        """The same with ``part`` (k,) of the ``counts`` (k,) raw rows of each draw, or of each distinct row."""
        if self.draws is None:
            kept = part > 0
            return replace(self.only(kept), weight=part[kept])
        return self._with_draws(self.draws.thinned(part, counts), part > 0)

    def of_draws(self, mine: NDArray[np.bool_]) -> Sample:
        """The distinct rows behind some of the draws (k,), with the weights and values of these alone."""
        assert self.draws is not None
        return self._with_draws(self.draws, mine)

    def _with_draws(self, given: Draws, mine: NDArray[np.bool_]) -> Sample:
        """The distinct rows behind ``mine`` (k,) of the draws that are ``given``."""
        group, weight = given.group[mine], given.weight[mine]
        kept = np.bincount(group, minlength=self.n_rows) > 0
        draws = given.only(mine)
        own = replace(self.only(kept), weight=group_totals(weight, draws.group, int(kept.sum())), draws=draws)
        own = replace(own, rows=len(weight))
        if draws.values is None:
            return own
        share = (weight / own.weight[draws.group])[:, None]
        means = group_sums(share * draws.values, draws.group, own.n_rows)
        within = group_sums(share * (draws.values - means[draws.group]) ** 2, draws.group, own.n_rows)
        return replace(own, values=means, within=within)


MOST_DRAWN = 10**9
"""Rows up to which a number of them is drawn; of more, each is drawn with the probability that gives as many."""


def drawn_alike(kind: IntArray, counts: NDArray[np.int64], share: float, seed: int | None) -> NDArray[np.int64]:
    """(k,) how many of the ``counts`` (k,) rows are among a share of all, in whichever entries rows of a kind are.

    >>> [drawn_alike(np.array([0, 1, 1]), np.array(n), 0.5, 3).tolist() for n in ([4, 1, 3], [4, 2, 2])]
    [[1, 1, 2], [1, 2, 1]]
    """
    order = np.argsort(kind, kind="stable")
    total = np.bincount(kind, weights=counts).astype(np.int64)
    before = np.cumsum(counts[order]) - counts[order] - (np.cumsum(total) - total)[kind[order]]
    out = np.empty(len(kind), dtype=np.int64)
    out[order] = np.clip(drawn_without_replacement(total, share, seed)[kind[order]] - before, 0, counts[order])
    return out


def drawn_without_replacement(counts: NDArray[np.int64], share: float, seed: int | None) -> NDArray[np.int64]:
    """(k,) how many of the ``counts`` (k,) equal rows are among a share of all rows, drawn at random.

    >>> drawn_without_replacement(np.array([2, 0, 8]), 0.5, 0).sum()
    np.int64(5)
    """
    rng, total = np.random.default_rng(seed), int(counts.sum())
    if total >= MOST_DRAWN:
        return rng.binomial(counts, share)
    return np.asarray(rng.multivariate_hypergeometric(counts, int(share * total), method="marginals"))


def group_sums(values: FloatArray, group: IntArray, count: int) -> FloatArray:
    """(count, m) sums of the rows of ``values`` (k, m) in each group."""
    return np.stack([np.bincount(group, weights=column, minlength=count) for column in values.T], axis=1)


def held_clusters(
    codes: Codes, sizes: Sequence[int], cluster: IntArray, share: float, seed: int | None
) -> NDArray[np.bool_]:
    """(C,) a share of the clusters of rows (d, k) drawn at random, which are not fitted; see :meth:`Sample.split`."""
    count = int(cluster.max()) + 1
    held = np.zeros(count, dtype=bool)
    held[np.random.default_rng(seed).permutation(count)[: min(max(1, int(share * count)), count - 1)]] = True
    for row, size in zip(codes, sizes, strict=True):
        fitted = np.zeros(size, dtype=bool)
        fitted[row[~held[cluster]]] = True
        for level in np.flatnonzero(~fitted):
            held[cluster[row == level].min()] = False  # whatever the order of the rows
    if not held.any():
        raise InputError(
            f"a fraction of {share:g} of {count:,} clusters holds out none, since every level keeps one for the fit",
            remedy=["give more clusters, a larger fraction, or your own held-out rows as ", Parameter("eval_set")],
        )
    return held


def held_out(codes: Codes, sizes: Sequence[int], share: float, seed: int | None) -> NDArray[np.bool_]:
    """(r,) a share of distinct rows (d, r) drawn at random, which are not fitted; see :meth:`Sample.split`."""
    r = codes.shape[1]
    held = np.zeros(r, dtype=bool)
    held[np.random.default_rng(seed).permutation(r)[: int(share * r)]] = True
    for row, size in zip(codes, sizes, strict=True):
        fitted = np.zeros(size, dtype=bool)
        fitted[row[~held]] = True
        for level in np.flatnonzero(~fitted):
            held[np.flatnonzero(row == level)[0]] = False
    if not held.any():
        raise InputError(
            f"a fraction of {share:g} of {r:,} distinct rows holds out no row, since every level keeps one for the fit",
            remedy=["give more rows, a larger fraction, or your own held-out rows as ", Parameter("eval_set")],
        )
    return held


def blocks_of(parts: Sequence[slice]) -> list[slice]:
    """Parts of rows, cut into blocks of at most ``PART_ROWS``.

    >>> blocks_of([slice(0, 3), slice(3, 5)])
    [slice(0, 3, None), slice(3, 5, None)]
    """
    return [slice(a, min(a + PART_ROWS, part.stop)) for part in parts for a in range(part.start, part.stop, PART_ROWS)]


@dataclass(frozen=True, eq=False)
class KnownRows:
    """(d, n) codes of rows whose combinations of levels all occur in the sample, without weights or values."""

    codes: Codes


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows that were not fitted: (d, n) codes, -1 for a level never observed.

    Their combinations of levels may never have occurred, so that their cells have to be looked up with care; those of a
    :class:`Sample` need not.
    """

    codes: Codes
