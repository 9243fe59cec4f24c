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
from exanova.query import QuerySettings
from exanova.select.record import Selection
from exanova.solve.evidence import Solved
from exanova.solve.request import Request
from exanova.typing import FloatArray
from exanova.warned import warn


def assemble(
    seen: Observation,
    sample: Sample,
    found: Solved,
    selection: Selection | None,
    request: Request,
    parameters: Mapping[str, Any],
    started: float,
) -> Decomposition:
    """Measure effects on the rows of the fit and put them together with names, evidence and settings.

    Args:
        seen: the rows, levels and outputs as they were observed.
        sample: the rows that were fitted: those of ``seen``, or some of them.
        found: effects on cells with the evidence of the solve.
        selection: how a budget was spent, if there was one.
        request: the parameters of the fit.
        parameters: parameters of the estimator by name.
        started: when the fit began, by ``time.perf_counter``.
    """
    names, values, scaling = seen.support.feature_names, seen.given, seen.scaling
    found = with_rank(found, sample, request)
    measured = measure(sample, found, request.threads)
    certificate = certify(sample, found, measured, names, scaling, time.perf_counter() - started, request)
    bins = _lossless_bins(seen, sample, certificate)
    certificate = replace(certificate, bins=bins) if bins else certificate
    schema = Schema(names, seen.support.labels, values.output_names, seen.table_kind, values.single)
    effects = scaling.effects(found.values)
    fitted = _fitted_sample(sample, found, request, parameters["sampled"])
    continuation = None if found.shrinkage is None else found.shrinkage.continuation
    return Decomposition(
        schema=schema,
        encoding=seen.encoding,
        family=found.family,
        values=effects,
        uncertainty=uncertainty_of(found.family, effects, schema, certificate, fitted),
        settings=QuerySettings.of(parameters),
        covariance=measured.covariance * scaling.unit**2,
        variance=measured.variance * scaling.unit**2,
        mean_shapley=MeanShapley(found.family, effects, sample),
        certificate=certificate,
        plan=found.plan,
        ties=parameters["ties"],
        link=parameters["link"],
        losses=_losses(found, effects, sample, parameters["link"]),
        selection=selection,
        paper_functions=_named_functions(found, schema),
        sample=sample,
        continuation=None if continuation is None else continuation.times(scaling.unit),
    )


def _lossless_bins(seen: Observation, sample: Sample, certificate: Certificate) -> str:
    """That intervals hide nothing, where rows they made equal have equal outputs and there are such rows."""
    made_equal = not seen.encoding.is_lossless and sample.rows > sample.n_rows
    if not made_equal or sample.is_distribution or certificate.unmeasured or certificate.within_variance.any():
        return ""
    return (
        f"lose nothing: {sample.rows:,} rows became {sample.n_rows:,} combinations of levels, outputs equal within each"
    )


def warn_if_inexact(certificate: Certificate, basis: str) -> None:
    """Warn of failed checks; the paper's basis is known to lose orthogonality."""
    if certificate.notes and basis == "pure":
        warn(joined(certificate.notes, "; "), InexactWarning)


def _losses(found: Solved, effects: FloatArray, sample: Sample, link: str) -> tuple[tuple[TariffLoss, ...], ...]:
    """The loss of tariffs up to each order, per output; empty without a link."""
    if link == "identity":
        return ()
    family, outputs = found.family, range(sample.n_outputs)
    return tuple(tuple(losses_of(family, effects, sample, link, o)) for o in outputs)


def _fitted_sample(sample: Sample, found: Solved, request: Request, sampled: Any) -> FittedSample:
    """The rows as standard errors need them: references, nothing is computed."""
    solution = found.solution
    shared = solution.null.shape[1] > 0 or solution.independent is not None
    solved = (found.basis, solution) if found.basis is not None and shared else None
    posterior = None if found.shrinkage is None else found.shrinkage.posterior
    return FittedSample(sample, found.values, request, solved, posterior, why_whole(sampled, sample))


def _named_functions(found: Solved, schema: Schema) -> Functions | None:
    """The functions Algorithm 1 keeps, by feature names and the labels of z."""
    functions = found.paper_functions()
    if functions is None:
        return None
    return tuple(
        (schema.names(subset), tuple(schema.labels[i][level] for i, level in zip(subset, z, strict=True)))
        for subset, z in functions
    )
