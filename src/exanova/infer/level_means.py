"""The mean of the model at each level of a feature, for comparison with effects under dependence."""

from __future__ import annotations

import numpy as np

from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.phi.operator import Phi
from exanova.typing import FloatArray


def main_cells(family: Family) -> int:
    """Number of cells of the mean and of all main effects, which come first."""
    return int(family.cell_start[sum(len(subset) < 2 for subset in family.subsets)])


def main_means(family: Family, sample: Sample, threads: int = 1) -> FloatArray:
    """(c, m) mean of the model at each cell of the mean and of the main effects, less its overall mean.

    In the units of the model; one pass over the rows for all features.
    """
    mains = family.restricted(sum(len(subset) < 2 for subset in family.subsets))
    sums = Phi(mains, sample, threads).analyse(sample.weighted_values)
    share = np.where(mains.weight > 0, mains.weight / mains.weight[0], np.nan)
    means = sums / share[:, None] - sample.mean
    return np.asarray(means if sample.scaling is None else means * sample.scaling.unit)
