"""``Plan``: what a fit will do, with its cost, before it runs; a plan that does not fit in memory is refused."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import NoReturn

from exanova.design.memory import readable
from exanova.errors import MemoryLimitError
from exanova.messages import Parameter, Part, count_of
from exanova.solve.traits import traits_of

STARTING = 0.02
"""Fixed cost of any fit in seconds, in a process that has made one before."""


@dataclass(frozen=True)
class Plan:
    """What a fit will do, with its cost, before it runs.

    Attributes:
        rows: number of rows; ``distinct_rows`` of them are distinct, and only those are used (0 if there were only
            moments of the rows, which do not determine it).
        features: features that vary; constant ones are ignored.
        max_order: largest order of interactions (``None``: until everything is explained).
        subsets: subsets of features, the empty one included (0 before a selection has chosen them).
        cells: observed combinations of levels of all subsets together.
        functions: functions of all subsets, the intercept included; ``functions_by_order`` splits them by order.
        route: "grid", "dense", "moments", "matrix-free" or "completion"; "screen selection" and the like under a
            budget.
        memory: estimated peak memory in bytes, beyond what the process holds before the fit.
        memory_limit: memory limit in bytes.
        passes: passes over the distinct rows.
        model_calls: rows the model will be called on, if there is a model to call.
        seconds: estimated seconds of processor time, without the time of the model and without loading kernels in a
            fresh process; measured on one machine (see the page "Plans, measured"), others differ by a factor of a few.
        selection: how a budget is spent; empty without a budget.
        source_passes: times that rows which are not in memory are read; 0 for a table in memory.
        distinct_estimate: about how many of those rows are distinct, as the first of these passes estimates it.
        on_disk: whether the distinct rows are in temporary files, because they would take too much memory.

    >>> import numpy as np
    >>> from exanova import FunctionalANOVA
    >>> table = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    >>> plan = FunctionalANOVA(max_order=2).plan(table)
    >>> plan.functions, plan.route
    (3, 'dense')
    """

    rows: int
    distinct_rows: int
    features: int
    max_order: int | None
    subsets: int
    cells: int
    functions: int
    functions_by_order: tuple[int, ...]
    route: str
    memory: int
    memory_limit: int
    passes: int
    model_calls: int
    local_work: float = 0.0
    seconds: float = STARTING
    selection: str = ""
    source_passes: int = 0
    distinct_estimate: int = 0
    on_disk: bool = False

    @property
    def source(self) -> str:
        """How rows that are not in memory are read, in words; empty for a table in memory."""
        if not self.source_passes:
            return ""
        read = f"read in {count_of(self.source_passes, 'pass', 'passes')}"
        disk = ", distinct rows on disk" if self.on_disk else ""
        return f"{read} (about {count_of(self.distinct_estimate, 'distinct row')} by the first{disk})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"

    def __str__(self) -> str:
        orders = " + ".join(f"{k:,}" for k in self.functions_by_order)
        seconds = "less than 0.1" if self.seconds < 0.1 else f"about {self.seconds:.{0 if self.seconds >= 10 else 1}f}"
        more = (
            ", more orders while a residual remains"
            if self.max_order is None and not traits_of(self.route).whole
            else ""
        )
        subsets, cells = count_of(self.subsets, "subset"), count_of(self.cells, "cell")
        rows = f"{count_of(self.distinct_rows, 'distinct row')} of {self.rows:,}"
        if not self.distinct_rows:
            rows = f"{count_of(self.rows, 'row')} as moments"
        return (
            f"{rows}, "
            f"{count_of(self.features, 'varying feature')}; "
            f"{subsets}, {cells}, {count_of(self.functions, 'function')} ({orders}{more}); "
            f"route {self.route}, {readable(self.memory)} of {readable(self.memory_limit)}, "
            f"{count_of(self.passes, 'pass', 'passes')}, {seconds} s, "
            f"model called on {count_of(self.model_calls, 'row')}"
            f"{'; ' * bool(self.source)}{self.source}"
        )


def within_limit(plan: Plan, order: int | None = None) -> Plan:
    """Return the plan if it fits in memory, else raise; ``order`` is the highest order listed so far."""
    if plan.memory > plan.memory_limit:
        refuse(plan, order)
    return plan


def refuse(plan: Plan, order: int | None) -> NoReturn:
    """Raise an error for a plan that does not fit in memory, with advice on what would fit."""
    reached = f"order {order}" if order else "all orders"
    advice: list[Part] = ["fewer levels (", Parameter("min_frequency"), ", ", Parameter("n_bins"), ")"]
    if order and order > 1:
        advice = [Parameter("max_order", order - 1), " needs less"]
    if plan.selection:
        reached = f"a budget of {plan.functions:,} functions"
        advice = ["a smaller ", Parameter("max_terms")]
    raise MemoryLimitError(
        f"{reached} of {plan.features} features on {plan.distinct_rows:,} distinct rows needs about "
        f"{readable(plan.memory)}; the memory limit is {readable(plan.memory_limit)}",
        remedy=["What would fit: ", *advice, ", or a larger ", Parameter("memory_limit")],
    )
