"""The plan: which route, how many functions, how many bytes, before anything large is done.

    grid      a complete table, all orders wanted: tensors, no matrix at all
    dense     few enough functions to factorise them on the rows, the safest under extreme weights
    moments   a Gram matrix of counts, then elimination, up to about fifteen thousand functions
    matrix-free   beyond that, where a Gram matrix does not fit, or where a pair has too many cells for a table

A plan that does not fit in the memory limit is refused with the largest order that would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, prod
from typing import Literal, NoReturn

import numpy as np

from exanova import tolerances
from exanova.basis.tables import dimensions, too_large_for_tables
from exanova.design.cells import CellIndex, extend, intercept_index
from exanova.design.memory import readable
from exanova.design.subsets import by_order, listable
from exanova.errors import InputError, MemoryLimitError
from exanova.messages import Parameter, Part, Value
from exanova.solve import price
from exanova.typing import Codes, FloatArray, Subset

Route = Literal["auto", "grid", "dense", "moments", "matrix-free"]

DENSE_WORK = 4e9
"""Rows x functions x the smaller of the two up to which the dense route takes about a second."""

EVEN_DENSE_WORK, EVEN = 4e8, 1e3
"""The same where the largest weight is at most ``EVEN`` times the smallest: moments are as safe then, and sooner done.
Not with the paper's functions, whose Gram matrix is ill-conditioned whatever the weights."""

MOMENTS_FUNCTIONS = 15_000
"""Functions beyond which passes over the rows cost less than a factorisation."""

GRID_FUNCTIONS = 200
"""Functions of a complete table from which the grid is tried before an orthogonal factorisation."""

LASSO_FUNCTIONS = 6000
"""Functions a lasso without a budget starts from."""

FLOPS, LOOKUPS, COMMON_WORDS, GRID_CELLS = 3e10, 5e8, 4e9, 2e7
"""What two cores do in a second: products of matrices, reads of tables by rows, words of 64 rows compared, cells of a
grid iterated to the end. Measured on the benchmarks' tables; other machines differ by a factor of a few."""

STARTING = 0.3
"""Seconds of any fit: loading kernels, reading, measuring."""


