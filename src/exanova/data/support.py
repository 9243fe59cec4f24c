"""The support: distinct rows of levels, each with a positive weight. No later step uses tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.column import plain_scalar
from exanova.data.distinct import distinct_rows, pick_rows
from exanova.data.encoding import Encoding
from exanova.data.levels import label_levels
from exanova.data.weights import as_counts, check_weights, group_totals, refuse_mask
from exanova.errors import InputError, InputTypeError, MemoryLimitError
from exanova.typing import Codes, FloatArray, Level

__all__ = ["LARGEST_GRID", "Support", "check_weights", "distinct_rows"]

LARGEST_GRID = 2**28
"""Cells of the largest product distribution that is written out (2 GiB of probabilities)."""


@dataclass(frozen=True, eq=False)
class Support:
    """Distinct rows with their weights: where the distribution of the inputs has mass.

    Attributes:
        feature_names: (d,) names.
        levels: the levels of each feature, in the order of their codes.
        labels: the same as text.
        codes: (d, r) level of each feature in each distinct row, smallest unsigned dtype, C-contiguous.
        weight: (r,) strictly positive; int64 when every weight is a count, else float64.

    >>> support = Support.from_pmf(np.array([[0.5, 0.25], [0.25, 0.0]]))
    >>> support.n_rows, support.sizes, support.is_complete
    (3, (2, 2), False)
    >>> support.codes.tolist()
    [[0, 0, 1], [0, 1, 0]]
    """

    feature_names: tuple[str, ...]
    levels: tuple[tuple[Level, ...], ...]
    labels: tuple[tuple[str, ...], ...]
    codes: Codes
    weight: NDArray[Any]

    @classmethod
    def from_rows(cls, encoding: Encoding, codes: Codes, weight: Any = None) -> Support:
        """Merge equal rows of ``codes`` (d, n), adding their weights (n,); rows of weight zero are left out."""
        weights = check_weights(weight, codes.shape[1])
        kept = np.flatnonzero(weights)
        codes, weights = pick_rows(codes, kept), weights[kept]
        first, inverse = distinct_rows(codes)
        return cls.from_distinct(encoding, pick_rows(codes, first), group_totals(weights, inverse, len(first)))

    @classmethod
    def from_distinct(cls, encoding: Encoding, codes: Codes, weight: NDArray[Any]) -> Support:
        """Rows (d, r) already known to be distinct, with checked positive weights (r,)."""
        for name, size, row in zip(encoding.names, encoding.sizes, codes, strict=True):
            if row.min() < 0 or row.max() >= size:
                raise InputError(
                    f"Codes of feature {name!r} run from {row.min()} to {row.max()}; expected 0 to {size - 1}. "
                    "Rows with unknown levels cannot be part of a support."
                )
        return cls(encoding.names, encoding.levels, encoding.labels, _compact(codes, encoding.sizes), weight)

    @classmethod
    def from_pmf(
        cls,
        pmf: Any,
        *,
        feature_names: Sequence[str] | None = None,
        levels: Sequence[Sequence[Level]] | None = None,
    ) -> Support:
        """The support of a joint distribution given as a d-dimensional array on any positive scale.

        Axis ``i`` is feature ``i``, called ``x0``, ``x1``, ... unless named, with levels 0, 1, ... unless given.
        Cells of zero are holes; a level whose whole margin is zero does not exist.
        """
        refuse_mask(pmf, "The probabilities")
        array = np.asarray(pmf)
        if array.ndim == 0 or not array.size or array.dtype.kind not in "biuf":
            raise InputError(
                f"The distribution has the shape {array.shape} and the dtype {array.dtype}; expected an array of "
                "real numbers with one axis for each feature."
            )
        names, given = _describe(array.shape, feature_names, levels)
        weights = as_counts(array)
        cells = np.nonzero(weights)
        kept, codes = zip(*(np.unique(axis, return_inverse=True) for axis in cells), strict=True)
        occurring = [[own[k] for k in some] for own, some in zip(given, kept, strict=True)]
        return cls.from_distinct(Encoding.from_levels(names, occurring), np.stack(codes), weights[cells])

    @classmethod
    def from_product(
        cls,
        margins: Sequence[Any],
        *,
        feature_names: Sequence[str] | None = None,
        levels: Sequence[Sequence[Level]] | None = None,
    ) -> Support:
        """Independent features with these marginal probabilities, each on any positive scale.

        >>> Support.from_product([[1, 1], [0.2, 0.3, 0.5]]).n_rows
        6
        """
        factors = [_margin(margin, i) for i, margin in enumerate(margins)]
        if not factors:
            raise InputError("No margin was given; expected one sequence of probabilities for each feature.")
        cells = math.prod(len(factor) for factor in factors)
        if cells > LARGEST_GRID:
            raise MemoryLimitError(
                f"The product of these margins has {cells:,} cells, and at most {LARGEST_GRID:,} are written out. "
                "Draw rows from the margins and give them as a table instead."
            )
        pmf = reduce(np.multiply.outer, factors)
        if np.count_nonzero(pmf) != math.prod(np.count_nonzero(factor) for factor in factors):
            raise InputError("Some products of probabilities are too small for a float; rescale the margins.")
        return cls.from_pmf(pmf, feature_names=feature_names, levels=levels)

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return len(self.feature_names)

    @property
    def n_rows(self) -> int:
        """Number of distinct rows r."""
        return len(self.weight)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each feature."""
        return tuple(len(levels) for levels in self.levels)

    @property
    def total(self) -> float:
        """Sum of the weights; an integer when they are counts."""
        total: float = self.weight.sum().item()
        return total

    @property
    def probability(self) -> FloatArray:
        """Probability of each row, shape (r,)."""
        shares: FloatArray = self.weight / self.weight.sum()
        return shares

    @property
    def is_complete(self) -> bool:
        """Whether every combination of levels occurs."""
        return self.n_rows == math.prod(self.sizes)

    def table(self) -> NDArray[Any]:
        """The levels of the distinct rows, shape (r, d): int64 if all levels are integers, else objects."""
        integral = all(type(level) is int for levels in self.levels for level in levels)
        table = np.empty((self.n_rows, self.n_features), dtype=np.int64 if integral else object)
        for i, levels in enumerate(self.levels):
            own = np.empty(len(levels), dtype=table.dtype)
            own[:] = levels
            table[:, i] = own[self.codes[i]]
        return table


