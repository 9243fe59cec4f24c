"""Why a fit is not shrunk although that was requested: the request, its size, or the memory it would need."""

from __future__ import annotations

import numpy as np

from exanova.basis.functions import too_large_for_tables
from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.design.memory import readable
from exanova.shrink import cost
from exanova.shrink.continued import continuation_bytes
from exanova.solve.plan import Plan
from exanova.solve.price import Load
from exanova.solve.request import Request
from exanova.solve.survey import load_of

LARGEST = 15_000
"""Functions beyond which a factorisation takes minutes."""

LARGEST_LEVELS = 3000
"""Levels of a feature beyond which their covariance, a square matrix, takes too long."""

MANY_PER_FUNCTION = 10
"""Rows for each function from which the exact fit is preferred where a pair has too many cells for a table."""


def why_not(sample: Sample, request: Request, plan: Plan, family: Family | None) -> str | None:
    """Why a fit is not shrunk although that was requested; ``None`` where it is."""
    reason = never_shrunk(request)
    if reason is not None:
        return reason
    if family is None:
        return f"off: every combination of levels occurs, and {plan.functions:,} functions are too many to shrink"
    reason = _why_too_large(sample, plan, family)
    if reason is not None:
        return reason
    needed = bytes_of(plan.functions, family, load_of(sample, sample.n_outputs))
    if needed > request.memory_limit:
        return (
            f"off: shrinking {plan.functions:,} functions needs about {readable(needed)}, the memory limit is "
            f"{readable(request.memory_limit)}"
        )
    return None


def bytes_of(functions: int, family: Family, load: Load) -> int:
    """Bytes of a shrunken fit of a family."""
    size = cost.side(load.distinct, functions, bool(too_large_for_tables(family).any()))
    own = cost.shrinking(functions, family, load) + cost.of_clusters(size, load)
    return own + continuation_bytes(family, load.outputs)


def _why_too_large(sample: Sample, plan: Plan, family: Family) -> str | None:
    """Why a family is too large to be shrunk; ``None`` where it is not."""
    levels, r, q = int(family.sizes.max(initial=0)), sample.n_rows, plan.functions
    if levels > LARGEST_LEVELS:
        return f"off: a feature has {levels:,} levels, more than the {LARGEST_LEVELS:,} that a shrunken fit allows"
    large = too_large_for_tables(family)
    if any(len(family.subsets[s]) > 2 for s in np.flatnonzero(large)):
        return "off: a subset has too many cells for a table of its functions"
    if large.any() and r > MANY_PER_FUNCTION * q:
        return "off: a pair has too many cells for a table of its functions, and there are many rows per function"
    if cost.way(r, q, bool(large.any())) == "functions" and q > LARGEST:
        return f"off: {q:,} functions on {r:,} rows are too many for a shrunken fit"
    return None


def never_shrunk(request: Request) -> str | None:
    """Why no fit of this kind is shrunk."""
    if request.basis != "pure" or request.ties != "share" or request.ridge:
        return "off: shrinkage needs basis='pure', ties='share' and no ridge"
    return None if request.sampled else "off: the rows are the complete population"
