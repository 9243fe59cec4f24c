"""The fit on other rows: held out, given, or each row predicted from the others; a warning if it does not hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from exanova import tolerances
from exanova.data.encoding import Encoding
from exanova.data.named_columns import take_named
from exanova.data.observe import values_at
from exanova.data.sample import Sample
from exanova.data.table import Table
from exanova.data.values import is_model
from exanova.decomposition import Decomposition
from exanova.effects.at_rows import fitted_part
from exanova.effects.average_leverage import on_average
from exanova.effects.certificate import ROWS_OF_FIT, Certificate, FitErrors, measure_fit, measure_sample
from exanova.effects.certificate_text import what_helps
from exanova.effects.fit_sums import FitSums
from exanova.errors import ExanovaError, InputError, OverfitWarning
from exanova.fitting import fit_sample, plan_fit
from exanova.infer.units import raw_rows
from exanova.messages import Words, count_of, short
from exanova.other_rows.many_levels import CLUSTERS_LEFT_OUT, LEFT_OUT, ONE_CLUSTER, Joined, by_joining_again
from exanova.other_rows.other_clusters import METHOD, errors_on_clusters, of_raw_rows, predicted_by, variance_across
from exanova.other_rows.rows_of_fit import RowsOfFit
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.select.optimism import follows_values, largest_growth, repeats_cheaply
from exanova.select.record import Selection
from exanova.select.selected_fit import Judged, judge_fits, judge_selection, splits_of, with_budget
from exanova.shrink.evaluate import is_nearly_all, other_rows
from exanova.solve.evidence import Solved
from exanova.solve.request import Request
from exanova.sources.further import Reader
from exanova.sources.observed import SourceReading
from exanova.sources.opening import is_source
from exanova.typing import FloatArray, IntArray
from exanova.warned import warn

HELD_OUT = "on held-out rows"
DOES_NOT_REPEAT = "the model gave other outputs when it was called again"
NO_FUNCTION = (
    "the model gave other outputs when it was called on a few rows again: it draws at random, remembers earlier calls, "
    "or looks at the other rows of a call. The effects describe what it gave once. Fix its seed, switch it to "
    "evaluation (model.eval() in PyTorch), or pass its outputs in place of the model."
)
HELD_OUT_ALIKE = "the outputs of the held-out rows do not vary"
CANNOT_BE_FITTED = "the rows without a fifth of them cannot be fitted"
SUMS_ALONE = "levels were joined, and only sums of equal rows are known"
TAKES_LONG = "there are about as many functions as rows, and too many of both to leave out each row"
TOO_FEW = "the rows are too few to hold any out"


@dataclass(frozen=True, eq=False)
class FittedRows:
    """Rows and what was fitted to them.

    Attributes:
        read: the rows that were read, with their levels joined.
        sample: those that were fitted.
        held: those held out, if any.
        solved: effects and evidence.
        request: the parameters of the fit.
        whole: why the rows are the complete population; empty for a sample.
        repeats: whether the model gave the same outputs when it was called again.
    """

    read: Joined
    sample: Sample
    held: Sample | None
    solved: Solved
    request: Request
    whole: str
    repeats: bool = True


def evaluated(
    known: Decomposition,
    fitted: FittedRows,
    eval_set: tuple[Any, Any] | float | None,
    fit_part: Callable[..., Any],
    progress: Progress,
) -> Certificate:
    """The certificate with the fit on other rows: those held out, those given, or each row by all the others.

    ``fit_part`` makes the same fit to some of the rows: their table, values and weights, and what weights are.
    """
    certificate, request, read = known.certificate, fitted.request, fitted.read
    draws = fitted.sample.draws
    cluster = draws.cluster if draws is not None and draws.in_clusters else None
    if not fitted.repeats:
        warn(NO_FUNCTION)
    if fitted.held is not None:
        return on_held_out_rows(certificate, fitted.held, fitted.solved, request.threads)
    if isinstance(eval_set, tuple):
        return on_further_rows(known, *eval_set, progress, RowsOfFit(fitted.sample))
    if not (fitted.repeats or fitted.whole):
        return _unknown(certificate, DOES_NOT_REPEAT)
    if read.changed and not fitted.whole and isinstance(read.rows, SourceReading):
        apart = read.apart is not None and read.apart.divides
        return _by_joining_anew(certificate, fitted, progress) if apart else _unknown(certificate, SUMS_ALONE)
    if read.changed and not fitted.whole:
        progress.phase("joining levels again")
        fit = partial(fit_part, weights="frequency" if draws is None else draws.kind)
        return by_joining_again(certificate, read, fit, request.random_state, cluster)
    return _by_the_others(known, fitted, cluster, progress)


def _by_joining_anew(certificate: Certificate, fitted: FittedRows, progress: Progress) -> Certificate:
    """The certificate with the fit on fifths of the rows that were read in blocks, with levels joined by the others."""
    apart, request = fitted.read.apart, fitted.request
    assert apart is not None
    progress.phase("joining levels again")
    squared, sums, total = np.zeros(fitted.sample.n_outputs), [], 0.0
    for others, part in apart.folds(request.random_state):
        try:
            predicted = predicted_by(others, part.codes, request, progress)
        except ExanovaError:
            return _unknown(certificate, CANNOT_BE_FITTED)
        unit, weight = _unit(part), part.weight.astype(np.float64)
        within = np.zeros_like(part.values) if part.within is None else part.within
        squared += weight @ ((part.values - predicted) ** 2 + within) * unit**2
        own = part.scaling.centre + part.values * unit if part.scaling else part.values
        sums.append((own, within * unit**2, weight))
        total += float(weight.sum())
    if apart.rows.clusters is None:
        values, within, weight = (np.concatenate(arrays) for arrays in zip(*sums, strict=True))
        variance = weight @ ((values - weight @ values / total) ** 2 + within) / total
    else:
        every = apart.rows.sample
        variance = variance_across(*of_raw_rows(every)) * _unit(every) ** 2
    r2 = 1.0 - np.divide(squared / total, variance, out=np.zeros_like(squared), where=variance > 0)
    method = LEFT_OUT if apart.rows.clusters is None else CLUSTERS_LEFT_OUT
    return replace(certificate, r2_eval=r2, mse_eval=squared / total, eval_method=method)


def _by_the_others(
    known: Decomposition, fitted: FittedRows, cluster: IntArray | None, progress: Progress
) -> Certificate:
    """The certificate with the fit of rows, clusters or parts of the rows by all the others."""
    certificate, request, sample = known.certificate, fitted.request, fitted.sample
    again = request if known.selection is None else with_budget(request, known.selection.budget)
    if cluster is not None and not fitted.whole:
        return by_leaving_clusters_out(certificate, sample, again, progress)
    selection = known.selection
    if request.ridge and not fitted.whole and some_row_is_alone(sample, fitted.solved, request.threads):
        return by_fitting_again(certificate, sample, again, progress)
    if selection is None or not request.sampled:
        return by_leaving_out(certificate, sample, fitted.solved, request, fitted.whole)
    if request.auto_terms or (request.shrinkage and follows_values(selection)):
        return by_selecting_again(certificate, sample, again, progress)
    if repeats_cheaply(selection, sample, again, splits_of(sample)):
        certificate = by_selecting_again(certificate, sample, again, progress)
        if certificate.r2_eval is not None:
            return certificate
    kept = by_leaving_out(certificate, sample, fitted.solved, request, fitted.whole)
    return _with_selection(kept, selection, fitted) if follows_values(selection) else kept


def _with_selection(certificate: Certificate, selection: Selection, fitted: FittedRows) -> Certificate:
    """The certificate with what would be left of the fit on other rows, had the selection followed noise all it can."""
    if certificate.r2_eval is None:
        return certificate
    sample, subsets = fitted.sample, fitted.solved.family.subsets
    rows = _independent_rows(sample)
    by_order, varying = certificate.rank_by_order, len(sample.varying)
    growth = largest_growth(selection, subsets, fitted.request, varying, by_order, rows)
    least = 1.0 - (1.0 - certificate.r2_eval) * growth if np.isfinite(growth) else np.full(sample.n_outputs, np.nan)
    return replace(certificate, r2_least=least)


def check_further_rows(eval_set: Any, encoding: Encoding, handle_unknown: str) -> None:
    """Refuse held-out rows that cannot be read, or outputs that do not match them, before anything is fitted."""
    if not isinstance(eval_set, tuple) or is_source(eval_set[0]):
        return
    X, model = eval_set
    X, model, _, _ = take_named(X, model, {})
    encoding.encode(Table.read(X), handle_unknown)
    if not is_model(model):
        values_at(X, model, encoding)


def on_held_out_rows(certificate: Certificate, held: Sample, solved: Solved, threads: int) -> Certificate:
    """The certificate with the fit on distinct rows that were held out."""
    fitted = fitted_part(solved.everywhere, held.codes, threads)
    fit = measure_sample(held, fitted)
    return _with_held(certificate, fit, _unit(held))


def _with_held(certificate: Certificate, fit: FitErrors, unit: FloatArray | float = 1.0) -> Certificate:
    """The certificate with the fit on held-out rows; R2 is NaN for outputs that do not vary there."""
    known = not fit.undefined.all()
    r2, method = (np.where(fit.undefined, np.nan, fit.r2), HELD_OUT) if known else (None, HELD_OUT_ALIKE)
    return replace(certificate, r2_eval=r2, mse_eval=fit.mse * unit**2, eval_method=method)


def on_further_rows(
    decomposition: Decomposition, X: Any, model: Any, progress: Progress, own: RowsOfFit
) -> Certificate:
    """The certificate with the fit on further rows and a model, or its outputs there.

    Where these turn out to be rows of the fit, they do not tell whether it holds on others.
    """
    settings = decomposition.settings
    if is_source(X):
        return _on_source(decomposition, X, model, progress, own)
    X, model, _, _ = take_named(X, model, {})
    codes = decomposition.encode(Table.read(X))
    target = decomposition.model_values(X, model, progress)
    p = np.full(codes.shape[1], 1.0 / codes.shape[1])
    fit = measure_fit(target, fitted_part(decomposition.read_at(codes), codes, settings.threads), p)
    own.add(codes, target)
    return _unless_fitted(_with_held(decomposition.certificate, fit), own)


def _unless_fitted(certificate: Certificate, own: RowsOfFit) -> Certificate:
    """The certificate as it is, or with the verdict taken back where the held-out rows are rows of the fit."""
    if not (certificate.sampled and own.are_those):
        return certificate
    warn(own.message, OverfitWarning)
    nothing = np.full(len(certificate.r2), np.nan)
    return replace(certificate, eval_method=ROWS_OF_FIT, r2_least=nothing)


def _on_source(decomposition: Decomposition, X: Any, model: Any, progress: Progress, own: RowsOfFit) -> Certificate:
    """The same for rows that are read in blocks, each of which adds to the sums from which the fit is measured."""
    settings = decomposition.settings
    asked = (settings.handle_unknown, settings.response_method, settings.batch_size, decomposition.link)
    reader, sums = Reader(decomposition.encoding, *asked, between=decomposition.reads_between), FitSums()
    for rows in reader.read(X, model, progress):
        fitted = fitted_part(decomposition.read_at(rows.codes), rows.codes, settings.threads)
        sums.add(rows.values, fitted, rows.copies)
        own.add(rows.codes, rows.values, rows.copies)
    return _unless_fitted(_with_held(decomposition.certificate, sums.fit()), own)


def by_leaving_out(
    certificate: Certificate, sample: Sample, solved: Solved, request: Request, whole: str
) -> Certificate:
    """The certificate with the fit of every row by the others, or with why there are none.

    Where leaving out each row would cost more than the fit, all rows are taken to have the mean leverage.
    """
    if whole:
        return replace(certificate, sampled=False, eval_method=whole)
    other = other_rows(sample, solved, request)
    if other is not None:
        return _with_errors(certificate, sample, other.mse, other.method)
    rows = _independent_rows(sample)
    if request.ridge or is_nearly_all(solved, rows):  # a ridge uses less of every direction than the rank says
        return _unknown(certificate, TAKES_LONG)
    expected = on_average(certificate, rows)
    if expected.r2_eval is None:
        return _unknown(certificate, TAKES_LONG)
    kept = ", without repeating the selection" if request.selection else ""
    return replace(expected, eval_method=expected.eval_method + kept)


def by_leaving_clusters_out(
    certificate: Certificate, sample: Sample, request: Request, progress: Progress
) -> Certificate:
    """The certificate with the fit on clusters that were left out."""
    progress.phase("leaving out clusters")
    mse = errors_on_clusters(sample, request, progress)
    if mse is None:
        assert sample.draws is not None
        return _unknown(certificate, CANNOT_BE_FITTED if np.any(sample.draws.cluster) else ONE_CLUSTER)
    return _with_errors(certificate, sample, mse, METHOD, variance_across(*of_raw_rows(sample)))


def some_row_is_alone(sample: Sample, solved: Solved, threads: int) -> bool:
    """Whether some cell has a single row: without it the cell was never observed.

    A ridge without the row would be one on other functions, so that there is no closed form of leaving it out.
    """
    rows = Phi(solved.family, sample, threads).analyse(np.asarray(sample.copies, dtype=np.float64)[:, None])
    return bool((rows <= 1.0 + tolerances.SAME_SHARE).any())


def by_fitting_again(certificate: Certificate, sample: Sample, request: Request, progress: Progress) -> Certificate:
    """The certificate with the fit on rows held out of fits to the others."""

    def fit(train: Sample) -> Solved:
        return fit_sample(train, request, *plan_fit(request, train, train.n_outputs), progress)[0]

    progress.phase("fitting again without some rows")
    return _judged(certificate, sample, "fitting", partial(judge_fits, sample, request, fit))


def by_selecting_again(certificate: Certificate, sample: Sample, request: Request, progress: Progress) -> Certificate:
    """The certificate of a selected family with the fit on held-out rows of a selection from the others.

    Leave-one-out errors in closed form would ignore that all rows were used to select the family.
    """
    progress.phase("selecting again without some rows")
    return _judged(certificate, sample, "selecting", partial(judge_selection, sample, request, progress))


def _judged(certificate: Certificate, sample: Sample, what: str, judge: Callable[[], Judged]) -> Certificate:
    """The certificate with the errors of fits to part of the rows on the others, or as it is where rows are too few."""
    try:
        judged = judge()
    except InputError:
        return _unknown(certificate, TOO_FEW)
    times = "once" if judged.splits == 1 else f"{judged.splits} times"
    return _with_errors(certificate, sample, judged.mse, f"{what} again without a fifth of the rows, {times}")


def _unknown(certificate: Certificate, why: str) -> Certificate:
    """The certificate with the reason why the fit on other rows was not measured."""
    return replace(certificate, eval_method=why)


def _with_errors(
    certificate: Certificate, sample: Sample, mse: FloatArray, method: str, variance: FloatArray | None = None
) -> Certificate:
    """The certificate with mean squared errors (m,) on other rows, beside the variance within equal rows.

    ``variance`` (m,) is that of the model, unless it is that of the rows.
    """
    within = sample.within_variance
    variance = sample.variance + within if variance is None else variance
    r2 = 1.0 - np.divide(mse + within, variance, out=np.zeros(sample.n_outputs), where=variance > 0)
    return replace(certificate, r2_eval=r2, mse_eval=(mse + within) * _unit(sample) ** 2, eval_method=method)


def warn_if_it_does_not_hold(known: Decomposition) -> None:
    """Warn where the effects describe the rows of the fit better than others, with the output of which they do most."""
    certificate, outputs = known.certificate, known.schema.outputs
    if certificate.holds is not False or certificate.r2_eval is None:
        return
    worst, *others = certificate.failing
    which = f" of {short(outputs[worst])}" if len(outputs) > 1 else ""
    more = f" (and {count_of(len(others), 'other output')})" if others else ""
    message = Words(
        f"the effects describe these rows better than others: R2{which} is {certificate.r2[worst]:.2f} on these rows "
        f"and {certificate.r2_eval[worst]:.2f} {certificate.eval_method}{more}; more rows",
        what_helps(certificate),
        " would help",
    )
    warn(message, OverfitWarning)


def _independent_rows(sample: Sample) -> float:
    """How many rows of equal weight say as much: leverage and error of a row both grow with its weight."""
    draws = raw_rows(sample)
    return float(draws.weight.sum()) ** 2 / float(draws.squared.sum())


def _unit(sample: Sample) -> FloatArray:
    return np.ones(sample.n_outputs) if sample.scaling is None else sample.scaling.unit
