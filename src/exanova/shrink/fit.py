"""From a sample and a family to the shrunken decomposition: components, posterior, and what is told about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exanova.basis.tables import Basis, build_basis
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.progress import Progress
from exanova.shrink.components import Components, choose_components
from exanova.shrink.posterior import Posterior, Prior, effects_on_cells, make_prior, posterior
from exanova.shrink.prior import level_kernel, row_kernels
from exanova.solve.evidence import Shrinkage, Solution, Solved
from exanova.solve.plan import Plan
from exanova.solve.request import Request
from exanova.typing import FloatArray

LIKELIHOOD_ROWS = 1000
"""Distinct rows the likelihood is maximised on; more are drawn at random from."""

LARGEST = 60_000_000
"""Rows times functions up to which the functions are written down at the rows: half a gigabyte."""


def why_not(sample: Sample, request: Request, plan: Plan, index: Family | None) -> str | None:
    """Why a fit is not shrunk although that was asked for; ``None`` where it is."""
    if request.basis != "pure" or request.ties != "share" or request.ridge or request.selection:
        return "off: shrinkage goes with basis='pure', ties='share' and no ridge or budget"
    if index is None or not request.sampled:
        return "off: the rows are all there is"
    if sample.codes.shape[1] * plan.functions > LARGEST or plan.route == "matrix-free":
        return f"off: {sample.codes.shape[1]:,} rows of {plan.functions:,} functions are more than a shrunken fit holds"
    return None


def fit_shrunk(sample: Sample, request: Request, plan: Plan, index: Family, progress: Progress) -> Solved:
    """Decompose with effects shrunk to what the rows can carry."""
    p = sample.probability
    kernels = {
        subset[0]: level_kernel(index.probability_of(s), request.ordered[subset[0]] if request.ordered else 0)
        for s, subset in enumerate(index.subsets)
        if len(subset) == 1
    }
    progress.phase("variance components")
    components = _components(sample, request, index, kernels)
    progress.phase("functions")
    basis = build_basis(index)
    prior = make_prior(index, basis, kernels)
    rows = prior.on_rows(index, sample.codes)
    progress.phase("posterior")
    found = [posterior(index, prior, rows, y, p, c) for y, c in zip(sample.values.T, components, strict=True)]
    shrinkage = Shrinkage(
        described(components),
        tuple(float(np.mean([f.effective[k] for f in found])) for k in sorted(prior.total)),
        np.stack([f.left_out for f in found], axis=1),
        np.stack([f.variance for f in found], axis=1),
    )
    return replace(_decomposition(sample, plan, index, basis, prior, found, components), shrinkage=shrinkage)


def described(components: tuple[Components, ...]) -> str:
    """Variance components in words, as shares of the variance that the prior expects of the first output.

    >>> described((Components((1, 2), (3.0, 0.5), 0.5, True, 100),))
    'order 1 75 %, order 2 12 %, residual 12 % of the prior variance; likelihood maximised on 100 rows'
    """
    first = components[0]
    total = sum(first.variance) + first.residual or 1.0
    shares = [f"order {k} {100 * v / total:.0f} %" for k, v in zip(first.orders, first.variance, strict=True)]
    shares.append(f"residual {100 * first.residual / total:.0f} %")
    found = "maximised" if all(c.converged for c in components) else "NOT maximised"
    more = f" (output 1 of {len(components)})" if len(components) > 1 else ""
    return f"{', '.join(shares)} of the prior variance{more}; likelihood {found} on {first.rows:,} rows"


def _components(
    sample: Sample, request: Request, index: Family, kernels: dict[int, FloatArray]
) -> tuple[Components, ...]:
    """Variance components of every output, on rows drawn where there are many."""
    r = sample.codes.shape[1]
    chosen = np.arange(r)
    if r > LIKELIHOOD_ROWS:
        chosen = np.sort(np.random.default_rng(request.random_state).choice(r, LIKELIHOOD_ROWS, replace=False))
    between = row_kernels(sample.codes[:, chosen], kernels, index.subsets)
    p = sample.probability[chosen]
    found = [choose_components(y, p, between) for y in sample.values[chosen].T]
    return tuple(found)


def _decomposition(
    sample: Sample,
    plan: Plan,
    index: Family,
    basis: Basis,
    prior: Prior,
    found: list[Posterior],
    components: tuple[Components, ...],
) -> Solved:
    means = sample.probability @ sample.values
    pairs = zip(found, means, strict=True)
    values = np.stack([effects_on_cells(index, prior, f.coordinates, float(mean)) for f, mean in pairs], axis=1)
    orders = index.layout.order
    solution = Solution(
        coefficients=np.zeros((0, sample.values.shape[1])),
        kept=np.ones(basis.n_functions, dtype=bool),
        rank_by_order=tuple(int(basis.dimensions[orders == k].sum()) for k in range(int(orders.max()) + 1)),
        smallest_kept=1.0,
        largest_dropped=0.0,
        null=np.zeros((basis.n_functions, 0)),
        iterations=1,
        residual=0.0,
        method="posterior mean under variance components",
        converged=all(c.converged for c in components),
        rank_known=False,
    )
    return Solved(index, values, plan, solution, basis, False)
