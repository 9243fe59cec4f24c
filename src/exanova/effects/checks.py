"""Checks: each measurement of a result with its tolerance, and what to do if it fails.

The certificate, its notes, the charts and the report read this list. Tolerances of checks are used nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import TYPE_CHECKING

from exanova import tolerances
from exanova.messages import Parameter, Words
from exanova.solve.traits import traits_of

if TYPE_CHECKING:
    from exanova.effects.certificate import Certificate


@dataclass(frozen=True)
class Check:
    """One number that was measured.

    Attributes:
        name: what is checked, in a word or two.
        meaning: what the number is.
        measured: the number.
        tolerance: the largest that passes; ``None`` for a number that is reported without a limit.
        met: whether it passes; ``None`` if it has no limit.
        remedy: what failed and what to do, as a sentence without a full stop; empty unless the check failed.
    """

    name: str
    meaning: str
    measured: float
    tolerance: float | None
    met: bool | None
    remedy: str = ""


def checks_of(certificate: Certificate) -> Iterator[Check]:
    """Every check of a certificate, in the order in which they are shown."""
    yield _orthogonality(certificate)
    if certificate.residual_mean == certificate.residual_mean:  # NaN if the fit is not a least-squares fit
        yield _residual_mean(certificate)
    if certificate.reconstruction == certificate.reconstruction:  # NaN where there were no rows
        yield _reconstruction(certificate)
    yield _normal_equations(certificate)
    if isfinite(certificate.conditioning):
        yield _rank(certificate)


def _judged(name: str, meaning: str, measured: float, tolerance: float, remedy: Callable[[], Words]) -> Check:
    met = bool(measured <= tolerance)
    return Check(name, meaning, measured, tolerance, met, "" if met else remedy())


def _orthogonality(c: Certificate) -> Check:
    def remedy() -> Words:
        return Words(
            f"an effect has a conditional mean of {c.orthogonality:.1e} of the model's spread, above "
            f"{tolerances.ORTHOGONALITY:.1e}; ",
            Parameter("basis", "pure"),
            " is orthogonal on any support",
        )

    meaning = "largest conditional mean of an effect"
    return _judged("orthogonality", meaning, c.orthogonality, tolerances.ORTHOGONALITY, remedy)


def _residual_mean(c: Certificate) -> Check:
    def remedy() -> Words:
        return Words(
            f"the residual has a mean of {c.residual_mean:.1e} of the model's spread in some cell, where a "
            "least-squares fit leaves none; ",
            _more_accurate(c),
        )

    meaning = "largest mean of the residual in a cell"
    return _judged("residual mean", meaning, c.residual_mean, tolerances.RESIDUAL_MEAN, remedy)


def _reconstruction(c: Certificate) -> Check:
    if not c.saturated or c.ridge:  # a ridge leaves a residual by design
        return Check("reconstruction", "largest residual of the fitted part", c.reconstruction, None, None)

    def remedy() -> Words:
        return Words(
            f"the effects sum to the model only within {c.reconstruction:.1e} of its spread; ", _more_accurate(c)
        )

    meaning = "largest error of the sum of the effects"
    return _judged("reconstruction", meaning, c.reconstruction, tolerances.RECONSTRUCTION, remedy)


def _normal_equations(c: Certificate) -> Check:
    """An orthogonal factorisation needs no check of its normal equations; iterations report whether they converged."""
    route, meaning = traits_of(c.route), "residual of the solve"
    step = 1.0 if route.whole else sqrt(c.n_functions)
    tolerance = None if route.orthogonal else step * tolerances.NORMAL_EQUATIONS
    if c.converged:
        return Check("normal equations", meaning, c.residual, tolerance, None if tolerance is None else True)
    remedy = Words(
        f"the solve stopped at a relative residual of {c.residual:.1e} after {c.iterations:,} iterations; ",
        _more_accurate(c),
    )
    return Check("normal equations", meaning, c.residual, tolerance, False, remedy)


def _more_accurate(c: Certificate) -> Words:
    """What to do if the error is too large because of rounding or iterations that have not converged."""
    if traits_of(c.route).ranks:
        return Words(Parameter("route", "dense"), " is more accurate, if it fits in memory")
    # Without a matrix, families with about as many functions as rows, and rare levels, converge slowly.
    return Words(
        "merge rare levels with ",
        Parameter("min_frequency"),
        " or ",
        Parameter("n_bins"),
        ", or use a smaller ",
        Parameter("max_order"),
    )


def _rank(c: Certificate) -> Check:
    smallest = 1.0 / c.conditioning
    tolerance = smallest / tolerances.RANK_GAP
    meaning = "largest direction treated as rounding, relative to the smallest that was kept"
    if not (c.largest_dropped and smallest < c.largest_dropped * tolerances.RANK_GAP):
        return Check("rank", meaning, c.largest_dropped, tolerance, True)
    remedy = Words(
        f"the rank is not clear-cut: a direction of {smallest:.1e} was kept and one of {c.largest_dropped:.1e} "
        "dropped; ",
        Parameter("route", "dense"),
        " separates them better",
    )
    return Check("rank", meaning, c.largest_dropped, tolerance, False, remedy)
