"""``Request``: the parameters of a fit, without the data, and the subsets they specify."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Literal

from exanova.basis.names import BasisName
from exanova.design.memory import readable
from exanova.design.subsets import by_order, listable
from exanova.errors import MemoryLimitError
from exanova.messages import Parameter
from exanova.solve.traits import RouteName
from exanova.typing import Subset

SelectionName = Literal["screen", "canonical", "lasso"]
"""What ``selection=`` may be."""


@dataclass(frozen=True)
class Request:
    """The parameters of a fit, without the data.

    Attributes:
        max_order: largest order, ``None`` for every order until rank r is reached.
        subsets: an explicit family, closed downward, instead of an order.
        max_terms: a budget of functions, the intercept included.
        auto_terms: whether the budget is to be found, ``max_terms`` being the largest to try.
        selection: how the budget is spent: "canonical", "screen" or "lasso".
        candidates: subsets a selection may take; ``None`` for all up to ``max_order``.
        min_gain: screening stops when the best remaining gain per function is below this fraction of the variance.
        ridge: added to the diagonal of Gamma except for the intercept; 0 keeps the result exact.
        random_state: seed of the split used to choose the lasso penalty, and of rows drawn for a likelihood.
        shrinkage: whether effects are shrunk.
        sampled: whether the rows are a sample from a larger population, not all of it.
        ordered: (d,) how many levels of each feature, from the first on, are ordered.
        neighboured: (d,) how many, from the first on, would be read from their neighbours if no row had them.
        basis: "pure" or "paper".
        ties: "share" or "first".
        route: "auto" or one of the routes.
        memory_limit: bytes.
        threads: threads for kernels and BLAS.
    """

    max_order: int | None = 2
    subsets: tuple[Subset, ...] | None = None
    max_terms: int | None = None
    auto_terms: bool = False
    selection: SelectionName | None = None
    candidates: tuple[Subset, ...] | None = None
    min_gain: float = 0.0
    ridge: float = 0.0
    random_state: int = 0
    shrinkage: bool = False
    sampled: bool = True
    ordered: tuple[int, ...] = ()
    neighboured: tuple[int, ...] = ()
    basis: BasisName = "pure"
    ties: Literal["share", "first"] = "share"
    route: RouteName = "auto"
    memory_limit: int = 8 * 10**9
    threads: int = 1

    @property
    def every_order(self) -> bool:
        """Whether orders are added until everything is explained."""
        return self.max_order is None and self.subsets is None

    def all_orders(self, features: int) -> bool:
        """Whether every order of that many features is requested, by name or by number."""
        return self.subsets is None and (self.max_order is None or self.max_order >= features)

    @property
    def is_plain(self) -> bool:
        """Whether the basis is pure, ties are shared and there is no ridge: every route supports this."""
        return self.ties == "share" and self.basis == "pure" and not self.ridge


def orders_of(request: Request, varying: list[int]) -> Iterator[list[Subset]]:
    """Subsets of each order from 1 on, listed lazily."""
    if request.subsets is not None:
        yield from (group for k, group in by_order(request.subsets) if k)
        return
    highest = len(varying) if request.max_order is None else min(request.max_order, len(varying))
    for k in range(1, highest + 1):
        if comb(len(varying), k) > listable(request.memory_limit):
            raise MemoryLimitError(
                f"order {k} of {len(varying)} features has {comb(len(varying), k):,} subsets, too many to list "
                f"within the memory limit of {readable(request.memory_limit)}",
                remedy=[
                    "What would fit: ",
                    Parameter("max_order", k - 1),
                    ", subsets named in ",
                    Parameter("subsets"),
                    ", or a larger ",
                    Parameter("memory_limit"),
                ],
            )
        yield list(combinations(varying, k))
