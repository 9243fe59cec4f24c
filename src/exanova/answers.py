"""What a fitted decomposition answers: the fitted part, explanations, importances, comparisons."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from exanova import parallel
from exanova.data.observe import values_at
from exanova.data.sample import NewRows
from exanova.data.table import Table
from exanova.data.weights import check_weights
from exanova.design.memory import readable, resolve_limit
from exanova.effects.certificate import Certificate, measure_fit
from exanova.effects.rows import Components, contributions, fitted_part
from exanova.effects.tables import Effects
from exanova.errors import (
    InputError,
    InputTypeError,
    MemoryLimitError,
    NotFittedError,
    OutsideSupportError,
    OutsideSupportWarning,
)
from exanova.explain.comparison import Comparison, compare
from exanova.explain.dividends import largest_order, weight_matrix
from exanova.explain.explanation import Explanation, make_explanation
from exanova.explain.importance import check_importance, importance_table
from exanova.explain.importance_errors import importance_stderr, upward_bias
from exanova.explain.interactions import CHUNK_BYTES, Interactions, interaction_values
from exanova.explain.row_errors import row_stderr
from exanova.explain.shapley import shapley_values
from exanova.explain.significance import significance_table
from exanova.fitted import Fitted
from exanova.infer.uncertainty import Errors
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.select.report import Selection
from exanova.solve.plan import Plan
from exanova.typing import Codes, FloatArray

if TYPE_CHECKING:
    from exanova.show.plots import Plots

ENCODING_CELL = 16
"""Bytes for each cell of new rows while they are encoded."""


class Answers:
    """Everything that is read off a fitted state; how it came about is the business of the estimator."""

    _fitted: Fitted
    effects_: Effects
    certificate_: Certificate
    plan_: Plan
    selection_: Selection | None
    output_names_: tuple[str, ...]
    feature_names_in_: NDArray[np.object_]
    intercept_: FloatArray
    ties: str
    handle_unknown: str
    strict: bool
    response_method: str
    batch_size: int | None
    memory_limit: int | float | str | None
    n_jobs: int | None
    random_state: int
    verbose: bool | None

    def predict(self, X: Any) -> FloatArray:
        """The fitted part at the rows of ``X``: (n,) for a model with one output, else (n, m)."""
        codes, _ = self._located(X, "the fitted part", 0)
        state = self._state
        fitted = fitted_part(state.index, state.values, codes, self._threads)
        return state.schema.shown(fitted)

    def components(self, X: Any) -> Components:
        """Contribution of every subset to every row of ``X``; they add up to ``predict``.

        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> from exanova import FunctionalANOVA
        >>> parts = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0])).components(X[:1])
        >>> parts.subsets, parts.values.round(12).tolist()
        (((), ('x0',), ('x1',), ('x0', 'x1')), [[1.5, -1.0, -1.0, 0.5]])
        """
        state = self._state
        numbers = len(state.index.subsets) * state.values.shape[1]
        codes, outside = self._located(X, "the components", 8 * numbers)
        values = contributions(state.index, state.values, codes)
        subsets = tuple(state.schema.names(s) for s in state.index.subsets)
        return Components(state.schema.shown(values), subsets, outside, state.schema.outputs, state.schema)

    def explain(
        self,
        X: Any,
        model: Any = None,
        *,
        residual: Literal["report", "spread"] = "report",
        stderr: bool = False,
    ) -> Explanation:
        """Shapley values of the rows of ``X``.

        Args:
            X: rows, of any table library; columns are found by name, further ones are left aside.
            model: the model (or its outputs at these rows): its residual is then reported beside the values.
            residual: ``"report"`` keeps it apart; ``"spread"`` divides it equally among the features.
            stderr: whether to compute the standard errors of the values (of a spread residual nothing is known).

        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> y = np.array([0.0, 1.0, 1.0, 4.0])
        >>> from exanova import FunctionalANOVA
        >>> e = FunctionalANOVA(max_order=1).fit(X, y).explain(X, y)
        >>> e.residual.round(12).tolist()
        [0.5, -0.5, -0.5, 0.5]
        """
        if residual not in ("report", "spread"):
            raise InputError(f"residual={residual!r} was given; expected 'report' or 'spread'.")
        if residual == "spread" and model is None:
            raise InputError("residual='spread' needs the model: explain(X, model, residual='spread').")
        if residual == "spread" and stderr:
            raise InputError("residual='spread' was given with stderr=True; a residual has no standard error here.")
        state = self._state
        d, m = len(state.schema.features), state.values.shape[1]
        # Beside the values, levels as numbers and as text; beside the residual, what the model gives.
        numbers = d * (m + 2) + (0 if model is None else 3 * m)
        codes, outside = self._located(X, "the Shapley values", 8 * numbers)
        progress = Progress(self.verbose)
        try:
            left = None if model is None else self._residual(X, model, codes, progress)
            values = shapley_values(state.index, state.values, codes, self._threads, progress)
            errors = self._shapley_stderr(codes) if stderr else None
        finally:
            progress.close()
        if residual == "spread" and left is not None:
            values, left = values + left[:, None, :] / d, np.zeros_like(left)
        return make_explanation(state.schema, values, state.values[0], codes, outside, left, errors)

    def _shapley_stderr(self, codes: Codes) -> FloatArray:
        """(n, d, m) standard errors of Shapley values; 0 for a feature without effects."""
        state = self._state
        chosen, matrix = weight_matrix(state.index.subsets, "SV", 1)
        out = np.zeros((codes.shape[1], codes.shape[0], state.values.shape[1]))
        features = [state.index.subsets[k][0] for k in chosen]
        if features:
            out[:, features] = row_stderr(state.index, state.uncertainty, codes, matrix)
        return out

    def interactions(self, X: Any, *, index: str = "k-SII", order: int = 2, stderr: bool = False) -> Interactions:
        """An interaction index of the rows of ``X``, for the subsets that exist.

        Args:
            X: rows.
            index: "SV", "SII", "k-SII", "STII", "FSII", "BII", "BV", "FBII", or "Moebius" for the effects themselves.
            order: largest size of a subset.
            stderr: whether to compute the standard errors of the values.
        """
        if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
            raise InputError(f"order={order!r} was given; expected a whole number of at least 1.")
        state = self._state
        m, shown = state.values.shape[1], state.schema.shown
        reached = largest_order(index, int(order), len(state.index.subsets[-1]))
        count = sum(len(subset) <= reached for subset in state.index.subsets)
        # Beside the values, the contributions of one chunk of rows, and what becomes of them.
        codes, outside = self._located(X, "the interactions", 8 * count * m, chunk=2 * CHUNK_BYTES)
        n = codes.shape[1]
        progress = Progress(self.verbose)
        try:
            values, chosen = interaction_values(state.index, state.values, codes, index, int(order), progress)
            errors = None
            if stderr:
                matrix = weight_matrix(state.index.subsets, index, int(order))[1]
                errors = shown(row_stderr(state.index, state.uncertainty, codes, matrix))
        finally:
            progress.close()
        subsets = tuple(state.schema.names(state.index.subsets[k]) for k in chosen)
        base = shown(np.broadcast_to(state.values[0], (n, m)))
        return Interactions(shown(values), subsets, index, reached, base, outside, state.schema, stderr=errors)

    def importance(
        self, kind: str = "l1", *, by: Literal["feature", "subset"] = "feature", stderr: bool = False
    ) -> Any:
        """Importances as a table, the largest first.

        Args:
            kind: ``"l1"`` E|f_A|; ``"l2"`` E[f_A^2]; ``"shapley"`` mean absolute Shapley value; ``"variance"``
                Cov(f_A, f) / Var f with its structural and covariance parts; ``"shapley-effects"`` the same
                shares divided among the features of each subset.
            by: ``"feature"`` divides each subset's amount equally among its features; ``"subset"`` does not.
            stderr: whether to add ``stderr``, the standard error of ``value``, and for squared amounts ``debiased``:
                the value without what squares of uncertain numbers are too large by on the average.

        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> from exanova import FunctionalANOVA
        >>> table = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0])).importance("variance", by="subset")
        >>> list(table["subset"]), [round(v, 6) for v in table["value"]]
        (['x0', 'x1', 'x0 x x1'], [0.444444, 0.444444, 0.111111])
        """
        if kind == "shapley":
            self._fitted = self._state.with_shapley(self._threads)
        if not stderr:
            return importance_table(self._state, kind, by)
        check_importance(kind, by)
        state, uncertainty = self._state, self._state.uncertainty
        errors = importance_stderr(state, uncertainty, kind, by)
        bias = upward_bias(state, uncertainty) if kind in ("l2", "variance", "shapley-effects") else None
        return importance_table(state, kind, by, errors, bias)

    def errors(
        self,
        method: Literal["linear", "bootstrap"] = "linear",
        *,
        n_refits: int = 200,
        random_state: int | None = None,
    ) -> Errors:
        """Compute the standard errors of all effects and keep them; how that was done is returned.

        What varies is which rows were drawn and, where equal rows have different outputs, those outputs. The model
        itself is taken as given.

        Args:
            method: ``"linear"``, in closed form from the influence of every row; or ``"bootstrap"``, refits with random
                weights that choose the subsets anew where a budget did, for cells of few rows and as a check.
            n_refits: number of refits.
            random_state: seed of the refits; by default that of the estimator.

        >>> from exanova import FunctionalANOVA
        >>> X = np.array([["a"], ["a"], ["b"], ["b"]])
        >>> anova = FunctionalANOVA().fit(X, np.array([0.0, 2.0, 4.0, 6.0]))
        >>> print(anova.errors().unit)
        a row
        >>> anova.effects_["x0"].stderr.round(4).ravel().tolist()
        [1.291, 1.291]
        """
        if method not in ("linear", "bootstrap"):
            raise InputError(f"method={method!r} was given; expected 'linear' or 'bootstrap'.")
        if isinstance(n_refits, bool) or not isinstance(n_refits, int | np.integer) or n_refits < 2:
            raise InputError(f"n_refits={n_refits!r} was given; expected a whole number of at least 2.")
        seed = self.random_state if random_state is None else random_state
        progress = Progress(self.verbose)
        try:
            return self._state.uncertainty.compute(method, int(n_refits), int(seed), progress)
        finally:
            progress.close()

    def significance(self, level: float = 0.05) -> Any:
        """A table of which effects can be told from zero, the clearest first.

        One test per effect and output of whether it is zero in all its cells (Wald, in Hotelling's form). The column
        ``significant`` counts an effect when the share of false discoveries among those that count stays below
        ``level`` (Benjamini and Hochberg). Effects that are not identified have no test.

        Args:
            level: share of false discoveries.
        """
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0.0 < level < 1.0:
            raise InputError(f"level={level!r} was given; expected a number between 0 and 1, such as 0.05.")
        return significance_table(self._state, self._state.uncertainty, float(level))

    def score(self, X: Any, model: Any, *, sample_weight: Any = None) -> float | FloatArray:
        """R2 of the fitted part against the model on rows it may not have seen: one number, or one an output."""
        state = self._state
        codes, _ = self._located(X, "the score", 8 * 5 * state.values.shape[1])
        weight = check_weights(sample_weight, codes.shape[1], Table.read(X).index).astype(np.float64)
        target = self._values_at(X, model, None)
        fitted = fitted_part(state.index, state.values, codes, self._threads)
        r2 = measure_fit(target, fitted, weight / weight.sum()).r2
        return float(r2[0]) if state.schema.single else r2

    def compare(self, other: Answers) -> Comparison:
        """This decomposition and another of the same columns side by side: what changed, the most first."""
        if not isinstance(other, Answers):
            raise InputTypeError(f"a {type(other).__name__} was given; expected another fitted FunctionalANOVA.")
        schema, others = self._state.schema, other._state.schema
        return compare(self.effects_, other.effects_, schema, others)

    @property
    def plot(self) -> Plots:
        """Pictures of this decomposition: importances, effects, pairs, rows, the certificate."""
        from exanova.show.plots import Plots

        return Plots(self)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        X: Any = None,
        model: Any = None,
        title: str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write a report: one HTML page that works offline, or JSON or Markdown, by the suffix of ``path``.

        Args:
            path: ends in ``.html``, ``.json`` or ``.md``; what was there is replaced, whole or not at all.
            X: rows the row explorer may choose from; by default those of the fit. A loaded decomposition has none.
            model: the model (or its outputs at the rows of ``X``): the explorer then shows what is left of it at a row.
            title: heading of the report.
            about: further facts for its beginning, such as ``{"Data": "loans.csv"}``.

        >>> import json, os, tempfile
        >>> from exanova import FunctionalANOVA
        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> anova = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     anova.report(os.path.join(folder, "small.json"))
        ...     with open(os.path.join(folder, "small.json"), encoding="utf-8") as file:
        ...         json.load(file)["verdicts"][0]["answer"]
        'Yes'
        """
        from exanova.show.report import write_report

        write_report(self, path, X=X, model=model, title=title, about=about)

    def _values_at(self, X: Any, model: Any, progress: Progress | None) -> FloatArray:
        """(n, m) values of a model at new rows, called once for each distinct row."""
        state = self._state
        values = values_at(
            X, model, state.encoding, self.response_method, self.batch_size, state.schema.outputs, progress
        )
        if values.shape[1] != state.values.shape[1]:
            raise InputError(
                f"the model gives {values.shape[1]} outputs, the decomposition has {state.values.shape[1]}; "
                "give the model that was decomposed."
            )
        return values

    def _residual(self, X: Any, model: Any, codes: Codes, progress: Progress) -> FloatArray:
        state = self._state
        return self._values_at(X, model, progress) - fitted_part(state.index, state.values, codes, self._threads)

    @property
    def _state(self) -> Fitted:
        if not hasattr(self, "_fitted"):
            raise NotFittedError("this FunctionalANOVA is not fitted; call fit(X, model) first.")
        return self._fitted

    @property
    def _threads(self) -> int:
        return parallel.thread_count(self.n_jobs)

    def _located(self, X: Any, what: str, row: int, chunk: int = 0) -> tuple[Codes, NDArray[np.bool_]]:
        """Codes of new rows and which of them fall outside the support, warned of or refused.

        Refused before they are encoded if ``what`` is to be made of them, in ``row`` bytes for each row and at most
        ``chunk`` bytes of work at a time, does not fit in the memory limit.
        """
        state, table = self._state, Table.read(X)
        self._fits_in_memory(f"{what} of {table.n_rows:,} rows", self._bytes_at_rows(table.n_rows, row, chunk))
        codes = state.encoding.encode(table, self.handle_unknown).astype(np.int32)
        outside = self._outside(codes)
        count = int(outside.sum())
        if count and self.strict:
            raise OutsideSupportError(
                f"{count:,} of {len(outside):,} rows hold a combination of levels that never occurred, the first in "
                f"row {int(np.flatnonzero(outside)[0])}; its effect is undefined. strict=False counts it as 0."
            )
        if count:
            warnings.warn(
                f"{count:,} of {len(outside):,} rows hold a combination of levels that never occurred; "
                "the effect of such a cell is undefined and counts as 0. strict=True raises instead.",
                OutsideSupportWarning,
                stacklevel=3,
            )
        return codes, outside

    def _outside(self, codes: Codes) -> NDArray[np.bool_]:
        return Phi(self._state.index, NewRows(codes), self._threads).outside()

    def _bytes_at_rows(self, rows: int, row: int, chunk: int = 0) -> int:
        """Bytes of a query of ``row`` bytes a row: its rows while they are encoded, or its result beside their codes.

        The effects over all keys, and the fitted part of the rows, are there too.
        """
        index, m, d = self._state.index, self._state.values.shape[1], len(self._state.schema.features)
        tables = 8 * m * (index.n_keys + index.n_cells)
        working = min(chunk, 16 * rows * len(index.subsets) * m)
        return int(max(rows * ENCODING_CELL * d, rows * (4 * d + 8 * m + row) + working + tables))

    def _fits_in_memory(self, what: str, size: int) -> None:
        limit = resolve_limit(self.memory_limit)
        if size > limit:
            raise MemoryLimitError(
                f"{what} take about {readable(size)}, the memory limit is {readable(limit)}; "
                "ask for fewer rows at a time, or raise memory_limit."
            )
