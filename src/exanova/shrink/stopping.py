"""How many functions a budget should have: nested families, each shrunk, judged by rows that chose nothing.

Where all pairs are affordable no budget is needed: the likelihood holds back what the rows do not carry. In high
dimension screening proposes subsets, and in-sample gain always asks for more of them. So it runs on part of the rows
(``Sample.split``); the family after each of its rounds is shrunk on the same rows and judged on the others; and the
smallest family about as good as the best says how many functions to ask for when screening all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exanova.data.sample import NewRows, Sample
from exanova.phi.operator import Phi
from exanova.progress import Progress
from exanova.shrink.fit import fit_family
from exanova.solve.request import Request
from exanova.typing import FloatArray, Subset

AS_GOOD = 0.002
"""Share of the variance by which a family may be worse than the best and still be preferred for being smaller."""


def held_out_errors(
    sample: Sample, judges: Sample, request: Request, families: Sequence[tuple[Subset, ...]], progress: Progress
) -> FloatArray:
    """(F, m) mean squared errors, on the rows of ``judges``, of the shrunken fit of each family to ``sample``.

    Both have the same codes. A cell that ``sample`` never saw adds nothing.
    """
    rows, out = NewRows(judges.codes.astype(np.int32)), []
    for family in families:
        found = fit_family(sample, request, family, progress)
        fitted = Phi(found.family, rows, request.threads).synthesise(found.values)
        out.append(judges.probability @ (judges.values - fitted) ** 2)
    return np.array(out)


def where_to_stop(errors: FloatArray, variance: FloatArray) -> int:
    """Number of the smallest family that is about as good as the best: ``errors`` (F, m), ``variance`` (m,).

    >>> where_to_stop(np.array([[0.5], [0.2], [0.1], [0.0999], [0.12]]), np.array([1.0]))
    2
    """
    varying = variance > 0
    if not varying.any():
        return 0
    relative = (errors[:, varying] / variance[varying]).mean(axis=1)
    return int(np.flatnonzero(relative <= relative.min() + AS_GOOD)[0])
