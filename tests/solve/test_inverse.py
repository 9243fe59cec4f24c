"""Inverses from factors: a generalised inverse is one on the range, whatever the redundancy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova.solve.elimination import factorise
from exanova.solve.inverse import TILE, inverse_from_factor, inverse_of_kept


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=1, max_size=3),
    st.booleans(),
)
def test_the_inverse_of_kept_functions_is_one_on_the_range(seed, orders, shuffled):
    rng = np.random.default_rng(seed)
    columns, slices = np.zeros((40, 0)), []
    for fresh, repeated in orders:  # repeated functions are sums of others of their order or of lower ones
        block = rng.normal(size=(40, fresh))
        known = np.hstack([columns, block])
        block = np.hstack([block, known @ rng.normal(size=(known.shape[1], repeated))])
        block = block[:, rng.permutation(block.shape[1])] if shuffled else block
        slices.append(slice(columns.shape[1], columns.shape[1] + block.shape[1]))
        columns = np.hstack([columns, block / np.linalg.norm(block, axis=0)])
    gamma = columns.T @ columns
    factor = factorise(np.asfortranarray(gamma), slices, "share")
    found = inverse_of_kept(factor)
    assert np.array_equal(found, found.T)
    assert np.count_nonzero(found.any(axis=0)) == sum(part.rank for part in factor.orders)
    scale = np.abs(gamma @ found).max()
    np.testing.assert_allclose(gamma @ found @ gamma, gamma, atol=1e-9 * scale)
    at_rows = columns @ found @ columns.T  # the same for every generalised inverse
    np.testing.assert_allclose(at_rows, columns @ np.linalg.pinv(gamma, rcond=1e-9) @ columns.T, atol=1e-7 * scale)


@pytest.mark.parametrize("size", [1, 2, TILE - 1, TILE, TILE + 3])
def test_the_inverse_from_a_factor_is_whole_whatever_the_tiles(size):
    rng = np.random.default_rng(size)
    lower = np.asfortranarray(np.tril(rng.normal(size=(size, size)) / size) + np.eye(size))
    wanted = np.linalg.inv(lower @ lower.T)
    np.testing.assert_allclose(inverse_from_factor(lower), wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
