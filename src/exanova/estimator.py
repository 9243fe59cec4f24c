"""``FunctionalANOVA``: validates its input, calls the engine and stores the result. It contains no numerics."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from exanova.apart.in_parts import InParts
from exanova.argument_checks import check_choice, check_whole
from exanova.assembly import assemble, warn_if_inexact
from exanova.basis.names import BasisName
from exanova.data.observe import Reading
from exanova.data.rules import MaxLevels, NBins
from exanova.decomposition import Decomposition
from exanova.decomposition_file import from_file, to_file
from exanova.effects.measure import passed
from exanova.effects.storage import read, write
from exanova.errors import InputError
from exanova.fitting import fit_sample, plan_fit
from exanova.given import Given, read_given
from exanova.infer.fitted_sample import why_whole
from exanova.other_rows.evaluation import FittedRows, check_further_rows, evaluated, warn_if_it_does_not_hold
from exanova.other_rows.many_levels import as_many_as_stay, to_join, with_fits_again
from exanova.parallel import blas_threads
from exanova.parameters import check_parameters, make_request, read_eval_set, the_model
from exanova.parametrised import Parametrised, former_attribute, forwarded, renamed
from exanova.progress import Progress
from exanova.provenance import Provenance, trace
from exanova.queries.query import QuerySettings
from exanova.solve.plan import Plan
from exanova.solve.request import Request, SelectionName
from exanova.solve.survey import Survey
from exanova.solve.traits import RouteName
from exanova.sources.observed import SourceReading
from exanova.tags import not_fitted

if TYPE_CHECKING:
    from exanova.show.plots import Plots


class FunctionalANOVA(Parametrised, InParts):
    """Exact functional ANOVA decomposition of a model with categorical inputs.

    The model is written as a sum of effects f_A(x_A), one for each subset A of features, each orthogonal to every
    function of fewer of its features under the joint distribution of the data, whatever their dependence and
    whichever combinations never occur.

    Args:
        max_order: largest number of features in an interaction; ``None`` for all orders until the fit is exact.
        subsets: subsets of features to decompose over, with all of their parts, in place of an order: tuples of
            feature names or column positions, a mapping, a graph with ``edges``, or :func:`neighbours`. Under a budget,
            the candidates.
        max_terms: a budget of functions, intercept and main effects included; ``"auto"`` takes as many as improve the
            fit on held out, or all where all are affordable.
        selection: how a budget is spent: ``"screen"`` (default) takes the subsets that explain most of the
            residual, in rounds; ``"canonical"`` takes them in the order of the paper; ``"lasso"`` takes those a
            group lasso keeps, its penalty chosen on held-out rows (also without a budget).
        min_gain: stop screening when the best remaining gain per function falls below this fraction of the variance.
        ridge: penalty on squared coefficients, for less variance; the result is then not exact.
        random_state: seed of random splits of the rows, and of rows drawn for a likelihood; ``None`` for a fresh seed
            at every call.
        shrinkage: ``"auto"`` (default) shrinks effects to what the rows can support: variance components of every order
            and of the residual are chosen by marginal likelihood, and neighbouring bins and dates are smoothed. It
            is off where the rows determine every function. ``None`` always fits exactly.
        sampled: whether the rows are a sample (``True``) or the complete population (``False``: no shrinkage, no
            standard errors); ``"auto"``: a sample, unless a distribution was given or every combination of levels
            occurs equally often.
        basis: ``"pure"``, orthogonal on any support; ``"paper"``, the functions of the paper this library follows,
            which are not orthogonal where cells are missing (the certificate shows by how much).
        ties: how to split an effect that several subsets of one order can express: ``"share"`` spreads it evenly,
            ``"first"`` gives it to the first in canonical order.
        min_frequency: merge rarer levels into ``(other)``: a count, or a share of the rows.
        max_levels: largest number of levels of a nominal column: ``"auto"`` (default) is 50; where a column has more,
            levels whose effects do not differ beyond their error are joined (not in an exact fit, ``shrinkage=None``).
            A number, ``None`` for any number, or a mapping from column to one of these.
        n_bins: number of intervals for numbers and times with more than 20 distinct values: ``"auto"`` (up to 32, fewer
            where rows are few; times by the calendar), a number, ``None`` to refuse such columns, or a mapping from
            column to one of these.
        strategy: where the edges of the intervals are: ``"quantile"``, ``"uniform"``, ``"kmeans"``, or ``"model"`` for
            the thresholds of the trees of the model.
        handle_unknown: what to do with unknown levels in new rows: ``"error"``, or ``"ignore"`` to treat their effects
            as 0. A shrunken fit then reads the effects of a number between those of its neighbours.
        strict: raise an error for new rows with a combination that was never observed; by default its effect counts as
            0, with a warning.
        link: ``"log"`` or ``"logit"`` decomposes that function of the output, on which effects then add up; rates with
            their exposure as weight, for example. Outputs given for rows are averaged over equal rows first. Values the
            link is not defined for are refused.
        response_method: which method of an estimator is explained; ``"auto"``: ``predict_proba`` if it has it, and of
            two classes the probability of the second.
        batch_size: rows the model is called on at once.
        route: ``"auto"``, or force ``"grid"``, ``"dense"``, ``"moments"``, ``"matrix-free"`` or ``"completion"``.
        memory_limit: bytes a fit takes beside libraries and your table, or ``"4 GB"``; by default most of what is free.
        n_jobs: threads; ``None`` for every core.
        verbose: ``True`` prints the plan and progress, ``False`` neither; ``None`` shows progress on a terminal.
        engine: a client of ``dask.distributed`` that reads files and partitions on its workers; ``None`` reads in this
            process.
        interactions: the former name of ``subsets``.

    After ``fit`` the queries of the :class:`Decomposition` are methods: ``predict``, ``components``, ``explain``,
    ``interactions``, ``importance``, ``errors``, ``significance``, ``score``, ``compare``, ``plot``, ``report`` and
    ``export``.

    Attributes (after ``fit``):
        decomposition_: :class:`Decomposition`, effects with names and evidence; queries use the present parameters.
        effects_: mapping from feature names to :class:`Effect`.
        certificate_: :class:`Certificate`, what was measured about this result.
        plan_: :class:`Plan`.
        intercept_: (m,) weighted mean of the model.
        selection_: how a budget was spent, round by round; ``None`` without a budget.
        moments_: :class:`Moments` of all rows given to ``partial_fit`` and ``merge``.
        paper_functions_: with ``basis="paper", ties="first"``, the functions kept, as (features, levels) in order.
        provenance_: :class:`Provenance`, version, date, settings, rows and hashes of the fit.
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

    _decomposition: Decomposition

    def __init__(
        self,
        *,
        # which effects
        max_order: int | None = 2,
        subsets: Any = None,
        max_terms: int | Literal["auto"] | None = None,
        selection: SelectionName | None = None,
        min_gain: float = 1e-6,
        # how they are fitted
        ridge: float = 0.0,
        random_state: int | None = 0,
        shrinkage: Literal["auto"] | None = "auto",
        sampled: bool | Literal["auto"] = "auto",
        basis: BasisName = "pure",
        ties: Literal["share", "first"] = "share",
        # how columns become levels
        min_frequency: float | None = None,
        max_levels: MaxLevels = "auto",
        n_bins: NBins = "auto",
        strategy: Literal["uniform", "quantile", "kmeans", "model"] = "quantile",
        # new rows
        handle_unknown: Literal["error", "ignore"] = "error",
        strict: bool = False,
        # the model
        link: Literal["identity", "log", "logit"] = "identity",
        response_method: Literal["auto", "predict_proba", "predict", "decision_function"] = "auto",
        batch_size: int | None = None,
        # how it is computed
        route: RouteName = "auto",
        memory_limit: int | float | str | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        engine: Any = None,
        interactions: Any = None,
    ) -> None:
        self.max_order = max_order
        self.subsets = subsets if interactions is None else renamed("interactions", interactions, subsets)
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
        self.max_levels = max_levels
        self.n_bins = n_bins
        self.strategy = strategy
        self.handle_unknown = handle_unknown
        self.strict = strict
        self.link = link
        self.response_method = response_method
        self.batch_size = batch_size
        self.route = route
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.engine = engine

    def plan(self, X: Any, *, sample_weight: Any = None, n_outputs: int = 1) -> Plan:
        """What ``fit`` would do with these rows, without calling any model.

        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> FunctionalANOVA(max_order=None).plan(X).route
        'grid'
        """
        check_whole("n_outputs", n_outputs)
        check_parameters(parameters := self.get_params())
        read, _ = read_given(Given(X, sample_weight=sample_weight), parameters, self.fit, Progress(enabled=False))
        assert read is not None, "without a model nothing is fitted"
        rows = as_many_as_stay(read.rows, chosen := to_join(read.rows, parameters))
        plan = self._plan(rows, make_request(parameters, rows.support, rows.encoding), n_outputs)[0]
        return with_fits_again(plan, rows, None) if chosen else plan

    def fit(
        self,
        X: Any,
        model: Any = None,
        *,
        y: Any = None,
        sample_weight: Any = None,
        output_names: Sequence[str] | None = None,
        eval_set: tuple[Any, Any] | float | str | os.PathLike[str] | None = None,
        weights: Literal["auto", "frequency", "probability"] = "auto",
        clusters: Any = None,
        strata: Any = None,
        replicate_weights: Any = None,
    ) -> Self:
        """Decompose ``model`` over the rows of ``X``.

        Args:
            X: a pandas, polars or pyarrow table, a two-dimensional NumPy array, a :class:`Support`, or rows that are
                read in blocks: paths, a pyarrow dataset, a lazy frame, a relation of a database.
            model: a callable that receives such a table, a fitted estimator, or an array of outputs, one per row.
            y: another name for ``model``, for tools that call ``fit(X, y=...)``.
            sample_weight: (n,) non-negative weights of the rows, or the name of a column, as for ``clusters`` and
                ``strata``.
            output_names: names of the outputs; by default the classes of an estimator.
            eval_set: held-out data ``(X, model or outputs)``, or the fraction of distinct rows (or of clusters) to
                hold out.
            weights: what ``sample_weight`` means for standard errors: ``"frequency"`` counts equal rows,
                ``"probability"`` is the inverse sampling probability; by default whole numbers are frequencies.
            clusters: (n,) labels of rows that were drawn together, for standard errors and for the fit on other rows.
            strata: (n,) labels of the parts of the population that rows (or clusters) were drawn from separately.
            replicate_weights: columns (n, B) of weights, or a list of their names, and their scale factor, as a pair,
                in place of these two.
        """
        check_parameters(self.get_params())
        self.__dict__.pop("moments_", None)
        model = the_model(model, y)
        eval_set = read_eval_set(eval_set, model)
        design = {"clusters": clusters, "strata": strata, "replicate_weights": replicate_weights}
        with closing(Progress(self.verbose)) as progress:
            self._fit(Given(X, model, sample_weight, output_names, weights, design, eval_set), progress)
        return self

    def _fit(self, given: Given, progress: Progress) -> None:
        """Read the rows, plan, fit and measure; then evaluate the result on other rows."""
        started = time.perf_counter()
        read, observe = read_given(given, self.get_params(), self.fit, progress)
        arguments = {"weights": given.weights, "eval_set": given.eval_set, **given.columns}
        if read is None:  # rows were held out and the others fitted; the record is of what was given
            self._store(replace(self._decomposition, provenance=trace(observe(), self._kept_params(), arguments)))
            return
        check_further_rows(given.eval_set, read.rows.encoding, self.handle_unknown)
        request = make_request(self.get_params(), read.rows.support, read.rows.encoding)
        progress.phase("listing cells")
        plan, survey = self._plan(read.rows, request)
        plan = with_fits_again(plan, read.rows, given.eval_set) if read.changed else plan
        if self.verbose:
            print(plan)
        observed = observe()
        sample, held = observed.sample, read.held
        if isinstance(given.eval_set, float) and held is None:
            sample, held = sample.split(given.eval_set, request.random_state)
        whole = why_whole(self.sampled, sample)
        request = replace(request, sampled=not whole)
        solved, selection = fit_sample(sample, request, plan, survey, progress)
        with blas_threads(request.threads):
            progress.phase("measuring")
            solved = passed(sample, solved, request.threads)
            self._store(assemble(observed, sample, solved, selection, request, self.get_params(), started))
            warn_if_inexact(self.certificate_, self.basis)
            fitted = FittedRows(read, sample, held, solved, request, whole, observed.given.repeats)
            certificate = evaluated(self._decomposition, fitted, given.eval_set, self._fit_part, progress)
        record = trace(read.recorded(observed), self._kept_params(), arguments)
        self._store(replace(self._decomposition, certificate=certificate, provenance=record))
        warn_if_it_does_not_hold(self._decomposition)

    predict = forwarded(Decomposition.predict)
    components = forwarded(Decomposition.components)
    explain = forwarded(Decomposition.explain)
    interactions = forwarded(Decomposition.interactions)
    importance = forwarded(Decomposition.importance)
    errors = forwarded(Decomposition.errors)
    significance = forwarded(Decomposition.significance)
    score = forwarded(Decomposition.score)
    difference = forwarded(Decomposition.difference)
    reasons = forwarded(Decomposition.reasons)
    compare = forwarded(Decomposition.compare)
    change = forwarded(Decomposition.change)
    relativities = forwarded(Decomposition.relativities)
    report = forwarded(Decomposition.report)
    export = forwarded(Decomposition.export)

    @property
    def plot(self) -> Plots:
        """Charts of this decomposition: importances, effects, pairs, rows, the certificate."""
        return self.decomposition_.plot

    @property
    def decomposition_(self) -> Decomposition:
        """The fitted decomposition; its queries use the present parameters."""
        if not hasattr(self, "_decomposition"):
            raise not_fitted("this FunctionalANOVA is not fitted; call fit(X, model) first.")
        settings = QuerySettings.of(self.get_params())
        if settings != self._decomposition.settings:
            self._decomposition = self._decomposition.with_settings(settings)
        return self._decomposition

    @property
    def provenance_(self) -> Provenance | None:
        """Version, date, settings, rows and hashes of the fit; ``None`` for a file of exanova 0.1."""
        return self.decomposition_.provenance

    @property
    def selected_(self) -> Any:
        """The former name of ``paper_functions_``."""
        return former_attribute(self, "selected_", "paper_functions_")

    def add_provenance(
        self, *, command: Sequence[str] = (), files: Mapping[str, str | os.PathLike[str]] | None = None
    ) -> Self:
        """Record facts about the origin of the fit that ``fit`` cannot know.

        Args:
            command: the command line, word by word.
            files: paths by their roles, such as ``{"data": "loans.csv", "model": "model.onnx"}``; the SHA-256 of
                their contents is recorded, and the paths as given.
        """
        known = self.provenance_
        if known is None:
            raise InputError("this decomposition was saved by exanova 0.1, without provenance; fit it again.")
        self._store(replace(self._decomposition, provenance=known.with_origin(command, files)))
        return self

    def save(self, path: str | os.PathLike[str], *, covariances: bool | None = None) -> None:
        """Write this decomposition to one file: no pickle, no rows, no model; see :func:`exanova.load`.

        It has ``importance("shapley")`` and ``errors()`` that take long if they were called before, and ``covariances``
        of effects (for standard errors of what is computed from it) by default if they are cheap and take up to 4 MB.
        """
        check_choice("covariances", covariances, (True, False, None))
        write(path, *to_file(self.decomposition_, self._kept_params(), covariances))

    def __str__(self) -> str:
        return str(self.decomposition_) if hasattr(self, "_decomposition") else f"{self!r}, not fitted"

    def _repr_html_(self) -> str:
        if not hasattr(self, "_decomposition"):
            return f"<pre>{escape(str(self))}</pre>"
        return self.decomposition_._repr_html_()

    def _plan(self, rows: Reading | SourceReading, request: Request, n_outputs: int = 1) -> tuple[Plan, Survey | None]:
        plan, survey = plan_fit(request, rows.sample, n_outputs)
        return replace(plan, model_calls=rows.model_calls, **rows.plan_facts), survey

    def _fit_part(self, rows: Any, values: Any, weight: Any, weights: Any) -> FunctionalANOVA:
        """The same fit to some of the rows, of values that are linked; one row to evaluate it keeps it from more."""
        changed = {"handle_unknown": "ignore", "strict": False, "verbose": False, "link": "identity"}
        own, one = FunctionalANOVA(**self.get_params() | changed), (rows.rows(np.arange(1)), values[:1])
        return own.fit(rows, values, sample_weight=weight, weights=weights, eval_set=one)

    def _store(self, decomposition: Decomposition) -> None:
        """Store a decomposition, and the attributes that scikit-learn's conventions require."""
        self._decomposition = decomposition
        self.effects_ = decomposition.effects
        self.certificate_ = decomposition.certificate
        self.plan_ = decomposition.plan
        self.paper_functions_ = decomposition.paper_functions
        self.selection_ = decomposition.selection
        self.intercept_ = decomposition.intercept
        self.feature_names_in_ = np.array(decomposition.schema.features, dtype=object)
        self.n_features_in_ = len(decomposition.schema.features)
        self.categories_ = list(decomposition.encoding.levels)
        self.output_names_ = decomposition.schema.outputs


def load(path: str | os.PathLike[str]) -> FunctionalANOVA:
    """Read a decomposition written by :meth:`FunctionalANOVA.save`; it answers every query that the saved one did.

    >>> import os, tempfile
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    >>> anova = FunctionalANOVA().fit(X, np.array([0.0, 1.0, 5.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     anova.save(os.path.join(folder, "small.exanova"))
    ...     again = load(os.path.join(folder, "small.exanova"))
    >>> bool((again.predict(X) == anova.predict(X)).all())
    True
    """
    decomposition, parameters = from_file(*read(path))
    anova = FunctionalANOVA(**{k: v for k, v in parameters.items() if k in FunctionalANOVA._parameters()})
    anova._store(decomposition)
    return anova
