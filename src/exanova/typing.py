"""The vocabulary of arrays: each alias with its meaning, its shape and its order.

Letters used for shapes everywhere: ``d`` features, ``n`` rows as given, ``r`` distinct rows of the support,
``m`` outputs, ``q`` functions of the basis, ``N_i`` levels of feature ``i``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
"""Real numbers; the shape is in the docstring of whoever returns it."""

IntArray: TypeAlias = NDArray[np.int64]
"""Indices and exact counts."""

Codes: TypeAlias = NDArray[Any]
"""Levels as integers, shape (d, n): one contiguous row of the array for each feature, -1 never stored in a support."""

Subset: TypeAlias = tuple[int, ...]
"""A set of features as a strictly increasing tuple of column positions; ``()`` is the intercept."""

Level: TypeAlias = Any
"""One category as the user wrote it: a string, an integer, a boolean, a float, a date, or ``None`` for missing."""