@dataclass(frozen=True)
class Plan:
    """What a fit will do, priced before it runs.

    Attributes:
        rows: rows given; ``distinct_rows`` of them differ, and only those are computed with.
        features: features that vary; constant ones never enter.
        max_order: largest order of interactions that will be listed (``None``: until nothing is left).
        subsets: subsets of features, the empty one included (0 while a selection has not chosen them).
        cells: observed combinations of levels of all subsets together.
        functions: functions of all subsets, the intercept included; ``functions_by_order`` says where.
        route: "grid", "dense", "moments" or "matrix-free".
        memory: bytes the fit will hold at its peak, by this estimate.
        memory_limit: bytes it may hold.
        passes: passes over the distinct rows.
        model_calls: rows the model will be called on, if there is a model to call.
        local_work: multiplications that find the functions of each subset and apply them to the Gram matrix.

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

    @property
    def seconds(self) -> float:
        """Seconds to expect on two cores, calls of the model apart: right within a factor of a few."""
        r, q = float(self.distinct_rows), float(self.functions)
        if self.route == "grid":
            return STARTING + self.cells / GRID_CELLS * 60
        reads = self.passes * r * (self.subsets or q) / LOOKUPS  # what a selection takes is not known yet
        common = STARTING + reads + self.local_work / FLOPS
        if self.route == "dense":
            return common + 4 * r * q * min(r, q) / FLOPS
        if self.route == "matrix-free":
            return common
        return common + q**3 / FLOPS + q**2 / 2 * r / 64 / COMMON_WORDS

    def __str__(self) -> str:
        orders = " + ".join(f"{k:,}" for k in self.functions_by_order)
        seconds = f"{self.seconds:.0f}" if self.seconds >= 10 else f"{self.seconds:.1f}"
        more = ", more orders if these leave a rest" if self.max_order is None and self.route != "grid" else ""
        return (
            f"{self.distinct_rows:,} distinct rows of {self.rows:,}, {self.features} varying features; "
            f"{self.subsets:,} subsets, {self.cells:,} cells, {self.functions:,} functions ({orders}{more}); "
            f"route {self.route}, {readable(self.memory)} of {readable(self.memory_limit)}, "
            f"{self.passes} passes, about {seconds} s, model called on {self.model_calls:,} rows"
        )


@dataclass(frozen=True)
class Request:
    """What is asked of the engine, apart from the data.

    Attributes:
        max_order: largest order, ``None`` for every order until rank r is reached.
        family: an explicit family, closed downward, in place of an order.
        max_terms: a budget of functions, the intercept included.
        selection: how the budget is spent: "canonical", "screen" or "lasso".
        candidates: subsets a selection may take; ``None`` for all up to ``max_order``.
        min_gain: screening takes nothing that explains less, per function, as a share of the variance.
        ridge: added to the diagonal of Gamma but for the intercept; 0 keeps the result exact.
        random_state: seed of the split a lasso chooses its penalty by, and of rows drawn for a likelihood.
        shrinkage: whether effects are shrunk to what the rows can carry.
        sampled: whether the rows are a sample of more, and not all there is.
        ordered: (d,) how many levels of each feature, from the first on, are in order.
        basis: "pure" or "paper".
        ties: "share" or "first".
        route: "auto" or one of the routes.
        memory_limit: bytes.
        threads: threads for kernels and BLAS.
    """

    max_order: int | None = 2
    family: tuple[Subset, ...] | None = None
    max_terms: int | None = None
    selection: Literal["canonical", "screen", "lasso"] | None = None
    candidates: tuple[Subset, ...] | None = None
    min_gain: float = 0.0
    ridge: float = 0.0
    random_state: int = 0
    shrinkage: bool = False
    sampled: bool = True
    ordered: tuple[int, ...] = ()
    basis: Literal["pure", "paper"] = "pure"
    ties: Literal["share", "first"] = "share"
    route: Route = "auto"
    memory_limit: int = 8 * 10**9
    threads: int = 1


def make_plan(
    request: Request, codes: Codes, weight: FloatArray, sizes: tuple[int, ...], outputs: int, rows: int
) -> tuple[Plan, CellIndex | None]:
    """Survey the cells order by order and choose a route; also returns the cells found (none for the grid)."""
    varying = [i for i, n in enumerate(sizes) if n > 1]
    r = codes.shape[1]
    base = Plan(rows, r, len(varying), request.max_order, 0, 0, 0, (), request.route, 0, request.memory_limit, 0, r)
    load = _load(base, codes, weight, outputs)
    if request.selection:
        return _within_limit(_budget_plan(base, request, sizes, load)), None
    if _grid_applies(request, r, [sizes[i] for i in varying]):
        plan = _grid_plan(base, [sizes[i] for i in varying], load)
        if request.route == "grid" or plan.functions >= GRID_FUNCTIONS or is_product(codes, weight, sizes):
            return _within_limit(plan), None
    elif request.route == "grid":
        raise InputError(
            Parameter("route", "grid"),
            " needs a table in which every combination of levels occurs, and all orders (",
            Parameter("max_order", None),
            f"); this table has {r:,} of {prod(sizes):,} combinations, with ",
            Parameter("max_order", request.max_order),
            remedy=["Use ", Parameter("route", "auto")],
        )
    index = intercept_index(sizes, float(weight.sum()))
    by = [1]
    for subsets in orders_of(request, varying):
        index = _surveyed(base, index, subsets, codes, weight, request)
        by.append(int(dimensions(index, len(index.subsets) - len(subsets)).sum()))
        base = _priced(base, index, tuple(by), codes, weight, outputs, request)
        _within_limit(base, len(subsets[0]))
        if request.max_order is None and request.family is None and sum(by) >= r:
            break
    return _within_limit(_priced(base, index, tuple(by), codes, weight, outputs, request)), index


def repriced(
    plan: Plan, index: CellIndex | None, codes: Codes, weight: FloatArray, outputs: int, request: Request
) -> Plan:
    """The same plan for another number of outputs, once the model has told it."""
    if index is None:
        sizes = [int(row.max()) + 1 for row in codes]
        return _within_limit(_grid_plan(plan, [n for n in sizes if n > 1], _load(plan, codes, weight, outputs)))
    return _within_limit(_priced(plan, index, plan.functions_by_order, codes, weight, outputs, request))


def orders_of(request: Request, varying: list[int]) -> Iterator[list[Subset]]:
    """Subsets of each order in turn, the empty set apart, listed only when they are reached."""
    if request.family is not None:
        yield from (group for k, group in by_order(request.family) if k)
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


def is_product(codes: Codes, weight: FloatArray, sizes: Sequence[int]) -> bool:
    """Whether a complete table has, cell by cell, the product of its margins as its distribution."""
    probability = weight / weight.sum()
    expected = np.ones_like(probability)
    for row, size in zip(codes, sizes, strict=True):
        expected *= np.bincount(row, weights=probability, minlength=size)[row]
    return bool(np.all(np.abs(probability - expected) <= tolerances.PRODUCT * len(sizes) * expected))


def dense_applies(rows: int, functions: int, limit: float = DENSE_WORK) -> bool:
    """Whether an orthogonal factorisation of the functions on the rows is cheap."""
    return rows * functions * min(rows, functions) <= limit


def _load(plan: Plan, codes: Codes, weight: FloatArray, outputs: int) -> price.Load:
    counts = bool((weight == np.floor(weight)).all())
    return price.Load(plan.rows, codes.shape[1], codes.shape[0], outputs, codes.nbytes, counts)


def _grid_applies(request: Request, rows: int, sizes: list[int]) -> bool:
    all_orders = (
        request.family is None and not request.ridge and (request.max_order is None or request.max_order >= len(sizes))
    )
    return request.route in ("auto", "grid") and all_orders and rows == prod(sizes)


def _grid_plan(base: Plan, sizes: list[int], load: price.Load) -> Plan:
    by_size = np.array([1])
    for n in sizes:
        by_size = np.convolve(by_size, [1, n - 1])
    cells = prod(n + 1 for n in sizes)
    solving, measuring = price.grid(cells, len(sizes), load), price.measuring(cells, cells, 2 ** len(sizes), load)
    return replace(
        base,
        subsets=2 ** len(sizes),
        cells=cells,
        functions=prod(sizes),
        functions_by_order=tuple(int(k) for k in by_size),
        route="grid",
        memory=load.peak(solving, measuring),
        passes=2,
    )


def _budget_plan(base: Plan, request: Request, sizes: Sequence[int], load: price.Load) -> Plan:
    """A selection keeps at most its budget: a factor of that size, beside what ranks the candidates."""
    r, mains = load.distinct, 1 + sum(n - 1 for n in sizes)
    q = min(request.max_terms or LASSO_FUNCTIONS, r)
    return replace(
        base,
        functions=q,
        functions_by_order=(1, mains - 1, max(0, q - mains)),
        route=f"{request.selection} selection",
        memory=load.peak(*_selection_phases(request, sizes, q, load)),
        passes=16,
    )


def _selection_phases(request: Request, sizes: Sequence[int], functions: int, load: price.Load) -> tuple[int, ...]:
    """Bytes of choosing, and of the exact fit of what was chosen where that comes after."""
    ranking = price.screening(sizes, load, request.threads)
    refitting = price.eliminating(functions, load)
    if request.selection == "screen":
        return (ranking + price.growing(functions, load),)
    if request.selection == "canonical":
        # What is chosen modulo primes is then decomposed by moments.
        growing = price.growing(functions, load)
        return (growing, refitting) if request.ties == "share" else (growing,)
    offered = min(LASSO_FUNCTIONS, 4 * (request.max_terms or LASSO_FUNCTIONS)) + sum(n - 1 for n in sizes)
    return ranking, price.lasso(min(offered, _functions_within(sizes, request.max_order)), load), refitting


def _functions_within(sizes: Sequence[int], max_order: int | None) -> int:
    """Functions of all subsets up to an order, if every combination occurs."""
    by_order = [1]
    for n in sizes:
        by_order = [a + b for a, b in zip([*by_order, 0], [0, *(k * (n - 1) for k in by_order)], strict=True)]
        by_order = by_order[: None if max_order is None else max_order + 1]
    return sum(by_order)


def _surveyed(
    plan: Plan, index: CellIndex, subsets: list[Subset], codes: Codes, weight: FloatArray, request: Request
) -> CellIndex:
    """Add the cells of one order, unless even listing them would not fit."""
    prefix = np.array([index.position[s[:-1]] for s in subsets])
    keys = (index.cell_start[prefix + 1] - index.cell_start[prefix]) * index.sizes[[s[-1] for s in subsets]]
    needed = price.listing(int(index.n_keys + keys.sum()), len(index.subsets) + len(subsets))
    if needed > request.memory_limit:
        _refuse(replace(plan, memory=max(plan.memory, needed)), len(subsets[0]))
    return extend(index, subsets, codes, weight, request.threads)


def _priced(
    base: Plan,
    index: CellIndex,
    by: tuple[int, ...],
    codes: Codes,
    weight: FloatArray,
    outputs: int,
    request: Request,
) -> Plan:
    q, large = sum(by), too_large_for_tables(index)
    load = _load(base, codes, weight, outputs)
    beside = (
        price.listing(index.n_keys, len(index.subsets)),
        price.measuring(index.n_keys, index.n_cells, len(index.subsets), load),
    )
    solving = {
        "dense": price.dense(q, index, load),
        "moments": price.moments(q, index, load),
        "matrix-free": price.matrix_free(by, index, load, request.threads),
    }
    memory = {route: load.peak(work, *beside) for route, work in solving.items()}
    even = request.basis == "pure" and weight.max() <= EVEN * weight.min()
    is_small = dense_applies(load.distinct, q, EVEN_DENSE_WORK if even else DENSE_WORK)
    route = _choose_route(request, q, bool(large.any()), is_small, memory["moments"])
    passes = {"dense": len(by) + 2, "moments": len(by) + 6, "matrix-free": 100}
    return replace(
        base,
        subsets=len(index.subsets),
        cells=index.n_cells,
        functions=q,
        functions_by_order=by,
        route=route,
        memory=memory[route],
        passes=passes[route],
        local_work=_local_work(index, 2 * q if route == "moments" else 0),
    )


def _local_work(index: CellIndex, columns: int) -> float:
    """Multiplications of a factorisation for each pair or larger subset, and of products with so many columns."""
    cells = np.diff(index.cell_start).astype(np.float64)
    cells[too_large_for_tables(index)] = 0.0
    return float(4 * (cells[index.layout.order > 1] ** 3).sum() + columns * (cells**2).sum())


def _choose_route(request: Request, functions: int, large: bool, is_small: bool, moments_memory: int) -> Route:
    """The route asked for, or the safest that is cheap enough."""
    shareable = request.ties == "share" and request.basis == "pure" and not request.ridge
    if (large or request.route == "matrix-free") and not shareable:
        raise InputError(
            Parameter("basis", request.basis),
            ", ",
            Parameter("ties", request.ties),
            ", ",
            Parameter("ridge", request.ridge),
            " cannot be combined with the matrix-free route, which this table or ",
            Parameter("route"),
            " requires",
            remedy=["use ", Parameter("basis", "pure"), ", ", Parameter("ties", "share"), ", ", Parameter("ridge", 0)],
        )
    if request.ridge and request.route in ("dense", "grid"):
        raise InputError(
            Parameter("ridge", request.ridge),
            " needs ",
            Parameter("route", "moments"),
            " or ",
            Value("route", "auto"),
            "; ",
            Parameter("route", request.route),
            " has none.",
        )
    if large:
        return "matrix-free"
    if request.route != "auto":
        return request.route
    if is_small and not request.ridge:
        return "dense"
    beyond = functions > MOMENTS_FUNCTIONS or moments_memory > request.memory_limit
    return "matrix-free" if shareable and beyond else "moments"


def _within_limit(plan: Plan, order: int | None = None) -> Plan:
    if plan.memory > plan.memory_limit:
        _refuse(plan, order)
    return plan


def _refuse(plan: Plan, order: int | None) -> NoReturn:
    reached = f"order {order}" if order else "all orders"
    if plan.route.endswith("selection"):
        reached = f"a budget of {plan.functions:,} functions"
    advice: list[Part] = ["fewer levels (", Parameter("min_frequency"), ", ", Parameter("n_bins"), ")"]
    if order and order > 1:
        advice = [Parameter("max_order", order - 1), " needs less"]
    if plan.route.endswith("selection"):
        advice = ["a smaller ", Parameter("max_terms")]
    raise MemoryLimitError(
        f"{reached} of {plan.features} features on {plan.distinct_rows:,} distinct rows needs about "
        f"{readable(plan.memory)}; the memory limit is {readable(plan.memory_limit)}",
        remedy=["What would fit: ", *advice, ", or a larger ", Parameter("memory_limit")],
    )
