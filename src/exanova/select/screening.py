"""Screening: in each round, compute the gain of every candidate on the residual and take the best.

All pairs are candidates. Higher orders follow heredity: a subset is a candidate when all of its subsets with one
feature fewer were taken, and a triple also when two of its three pairs were. The missing pairs of the best such triples
are taken before the first triple, because families are closed downward and lower orders come first. Rounds of one
order end when its part of the budget is used up or the best gain falls below the threshold.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from exanova.data.sample import Sample
from exanova.design.family import extend
from exanova.design.subsets import canonical_key
from exanova.messages import Parameter, Words
from exanova.progress import Progress
from exanova.select.gains import Gains, PairScreen, SubsetScreen, cost
from exanova.select.growing_fit import GrowingFit
from exanova.select.record import Round, Selection
from exanova.solve.request import Request
from exanova.typing import FloatArray, IntArray, Subset

ROUNDS = 6
"""Rounds into which an order's part of the budget is divided; each uses the residual after the previous one."""

CANDIDATE_WORK = 2_000_000_000
"""Rows times candidate subsets of order three and higher that one round may evaluate."""


def screen(sample: Sample, request: Request, fit: GrowingFit, budget: int, progress: Progress) -> Selection:
    """Add subsets to ``fit``, which has the main effects, up to ``budget`` functions."""
    highest = len(sample.sizes) if request.max_order is None else request.max_order
    state = _Screen(sample, request, fit, budget, progress)
    stopped: str = Words("main effects only: ", Parameter("max_order", 1))
    for order in range(2, highest + 1):
        # Higher orders may need room: half of the remaining budget is used first, then the two orders compete.
        limit = budget if order == highest else fit.rank + (budget - fit.rank + 1) // 2
        stopped = state.run_order(order, limit)
        if order < highest and state.taken_at(order) and fit.rank < budget:
            limit = fit.rank + state.share_of(order, budget - fit.rank)
            stopped = state.run_order(order, limit) if limit > fit.rank else stopped
        if fit.rank < budget and order > 2 and not state.taken_at(order):
            # No subset of this order gains enough: its part of the budget goes to the order below.
            stopped = state.run_order(order - 1, budget)
        if fit.rank >= budget or not state.taken_at(order):
            break
    return Selection("screen", budget, tuple(state.rounds), stopped)


