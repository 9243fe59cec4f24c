"""From effects in normalised units to a ``Decomposition``: measured, in the units of the model, by name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from exanova.data.observe import Observation
from exanova.data.sample import Sample
from exanova.decomposition import Decomposition, Functions, uncertainty_of
from exanova.effects.certificate import Certificate, certify
from exanova.effects.effect import Schema
from exanova.effects.measure import measure
from exanova.errors import InexactWarning
from exanova.explain.mean_shapley import MeanShapley
from exanova.explain.relativities import TariffLoss
from exanova.explain.tariff import losses_of
from exanova.infer.fitted_sample import FittedSample, why_whole
from exanova.infer.sharing import with_rank
from exanova.messages import joined
from exanova.queries.query import QuerySettings
from exanova.select.record import Selection
from exanova.solve.evidence import Solved
from exanova.solve.request import Request
from exanova.typing import FloatArray
from exanova.warned import warn

ENOUGH_MADE_EQUAL = 100
"""Different rows that have to become equal before equal outputs within them show that intervals hide nothing: then at
most 3 % of the pairs of such rows have different outputs, at 95 %."""


def assemble(
    observed: Observation,
    sample: Sample,
    solved: Solved,
    selection: Selection | None,
    request: Request,
    parameters: Mapping[str, Any],
    started: float,
) -> Decomposition:
    """Measure effects on the rows of the fit and put them together with names, evidence and settings.

    Args:
        observed: the rows, levels and outputs as they were observed.
        sample: the rows that were fitted: those of ``observed``, or some of them.
        solved: effects on cells with the evidence of the solve.
        selection: how a budget was spent, if there was one.
        request: the parameters of the fit.
        parameters: parameters of the estimator by name.
        started: when the fit began, by ``time.perf_counter``.
    """
    names, values, scaling = observed.support.feature_names, observed.given, observed.scaling
    solved = with_rank(solved, sample, request)
    measured = measure(sample, solved, request.threads)
    certificate = certify(sample, solved, measured, names, scaling, time.perf_counter() - started, request)
    bins, columns = _lossless_bins(observed, sample, certificate), _columns_out(observed, parameters["strategy"])
    certificate = replace(certificate, bins=bins, columns_out=columns) if bins or columns else certificate
    schema = Schema(names, observed.support.labels, values.output_names, observed.table_kind, values.single)
    effects = scaling.effects(solved.values)
    fitted = _fitted_sample(sample, solved, request, parameters["sampled"])
    continuation = None if solved.shrinkage is None else solved.shrinkage.continuation
    return Decomposition(
        schema=schema,
        encoding=observed.encoding,
        family=solved.family,
        values=effects,
        uncertainty=uncertainty_of(solved.family, effects, schema, certificate, fitted),
        settings=QuerySettings.of(parameters),
        covariance=measured.covariance * scaling.unit**2,
        variance=measured.variance * scaling.unit**2,
        mean_shapley=MeanShapley(solved.family, effects, sample),
        certificate=certificate,
        plan=solved.plan,
        ties=parameters["ties"],
        link=parameters["link"],
        losses=_losses(solved, effects, sample, parameters["link"]),
        selection=selection,
        paper_functions=_named_functions(solved, schema),
        sample=sample,
        continuation=None if continuation is None else continuation.times(scaling.unit),
    )


def _columns_out(observed: Observation, strategy: str) -> tuple[str, ...]:
    """Columns that identify rows; with the thresholds of a model, those that it does not read look the same."""
    every = observed.encoding.features
    return () if strategy == "model" else tuple(feature.name for feature in every if feature.is_left_out)


def _lossless_bins(observed: Observation, sample: Sample, certificate: Certificate) -> str:
    """That intervals hide nothing, where different rows that they made equal have equal outputs and are many."""
    different, combinations = observed.different, observed.sample.n_rows
    if different - combinations < ENOUGH_MADE_EQUAL or certificate.unmeasured or certificate.within_variance.any():
        return ""
    return f"lose nothing: {different:,} rows became {combinations:,} combinations of levels, outputs equal within each"


def warn_if_inexact(certificate: Certificate, basis: str) -> None:
    """Warn of failed checks; the paper's basis is known to lose orthogonality."""
    if certificate.notes and basis == "pure":
        warn(joined(certificate.notes, "; "), InexactWarning)


def _losses(solved: Solved, effects: FloatArray, sample: Sample, link: str) -> tuple[tuple[TariffLoss, ...], ...]:
    """The loss of tariffs up to each order, per output; empty without a link."""
    if link == "identity":
        return ()
    family, outputs = solved.family, range(sample.n_outputs)
    return tuple(tuple(losses_of(family, effects, sample, link, o)) for o in outputs)


def _fitted_sample(sample: Sample, solved: Solved, request: Request, sampled: Any) -> FittedSample:
    """The rows as standard errors need them: references, nothing is computed."""
    solution = solved.solution
    shared = solution.null.shape[1] > 0 or solution.independent is not None
    factored = (solved.basis, solution) if solved.basis is not None and shared else None
    posterior = None if solved.shrinkage is None else solved.shrinkage.posterior
    return FittedSample(sample, solved.values, request, factored, posterior, why_whole(sampled, sample))


def _named_functions(solved: Solved, schema: Schema) -> Functions | None:
    """The functions Algorithm 1 keeps, by feature names and the labels of z."""
    functions = solved.paper_functions()
    if functions is None:
        return None
    return tuple(
        (schema.names(subset), tuple(schema.labels[i][level] for i, level in zip(subset, z, strict=True)))
        for subset, z in functions
    )
