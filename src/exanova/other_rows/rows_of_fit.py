"""Whether rows that should be others are those of the fit: on these, every fit looks as if it held on other rows.

Among as many new rows of the same kind, the share of combinations that the fit has not seen would be about the share of
its own rows that have no equal (Good and Turing). Held-out rows with far fewer are rows of the fit. A row that has the
levels of a row of the fit and other outputs is a new one: it was measured again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from exanova import tolerances
from exanova.data.distinct import hash_rows
from exanova.data.sample import Sample
from exanova.messages import Parameter, Words
from exanova.typing import Codes, FloatArray

ENOUGH_NEW = 10.0
"""New rows that have to be expected before their absence says anything: without a fault it has a chance of e^-10."""

FEW_NEW = 0.1
"""Share of the new rows expected, below which held-out rows are taken for rows of the fit."""


@dataclass(eq=False)
class RowsOfFit:
    """The rows of a fit, and how many of the held-out rows are among them.

    Attributes:
        sample: the rows of the fit.
        seen: held-out rows so far.
        new: those that are not rows of the fit.
    """

    sample: Sample
    seen: float = 0.0
    new: float = 0.0
    _copies: FloatArray = field(init=False, repr=False)
    _hashes: NDArray[np.uint64] = field(init=False, repr=False)
    _order: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sort the rows of the fit."""
        self._copies, hashes = self.sample.copies, hash_rows(self.sample.codes)
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    def add(self, codes: Codes, values: FloatArray, copies: FloatArray | float = 1.0) -> None:
        """Count held-out rows of ``codes`` (d, n), of which each occurs ``copies`` times, with (n, m) ``values``."""
        wanted = hash_rows(codes)
        place = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        known = self._hashes[place] == wanted
        at = self._order[place[known]]
        own = values[known] if self.sample.scaling is None else self.sample.scaling.normalised(values[known])
        alike = np.abs(own - self.sample.values[at]).max(axis=1) <= tolerances.RECONSTRUCTION
        # The mean of several rows of the fit need not be the output of any of them.
        known[known] = alike | (self._copies[at] > 1.0)
        each = np.broadcast_to(copies, len(known))
        self.seen += float(each.sum())
        self.new += float(each[~known].sum())

    @property
    def expected(self) -> float:
        """How many of as many other rows of the same kind would be new."""
        return self.seen * float((self._copies == 1.0).sum() / self._copies.sum())

    @property
    def are_those(self) -> bool:
        """Whether the held-out rows are rows of the fit, all or nearly all of them."""
        return self.expected >= ENOUGH_NEW and self.new <= FEW_NEW * self.expected

    @property
    def message(self) -> Words:
        """What is wrong, and what helps."""
        given, fitted = Parameter("eval_set"), self.seen - self.new
        return Words(
            f"{fitted:,.0f} of the {self.seen:,.0f} rows of ",
            given,
            f" are rows of the fit; of as many others, about {self.expected:,.0f} would be new. On its own rows every "
            "fit looks as if it held on others: give rows that were not fitted, or leave ",
            given,
            " out, and each row is predicted from the others",
        )