class _Screen:
    """The state of a screening: subsets taken, and the record of each round."""

    def __init__(self, sample: Sample, request: Request, fit: GrowingFit, budget: int, progress: Progress) -> None:
        self._sample, self._request, self._fit, self._progress = sample, request, fit, progress
        self._allowed = None if request.candidates is None else set(request.candidates)
        self._taken: set[Subset] = {s for s in fit.family.subsets if s}
        self._pairs: PairScreen | None = None
        self._open: NDArray[np.bool_] | None = None
        self._listed = SubsetScreen(sample, request.threads)
        self._variance = float(self._energy(sample.values - sample.probability @ sample.values).sum())
        self.rounds: list[Round] = []

    def taken_at(self, order: int) -> bool:
        """Whether any subset of this order was taken."""
        return any(len(s) == order for s in self._taken)

    def share_of(self, order: int, room: int) -> int:
        """How many of ``room`` functions go to this order when its candidates compete with those of the next order."""
        own = self._gains(order)
        heirs = self._heirs(order + 1, parts=2 if order == 2 else order + 1)
        following = self._listed_gains(heirs, self._fit.residual())
        energy = np.concatenate([own.energy, following.energy])
        functions = np.concatenate([own.functions, following.functions])
        is_own = np.arange(len(energy)) < len(own.energy)
        ranked = Gains([], energy, functions).best_first()
        inside = ranked[np.cumsum(functions[ranked]) <= room]
        return int(functions[inside[is_own[inside]]].sum())

    def run_order(self, order: int, limit: int) -> str:
        """Run rounds of one order up to ``limit`` functions; returns why they ended."""
        if order == 3 and not self.taken_at(3):
            self._take_lacking_pairs(limit)
        start = self._fit.rank
        for k in range(1, 2 * ROUNDS):  # later rounds only replace functions that turned out to be redundant
            self._progress.phase(f"screening subsets of order {order}, round {k}")
            goal = start + (limit - start) * min(k, ROUNDS) // ROUNDS
            if k > 1 and goal <= self._fit.rank < limit:
                continue  # the last subset of a round was larger than its part of the budget
            gains = self._gains(order)
            chosen = self._choose(gains, goal - self._fit.rank, limit - self._fit.rank)
            if len(chosen):
                self._take([gains.subsets[k] for k in chosen])
            self._record(order, gains, chosen)
            if not len(chosen) and goal > self._fit.rank:
                return self._why(gains)
            if self._fit.rank >= limit:
                break
        return "the budget is used up" if self._fit.rank >= limit else "the largest number of rounds was reached"

    def _gains(self, order: int) -> Gains:
        residual = self._fit.residual()
        if order == 2:
            self._pairs = self._pairs or PairScreen(
                self._sample.codes, self._sample.probability, self._sample.sizes, self._request.threads
            )
            return self._pairs.gains(residual).only(self._open_pairs())
        return self._listed_gains(self._heirs(order, parts=order), residual)

    def _open_pairs(self) -> IntArray:
        """Numbers of the pairs that have not been taken."""
        assert self._pairs is not None
        if self._open is None:
            self._open = np.full(len(self._pairs.pairs), self._allowed is None)
            self._open[self._pairs.numbers(s for s in self._allowed or () if len(s) == 2)] = True
        self._open[self._pairs.numbers(s for s in self._taken if len(s) == 2)] = False
        return np.flatnonzero(self._open)

    def _listed_gains(self, candidates: list[Subset], residual: FloatArray) -> Gains:
        if not candidates:
            return Gains([], np.zeros(0), np.zeros(0, dtype=np.int64))
        sample = self._sample
        prefixes = sorted({s[:-1] for s in candidates} - set(self._fit.family.position), key=canonical_key)
        family = extend(self._fit.family, prefixes, sample.codes, sample.mass, self._request.threads)
        return self._listed.gains(family, candidates, residual)

    def _heirs(self, order: int, parts: int) -> list[Subset]:
        """Subsets with at least ``parts`` parts (one feature fewer) taken, most first, as many as can be evaluated."""
        by_core: dict[Subset, list[int]] = {}
        for part in (s for s in self._taken if len(s) == order - 1):
            for i in part:
                by_core.setdefault(tuple(j for j in part if j != i), []).append(i)
        together: Counter[Subset] = Counter()
        for core, ends in by_core.items():
            for a, b in combinations(sorted(ends), 2):
                together[tuple(sorted((*core, a, b)))] += 1
        # If t parts were taken, t (t - 1) / 2 pairs of them have a common core.
        enough = [s for s, count in together.items() if count >= comb(parts, 2)]
        ranked = sorted(enough, key=lambda s: (-together[s], canonical_key(s)))
        most = max(1, CANDIDATE_WORK // self._sample.codes.shape[1])
        return [s for s in ranked if s not in self._taken and self._permitted(s)][:most]

    def _take_lacking_pairs(self, limit: int) -> None:
        """Take the missing pairs of the best triples that have two pairs."""
        gains = self._listed_gains(self._heirs(3, parts=2), self._fit.residual())
        room = limit - self._fit.rank
        chosen = [gains.subsets[k] for k in self._choose(gains, room, room)]
        parts: set[Subset] = {p for s in chosen for p in combinations(s, 2)}
        lacking = sorted(parts - self._taken, key=canonical_key)
        if lacking:
            gains = self._listed_gains(lacking, self._fit.residual())
            self._take(lacking)
            self._record(2, gains, np.arange(len(lacking)))

    def _permitted(self, subset: Subset) -> bool:
        return self._allowed is None or subset in self._allowed

    def _choose(self, gains: Gains, wanted: int, room: int) -> IntArray:
        """Numbers of the best candidates for ``wanted`` functions, missing parts included, at most ``room``."""
        chosen: list[int] = []
        added: set[Subset] = set()
        floor = self._request.min_gain * self._variance
        for k in gains.in_turn():
            if wanted <= 0 or gains.energy[k] < floor * gains.functions[k]:
                break
            subset = gains.subsets[k]
            parts = [p for p in combinations(subset, len(subset) - 1) if p not in self._taken and p not in added]
            price = int(gains.functions[k]) + sum(cost(self._sample.sizes, p) for p in parts if len(subset) > 2)
            if price > room:
                continue
            chosen.append(k)
            added.update(parts)
            room -= price
            wanted -= price
        return np.array(chosen, dtype=np.int64)

    def _take(self, chosen: list[Subset]) -> None:
        self._fit.add(sorted(chosen, key=canonical_key))
        self._taken.update(chosen)

    def _record(self, order: int, gains: Gains, chosen: IntArray) -> None:
        left = gains.worth()
        left[chosen] = 0.0
        unexplained = float(self._energy(self._fit.residual()).sum())
        variance = self._variance or 1.0
        self.rounds.append(
            Round(
                order=order,
                looked_at=len(gains.subsets),
                taken=len(chosen),
                functions=int(gains.functions[chosen].sum()),
                rank=self._fit.rank,
                r2=1.0 - unexplained / variance,
                best_left=float(left.max(initial=0.0)) / variance,
            )
        )

    def _why(self, gains: Gains) -> str:
        best = next(gains.in_turn(), None)
        if best is None:
            return "no candidates remain"
        if gains.energy[best] < self._request.min_gain * self._variance * gains.functions[best]:
            threshold = Parameter("min_gain", self._request.min_gain)
            return Words("the best remaining gain per function is below ", threshold, " of the variance")
        return "no remaining candidate fits the budget"

    def _energy(self, values: FloatArray) -> FloatArray:
        return np.asarray(self._sample.probability @ values**2)
