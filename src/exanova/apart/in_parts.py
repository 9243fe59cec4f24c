"""``InParts``: the methods of an estimator for rows that arrive in parts or stay in different places."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from exanova.apart.moments import Moments
from exanova.apart.moments_file import save_moments
from exanova.apart.partial import fit_of_moments, levels_of, merged_moments, moments_of_part
from exanova.data.table import Table
from exanova.decomposition import Decomposition
from exanova.given import level_rules
from exanova.parameters import check_parameters, the_model
from exanova.queries.query import QuerySettings
from exanova.tags import not_fitted


class InParts:
    """Methods of an estimator that fit moments. The estimator has the parameters and keeps the decomposition."""

    _decomposition: Decomposition
    moments_: Moments

    @abstractmethod
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the estimator."""

    @abstractmethod
    def _store(self, decomposition: Decomposition) -> None: ...

    def partial_fit(
        self,
        X: Any,
        model: Any = None,
        *,
        y: Any = None,
        levels: Any = None,
        sample_weight: Any = None,
        output_names: Sequence[str] | None = None,
    ) -> Self:
        """Add rows to those of earlier calls and fit all of them, from their moments: no row is kept.

        The effects are those of a fit of all rows without shrinkage, up to rounding, for any parts in any order.
        Quantities that need rows (standard errors, the fit on other rows) are not measured. ``moments_`` holds the
        sums.

        Args:
            X, model, y, sample_weight, output_names: as for :meth:`fit`; a part that was added before is refused.
            levels: the levels of every feature: the path of a file that ``exanova levels`` wrote; by default those of
                the first rows. Rows with other levels are refused.

        >>> import numpy as np
        >>> from exanova import FunctionalANOVA
        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> anova = FunctionalANOVA(max_order=1).partial_fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
        >>> anova.partial_fit(X[:2], np.array([3.0, 3.0])).moments_.rows
        6
        """
        known: Moments | None = getattr(self, "moments_", None)
        if known is None:
            encoding = levels_of(levels, X, level_rules(self.get_params()), sample_weight)
        else:
            encoding = known.encoding if levels is None else levels_of(levels, X, {}, None)
        check_parameters(self.get_params())
        given = (the_model(model, y), encoding, self.get_params(), sample_weight, output_names)
        self._fit_moments(moments_of_part(known, X, *given), Table.read(X).kind)
        return self

    def merge(self, *others: Any) -> Self:
        """Add the rows of other estimators that were fitted by :meth:`partial_fit`, and fit all of them together.

        Args:
            others: estimators, :class:`Moments`, or paths of files of moments; all with the same levels.

        >>> import numpy as np
        >>> from exanova import FunctionalANOVA
        >>> X, y = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]]), np.array([0.0, 1.0, 1.0, 4.0])
        >>> first = FunctionalANOVA(max_order=1).partial_fit(X, y)
        >>> second = FunctionalANOVA(max_order=1).partial_fit(X, 2 * y)
        >>> first.merge(second).intercept_.tolist()
        [2.25]
        """
        kind = self._decomposition.schema.kind if hasattr(self, "_decomposition") else "numpy"
        self._fit_moments(merged_moments(getattr(self, "moments_", None), others), kind)
        return self

    def save_moments(self, path: str | os.PathLike[str]) -> None:
        """Write what :meth:`partial_fit` has added up to a file, for others to merge; it holds no rows."""
        if not hasattr(self, "moments_"):
            raise not_fitted("this FunctionalANOVA has no moments; call partial_fit(X, model) first.")
        save_moments(self.moments_, path)

    def _fit_moments(self, moments: Moments, kind: str) -> None:
        self._store(fit_of_moments(moments, self.get_params(), QuerySettings.of(self.get_params()), kind))
        self.moments_ = moments