def _compact(codes: Codes, sizes: Sequence[int]) -> Codes:
    return np.ascontiguousarray(codes, dtype=np.min_scalar_type(max(sizes) - 1))


def _margin(margin: Any, position: int) -> FloatArray:
    refuse_mask(margin, f"The probabilities of margin {position}")
    probabilities = np.asarray(margin)
    if probabilities.ndim != 1 or not probabilities.size or probabilities.dtype.kind not in "biuf":
        raise InputError(
            f"Margin {position} has the shape {probabilities.shape}; expected one probability for each level."
        )
    return as_counts(probabilities).astype(np.float64)


def _describe(
    shape: tuple[int, ...],
    feature_names: Sequence[str] | None,
    levels: Sequence[Sequence[Level]] | None,
) -> tuple[tuple[str, ...], list[list[Level]]]:
    """Names and levels of each axis, as given or by default, once they have been checked."""
    names = tuple(f"x{i}" for i in range(len(shape))) if feature_names is None else tuple(feature_names)
    if len(names) != len(shape):
        raise InputError(f"{len(names)} feature names were given for {len(shape)} features.")
    if len(set(names)) != len(names):
        raise InputError(f"Feature names are repeated in {list(names)}; each name has to be given once.")
    if levels is None:
        return names, [list(range(size)) for size in shape]
    if len(levels) != len(shape):
        raise InputError(f"Levels of {len(levels)} features were given for {len(shape)} features.")
    return names, [_own_levels(*axis) for axis in zip(names, levels, shape, strict=True)]


def _own_levels(name: str, levels: Sequence[Level], size: int) -> list[Level]:
    own = [plain_scalar(level) for level in levels]
    try:
        repeated = len(set(own)) != len(own)
    except TypeError as error:
        raise InputTypeError(f"A level of feature {name!r} cannot be hashed; give strings or numbers.") from error
    if len(own) != size or repeated:
        raise InputError(
            f"Feature {name!r} has {size} levels in the distribution, but these were given: "
            f"{list(label_levels(own))}; expected {size} different ones."
        )
    return own
