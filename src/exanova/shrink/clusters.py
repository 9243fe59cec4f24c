"""What the rows of a cluster share besides effects, and how much less they say about each effect for it.

Rows that were drawn together may have a part of their residual in common:

    y  =  mean + effects + u_c + e,     u_c ~ N(0, kappa^2) for every cluster c,     e ~ N(0, tau^2) for every row.

A likelihood that takes rows for independent explains u_c by effects of features that hardly vary within clusters, and
shrinks too little. rho = kappa^2 / tau^2 is one more ratio in the likelihood of the orders (:func:`shared_ratio`),
which sees the rows through means of random parts of clusters: these keep all that clusters say, in a matrix of at most
``PARTS`` rows. What features that never vary within a cluster say about its level is not used to estimate rho, so that
levels are not taken for noise where every cluster is one of them: then nothing is known of rho, and it is 0.

Given rho, the likelihood of all other ratios has D (I + rho 1 1^T D)^-1 within clusters in place of D (``Shared``). The
fit itself stays the one of independent rows, a least-squares fit in the limit: only its ratios change. A column z of
subset k at the rows has noise of variance (tau^2 + m_k kappa^2) z^T D z,

    m_k  =  sum over clusters of |Z_c^T d_c|^2  /  sum over rows of d_i |z_i|^2,

averaged over the columns of the subset, so that sigma_k^2 / (tau^2 + m_k kappa^2) takes the place of sigma_k^2 / tau^2.
m_k is 1 where every row is alone, and the rows of a cluster where z does not vary within clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.data.draws import Draws
from exanova.data.sample import KnownRows, Sample, group_sums
from exanova.phi.operator import Phi
from exanova.shrink.components import maximise
from exanova.shrink.coordinates import Prior
from exanova.shrink.likelihood import ByRows
from exanova.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from exanova.shrink.by_cells import SubsetKernels
    from exanova.shrink.cell_kernels import CellKernel

PARTS = 400
"""Parts of clusters whose means say how much the rows of a cluster share."""

WORTH = 1.0
"""Gain in log-likelihood from which rows of a cluster count as sharing something: that of a parameter that is needed.
Without this, half of all data whose rows share nothing would have a ratio above zero by chance."""

START = -2.0
"""Logarithm of rho at which the search for it starts."""

NOTHING_FREE = 1e-6
"""Part of the variation between clusters that levels leave, below which nothing is known of rho."""

BLOCK_BYTES = 64_000_000
"""Memory of the sums of the columns over some clusters."""

MOST_APART = 10_000_000
"""Rows of clusters up to which equal ones that were counted are divided among the parts one by one."""

MOST_WORK = 4e10
"""Multiplications up to which the likelihood of ratios is that of clusters: two seconds."""


@dataclass(frozen=True, eq=False)
class ClusterRows:
    """The raw rows of a sample that was drawn in clusters.

    Attributes:
        group, cluster: (k,) distinct row and cluster of each.
        precision: (k,) how many rows each stands for, by weight.
        copies: (k,) how many equal rows it was counted from; half a row where outputs are known as two values.
        values: (k, m) values less their mean.
    """

    group: IntArray
    cluster: IntArray
    precision: FloatArray
    copies: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, sample: Sample) -> ClusterRows | None:
        """The raw rows; ``None`` where none were drawn together."""
        draws = sample.draws
        if draws is None or draws.cluster is None or not draws.in_clusters:
            return None
        values = sample.values[draws.group] if draws.values is None else draws.values
        precision, centred = _precision(draws), values - sample.probability @ sample.values
        return cls(draws.group, draws.cluster, precision, draws.counts, centred)

    @property
    def sizes(self) -> FloatArray:
        """(C,) precision of every cluster."""
        return np.bincount(self.cluster, self.precision).astype(np.float64)

    def parts(self, r: int) -> Any:
        """(r, C) sparse: precision of the rows that every distinct row has in every cluster."""
        from scipy.sparse import csr_array

        return csr_array((self.precision, (self.group, self.cluster)), shape=(r, int(self.cluster.max()) + 1))

    def between(self, ratio: float, r: int, chosen: IntArray) -> FloatArray:
        """(n, n) covariance of the values of some distinct rows, which are means, by what clusters share."""
        own = self.parts(r)[chosen]
        means = own.multiply(1.0 / np.asarray(own.sum(axis=1)).reshape(-1, 1)).tocsr()
        return np.asarray(ratio * (means @ means.T).toarray())

    def sums(self, phi: Phi, prior: Prior, columns: int) -> Iterator[tuple[slice, FloatArray]]:
        """Runs of clusters, and (clusters, columns) the sums of precision times column over the rows of each."""
        from scipy.sparse import csr_array

        order = np.argsort(self.cluster, kind="stable")
        count, step = int(self.cluster.max()) + 1, max(1, BLOCK_BYTES // (8 * max(1, columns)))
        for first in range(0, count, step):
            run = slice(first, min(count, first + step))
            own = order[slice(*np.searchsorted(self.cluster[order], [run.start, run.stop]).tolist())]
            out = np.empty((run.stop - run.start, columns))
            rows = self.group[own]
            for s, place, table in prior.groups():
                entries = self.precision[own], (self.cluster[own] - run.start, phi.cells(s)[rows])
                out[:, place] = csr_array(entries, shape=(len(out), len(table))) @ table
            yield run, out


def _precision(draws: Draws) -> FloatArray:
    weight = draws.weight.astype(np.float64)
    return weight if draws.kind == "frequency" else weight * (float(draws.counts.sum()) / float(weight.sum()))


@dataclass(frozen=True, eq=False)
class Shared:
    """What the rows of a cluster share, as the likelihood of the other ratios and the noise of every subset need it.

    Attributes:
        ratio: rho.
        more: (S',) m_k of every subset.
        gram: (q, q) what to take from Z^T D Z; ``None`` over rows, or where that would take too long.
        projections: (q, m) what to take from Z^T D y.
        squares: (m,) what to take from y^T D y.
        rows: (r, r) what to add to the covariance of the distinct rows over tau^2; over functions, that of the rows
            on which a search starts.
    """

    ratio: float
    more: FloatArray
    rows: FloatArray
    gram: FloatArray | None = None
    projections: FloatArray | None = None
    squares: FloatArray | None = None

    @property
    def noise(self) -> FloatArray:
        """(S',) variance of the noise in the columns of every subset, over tau^2."""
        return 1.0 + self.ratio * self.more


def shared_over_functions(rows: ClusterRows, ratio: float, phi: Phi, prior: Prior, drawn: IntArray) -> Shared:
    """What is shared, over the columns of a prior, and at the distinct rows that were drawn for a start."""
    q, m, sizes = len(prior.order), rows.values.shape[1], rows.sizes
    factor = ratio / (1.0 + ratio * sizes)
    totals = group_sums(rows.precision[:, None] * rows.values, rows.cluster, len(sizes))
    affordable = float(len(sizes)) * q**2 <= MOST_WORK
    gram = np.zeros((q, q) if affordable else (0, 0), order="F")
    projections, between = np.zeros((q, m)), np.zeros(q)
    for run, sums in rows.sums(phi, prior, q):
        between += np.einsum("ij,ij->j", sums, sums)
        if affordable:
            projections += sums.T @ (factor[run][:, None] * totals[run])
            sums *= np.sqrt(factor[run])[:, None]
            gram += sums.T @ sums
    more = _by_subset(prior, between) / _energy(prior, phi, rows.precision, rows.group)
    if not affordable:
        return Shared(ratio, more, rows.between(ratio, phi.codes.shape[1], drawn))
    start = rows.between(ratio, phi.codes.shape[1], drawn)
    return Shared(ratio, more, start, gram, projections, factor @ totals**2)


def shared_over_rows(rows: ClusterRows, ratio: float, phi: Phi, kernels: SubsetKernels) -> Shared:
    """The same over the distinct rows, whose values are means: clusters share what their parts in each have."""
    from scipy.sparse import csr_array

    r = phi.codes.shape[1]
    parts = rows.parts(r)
    total = np.asarray(parts.sum(axis=1)).ravel()
    more = np.empty(len(kernels.subsets))
    for k, (s, kernel) in enumerate(zip(kernels.subsets, kernels.kernels, strict=True)):
        cells = phi.cells(s)
        on_cells = csr_array((np.ones(r), (cells, np.arange(r))), shape=(int(kernels.cells[k]), r)) @ parts
        dense = on_cells.toarray()
        more[k] = np.vdot(dense, kernel.apply(dense)) / (total @ kernel.diagonal()[cells])
    return Shared(ratio, more, rows.between(ratio, r, np.arange(r)))


def _by_subset(prior: Prior, numbers: FloatArray) -> FloatArray:
    return np.bincount(prior.group, numbers, len(prior.subsets)).astype(np.float64)


def _energy(prior: Prior, phi: Phi, precision: FloatArray, group: IntArray) -> FloatArray:
    """(S',) sum over the rows of precision times the squared columns of every subset."""
    of_rows = np.bincount(group, precision, phi.codes.shape[1]).astype(np.float64)
    mass = phi.analyse(of_rows[:, None])[:, 0]
    return np.array([mass[phi.family.cells_of(s)] @ np.square(table).sum(axis=1) for s, _, table in prior.groups()])


def shared_ratio(
    rows: ClusterRows,
    sample: Sample,
    kernels: SubsetKernels,
    outputs: IntArray,
    seed: int,
    estimated: FloatArray | None = None,
) -> float:
    """rho of some outputs together: 0 where the rows of a cluster share nothing, or it cannot be estimated.

    ``estimated`` (S',) are ratios of subsets by a likelihood that takes rows for independent: effects of a few subsets
    of features that never vary within clusters are not to be taken for noise, as they would be where every subset of
    an order is given the same variance.
    """
    parts = _Parts.of(rows, sample, seed)
    covariances = parts.covariances(sample, kernels, estimated)
    same = (parts.cluster[:, None] == parts.cluster).astype(np.float64)
    root = np.sqrt(parts.precision)
    free = _complement(root[:, None] * parts.fixed(sample, kernels))
    whitened = [free.T @ (root[:, None] * one * root) @ free for one in (*covariances, same)]
    if np.trace(whitened[-1]) <= NOTHING_FREE * float(parts.precision.sum()) or not free.shape[1]:
        return 0.0
    values, noise = free.T @ (root[:, None] * parts.means[:, outputs]), np.ones(free.shape[1])
    without = maximise(ByRows(whitened[:-1], values, noise))
    both = maximise(ByRows(whitened, values, noise), np.append(without.evaluation.logs, START))
    gained = without.evaluation.loss - both.evaluation.loss
    return float(np.exp(both.evaluation.logs[-1])) if gained > WORTH else 0.0


@dataclass(frozen=True, eq=False)
class _Parts:
    """Random parts of clusters and the means over them.

    Attributes:
        part, share, group: (e,) the part of every raw row in one, its share of that part, and its distinct row.
        cluster: (p,) cluster of every part.
        precision: (p,) rows that every part stands for.
        means: (p, m) of the values.
    """

    part: IntArray
    share: FloatArray
    group: IntArray
    cluster: IntArray
    precision: FloatArray
    means: FloatArray

    @classmethod
    def of(cls, rows: ClusterRows, sample: Sample, seed: int) -> _Parts:
        """Divide every cluster at random, or some drawn at random where they are many, whatever the order of rows."""
        rng = np.random.default_rng(seed)
        count = int(rows.cluster.max()) + 1
        # Clusters of one row say nothing of what rows share.
        several = np.flatnonzero(np.bincount(rows.cluster, rows.copies, minlength=count) > 1)
        taken = several if 2 * len(several) <= PARTS else np.sort(rng.choice(several, PARTS // 2, replace=False))
        chosen, precision_of_one = _one_by_one(rows, np.isin(rows.cluster, taken))
        mixed = rng.random(len(sample.codes)) @ sample.codes
        of_row = precision_of_one[chosen], mixed[rows.group[chosen]], *rows.values[chosen].T
        chosen = chosen[np.lexsort((*of_row, rows.cluster[chosen]))]
        chosen = chosen[np.lexsort((rng.random(len(chosen)), rows.cluster[chosen]))]
        cluster, own = rows.cluster[chosen], precision_of_one[chosen]
        first = np.searchsorted(cluster, cluster)
        most = max(2, PARTS // len(taken))
        within = (np.arange(len(chosen)) - first) % most
        key, part = np.unique(cluster * most + within, return_inverse=True)
        precision = np.bincount(part, own).astype(np.float64)
        share = own / precision[part]
        means = group_sums(share[:, None] * rows.values[chosen], part, len(precision))
        return cls(part, share, rows.group[chosen], key // most, precision, means)

    def covariances(self, sample: Sample, kernels: SubsetKernels, estimated: FloatArray | None) -> list[FloatArray]:
        """(p, p) covariances of the means: by each order, its prior variance one, and by the ``estimated`` ratios."""
        known, of = np.unique(kernels.orders_of, return_inverse=True)
        weights = np.zeros((len(known) + (estimated is not None), len(of)))
        weights[of, np.arange(len(of))] = 1.0 / np.bincount(of, kernels.energy)[of]
        if estimated is not None:
            weights[-1] = estimated
        out = np.zeros((len(weights), len(self.precision), len(self.precision)))
        for place, cells, kernel in self._of_subsets(sample, kernels):
            own = cells @ kernel.apply(cells.T.toarray())
            for which in np.flatnonzero(weights[:, place]):
                out[which] += weights[which, place] * own
        return list(out)

    def fixed(self, sample: Sample, kernels: SubsetKernels) -> FloatArray:
        """(p, f) a constant, and the levels of every feature that never varies within a cluster."""
        columns = [np.ones((len(self.precision), 1))]
        for place, cells, _ in self._of_subsets(sample, kernels):
            if kernels.orders_of[place] == 1:
                held = cells.toarray() > 0
                one_level = (held.sum(axis=1) == 1).all()
                if one_level and (held == held[np.searchsorted(self.cluster, self.cluster)]).all():
                    columns.append(held[:, held.any(axis=0)].astype(np.float64))
        return np.hstack(columns)

    def _of_subsets(self, sample: Sample, kernels: SubsetKernels) -> Iterator[tuple[int, Any, CellKernel]]:
        from scipy.sparse import csr_array

        phi = Phi(kernels.family, KnownRows(np.ascontiguousarray(sample.codes[:, self.group])))
        for k, (s, kernel) in enumerate(zip(kernels.subsets, kernels.kernels, strict=True)):
            shape = (len(self.precision), int(kernels.cells[k]))
            yield k, csr_array((self.share, (self.part, phi.cells(s))), shape=shape), kernel


def _one_by_one(rows: ClusterRows, mine: NDArray[np.bool_]) -> tuple[IntArray, FloatArray]:
    """Numbers (e,) of ``mine`` (k,) of the rows, each as often as it was counted, and the precision (k,) of one each.

    So parts are the same whether equal rows are counted or apart, unless they are too many to be taken apart.
    """
    chosen, times = np.flatnonzero(mine), np.maximum(np.rint(rows.copies), 1.0).astype(np.int64)
    if times[chosen].sum() > MOST_APART:
        return chosen, rows.precision
    return np.repeat(chosen, times[chosen]), rows.precision / times


def _complement(columns: FloatArray) -> FloatArray:
    """(p, k) an orthonormal basis of what is orthogonal to some columns."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=True)
    rank = int((sizes > tolerances.DEPENDENT_COLUMNS * sizes[0]).sum())
    return np.asarray(left[:, rank:])


def shared_in_words(sample: Sample, shared: Shared | None) -> str:
    """What rows of a cluster share, in words; empty where rows are independent."""
    if ClusterRows.of(sample) is None:
        return ""
    if shared is None:
        return "; what rows of a cluster share could not be separated from the effects"
    return f"; rows of a cluster share {100 * shared.ratio / (1 + shared.ratio):.0f} % of the residual"
