"""What a selection looked at, took and left, round by round."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Round:
    """One round of a selection.

    Attributes:
        order: size of the subsets looked at.
        looked_at: candidates.
        taken: subsets added.
        functions: functions added.
        rank: rank after the round.
        r2: R2 after the round, all outputs together, where it was looked at.
        best_left: largest gain per function among what was not taken, as a share of the variance (for a lasso the
            penalty, as a share of the first).
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
        left = "" if self.best_left is None else f", left {self.best_left:.1e}"
        return (
            f"order {self.order}: looked at {self.looked_at:,}, took {self.taken:,} ({self.functions:,} functions), "
            f"rank {self.rank:,}{fit}{left}"
        )


@dataclass(frozen=True)
class Selection:
    """How the family of a decomposition was chosen.

    Attributes:
        method: "canonical", "screen" or "lasso".
        budget: functions allowed.
        rounds: what each round looked at, took and left.
        stopped: why it ended.

    >>> print(Selection("screen", 10, (), "the budget is used up"))
    screen, at most 10 functions: the budget is used up
    """

    method: str
    budget: int | None
    rounds: tuple[Round, ...]
    stopped: str

    def __str__(self) -> str:
        budget = "no budget" if self.budget is None else f"at most {self.budget:,} functions"
        return "\n".join([f"{self.method}, {budget}: {self.stopped}", *(f"  {r}" for r in self.rounds)])
