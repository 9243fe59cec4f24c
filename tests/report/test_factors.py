"""Compressed covariances: the directions that are kept."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from exanova.report import factors


def covariance(n: int, seed: int, fall: float) -> np.ndarray:
    """A random positive matrix (n, n) whose eigenvalues fall like k^-fall."""
    vectors = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return (vectors * np.arange(1, n + 1) ** -fall) @ vectors.T


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(60, 300), st.integers(1, 6), st.floats(0.5, 3.0))
def test_the_strongest_directions_of_a_large_matrix_are_nearly_those_of_all_eigenvalues(seed, n, rank, fall):
    """They are orthonormal, never explain more than the true ones, and miss little of what those explain."""
    matrix = covariance(n, seed, fall)
    values, vectors = factors._leading(matrix, rank)
    exact = np.linalg.eigvalsh(matrix)[-rank:]
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(rank), atol=1e-10)
    np.testing.assert_allclose(np.einsum("ik,ij,jk->k", vectors, matrix, vectors), values, rtol=1e-9)
    assert (values <= exact * (1 + 1e-9)).all()
    assert values.sum() >= 0.97 * exact.sum()


def test_few_products_replace_all_eigenvalues_only_where_that_is_cheaper(monkeypatch):
    matrix = covariance(300, 0, 1.0)
    asked = []
    monkeypatch.setattr(np.linalg, "eigh", lambda a, eigh=np.linalg.eigh: (asked.append(len(a)), eigh(a))[1])
    factors._leading(matrix, 5)
    factors._leading(matrix, 100)
    assert asked == [5 + factors.SPARE, 300]
