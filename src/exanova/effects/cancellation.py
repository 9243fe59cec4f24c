"""Effects that cancel, and the near-redundant features behind them.

Under dependence the effects of different subsets are correlated. If they have opposite signs, each may be far larger
than the model itself, and only their sum is meaningful:

    cancellation = sum over A of Var f_A  /  Var(sum over A of f_A)

is 1 for independent inputs. Effects can cancel because some combination of main effects hardly varies: an eigenvector
of the Gram matrix of their orthonormal functions with a small eigenvalue. The features in it carry nearly the same
information, whether or not the redundancy is exact.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.basis.functions import build_basis
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.parallel import suitable_blas
from exanova.phi.operator import Phi
from exanova.solve.survey import is_complete, is_product
from exanova.typing import FloatArray

MOST_FUNCTIONS = 2000
"""Functions of main effects up to which near-redundant features are searched: an eigenvalue problem of a second."""

MEMBER = 0.1
"""Share of a small direction from which a feature belongs to it."""


def cancellation(family: Family, values: FloatArray, fitted_variance: FloatArray) -> FloatArray:
    """(m,) summed variance of all effects over the (m,) variance of the fitted part; 1 if the latter is zero."""
    squares = (family.weight[1:] / family.weight[0]) @ values[1:] ** 2
    return np.asarray(np.divide(squares, fitted_variance, out=np.ones_like(squares), where=fitted_variance > 0))


def near_redundant(
    sample: Sample, family: Family, threads: int = 1, gram: FloatArray | None = None
) -> tuple[tuple[int, ...], ...]:
    """Groups of two or more features whose main effects nearly express each other; empty if there are too many levels.

    ``gram``: the Gram matrix of the first pure functions, at least of intercept and main effects, if it is known.

    >>> x = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]], dtype=np.uint8)
    >>> from exanova.design.family import build_family
    >>> sample = Sample(x, np.ones(6), (2, 2, 2), np.zeros((6, 1)), 6)
    >>> near_redundant(sample, build_family(x, np.ones(6), (2, 2, 2), [(), (0,), (1,), (2,)]))
    ((0, 1),)
    """
    mains = family.restricted(int(np.searchsorted(family.layout.order, 2)))
    functions = int(np.maximum(family.sizes - 1, 0).sum())
    # Independent functions on n rows drawn at random have directions as small as (1 - sqrt(q / n))^2.
    smallest_by_chance = max(0.0, 1.0 - sqrt(functions / sample.rows)) ** 2
    if len(mains.subsets) < 3 or functions > MOST_FUNCTIONS or not smallest_by_chance:
        return ()
    features = [subset[0] for subset in mains.subsets[1:]]
    of_subset = np.repeat(np.arange(len(features)), family.sizes[features] - 1)
    if gram is None:
        if is_complete(sample) and is_product(sample):  # the Gram matrix of independent features is the identity
            return ()
        gram = Phi(mains, sample, threads).gram(build_basis(mains), counted=False)
    own = slice(1, 1 + len(of_subset))
    chosen = small_directions(gram[own, own], tolerances.NEAR_REDUNDANT * smallest_by_chance)
    if not chosen.shape[1]:
        return ()
    parts = np.stack([np.square(chosen[of_subset == k]).sum(axis=0) for k in range(len(features))])
    return _connected(parts > MEMBER * parts.max(axis=0), features)


def small_directions(gram: FloatArray, limit: float) -> FloatArray:
    """(q, k) the eigenvectors of a Gram matrix (q, q) with eigenvalues below a limit.

    There are none if the matrix less the limit has a Cholesky factor, which takes a small part of the time.
    """
    with suitable_blas(0):
        try:
            np.linalg.cholesky(gram - limit * np.eye(len(gram)))
            return np.empty((len(gram), 0))
        except np.linalg.LinAlgError:
            sizes, directions = np.linalg.eigh(gram)
    return np.asarray(directions[:, sizes < limit])


def _connected(members: NDArray[np.bool_], features: list[int]) -> tuple[tuple[int, ...], ...]:
    """Features (rows) that share a direction (column), directly or through others."""
    groups: list[set[int]] = []
    for column in members.T:
        own = {features[k] for k in np.flatnonzero(column)}
        apart = [group for group in groups if not group & own]
        groups = [*apart, own.union(*(group for group in groups if group & own))]
    return tuple(sorted(tuple(sorted(group)) for group in groups if len(group) > 1))
