"""How well the rows predict each other under an exact fit that has been made: rows left out, from its functions."""

from __future__ import annotations

import numpy as np

from exanova import parallel
from exanova.basis.tables import Basis, on_rows
from exanova.design import passes
from exanova.design.cells import CellIndex
from exanova.moments.gram import collect, projected_gram
from exanova.shrink.left_out import LeftOut, left_out_of_exact, rows_to_leave_out
from exanova.solve.plan import Request
from exanova.solve.price import Load, eliminating
from exanova.solve.routes import Data, Decomposition
from exanova.typing import FloatArray, IntArray

LARGEST = 15_000
"""Functions beyond which a factorisation takes minutes."""


def why_none(data: Data, found: Decomposition, request: Request) -> str | None:
    """Why rows cannot be left out of an exact fit in closed form; ``None`` where they can."""
    if found.basis is None:
        return "the grid route has no functions; every combination of levels occurs"
    if found.basis.implicit or found.basis.n_functions > LARGEST:
        return f"{found.basis.n_functions:,} functions are too many"
    if request.ridge or (found.basis.labels is not None and not found.solution.kept.all()):
        return "the fit is not the least-squares fit of all its functions"
    if exact_bytes(data, found.basis.n_functions) > request.memory_limit:
        return "the Gram matrix does not fit in the memory limit"
    return None


def exact_bytes(data: Data, functions: int) -> int:
    """Bytes of the Gram matrix, its factor and blocks of rows."""
    m, r = data.values.shape[1], data.codes.shape[1]
    load = Load(data.rows, r, data.codes.shape[0], m, data.codes.nbytes, data.weight.dtype.kind == "i")
    return int(eliminating(functions, load) + 32 * r * m)


def leave_rows_out(data: Data, found: Decomposition, request: Request) -> LeftOut:
    """Leave every distinct row out of an exact fit, or some drawn at random; see :func:`why_none` first."""
    basis, index = found.basis, found.index
    assert basis is not None
    with parallel.blas_threads(request.threads):
        nothing = np.zeros((data.codes.shape[1], 0))
        moments = collect(index, data.codes, data.weight, nothing, threads=request.threads)
        gamma = projected_gram(moments, basis)
        tables = index.to_keys(found.values)
        residual = data.values - passes.gather(index.layout, data.codes, tables, request.threads)
        chosen = rows_to_leave_out(data.codes.shape[1], len(gamma), seed=request.random_state)
        with parallel.suitable_blas(float(len(gamma)) ** 3):
            at_rows = _Functions(data, index, basis)
            return left_out_of_exact(gamma, found.solution.coefficients, at_rows, residual, data.probability, chosen)


class _Functions:
    """The functions of a family at rows given by their numbers."""

    def __init__(self, data: Data, index: CellIndex, basis: Basis) -> None:
        self._data, self._index, self._basis = data, index, basis

    def __call__(self, rows: IntArray) -> FloatArray:
        codes = np.ascontiguousarray(self._data.codes[:, rows])
        return on_rows(self._index, self._basis, range(len(self._index.subsets)), codes)
