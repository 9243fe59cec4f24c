"""The record of a selection, round by round: candidates, subsets taken, and the best remaining gain."""

from __future__ import annotations

from dataclasses import dataclass

from exanova.messages import count_of


@dataclass(frozen=True)
class Round:
    """One round of a selection.

    Attributes:
        order: order of the candidates.
        looked_at: number of candidates.
        taken: subsets added.
        functions: functions added.
        rank: rank after the round.
        r2: R2 after the round, all outputs together, if it was computed.
        best_left: largest gain per function among the remaining candidates, as a fraction of the variance (for a lasso,
            the penalty as a fraction of the first).
    """

    order: int
    looked_at: int
    taken: int
    functions: int
    rank: int
    r2: float | None = None
    best_left: float | None = None

    def __str__(self) -> str:
        fit = "" if self.r2 is None else f", R2 {self.r2:.4f}"
        left = "" if self.best_left is None else f", best remaining {self.best_left:.1e}"
        candidates, functions = count_of(self.looked_at, "candidate"), count_of(self.functions, "function")
        return f"order {self.order}: {candidates}, {self.taken:,} taken ({functions}), rank {self.rank:,}{fit}{left}"


@dataclass(frozen=True)
class Trial:
    """One budget tried by ``max_terms="auto"``.

    Attributes:
        budget: largest number of functions.
        functions: functions of the family selected with it, on part of the rows.
        r2: R2 of its fit on the other rows, averaged over the outputs.
    """

    budget: int
    functions: int
    r2: float


@dataclass(frozen=True)
class Selection:
    """How the family of a decomposition was chosen.

    Attributes:
        method: "canonical", "screen" or "lasso".
        budget: largest number of functions.
        rounds: the record of each round.
        stopped: why the selection ended.
        trials: budgets that were tried on part of the rows, for an automatic budget.

    >>> print(Selection("screen", 10, (), "the budget is used up"))
    screen, at most 10 functions: the budget is used up
    """

    method: str
    budget: int | None
    rounds: tuple[Round, ...]
    stopped: str
    trials: tuple[Trial, ...] = ()

    def __str__(self) -> str:
        budget = "no budget" if self.budget is None else f"at most {count_of(self.budget, 'function')}"
        lines = [f"{self.method}, {budget}: {self.stopped}", *(f"  {r}" for r in self.rounds)]
        if self.trials:
            tried = ", ".join(f"{trial.budget:,}: {trial.r2:.4f}" for trial in self.trials)
            lines.append(f"  R2 on rows not used, by budget: {tried}")
        return "\n".join(lines)
