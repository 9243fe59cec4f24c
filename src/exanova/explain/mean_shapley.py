"""Mean absolute Shapley values: computed on first use, and cached."""

from __future__ import annotations

from typing import Any

import numpy as np

from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.errors import InputError
from exanova.explain.grouping import Grouping
from exanova.explain.interactions import interaction_values
from exanova.explain.shapley import shapley_values
from exanova.phi.feature_shares import CHUNK
from exanova.typing import Codes, FloatArray

CHEAP = 2**17
"""Values read at rows (rows times features in subsets times outputs) up to which they count as known: they take about
a millisecond."""


class MeanShapley:
    """(d, m) E|Shapley value| of every feature over the rows of the fit.

    A decomposition read from a file has no rows; it has the values if they had been computed before saving.
    """

    def __init__(
        self,
        family: Family,
        values: FloatArray,
        sample: Sample | None,
        known: FloatArray | None = None,
    ) -> None:
        self._family, self._values, self._sample, self._known = family, values, sample, known

    @property
    def known(self) -> FloatArray | None:
        """The values, or ``None`` if they have not been computed and that would take a while."""
        cheap = self._sample is not None and self._work <= CHEAP
        return self.compute() if cheap else self._known

    def compute(self, threads: int = 1) -> FloatArray:
        """The values, computed from the rows on first use.

        Raises:
            InputError: if they have not been computed and there are no rows.
        """
        if self._known is None:
            if self._sample is None:
                raise InputError(
                    "this decomposition was read from a file without mean absolute Shapley values, and files contain "
                    "no rows. Call importance('shapley') on the fitted object before save(), or average the absolute "
                    "values of explain(X) over your own rows."
                )
            self._known = mean_absolute(self._family, self._values, self._sample, threads)
        return self._known

    def of_groups(self, grouping: Grouping) -> FloatArray:
        """(G, m) E|Shapley value| of every group, computed from the rows at every use.

        Raises:
            InputError: if there are no rows.
        """
        if self._sample is None:
            raise InputError(
                "this decomposition was read from a file, and files contain no rows, which mean absolute Shapley "
                "values of groups need. Use the fitted object, or average the absolute values of explain(X, groups=) "
                "over your own rows."
            )
        parts, sample = grouping.shares(self._family.subsets), self._sample
        values = read_at_rows(self._family, self._values, sample.codes, parts)
        return np.asarray(np.einsum("n,ngm->gm", sample.probability, np.abs(values)))

    @property
    def _work(self) -> int:
        rows = 0 if self._sample is None else self._sample.n_rows
        return int(rows * self._family.layout.order.sum() * self._values.shape[1])


def read_at_rows(family: Family, values: FloatArray, codes: Codes, parts: Any) -> FloatArray:
    """(n, f, m) sums of the effects at each row times their shares ``parts`` (S, f)."""
    from scipy.sparse import csr_array

    return interaction_values(family, values, codes, csr_array(parts.T))


def mean_absolute(family: Family, values: FloatArray, sample: Sample, threads: int = 1) -> FloatArray:
    """(d, m) mean of the absolute Shapley values of the rows.

    Rows are summed in chunks of a fixed size, so that results do not depend on the number of threads.
    """
    codes, probability = sample.codes, sample.probability
    total = np.zeros((codes.shape[0], values.shape[1]))
    step = CHUNK * max(1, threads)
    for a in range(0, codes.shape[1], step):
        sizes = np.abs(shapley_values(family, values, codes[:, a : a + step], threads))
        for b in range(0, len(sizes), CHUNK):
            piece = slice(b, b + CHUNK)
            total += np.einsum("n,ndm->dm", probability[a : a + step][piece], sizes[piece])
    return total
