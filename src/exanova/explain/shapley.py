"""Shapley values of rows: every effect shared equally among its features, all outputs at once."""

from __future__ import annotations

import numpy as np

from exanova.data.sample import NewRows
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.typing import Codes, FloatArray


def shapley_values(
    family: Family, values: FloatArray, codes: Codes, threads: int = 1, progress: Progress | None = None
) -> FloatArray:
    """(n, d, m) sum over A containing i of f_A / |A|; cells never observed add nothing.

    >>> from exanova.design.family import extend, intercept_family
    >>> codes = np.array([[0, 1], [0, 1]], dtype=np.uint8)
    >>> family = extend(intercept_family([2, 2], 2.0), [(0,), (1,)], codes, np.ones(2))
    >>> shapley_values(family, np.array([[1.0], [-2.0], [2.0], [0.5], [-0.5]]), codes)[:, :, 0].tolist()
    [[-2.0, 0.5], [2.0, -0.5]]
    """
    order = np.maximum(family.layout.order, 1)
    shares = values / np.repeat(order, np.diff(family.cell_start))[:, None]
    return Phi(family, NewRows(codes), threads).share(shares, progress)
