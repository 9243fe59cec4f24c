"""``FunctionalANOVA``: validates what it is given, calls the engine, stores what it returns. No numerics here."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from exanova.answers import Answers
from exanova.data.draws import plan_draws
from exanova.data.observe import Observation, Rows, read_rows
from exanova.data.scaling import Scaling
from exanova.data.table import Table
from exanova.design.cells import CellIndex
from exanova.effects.certificate import certify, measure_fit
from exanova.effects.rows import fitted_part
from exanova.effects.storage import read, write
from exanova.effects.summary import summarise
from exanova.effects.tables import Effects, Schema
from exanova.errors import InexactWarning, InputError
from exanova.explain.importance import moments_with_model
from exanova.fitted import Fitted, from_file, to_file
from exanova.infer.sample import Sample, draws_among, why_whole
from exanova.parameters import check_eval_set, check_parameters, make_request
from exanova.progress import Progress
from exanova.select.driver import fit_data
from exanova.select.lasso import split_rows
from exanova.select.report import Selection
from exanova.solve.plan import Plan, Request, make_plan
from exanova.solve.routes import Data, Decomposition
from exanova.typing import FloatArray

ATTRIBUTE = {"interactions": "interactions_given"}
"""Where a parameter is kept whose name is taken by a method."""


class FunctionalANOVA(Answers):
    """Exact functional ANOVA decomposition of a model with categorical inputs.

    The model is written as a sum of effects f_A(x_A), one for each subset A of features, each orthogonal to every
    function of fewer of its features under the joint distribution of the data, whatever their dependence and
    whichever combinations never occur.

    Args:
        max_order: largest number of features in an interaction; ``None`` for every order until nothing is left.
        interactions: subsets to decompose over, closed downward, in place of an order: tuples of feature names or
            column positions, a mapping, a graph with ``edges``, or :func:`neighbours`. Under a budget, what may be
            taken.
        max_terms: a budget of functions, intercept and main effects included.
        selection: how a budget is spent: ``"screen"`` (default) takes the subsets that explain most of the
            residual, in rounds; ``"canonical"`` takes them in the order of the paper; ``"lasso"`` takes those a
            group lasso keeps, its penalty chosen on held-out rows (also without a budget).
        min_gain: screening takes nothing that explains less, per function, as a share of the variance.
        ridge: a penalty on squared coefficients for those who want less variance; the result is then not exact.
        random_state: seed of random splits of the rows, and of rows drawn for a likelihood.
        shrinkage: ``None`` fits exactly; ``"auto"`` shrinks effects to what the rows can carry: variance components
            of every order and of the residual are chosen by marginal likelihood, neighbouring bins and dates are
            smoothed, and the fit on other rows is measured by leaving out each row in turn (``r2_eval``).
        sampled: whether the rows are a sample of more (``True``) or all there is (``False``: nothing is shrunk);
            ``"auto"``: a sample unless every combination of levels occurs.
        basis: ``"pure"``, orthogonal on any support; ``"paper"``, the functions of the paper this library follows,
            which are not where cells are missing (the certificate shows by how much).
        ties: how redundancy among subsets of one order is settled: ``"share"`` spreads an effect evenly,
            ``"first"`` gives it to the first in canonical order.
        min_frequency: merge rarer levels into ``(other)``: a count, or a share of the rows.
        n_bins: cut float columns in so many intervals: one number, or a mapping from column to number.
        strategy: how bins are cut: ``"quantile"``, ``"uniform"`` or ``"kmeans"``.
        handle_unknown: on new rows, ``"error"`` for a level never seen, or ``"ignore"`` to let its effects be 0.
        strict: on new rows, raise for a combination never seen instead of counting its effect as 0 with a warning.
        response_method: which method of an estimator is explained; ``"auto"``: ``predict_proba`` if it has it.
        batch_size: rows the model is called on at once.
        route: ``"auto"``, or force ``"grid"``, ``"dense"``, ``"moments"`` or ``"matrix-free"``.
        memory_limit: bytes, or a text such as ``"4 GB"``; by default most of what is free.
        n_jobs: threads; ``None`` for every core.
        verbose: ``True`` prints the plan and progress, ``False`` neither; ``None`` shows progress on a terminal.

    Attributes (after ``fit``):
        effects_: mapping from feature names to :class:`Effect`.
        certificate_: :class:`Certificate`, what was measured about this result.
        plan_: :class:`Plan`.
        intercept_: (m,) weighted mean of the model.
        selection_: what a budget was spent on, round by round; ``None`` without a budget.
        selected_: with ``basis="paper", ties="first"``, the functions kept, as (features, levels) in order.
        feature_names_in_, n_features_in_, categories_, output_names_: what was fitted.

    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
    >>> anova = FunctionalANOVA(max_order=2).fit(X, lambda rows: (rows == ["b", "v"]).all(axis=1) * 4.0)
    >>> anova.intercept_.tolist()
    [1.0]
    >>> anova.effects_["x0", "x1"].values[:, 0].round(12).tolist()
    [1.0, -1.0, -1.0, 1.0]
    >>> anova.certificate_.exact
    True
    """

    def __init__(
        self,
        *,
        max_order: int | None = 2,
        interactions: Any = None,
        max_terms: int | None = None,
        selection: Literal["screen", "canonical", "lasso"] | None = None,
        min_gain: float = 1e-6,
        ridge: float = 0.0,
        random_state: int = 0,
        shrinkage: Literal["auto"] | None = None,
        sampled: bool | Literal["auto"] = "auto",
        basis: Literal["pure", "paper"] = "pure",
        ties: Literal["share", "first"] = "share",
        min_frequency: float | None = None,
        n_bins: int | Mapping[str, int] | None = None,
        strategy: Literal["uniform", "quantile", "kmeans"] = "quantile",
        handle_unknown: Literal["error", "ignore"] = "error",
        strict: bool = False,
        response_method: Literal["auto", "predict_proba", "predict", "decision_function"] = "auto",
        batch_size: int | None = None,
        route: Literal["auto", "grid", "dense", "moments", "matrix-free"] = "auto",
        memory_limit: int | float | str | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.max_order = max_order
        self.interactions_given = interactions  # ``interactions`` is the method that computes indices of rows
        self.max_terms = max_terms
        self.selection = selection
        self.min_gain = min_gain
        self.ridge = ridge
        self.random_state = random_state
        self.shrinkage = shrinkage
        self.sampled = sampled
        self.basis = basis
        self.ties = ties
        self.min_frequency = min_frequency
        self.n_bins = n_bins
        self.strategy = strategy
        self.handle_unknown = handle_unknown
        self.strict = strict
        self.response_method = response_method
        self.batch_size = batch_size
        self.route = route
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def plan(self, X: Any, *, sample_weight: Any = None, n_outputs: int = 1) -> Plan:
        """What ``fit`` would do with these rows, without calling any model.

        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> FunctionalANOVA(max_order=None).plan(X).route
        'grid'
        """
        if isinstance(n_outputs, bool) or not isinstance(n_outputs, int) or n_outputs < 1:
            raise InputError(f"n_outputs={n_outputs!r} was given; expected a whole number of at least 1.")
        rows = read_rows(X, sample_weight=sample_weight, **self._level_rules())
        return self._plan(rows, make_request(self.get_params(), rows.support, rows.encoding.ordered), n_outputs)[0]

    def fit(
        self,
        X: Any,
        model: Any,
        *,
        sample_weight: Any = None,
        output_names: Sequence[str] | None = None,
        eval_set: tuple[Any, Any] | float | None = None,
        weights: Literal["auto", "frequency", "probability"] = "auto",
        clusters: Any = None,
        strata: Any = None,
        replicate_weights: Any = None,
    ) -> Self:
        """Decompose ``model`` over the rows of ``X``.

        Args:
            X: a pandas, polars or pyarrow table, a two-dimensional NumPy array, or a :class:`Support`.
            model: a callable that receives such a table, a fitted estimator, or an array of outputs, one a row.
            sample_weight: (n,) non-negative weights of the rows.
            output_names: names of the outputs; by default the classes of an estimator.
            eval_set: rows and model (or outputs) to judge the fit by, or the share of the distinct rows to hold out.
            weights: what ``sample_weight`` means for standard errors: ``"frequency"`` counts equal rows,
                ``"probability"`` is one over the chance of being drawn; by default whole numbers are frequencies.
            clusters: (n,) labels of rows that were drawn together, for standard errors.
            strata: (n,) labels of the parts of the population that rows (or clusters) were drawn from separately.
            replicate_weights: columns (n, B) of weights and their scale factor, as a pair, in place of these two.
        """
        check_parameters(self.get_params())
        check_eval_set(eval_set)
        started = time.perf_counter()
        progress = Progress(self.verbose)
        try:
            rows = read_rows(X, sample_weight=sample_weight, **self._level_rules())
            request = make_request(self.get_params(), rows.support, rows.encoding.ordered)
            progress.phase("listing cells")
            plan, index = self._plan(rows, request)
            if self.verbose:
                print(plan)
            design = {"clusters": clusters, "strata": strata, "replicate_weights": replicate_weights}
            drawn = plan_draws(rows.weight, rows.kept, rows.n_rows, rows.index, weights=weights, **design)
            seen = rows.observe(model, self.response_method, self.batch_size, output_names, progress, drawn)
            data, held = _data(seen), None
            if isinstance(eval_set, float):
                data, held = split_rows(data, eval_set, self.random_state)
                index = None
            found, selection = fit_data(data, request, plan, index, progress)
            self._certify(seen, data, found, selection, request, progress, started)
            if held is not None:
                self._judge_split(held, found, seen.scaling)
            elif isinstance(eval_set, tuple):
                self._judge(eval_set, progress)
        finally:
            progress.close()
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this decomposition to one file: no pickle, no rows, no model; see :func:`exanova.load`."""
        self._fitted = self._state.with_shapley(self._threads)
        write(path, *to_file(self._fitted, self.get_params()))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments, as scikit-learn expects them."""
        return {name: getattr(self, ATTRIBUTE.get(name, name)) for name in self._parameters()}

    def set_params(self, **parameters: Any) -> Self:
        """Change constructor arguments."""
        unknown = set(parameters) - set(self._parameters())
        if unknown:
            raise InputError(
                f"there is no parameter {sorted(unknown)[0]!r}; the parameters are {', '.join(self._parameters())}."
            )
        for name, value in parameters.items():
            setattr(self, ATTRIBUTE.get(name, name), value)
        return self

    def __repr__(self) -> str:
        defaults = self.__init__.__kwdefaults__  # type: ignore[misc]
        changed = {name: value for name, value in self.get_params().items() if repr(value) != repr(defaults[name])}
        return f"FunctionalANOVA({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    def __str__(self) -> str:
        if not hasattr(self, "certificate_"):
            return f"{self!r}, not fitted"
        rows = f"{self.plan_.distinct_rows:,} distinct rows and {self.n_features_in_} features"
        state = self._state
        return summarise(state.index, state.values, state.schema, state.certificate, rows)

    def _plan(self, rows: Rows, request: Request, n_outputs: int = 1) -> tuple[Plan, CellIndex | None]:
        support = rows.support
        weight = support.weight.astype(np.float64)
        plan, index = make_plan(request, support.codes, weight, support.sizes, n_outputs, rows.n_rows)
        return replace(plan, model_calls=rows.model_calls), index

    def _certify(
        self,
        seen: Observation,
        data: Data,
        found: Decomposition,
        selection: Selection | None,
        request: Request,
        progress: Progress,
        started: float,
    ) -> None:
        progress.phase("measuring")
        names, values, scaling = seen.support.feature_names, seen.given, seen.scaling
        covariance, variance = moments_with_model(data, found, request.threads)
        seconds = time.perf_counter() - started
        certificate = certify(data, found, names, scaling, seconds, request)
        schema = Schema(names, seen.support.labels, values.output_names, seen.table_kind, values.single)
        self._store(
            Fitted(
                encoding=seen.encoding,
                schema=schema,
                index=found.index,
                values=scaling.effects(found.values),
                certificate=certificate,
                plan=found.plan,
                covariance=covariance * scaling.unit**2,
                variance=variance * scaling.unit**2,
                shapley=None,
                support=(data.codes, data.probability),
                selected=_named_selection(found, schema),
                chosen=selection,
                sample=self._sample(seen, data, found, request),
            )
        )
        if certificate.notes and self.basis == "pure":
            warnings.warn("; ".join(certificate.notes), InexactWarning, stacklevel=3)

    def _sample(self, seen: Observation, data: Data, found: Decomposition, request: Request) -> Sample:
        """The rows as standard errors need them: references, nothing is computed."""
        solution = found.solution
        shared = solution.null.shape[1] > 0 or solution.independent is not None
        solved = (found.basis, solution) if found.basis is not None and shared else None
        posterior = None if found.shrinkage is None else found.shrinkage.posterior
        whole = why_whole(self.sampled, seen.is_distribution, data)
        draws = draws_among(data, seen.support.codes, seen.draws)
        return Sample(data, found.values, seen.scaling, request, draws, solved, posterior, whole)

    def _judge_split(self, held: Data, found: Decomposition, scaling: Scaling) -> None:
        """Measure the fit on rows that were held out of the fit."""
        fitted = fitted_part(found.index, found.values, held.codes.astype(np.int32), self._threads)
        fit = measure_fit(held.values, fitted, held.probability, held.within)
        self._store_judged(fit.r2, fit.mse * scaling.unit**2, "on held-out rows")

    def _judge(self, eval_set: tuple[Any, Any], progress: Progress) -> None:
        """Measure the fit on further rows."""
        state = self._state
        codes = state.encoding.encode(Table.read(eval_set[0]), self.handle_unknown).astype(np.int32)
        target = self._values_at(eval_set[0], eval_set[1], progress)
        p = np.full(codes.shape[1], 1.0 / codes.shape[1])
        fit = measure_fit(target, fitted_part(state.index, state.values, codes, self._threads), p)
        self._store_judged(fit.r2, fit.mse, "on held-out rows")

    def _store_judged(self, r2: FloatArray, mse: FloatArray, method: str) -> None:
        """Write the fit on other rows in the certificate."""
        state = self._state
        certificate = replace(state.certificate, r2_eval=r2, mse_eval=mse, eval_method=method)
        self._store(replace(state, certificate=certificate))

    def _store(self, fitted: Fitted) -> None:
        self._fitted = fitted
        self.effects_ = Effects(fitted.index, fitted.values, fitted.schema, fitted.uncertainty)
        self.certificate_ = fitted.certificate
        self.plan_ = fitted.plan
        self.selected_ = fitted.selected
        self.selection_ = fitted.chosen
        self.intercept_ = fitted.values[0].copy()
        self.feature_names_in_ = np.array(fitted.schema.features, dtype=object)
        self.n_features_in_ = len(fitted.schema.features)
        self.categories_ = list(fitted.encoding.levels)
        self.output_names_ = fitted.schema.outputs

    def _level_rules(self) -> dict[str, Any]:
        return {"min_frequency": self.min_frequency, "n_bins": self.n_bins, "strategy": self.strategy}

    @classmethod
    def _parameters(cls) -> list[str]:
        return sorted(cls.__init__.__kwdefaults__ or {})


def load(path: str | os.PathLike[str]) -> FunctionalANOVA:
    """Read a decomposition written by :meth:`FunctionalANOVA.save`; it answers everything the saved one did.

    >>> import os, tempfile
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    >>> anova = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 5.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     anova.save(os.path.join(folder, "small.exanova"))
    ...     again = load(os.path.join(folder, "small.exanova"))
    >>> bool((again.predict(X) == anova.predict(X)).all())
    True
    """
    fitted, parameters = from_file(*read(path))
    known = set(FunctionalANOVA._parameters())
    anova = FunctionalANOVA(**{name: value for name, value in parameters.items() if name in known})
    anova._store(fitted)
    return anova


def _data(seen: Observation) -> Data:
    """What is decomposed: the distinct rows with the normalised values of the model."""
    support, within = seen.support, seen.within if seen.within.any() else None
    return Data(support.codes, support.weight, support.sizes, seen.normalised, seen.n_rows, within)


def _named_selection(
    found: Decomposition, schema: Schema
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] | None:
    """The functions Algorithm 1 keeps, by feature names and the labels of z."""
    selected = found.selected()
    if selected is None:
        return None
    return tuple(
        (schema.names(subset), tuple(schema.labels[i][level] for i, level in zip(subset, z, strict=True)))
        for subset, z in selected
    )
