"""Queries about effects as a whole: how important they are, how certain, and which of them differ from zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from exanova.argument_checks import check_choice, check_level, check_switch, check_whole
from exanova.explain.grouping import grouping_of
from exanova.explain.importance import Division, check_importance, divisor, importance_amounts, importance_table
from exanova.explain.importance_errors import Estimates, importance_interval, importance_stderr, upward_bias
from exanova.explain.mean_shapley import MeanShapley
from exanova.explain.significance import significance_table
from exanova.infer.error_record import Errors
from exanova.progress import Progress
from exanova.queries.query import seed_of
from exanova.queries.questions import Questions
from exanova.typing import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class EffectQueries(Questions):
    """The queries that a :class:`Decomposition` answers about its effects.

    Attributes:
        covariance: (S, m) Cov(f_A, f) with the model.
        variance: (m,) Var f of the model.
        mean_shapley: E|Shapley value| of every feature.
    """

    covariance: FloatArray
    variance: FloatArray
    mean_shapley: MeanShapley

    def importance(
        self,
        kind: str = "l1",
        *,
        by: Literal["feature", "subset"] = "feature",
        stderr: bool = False,
        level: float | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> Any:
        """Importances as a table, the largest first.

        Args:
            kind: ``"l1"`` E|f_A|; ``"l2"`` E[f_A^2]; ``"shapley"`` mean absolute Shapley value; ``"variance"``
                Cov(f_A, f) / Var f with its structural and covariance parts; ``"shapley-effects"`` the same
                shares divided among the features of each subset. ``"l1"`` adds up sizes: a feature with many weak
                pairs ranks higher by it than by the others, in which these hardly count.
            by: ``"feature"`` divides each subset's amount equally among its features; ``"subset"`` does not.
            stderr: whether to add ``stderr``, the standard error of ``value``, and for squared amounts ``debiased``,
                the value minus the upward bias of squared estimates.
            level: confidence level of an interval to add, ``low`` and ``high``, such as 0.95. It ends at 0 for an
                importance that is not distinguishable from zero; shares may be negative.
            groups: names of groups and the features of each, as in ``explain``: each subset's amount is divided equally
                among the groups it touches, or, by subset, added to that of all subsets that touch the same groups.

        >>> import numpy as np
        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> from exanova import FunctionalANOVA
        >>> table = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0])).importance("variance", by="subset")
        >>> list(table["subset"]), [round(v, 6) for v in table["value"]]
        (['x0', 'x1', 'x0 x x1'], [0.444444, 0.444444, 0.111111])
        """
        check_importance(kind, by)
        check_switch("stderr", stderr)
        if level is not None:
            check_level(level)
        division = Division.of(self.family, by, None if groups is None else grouping_of(groups, self.schema))
        if kind == "shapley" and division.grouping is not None:
            amounts = {"value": self.mean_shapley.of_groups(division.grouping)}
        elif kind == "shapley":
            amounts = {"value": self.mean_shapley.compute(self.settings.threads)}
        else:
            amounts = importance_amounts(self.family, self.values, self.covariance, self.variance, kind)
            if stderr and kind != "l1":
                bias = upward_bias(self.family, self.uncertainty)
                bias = bias if kind == "l2" else bias / divisor(self.values, self.variance)
                amounts["debiased"] = amounts["value"] - bias
            amounts = {name: division.parts.T @ amount for name, amount in amounts.items()}
        if stderr or level is not None:
            errors = importance_stderr(self.family, self.uncertainty, kind, by, division)
            amounts |= {"stderr": errors} if stderr else {}
            if level is not None:
                estimates = Estimates(self.family, self.values, self.uncertainty, division)
                low, high = importance_interval(estimates, kind, amounts["value"], errors, level)
                amounts |= {"low": low, "high": high}
        return importance_table(self.schema, division, amounts)

    def errors(
        self,
        method: Literal["linear", "bootstrap"] = "linear",
        *,
        n_refits: int = 200,
        random_state: int | None = None,
    ) -> Errors:
        """Compute and cache the standard errors of all effects; returns how they were computed.

        They account for the sampling of rows and, if equal rows have different outputs, for the noise in the outputs.
        The model itself is treated as fixed.

        Args:
            method: ``"linear"``, in closed form from the influence of every row; or ``"bootstrap"``, refits with random
                weights (a selection under a budget is repeated), for cells with few rows and as a check.
            n_refits: number of refits.
            random_state: seed of the refits; by default that of the estimator.

        >>> import numpy as np
        >>> from exanova import FunctionalANOVA
        >>> X = np.array([["a"], ["a"], ["b"], ["b"]])
        >>> anova = FunctionalANOVA(shrinkage=None).fit(X, np.array([0.0, 2.0, 4.0, 6.0]))
        >>> print(anova.errors().unit)
        a row
        >>> anova.effects_["x0"].stderr.round(4).ravel().tolist()
        [1.4142, 1.4142]
        """
        check_choice("method", method, ("linear", "bootstrap"))
        check_whole("n_refits", n_refits, least=2)
        if random_state is not None:
            check_whole("random_state", random_state, least=0)
        seed = seed_of(self.settings.random_state if random_state is None else random_state)
        with closing(Progress(self.settings.verbose)) as progress:
            return self.uncertainty.compute(method, int(n_refits), seed, progress)

    def significance(self, level: float = 0.05) -> Any:
        """A table of which effects differ significantly from zero, smallest p-value first.

        One test per effect and output of whether it is zero in all its cells (Wald, in Hotelling's form). The column
        ``significant`` controls the false discovery rate at ``level`` (Benjamini and Hochberg). Effects that are not
        identified have no test; that of an exact fit leaves out what only cells of few rows could show.

        Args:
            level: false discovery rate.
        """
        check_level(level, "0.05")
        return significance_table(self.schema, self.family, self.uncertainty, float(level))
