"""Standard errors of a decomposition: computed on first use and cached."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exanova.data.sample import Sample
from exanova.design.family import Family
from exanova.effects.effect import FEW_ROWS
from exanova.errors import InputError
from exanova.infer.bands import quantile, simultaneous, student
from exanova.infer.error_record import Errors
from exanova.infer.fitted_sample import FittedSample
from exanova.infer.freedom import cell_freedom
from exanova.infer.identified import Dependences, certain_part, determined
from exanova.infer.level_means import main_means
from exanova.infer.linear import LinearErrors
from exanova.infer.posterior_errors import PosteriorErrors
from exanova.infer.refits import RefitErrors, refit
from exanova.infer.sharing import Sharing
from exanova.infer.stored_errors import MOST_NUMBERS, StoredErrors, check_keepable, numbers_of, packed, unpacked
from exanova.infer.units import raw_rows, smallest_stratum, why_lonely
from exanova.messages import Parameter
from exanova.progress import Progress
from exanova.typing import FloatArray

NOT_IN_FILE = (
    "the file of this decomposition does not hold the covariances of its effects (save() with covariances=True, or "
    "exanova explain with --covariances, keeps them)"
)
"""Why effects read from a file have no covariances."""

Engine: TypeAlias = LinearErrors | RefitErrors | PosteriorErrors | StoredErrors
"""Methods for standard errors."""

CHEAP_WORK = 1e10
"""Multiplications up to which standard errors are computed by default: a fraction of a second."""


class Uncertainty:
    """Standard errors of one decomposition, in the units of the model.

    A decomposition read from a file has no rows; it only has the standard errors computed before saving.
    """

    def __init__(
        self,
        family: Family,
        values: FloatArray,
        fitted: FittedSample | None,
        stored: Mapping[str, NDArray[np.float64]] | None = None,
        summary: Errors | None = None,
        unique: bool | None = None,
        shared: frozenset[int] = frozenset(),
    ) -> None:
        self.family, self._values, self._fitted = family, values, fitted
        self._stored = dict(stored or {})
        if unique is None and "identified" in self._stored:
            shared = frozenset(np.flatnonzero(self._stored["identified"] == 0).tolist())
            unique = not shared
        self._sharing = Sharing(family, fitted, unique, shared)
        self._engine: Engine | None = None
        self._asked: tuple[str, int, int] = ("", 0, 0)
        self.summary = summary

    @property
    def fitted(self) -> FittedSample:
        """The rows; an error if there are none to compute standard errors from."""
        if self._fitted is None:
            held = "has the standard errors of its effects" if "stderr" in self._stored else "has no standard errors"
            raise InputError(
                f"this decomposition was read from a file, which {held}, and files contain no rows, which are needed "
                "here",
                remedy=[
                    "Use the fitted object instead; for standard errors of effects, call errors() on it before save(), "
                    "or save it with ",
                    Parameter("covariances", True),
                ],
            )
        if self._fitted.whole:
            raise InputError(
                f"there are no standard errors: {self._fitted.whole}, so that these rows are the whole population, not "
                "a sample",
                remedy=["Use ", Parameter("sampled", True), " if they are a sample from a larger population"],
            )
        return self._fitted

    @property
    def known(self) -> bool:
        """Whether standard errors have been computed."""
        return self._engine is not None or "stderr" in self._stored

    @property
    def computed(self) -> bool:
        """Whether standard errors with their covariances are available, or can be computed."""
        return self._engine is not None or "stderr" not in self._stored

    @property
    def cheap(self) -> bool:
        """Whether standard errors are known or cheap to compute."""
        if self.known:
            return True
        fitted = self._fitted
        if fitted is None or fitted.whole or (fitted.why_not_linear and fitted.posterior is None):
            return False
        cells, rows = float(self.family.n_cells), float(fitted.sample.codes.shape[1])
        return min(cells, rows) ** 2 * max(cells, rows) <= CHEAP_WORK and smallest_stratum(raw_rows(fitted.sample)) > 1

    @property
    def lonely(self) -> str:
        """Why a stratum has too few units for standard errors, in words; empty where all have enough."""
        if self._fitted is None or self._fitted.whole or self.known:
            return ""
        return why_lonely(raw_rows(self._fitted.sample))

    def compute(self, method: Literal["linear", "bootstrap"], n_refits: int, seed: int, progress: Progress) -> Errors:
        """Compute standard errors, or return the existing ones if they were computed in the same way."""
        n_refits = 0 if method == "linear" else n_refits
        asked = (method, n_refits, seed if n_refits else 0)
        if self.summary is not None and (self._asked == asked or (self._fitted is None and method == "linear")):
            return self.summary  # a file contains what was computed before saving
        fitted, started = self.fitted, time.perf_counter()
        if method == "bootstrap":
            self._engine = refit(fitted, self.family, n_refits, seed, progress)
        elif fitted.posterior is not None:
            self._engine = PosteriorErrors.of(fitted, self.family, fitted.posterior)
        else:
            self._engine = LinearErrors.of(fitted, self.family)
        self._asked = asked
        self._stored = {name: kept for name, kept in self._stored.items() if name == "means"}
        # The Gram matrix was needed anyway: effects it cannot distinguish have no interval.
        shared = self._sharing.subsets(however_long=isinstance(self._engine, LinearErrors))
        few = int((self.rows < FEW_ROWS).sum())
        unit, units = fitted.units
        stderr = self._engine.stderr  # computed here, so that the measured time includes it
        assert stderr.shape == self._values.shape
        self.summary = Errors(
            "posterior" if isinstance(self._engine, PosteriorErrors) else method,
            fitted.kind,
            unit,
            units,
            n_refits,
            len(shared),
            few,
            time.perf_counter() - started,
        )
        return self.summary

    @property
    def engine(self) -> Engine:
        """The computed standard errors; in closed form unless refits were requested."""
        if self._engine is None:
            if self._fitted is None and "covariance" in self._stored:
                self._engine = StoredErrors(unpacked(self._stored["covariance"], self.family.n_cells))
            elif "stderr" in self._stored:
                raise InputError(
                    "this decomposition was read from a file: it has the standard errors of its effects, but not "
                    "their covariances, which need the rows. Use the fitted object instead",
                    remedy=["or save it with ", Parameter("covariances", True)],
                )
            else:
                self.compute("linear", 0, 0, Progress(enabled=False))
        assert self._engine is not None
        return self._engine

    @property
    def unit(self) -> FloatArray:
        """(m,) the unit of what the engine computes, per output."""
        return np.ones(self.outputs) if self._fitted is None else self.fitted.unit

    @property
    def stderr(self) -> FloatArray:
        """(cells, m) standard errors, NaN if an effect is not identified."""
        if "stderr" in self._stored:
            return self._stored["stderr"]
        out = self.engine.stderr * self.fitted.unit
        for s in self.without_stderr:
            out[self.family.cells_of(s)] = np.nan
        self._stored["stderr"] = out
        return out

    @property
    def rows(self) -> FloatArray:
        """(cells,) number of rows in every cell, the effective number if weights are probabilities; NaN if unknown."""
        if "rows" not in self._stored:
            weight, fitted = self.family.weight, self._fitted
            if (weight == np.floor(weight)).all() and (fitted is None or fitted.kind == "frequency"):
                self._stored["rows"] = weight.copy()
            elif fitted is None or fitted.whole:  # probabilities do not count rows
                self._stored["rows"] = np.full(len(weight), np.nan)
            else:
                self._stored["rows"] = fitted.rows_of_cells(self.family)
        return self._stored["rows"]

    def to_store(self, covariances: bool | None) -> dict[str, FloatArray]:
        """Arrays to save in a file: those already computed or cheap to compute, or all with ``covariances``."""
        if covariances:
            check_keepable(self.why_none, self.outputs, self.family.n_cells, self._fitted)
        arrays = {"rows": self.rows} | ({} if self.main_means is None else {"means": self.main_means})
        if not (self.cheap or covariances):
            return arrays
        arrays["stderr"] = self.stderr
        arrays["freedom"] = self.freedom
        shared = self._sharing.subsets()
        if self._sharing.unique is not None:
            arrays["identified"] = self._sharing.as_array()
        if shared and (self._fitted is not None or "certain" in self._stored):
            arrays["certain"] = np.stack([self.certain_of(s) for s in range(len(self.family.subsets))])
        if covariances is not False and "covariance" in self._stored:
            arrays["covariance"] = self._stored["covariance"]
        elif self._fitted is not None and (covariances or (covariances is None and self.keeps_covariances())):
            arrays["covariance"] = packed(self.all_cells)
        return arrays

    def keeps_covariances(self, work: float = CHEAP_WORK) -> bool:
        """Whether the covariance of all cells is small, and known or computed by at most so many multiplications."""
        if self._fitted is None or self.why_none or not self.cheap:
            return self._fitted is None and "covariance" in self._stored
        cells, rows = self.family.n_cells, self._fitted.sample.n_rows
        known = self._engine is not None and self._engine.has_all_cells
        small = numbers_of(self.outputs, cells) <= MOST_NUMBERS
        return small and (known or self.outputs * rows * float(cells) ** 2 <= work)

    @property
    def main_means(self) -> FloatArray | None:
        """(c, m) mean of the model at each level of every main effect, less its overall mean; ``None`` if unknown."""
        if "means" not in self._stored and self._fitted is not None:
            self._stored["means"] = main_means(self.family, self._fitted.sample, self._fitted.request.threads)
        return self._stored.get("means")

    def means_of(self, s: int) -> FloatArray:
        """(c, m) mean of the model at each level of a main effect; NaN for other effects, or if unknown."""
        own, means = self.family.cells_of(s), self.main_means
        if means is None or own.stop > len(means):
            return np.full((own.stop - own.start, self.outputs), np.nan)
        return np.asarray(means[own] + self._values[0])

    def stderr_of(self, s: int) -> FloatArray:
        """(c, m) standard errors of one effect."""
        return self.stderr[self.family.cells_of(s)].copy()

    def rows_of(self, s: int) -> FloatArray:
        """(c,) rows in the cells of one effect."""
        return self.rows[self.family.cells_of(s)].copy()

    def identified(self, s: int) -> bool | None:
        """Whether the rows determine an effect; ``None`` if the route of the fit did not determine that."""
        if s in self._sharing.subsets():
            return False
        return None if self._sharing.unique is None and len(self.family.subsets[s]) else True

    def has_stderr(self, s: int) -> bool:
        """Whether an effect has standard errors."""
        return s not in self.without_stderr

    @property
    def without_stderr(self) -> frozenset[int]:
        """Numbers of the subsets that have no standard errors: not determined, and not shrunk.

        Where effects are shrunk, the prior determines how those that share are divided, and the posterior how certain
        that is.
        """
        return frozenset() if self.is_shrunken else self._sharing.subsets()

    def certain_of(self, s: int) -> FloatArray:
        """(m,) norm of the part of an effect that no other subset can express."""
        values = self._values[self.family.cells_of(s)]
        if s not in self._sharing.subsets():
            return np.asarray(np.sqrt(self.family.probability_of(s) @ values**2))
        if "certain" in self._stored:
            return np.array(self._stored["certain"][s])
        return certain_part(self.family, self._dependences, s, values)

    @cached_property
    def _dependences(self) -> Dependences:
        dependences = self._sharing.dependences
        if dependences is None:
            raise InputError(
                "the dependences among subsets are not saved in files unless errors() was called before save(); use "
                "the fitted object."
            )
        return dependences

    @property
    def freedom(self) -> FloatArray:
        """(cells,) degrees of freedom of the standard error of every cell."""
        if "freedom" not in self._stored:
            if self._fitted is not None:
                engine = self.engine
                free = engine.free if isinstance(engine, LinearErrors | PosteriorErrors) else None
                self._stored["freedom"] = cell_freedom(self.fitted, self.family, free)
            else:  # a file of an earlier version counts clusters or rows
                counted = self._stored.get("clusters", self.rows)
                self._stored["freedom"] = np.maximum(np.where(np.isnan(counted), np.inf, counted) - 1.0, 1.0)
        return self._stored["freedom"]

    def reach_of(self, s: int, level: float) -> FloatArray:
        """(c, 1) half-width of an interval of each cell, in standard errors: Student's t."""
        return student(level, self.freedom[self.family.cells_of(s)])[:, None]

    def covariance_of(self, s: int) -> FloatArray:
        """(m, c, c) covariances of the values of one effect."""
        return np.asarray(self.engine.block(self.family.cells_of(s)) * self.unit[:, None, None] ** 2)

    def critical_of(self, s: int, level: float) -> FloatArray:
        """(c, m) half-width of a simultaneous band over all cells of an effect, in standard errors.

        Each as much wider than for normal deviates as the interval of that cell alone.
        """
        blocks = self.engine.block(self.family.cells_of(s))
        critical = np.array([simultaneous(block, level) for block in blocks])
        return np.asarray(critical * self.reach_of(s, level) / quantile(level))

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self._values.shape[1])

    @property
    def model_variance(self) -> FloatArray:
        """(m,) variance of the model as given, in normalised units."""
        sample = self.fitted.sample
        within = 0.0 if sample.within is None else sample.within
        mean = sample.probability @ sample.values
        return np.asarray(sample.probability @ ((sample.values - mean) ** 2 + within))

    @property
    def shares(self) -> bool:
        """Whether some effects have no standard errors, because they are not identified."""
        return bool(self.without_stderr)

    @property
    def has_all_cells(self) -> bool:
        """Whether the covariance of all cells has been computed."""
        return self.engine.has_all_cells

    @property
    def all_cells(self) -> FloatArray:
        """(m, cells, cells) covariance of all values."""
        return np.asarray(self.engine.all_cells * self.unit[:, None, None] ** 2)

    def linear_stderr(self, weights: FloatArray) -> FloatArray:
        """(f, m) standard errors of sums of effects times ``weights`` (cells, f); NaN if they are not identified."""
        engine, unit = self.engine, self.unit
        variances = np.stack([engine.variances(o, weights) for o in range(self.outputs)], axis=1)
        out = np.sqrt(np.maximum(variances, 0.0)) * unit  # rounding can make one of zero negative
        out[~self.determined(weights)] = np.nan
        return np.asarray(out)

    @property
    def knows_dependences(self) -> bool:
        """Whether it is known which sums of effects are identified; not from files with effects that are not."""
        return not self.without_stderr or self._fitted is None or self._sharing.dependences is not None

    @property
    def why_none(self) -> str:
        """Why there are no covariances of effects, in words; empty where they can be computed."""
        if self._fitted is None:
            known = "covariance" in self._stored
            return "" if known else NOT_IN_FILE
        if self._fitted.whole:
            return f"{self._fitted.whole}, so that the rows of the fit are the whole population"
        if self._engine is None and self._fitted.why_not_linear and self._fitted.posterior is None:
            return f"with {self._fitted.why_not_linear} they have standard errors after errors(method='bootstrap') only"
        return ""

    @property
    def is_shrunken(self) -> bool:
        """Whether the effects of the fit are shrunk."""
        if self._fitted is None:
            return self.summary is not None and self.summary.method == "posterior"
        return self._fitted.posterior is not None

    @property
    def is_whole(self) -> bool:
        """Whether the rows of the fit are known to be the complete population."""
        return self._fitted is not None and bool(self._fitted.whole)

    @property
    def sample(self) -> Sample | None:
        """The rows of the fit, if they are there."""
        return None if self._fitted is None else self._fitted.sample

    def determined(self, weights: FloatArray) -> NDArray[np.bool_]:
        """(f,) whether sums of effects times ``weights`` (cells, f) are identified."""
        missing = self.without_stderr
        if not missing:
            return np.ones(weights.shape[1], dtype=bool)
        if self._fitted is None:  # files hold no dependences: what touches an effect that is not identified
            shared = np.zeros(len(weights), dtype=bool)
            for s in missing:
                shared[self.family.cells_of(s)] = True
            return np.asarray(~(weights[shared] != 0).any(axis=0))
        return determined(self.family, self._dependences, weights)
