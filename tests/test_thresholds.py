"""No size decides the answer: with any threshold at its smallest (or largest), the same numbers come out.

Work above a certain size runs in other code than work below it: compiled loops, blocks, panels, stacks, another route.
Tests are small, so each threshold is moved in turn until small work runs there too, and everything is compared with
what the thresholds of the package give.
"""

from __future__ import annotations

import ast
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import exanova
from exanova import FunctionalANOVA
from exanova.design.passes import Layout
from exanova.errors import InexactWarning, OutsideSupportWarning
from exanova.solve.float_factor import FloatFactor

SAME = 1e-10
NEVER = 10**12

Answers = dict[str, np.ndarray]
Threshold = tuple[str, float]


def patches(*thresholds: Threshold) -> tuple[Threshold, ...]:
    return thresholds


THRESHOLDS: list[tuple[Threshold, ...]] = [
    # data
    patches(("data.factor.DIRECT_RANGE", -1)),
    patches(("data.factor.FEW", 0)),
    patches(("data.factor.FEW", NEVER)),
    # sources
    patches(("sources.parts.BLOCK_ROWS", 7)),
    patches(("sources.keeping.KEPT_ROWS", 0)),
    patches(("sources.keeping.SHRINKS", NEVER)),
    patches(("sources.keeping.SHRINKS", 0), ("sources.parts.BLOCK_ROWS", 7)),
    patches(("sources.tally.MOST_APART", 0), ("sources.parts.BLOCK_ROWS", 7)),
    patches(("sources.files.CSV_BYTES", 300)),
    patches(("sources.reading.KEPT_SHARE", 0)),
    patches(("sources.runs.SHARE", 0)),
    patches(("sources.runs.SHARE", 0), ("sources.pieces.PIECE_ROWS", 3), ("sources.parts.BLOCK_ROWS", 7)),
    patches(("sources.runs.SHARE", 0), ("sources.runs.PIVOTS", 2), ("sources.parts.BLOCK_ROWS", 7)),
    patches(("data.packing.CAPACITY", 9), ("sources.parts.BLOCK_ROWS", 7)),
    patches(("data.distinct.COMPILED_FROM", 0)),
    patches(("data.distinct.COMPILED_FROM", 0), ("data.distinct.DIRECT", 0)),
    patches(("data.recoding.BLOCK", 7)),
    patches(("data.mapped.TRIMMED_FROM", 0)),
    patches(("data.sample.PART_ROWS", 5)),
    # design
    patches(("design.passes.COMPILED_FROM", 0)),
    patches(("design.passes.BY_AXES_FROM", 0)),
    patches(("design.passes.BY_AXES_FROM", NEVER)),
    patches(("design.few.ROWS", 0), ("design.few.MORE_ROWS", 0)),
    patches(("design.few.ROWS", NEVER)),
    patches(("design.few.ROWS", 0), ("design.few.NUMBERS", NEVER)),
    patches(("design.passes.COMPILED_FROM", 0), ("design.products.PRODUCTS_PER_READ", NEVER)),
    patches(
        ("design.passes.COMPILED_FROM", 0),
        ("design.products.PRODUCTS_PER_READ", NEVER),
        ("design.products.PIECES", 3),
        ("design.products.BLOCK_BYTES", 0),
    ),
    patches(("design.passes.COMPILED_FROM", 0), ("design.products.PRODUCTS_PER_READ", 0)),
    # basis
    patches(("basis.functions.STACK_BYTES", 0)),
    patches(("basis.pure.FEW_CELLS", 0)),
    patches(("basis.pure.FEW_VALUES", 0)),
    patches(("basis.holes.MANY_MARGINS", 0)),
    patches(("basis.pure.FEW_EDGES", 0)),
    patches(("basis.stacks.FEWEST_STACKED", 1)),
    patches(("basis.stacks.FEWEST_STACKED", 1), ("basis.stacks.LARGEST_STACKED", 0)),
    # moments
    patches(("phi.operator.FEW_VALUES", 0)),
    patches(("solve.routes.FEW_VALUES", 0)),
    patches(("phi.operator.MANY_PASSES", NEVER)),
    patches(("phi.monomials.STACK_BYTES", 0)),
    patches(("phi.bitsets.TILE", 5)),
    patches(("phi.bitsets.COMPILED_FROM", 0)),
    patches(("phi.bitsets.BLOCK_WORDS", 0)),
    patches(("phi.growing_family.TILE", 5)),
    patches(("phi.growing_gram.COUNT_BLOCK", 3)),
    patches(("phi.gram.SPARSE", 0)),
    patches(("phi.gram.SPARSE", NEVER)),
    patches(("phi.gram.BLAS_BLOCK_BYTES", 0), ("phi.gram.SPARSE", NEVER)),
    patches(("phi.gram.BLAS_BLOCK_BYTES", 0), ("phi.gram.SPARSE", 0)),
    patches(("phi.gram.BANDS", 1), ("phi.gram.BAND_BYTES", 2**40), ("phi.gram.SPARSE", 0)),
    patches(("phi.gram.BAND_BYTES", 64), ("phi.gram.LISTED_BYTES", 0), ("phi.gram.SPARSE", 0)),
    patches(("phi.gram.BITSET_BYTES", 0), ("phi.gram.MANY_ROWS", 7), ("phi.gram.SPARSE", NEVER)),
    patches(("phi.gram.MARGINS", 0)),
    patches(("phi.gram.MARGINS", NEVER)),
    patches(("phi.gram.MARGINS", NEVER), ("phi.margins.GROUP_BYTES", 0)),
    patches(("phi.gram.MARGINS", NEVER), ("phi.margins.LARGEST_LISTING", 0)),
    patches(("phi.projection.ROWS", 1)),
    patches(("phi.projection.MIRROR", 1)),
    patches(("phi.residues.COMPILED_FROM", 0)),
    patches(("phi.residues.TERMS", 2)),
    # solve
    patches(("solve.grid.SMALL_AXIS", 0)),
    patches(("solve.elimination.PANEL", 1)),
    patches(("solve.float_factor.PANEL", 1)),
    patches(("solve.float_factor.PANEL", 1), ("solve.float_factor.MERGED", 0)),
    patches(("solve.float_factor.PANEL", 3), ("solve.float_factor.MERGED", 4)),
    patches(("solve.residue_factor.PANEL", 1)),
    patches(("solve.choice.BATCH", 3)),
    patches(("solve.evidence.KEPT_GRAM", 0)),
    patches(("select.growing_fit.KEPT_GRAM", 0)),
    patches(("solve.top_down.STACK_CELLS", 0)),
    patches(("solve.routes.LARGE_STACK", 0)),
    patches(("solve.routes.EVEN", 0)),
    patches(("solve.routes.FEW_ITERATIONS", 0)),
    patches(("solve.matrix_free.MOST_ELIMINATED", 0)),
    patches(("solve.completing.BLOCK_VALUES", 0)),
    patches(("solve.by_levels.FEWEST_LEVELS", 0)),
    patches(("solve.by_levels.FEWEST_LEVELS", 0), ("solve.by_levels.MOST_OTHERS", 0)),
    patches(("solve.by_levels.FEWEST_LEVELS", 0), ("solve.by_levels.MOST_PAIRED", 0)),
    patches(("solve.by_levels.FEWEST_LEVELS", 0), ("solve.by_levels.ROW_BYTES", 0)),
    patches(("solve.by_levels.FEWEST_LEVELS", 0), ("solve.level_blocks.STACK_BYTES", 0)),
    patches(("solve.by_levels.FEWEST_LEVELS", 0), ("solve.level_blocks.PADDING", 100)),
    patches(("solve.low_orders.ARROW_LEVELS", 0)),
    patches(("solve.matrix_free.LARGEST_PAIR", 0)),
    patches(("solve.planning.GRID_FUNCTIONS", 0)),
    patches(("solve.survey.EVEN_DENSE_WORK", 0)),
    patches(("solve.survey.EVEN_DENSE_TABLE", 0)),
    patches(("solve.survey.DENSE_WORK", 0), ("solve.survey.EVEN_DENSE_WORK", 0)),
    patches(("solve.survey.EVEN_DENSE_WORK", 0), ("solve.survey.EVEN", NEVER)),
    patches(("solve.survey.EVEN_DENSE_WORK", 0), ("solve.planning.MOMENTS_FUNCTIONS", 0)),
    # select
    patches(("select.gains.BLOCK_BYTES", 0)),
    patches(("select.gains.SORTED", 1)),
    patches(("select.gains.WIDE", 0)),
    patches(("select.canonical.SMALLEST_BATCH", 1), ("select.canonical.LARGEST_BATCH", 1)),
    patches(("select.canonical.SMALLEST_BATCH", 5), ("select.canonical.LARGEST_BATCH", 7)),
    # effects and what is read off them
    patches(("effects.orthogonality.DENSE", 0), ("effects.orthogonality.FILLED", 0)),
    patches(("effects.orthogonality.STACKED", 1)),
    patches(("solve.inverse.TILE", 5)),
    patches(("effects.dependence_blocks.TILE", 1)),
    patches(("effects.dependence_blocks.FEW", 0), ("effects.dependence_blocks.PROBES", 1)),
    patches(("effects.dependence_blocks.FEW", 0), ("effects.dependence_blocks.PROBES", NEVER)),
    patches(("effects.dependence_blocks.FEW", 0), ("effects.dependence_blocks.NEAR", NEVER)),
    patches(("effects.measure.TOGETHER", 0)),
    patches(("effects.measure.TOGETHER", NEVER)),
    patches(("phi.feature_shares.CHUNK", 7)),
    patches(("explain.mean_shapley.CHUNK", 7)),
    patches(("explain.mean_shapley.CHEAP", 0)),
    patches(("explain.mean_shapley.CHEAP", NEVER)),
    patches(("explain.interactions.CHUNK_BYTES", 0)),
    patches(("explain.contrasting.STATISTICS_BYTES", 0)),
    patches(("explain.ranking.BLOCK_BYTES", 0)),
    # threads
    patches(("parallel.BLAS_WORK", 0)),
    patches(("parallel.BLAS_WORK", NEVER)),
]
"""One or several names that are moved together, inside the package, and what they are set to."""

APART = {
    "data.distinct.SEED": "of the hashes",
    "sources.not_utf8.BLOCK": "moved in tests of its own",
    "sources.not_utf8.BEFORE": "characters that are shown",
    "data.group_kernels.SPREAD": "of the hashes",
    "data.group_kernels.BLOCK": "built into a kernel: groups in the hash table pass it in tests of their own",
    "data.group_kernels.SLOTS": "built into a kernel: groups in the hash table pass it in tests of their own",
    "basis.projector.LARGEST_TABLE": "moved where it is used, in basis.tables, by a test of its own",
    "basis.pure.FIT": "accuracy",
    "design.pass_kernels.BLOCK": "built into a kernel: a test of its own",
    "design.pass_kernels.SMALL_TABLE": "built into a kernel: a test of its own",
    "sources.engines.FIRST_ROWS": "chooses between two ways that a test of engines compares",
    "sources.engines.FEWER": "chooses between two ways that a test of engines compares",
    "sources.cluster.BRANCHES": "of results merged on a cluster, in any number",
    "sources.cluster.CHECKED_EVERY": "seconds: a test of its own",
    "sources.cluster.WITHOUT_WORKERS": "seconds: a test of its own",
    "sources.raw_noise.MOST_RAW": "accuracy: tests of its own",
    "sources.raw_noise.FEWEST_RAW": "accuracy: tests of its own",
    "sources.raw_noise.RAW_VALUE": "a price",
    "sources.pieces.FEWEST_ROWS": "a floor of PIECE_ROWS, which is moved",
    "sources.value_counts.MOST_NUMBERS": "accuracy: tests of its own",
    "sources.value_counts.NUMBER_BYTES": "a price",
    "sources.value_counts.NUMBER_SHARE": "accuracy: tests of its own",
    "sources.value_counts.FEWEST_NUMBERS": "accuracy: tests of its own",
    "sources.value_counts.MOST_NAMES": "refuses",
    "sources.value_counts.SIGNIFICAND": "a format",
    "sources.runs.COPIES_OF_TALLY": "a price",
    "sources.observed.APART_VALUE": "a price",
    "sources.observed.COUNTED_VALUE": "a price",
    "sources.observed.BLOCK_CELL": "a price",
    "sources.observed.HELD_PART": "a price",
    "sources.observed.HELD_VALUE": "a price",
    "solve.seconds.TABLE_READS": "a price",
    "sources.disk.ZEROS": "of zeros written where room cannot be reserved",
    "sources.sketch.ERRORS": "accuracy: tests of its own",
    "sources.sketch.KEPT": "accuracy: tests of its own",
    "design.memory.SHARE": "of the memory of the machine",
    "design.subsets.LARGEST_LISTING": "refuses",
    "effects.certificate_text.MOST_OUTPUTS": "shown",
    "effects.effect.FEW_ROWS": "flags cells",
    "explain.difference.LISTED": "lines of a text",
    "explain.relativities.LISTED": "lines of a text",
    "explain.tariff.HIGHEST": "what is shown",
    "explain.mean_change.LISTED": "lines of a text",
    "explain.mix_and_model.MOST_WEIGHTS": "whether there are standard errors: a test of its own",
    "explain.mix_and_model.DENSE_COLUMNS": "one of two ways that a test of its own compares",
    "explain.reasons.LISTED": "lines of a text",
    "explain.ranking.LEVEL": "decides what is said",
    "explain.row_sets.MOST_GROUPS": "refuses",
    "explain.row_sets.WHOLE": "how a number is written",
    "explain.row_errors.PRODUCTS_PER_READ": "chooses between two ways that tests of standard errors compare",
    "explain.row_errors.MOST_CELLS": "chooses between two ways that tests of standard errors compare",
    "explain.row_errors.WEIGHTS_BYTES": "cuts work in blocks of rows",
    "design.subsets.SUBSET_BYTES": "a price",
    "effects.cancellation.MEMBER": "decides what is said",
    "effects.cancellation.MOST_FUNCTIONS": "decides what is said",
    "effects.doubts.EXACT_RANK": "decides what is said",
    "effects.doubts.PROBES": "accuracy",
    "effects.storage.VERSION": "a format",
    "effects.storage.DIGEST": "a format",
    "effects.printed.STRONGEST": "lines of a text",
    "explain.comparison.LARGEST_CELLS": "lines of a table",
    "explain.divided.ROUNDS": "rounds of a refinement",
    "explain.divided.SETTLED": "a tolerance",
    "phi.share_kernels.BLOCK": "built into a kernel: a test of its own",
    "phi.gram_kernels.WORDS": "built into a kernel: a test of its own",
    "phi.margin_kernels.BLOCK": "built into a kernel: a test of its own",
    "phi.margins.NEAR": "a price",
    "phi.margins.NEAR_SECONDS": "a price",
    "phi.margins.FAR_SECONDS": "a price",
    "phi.margins.LISTING": "a price",
    "phi.margins.LOADING": "a price",
    "phi.gram.WORD_SECONDS": "a price",
    "phi.gram.PAIR_SECONDS": "a price",
    "phi.gram.PRODUCT_SECONDS": "a price",
    "phi.residues.COUNT_DIGITS": "decides what is chosen",
    "phi.residues.LARGEST": "no prime is larger",
    "select.lasso.HELD_OUT": "decides what is chosen",
    "select.automatic.FIRST": "decides what is chosen",
    "explain.importance_intervals.LARGEST_NONCENTRALITY": "accuracy",
    "select.automatic.PATIENCE": "decides what is chosen",
    "select.automatic.AS_GOOD": "decides what is chosen",
    "data.sample.MOST_DRAWN": "decides how rows are drawn at random",
    "select.selected_fit.HELD_OUT": "decides what is measured",
    "select.selected_fit.FEW_ROWS": "decides what is measured",
    "select.selected_fit.SPLITS": "decides what is measured",
    "select.optimism.CHEAP_SECONDS": "decides what is measured",
    "select.lasso.PENALTIES": "decides what is chosen",
    "select.lasso.SMALLEST": "decides what is chosen",
    "select.lasso.ITERATIONS": "accuracy",
    "select.lasso.CHANGE": "accuracy",
    "select.lasso.MOST_CANDIDATES": "decides what is chosen",
    "select.screening.ROUNDS": "decides what is chosen",
    "select.screening.CANDIDATE_WORK": "decides what is chosen",
    "solve.cgls.PATIENCE": "accuracy",
    "solve.cgls.PATIENCE_AT_ROUNDING": "accuracy",
    "solve.dense.REFINEMENTS": "accuracy",
    "solve.matrix_free.MOST_ITERATIONS": "accuracy",
    "solve.residue_factor.AGREEING": "accuracy",
    "solve.residue_factor.MOST_PRIMES": "refuses",
    "solve.moments_route.REFINEMENTS": "accuracy",
    "solve.completion.REFINEMENTS": "accuracy",
    "solve.seconds.SUBSET_MAPS": "a price",
    "select.selection_plan.LASSO_FUNCTIONS": "a price",
    "select.selection_plan.PASSES": "a price",
    "solve.seconds.FLOPS": "a price",
    "solve.seconds.ONE_ITERATION": "a price",
    "solve.seconds.PROJECTED_CELLS": "a price",
    "explain.comparison.MOSTLY": "decides what is shown first",
    "solve.seconds.LOOKUPS": "a price",
    **dict.fromkeys(("solve.seconds.CELLS_READ", "solve.seconds.ELIMINATING", "solve.seconds.REDUNDANT"), "a price"),
    "solve.seconds.PRODUCT_CELLS": "a price",
    "solve.seconds.EVEN_CELLS": "a price",
    "solve.seconds.UNEVEN_CELLS": "a price",
    "select.selection_plan.COMMON_WORDS": "a price",
    "select.selection_plan.RANKINGS": "a price",
    "select.selection_plan.PAIR_SECONDS": "a price",
    "select.selection_plan.JUDGED": "a price",
    **dict.fromkeys(
        (
            *(f"select.selection_plan.{name}" for name in ("JUDGING_SQUARES", "LOCAL_WORK", "WIDE_PAIR", "WIDE_CELL")),
            *(f"solve.seconds.{name}" for name in ("ROWS_APART", "ROWS_GROUPED", "VALUES_COUNTED")),
            *("solve.seconds.SPARSE_FLOPS", "solve.seconds.PASS_FLOPS"),
        ),
        "a price",
    ),
    "solve.seconds.LEVEL_ITERATIONS": "a price",
    "solve.by_levels.DELTA": "accuracy",
    "solve.by_levels.CONSTRAINT": "accuracy",
    "solve.by_levels.REFINED": "accuracy",
    "solve.by_levels.ITERATIONS": "accuracy",
    "solve.by_levels.FRUITLESS": "accuracy",
    "solve.planning.QUICK": "a price",
    "solve.planning.MUCH": "a price",
    "solve.plan.STARTING": "a price",
    "solve.routes.GRID_ITERATIONS": "accuracy",
}
"""Numbers in capitals that are no size of work from which other code runs, and why not."""


def table(seed: int, sizes: tuple[int, ...], rows: int) -> np.ndarray:
    """Some rows of a grid, in no order; every level occurs."""
    rng = np.random.default_rng(seed)
    grid = np.array(list(product(*map(range, sizes))))
    chosen = rng.permutation(grid)[:rows]
    assert (chosen.max(axis=0) + 1 == sizes).all()
    return chosen


def model(x: np.ndarray) -> np.ndarray:
    """Two outputs with interactions of every order."""
    phase = x @ np.arange(1, x.shape[1] + 1)
    return np.column_stack([np.sin(phase) + x[:, 0] * x[:, 1], np.cos(2.0 * phase) - x[:, -1]])


def fitted(x: np.ndarray, weight: np.ndarray | None = None, **parameters: object) -> FunctionalANOVA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InexactWarning)
        return FunctionalANOVA(n_jobs=2, **{"shrinkage": None, **parameters}).fit(x, model(x), sample_weight=weight)  # type: ignore[arg-type]


def effects(name: str, anova: FunctionalANOVA) -> Answers:
    return {f"{name} {' x '.join(key)}": anova.effects_[key].values for key in anova.effects_}


def fits_with_holes() -> Answers:
    """Every route on rows with holes, a repeated column, counts and real weights."""
    x = table(0, (2, 3, 4, 3), 45)
    x = np.column_stack([x, x[:, 1]])
    counts, real = np.arange(len(x)) % 5 + 1, np.linspace(0.3, 2.0, len(x))
    return {
        **effects("auto", fitted(x, counts)),
        **effects("auto, uneven", fitted(x, 4.0 ** (np.arange(len(x)) % 9))),
        **effects("moments, counts", fitted(x, counts, max_order=3, route="moments")),
        **effects("moments, real", fitted(x, real, max_order=3, route="moments")),
        **effects("moments, first", fitted(x, real, route="moments", ties="first")),
        **effects("paper, counts", fitted(x, counts, route="moments", basis="paper", ties="first")),
        **effects("matrix-free", fitted(x, counts, route="matrix-free")),
        **effects("completion", fitted(x, counts, max_order=None, route="completion")),
    }


def fits_of_selections() -> Answers:
    """Every selection, within a budget."""
    x = table(1, (2, 3, 2, 3), 32)
    counts, real = np.arange(len(x)) % 3 + 1, np.linspace(0.5, 2.0, len(x))
    paper = {"basis": "paper", "ties": "first"}
    return {
        **effects("screen", fitted(x, counts, max_order=3, max_terms=22, selection="screen")),
        **effects("canonical", fitted(x, counts, max_order=3, max_terms=24, selection="canonical")),
        **effects("canonical, real", fitted(x, real, max_terms=16, selection="canonical")),
        **effects("canonical, paper", fitted(x, counts, max_order=3, max_terms=24, selection="canonical", **paper)),
    }


def fits_by_lasso() -> Answers:
    """Pairs and triples priced together."""
    x = table(1, (2, 3, 2, 3), 32)
    return effects("lasso", fitted(x, np.arange(len(x)) % 3 + 1, max_order=3, selection="lasso"))


def fits_of_complete_tables() -> Answers:
    """All orders, by the grid and by what stands in for it, and conjugate gradients over two orders at once."""
    x = table(2, (2, 3, 2, 3), 36)
    nearly = table(3, (3, 3, 2, 3), 51)
    return {
        **effects("complete", fitted(x, max_order=None)),
        **effects("complete, uneven", fitted(x, 3.0 ** (np.arange(36) % 10), max_order=None)),
        **effects("grid, even", fitted(x, np.arange(36) % 4 + 1, max_order=None, route="grid")),
        **effects("grid, uneven", fitted(x, 3.0 ** (np.arange(36) % 10), max_order=None, route="grid")),
        **effects("matrix-free, order 3", fitted(nearly, max_order=3, route="matrix-free")),
    }


def readings() -> Answers:
    """What is read off one decomposition: of many rows and of few, inside the support and outside of it."""
    x = 100 * table(4, (2, 3, 4, 3), 60)  # levels further apart than there are rows
    anova = fitted(x, np.arange(60) % 4 + 1, max_order=3, handle_unknown="ignore")
    new = 100 * np.vstack([table(5, (2, 3, 4, 3), 72)] * 2)
    new[::5, 0] = 9
    found = {f"importance {kind}": _values(anova.importance(kind)) for kind in ("l1", "l2", "shapley", "variance")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideSupportWarning)
        for name, rows in (("many", new), ("few", new[:9]), ("one", new[5:6])):
            parts, shapley = anova.components(rows), anova.explain(rows)
            found |= {
                f"{name}: predict": anova.predict(rows),
                f"{name}: components": parts.values,
                f"{name}: outside": parts.outside.astype(float),
                f"{name}: shapley": shapley.values,
                f"{name}: interactions": anova.interactions(rows, index="STII", order=2).values,
            }
        why = anova.reasons(new, 2, output=0)
        found["reasons"] = np.nan_to_num([r.stderr for row in why for r in row.reasons], nan=-1.0)
        split = anova.difference(new, by=np.arange(len(new)) % 3 == 0)[0]
        found |= {"difference": split.by_subset, "its errors": np.nan_to_num(split.by_subset_stderr, nan=-1.0)}
    return found


def measured() -> Answers:
    """What a certificate says of effects that are not orthogonal."""
    x = table(6, (2, 3, 3), 14)
    c = fitted(x, max_order=3, basis="paper", ties="first").certificate_
    return {"orthogonality": np.array([c.orthogonality]), "rank": np.array(c.rank_by_order, dtype=float)}


def fits_of_files() -> Answers:
    """Rows from files in blocks: distinct rows and repeated ones, noisy outputs, real weights, strata."""
    x = np.vstack([table(8, (2, 3, 4, 3), 60)] * 3)
    rng = np.random.default_rng(8)
    columns = {f"x{i}": column for i, column in enumerate(x.T)}
    columns |= {"score": model(x)[:, 0], "noisy": model(x)[:, 1] + rng.normal(size=len(x)), "w": np.arange(len(x)) % 4}
    columns |= {"share": np.arange(len(x)) % 3 + 0.5, "stratum": np.arange(len(x)) % 2}
    found: Answers = {}
    with tempfile.TemporaryDirectory() as folder:
        for k, rows in enumerate(np.array_split(rng.permutation(len(x)), 3)):
            part = pa.table({name: column[rows] for name, column in columns.items()})
            pq.write_table(part, f"{folder}/{k}.parquet")
            csv.write_csv(part, f"{folder}/{k}.csv")
        for suffix, outputs, weight in (
            ("parquet", "score", "w"),
            ("csv", ["noisy", "score"], "w"),
            ("parquet", "noisy", "share"),
        ):
            anova = FunctionalANOVA(shrinkage=None)
            anova.fit(f"{folder}/*.{suffix}", outputs, sample_weight=weight, strata="stratum")
            name = f"{suffix} {outputs}"
            found |= effects(name, anova) | {f"{name} errors": _stderr(anova)}
    return found


def _stderr(anova: FunctionalANOVA) -> np.ndarray:
    return np.concatenate([np.ravel(effect.stderr) for effect in anova.effects_.values() if effect.stderr is not None])


def _values(frame: object) -> np.ndarray:
    """The table with its lines by name: which of two equal importances comes first is rounding."""
    return frame.set_index(["feature", "output"])["value"].sort_index().to_numpy()  # type: ignore[attr-defined]


PARTS: tuple[Callable[[], Answers], ...] = (
    fits_with_holes,
    fits_of_selections,
    fits_of_complete_tables,
    readings,
    measured,
)

READ = {
    "data": (fits_with_holes, readings),
    "moments": (fits_with_holes, fits_of_selections),
    "solve": (fits_with_holes, fits_of_selections, fits_of_complete_tables),
    "select": (fits_of_selections, fits_by_lasso),
    "sources": (fits_of_files,),
    **dict.fromkeys(("effects", "explain"), (readings, measured)),
}
"""What runs through the thresholds of a folder; those of the other folders serve everything."""


@cache
def expected(part: Callable[[], Answers]) -> Answers:
    return part()


def moved(monkeypatch: pytest.MonkeyPatch, thresholds: tuple[Threshold, ...]) -> None:
    for name, value in thresholds:
        module, _, constant = f"exanova.{name}".rpartition(".")
        import_module(module)
        monkeypatch.setattr(f"{module}.{constant}", value)  # which fails where there is no such name


def check(part: Callable[[], Answers], before: Answers) -> None:
    after = part()
    assert list(after) == list(before)
    for name, values in before.items():
        np.testing.assert_allclose(after[name], values, rtol=0, atol=SAME * max(1, np.abs(values).max()), err_msg=name)


@pytest.mark.parametrize("thresholds", THRESHOLDS, ids=lambda moves: ", ".join(f"{n}={v:g}" for n, v in moves))
def test_no_size_decides_the_answer(monkeypatch: pytest.MonkeyPatch, thresholds: tuple[Threshold, ...]) -> None:
    before = {part: expected(part) for part in READ.get(thresholds[0][0].partition(".")[0], PARTS)}
    moved(monkeypatch, thresholds)
    for part, answers in before.items():
        check(part, answers)


def test_a_projector_stands_in_for_a_table_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apart from the others: what has a projector goes by the matrix-free route, of order two and shared."""

    def pairs() -> Answers:
        x = table(7, (4, 3, 5), 40)
        return effects("pairs", fitted(x, np.arange(40) % 3 + 1))

    before = pairs()
    moved(monkeypatch, (("basis.functions.LARGEST_TABLE", 0),))
    check(pairs, before)


@pytest.mark.parametrize(
    ("kernel", "thresholds"),
    [
        ("design.pass_kernels.scatter_kernel", patches(("design.pass_kernels.BLOCK", 5))),
        ("design.pass_kernels.scatter_kernel", patches(("design.pass_kernels.SMALL_TABLE", 0))),
        ("design.pass_kernels.gather_kernel", patches(("design.pass_kernels.BLOCK", 5))),
        ("design.pass_kernels.outside_kernel", patches(("design.pass_kernels.BLOCK", 5))),
        ("phi.share_kernels.share_kernel", patches(("phi.share_kernels.BLOCK", 5))),
    ],
    ids=lambda given: given if isinstance(given, str) else ", ".join(f"{n}={v:g}" for n, v in given),
)
def test_no_block_of_a_kernel_decides_the_answer(
    monkeypatch: pytest.MonkeyPatch, kernel: str, thresholds: tuple[Threshold, ...]
) -> None:
    """A compiled loop has its block built in: the same loop is run uncompiled with another one."""
    before = {part: expected(part) for part in (fits_with_holes, readings)}
    moved(monkeypatch, (("design.passes.COMPILED_FROM", 0), ("design.few.MORE_ROWS", 0), *thresholds))
    module, _, name = f"exanova.{kernel}".rpartition(".")
    ran = []
    loop = getattr(import_module(module), name).py_func

    def counted(*arguments: object) -> None:
        ran.append(name)
        loop(*arguments)

    monkeypatch.setattr(f"{module}.{name}", counted)
    for part, answers in before.items():
        check(part, answers)
    assert ran, "the kernel was not used"


def test_counts_do_not_depend_on_the_words_handled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from exanova.phi import gram_kernels

    rng = np.random.default_rng(8)
    left, right = (rng.integers(0, 2**63, (n, 11)).astype(np.uint64) for n in (6, 5))
    before, after = (np.zeros((6, 5), dtype=np.int64) for _ in range(2))
    gram_kernels.count_tile(left, right, before, 3)
    monkeypatch.setattr(gram_kernels, "WORDS", 4)
    numba.njit(gram_kernels.count_tile.py_func)(left, right, after, 3)
    np.testing.assert_array_equal(before, after)
    counts = [[sum(int(a & b).bit_count() for a, b in zip(x, y, strict=True)) for y in right] for x in left]
    np.testing.assert_array_equal(before, 3 * np.array(counts))


@pytest.mark.parametrize(("panel", "merged"), [(1, 0), (3, 4), (3, NEVER), (64, 0)])
def test_a_growing_factor_does_not_depend_on_its_panels(
    monkeypatch: pytest.MonkeyPatch, panel: int, merged: int
) -> None:
    """Not even before anything is refined: functions that arrive in batches, some of them spanned by earlier ones."""
    moved(monkeypatch, (("solve.float_factor.PANEL", panel), ("solve.float_factor.MERGED", merged)))
    rng = np.random.default_rng(10)
    columns = rng.normal(size=(50, 30))
    for k in range(7, 30, 5):
        columns[:, k] = columns[:, k - 5] - columns[:, k - 6]
    columns /= np.linalg.norm(columns, axis=0)
    gram, factor = columns.T @ columns, FloatFactor(capacity=4)
    for start, end in ((0, 4), (4, 15), (15, 16), (16, 30)):
        factor.append(gram[start:end, :end])
    assert np.flatnonzero(~factor.kept).tolist() == [7, 12, 17, 22, 27]
    wanted = np.where(factor.kept, rng.normal(size=30), 0.0)[:, None]
    np.testing.assert_allclose(factor.solve(gram @ wanted), wanted, atol=1e-11)


COMPUTING = ("sources", "design", "basis", "phi", "solve", "select", "effects", "explain")
"""Folders whose sizes must not decide the answer."""


def constants(folders: tuple[str, ...] = COMPUTING) -> set[str]:
    """Names in capitals that a module of the folders gives a number; prices are all in one module."""
    package = Path(exanova.__file__).parent
    reading = ("factor", "distinct", "recoding", "group_kernels", "packing", "sample")
    files = [package / "parallel.py", *(package / "data" / f"{name}.py" for name in reading)]
    found = set()
    for path in [*files, *(path for folder in folders for path in (package / folder).glob("*.py"))]:
        if path == package / "solve" / "price.py":
            continue
        name = ".".join(path.relative_to(package).with_suffix("").parts)
        given = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]
        targets = [n for node in given for target in node.targets for n in ast.walk(target)]
        capitals = [n.id for n in targets if isinstance(n, ast.Name) and n.id.isupper()]
        values = vars(import_module(f"exanova.{name}"))
        found |= {f"{name}.{constant}" for constant in capitals if isinstance(values[constant], int | float)}
    return found


def test_every_number_in_capitals_is_moved_or_said_to_be_no_size() -> None:
    assert "design.passes.COMPILED_FROM" in constants()
    moved_names = {name for thresholds in THRESHOLDS for name, _ in thresholds}
    assert constants() - moved_names == set(APART)


def test_the_thresholds_are_reached() -> None:
    """The examples have what the thresholds are about: holes, redundancy, several subsets alike, an order above two."""
    anova = fitted(table(4, (2, 3, 4, 3), 60), max_order=3)
    layout: Layout = anova.decomposition_.family.layout
    assert (layout.lookup < 0).any()
    assert layout.order.max() == 3
    x = table(0, (2, 3, 4, 3), 45)
    assert fitted(np.column_stack([x, x[:, 1]])).certificate_.redundant
    assert fitted(table(3, (3, 3, 2, 3), 51), max_order=3).certificate_.unique
    assert fitted(table(6, (2, 3, 3), 14), max_order=3, basis="paper", ties="first").certificate_.orthogonality > 1e-3


# The limits of a report

REPORT_LIMITS: list[tuple[Threshold, ...]] = [
    *(patches((f"report.cohort_errors.{name}", 0)) for name in ("SETS", "NUMBERS", "WORK")),
    *(patches((f"report.contrasts.{name}", 1)) for name in ("CONTRASTS", "PARTS", "MOST")),
    *(patches((f"report.covariances.{name}", 0)) for name in ("NUMBERS", "CELLS", "WORK", "SHARE")),
    *(patches(("report.covariances.NUMBERS", 0), (f"report.factors.{name}", 0)) for name in ("BYTES", "LEAST")),
    *(
        patches(("report.covariances.NUMBERS", 0), ("report.factors.ALL_EIGENVALUES", 0), (f"report.factors.{name}", 1))
        for name in ("SPARE", "ROUNDS")
    ),
    *(patches(("report.covariances.NUMBERS", 0), (f"report.errors_at_rows.{name}", 0)) for name in ("NUMBERS", "WORK")),
    patches(("report.explorer.ROW_NUMBERS", 1)),
    patches(("report.live.NUMBERS", 0), ("report.explorer.ROW_FEATURES", 1), ("report.page.ROW_FEATURES", 1)),
    patches(("report.explorer.ROWS", 2), ("report.live_rows.ROWS", 2), ("report.live_rows.CODES", 0)),
    *(patches((f"report.findings.{name}", 1)) for name in ("MOST", "OUTPUTS")),
    patches(("report.live.NUMBERS", 0)),
    patches(("report.live.LARGEST_KEY", 0)),
    *(
        patches(("report.live.NUMBERS", 0), (f"report.live.{name}", 1), (f"report.sections.{name}", 1))
        for name in ("EFFECT_LEVELS", "PAIR_LEVELS")
    ),
    patches(("report.live_rows.CALLED", 3)),
    *(patches((f"report.markdown.{name}", 1)) for name in ("FEATURES", "LEVELS", "PAIRS", "CELLS", "OUTPUTS")),
    *(
        patches((f"report.notebook.{name}", 1))
        for name in ("EFFECTS", "CELLS", "ROWS", "FEATURES", "OUTPUTS", "CHANGES")
    ),
    *(patches((f"report.page.{name}", 1)) for name in ("PARTNERS", "FILE_PARTNERS")),
    patches(("report.payload.LONG", 0)),
    patches(("report.payload.LONG", NEVER)),
    *(patches((f"report.rating.{name}", 1)) for name in ("FACTORS", "CELLS")),
    *(patches((f"report.row_reasons.{name}", 1)) for name in ("ROWS", "REASONS", "OUTPUTS")),
    *(patches((f"report.sections.{name}", 1)) for name in ("PAIRS", "SUBSETS", "HIGHER", "HIGHER_CELLS")),
    *(patches((f"report.sections.{name}", 0)) for name in ("REDUNDANT", "TESTS", "NETWORKS")),
    *(patches((f"report.sections.{name}", 1)) for name in ("EFFECT_NUMBERS", "PAIR_NUMBERS")),
]
"""Limits of what a report holds, each at its smallest."""

REPORT_APART = {
    "report.alike.MEMBERS": "names in a note",
    "report.alike.FEW_GROUPS": "decides whether there is a note",
    "report.cohort_errors.OTHERS": "a mark",
    "report.live_rows.CELL": "a price",
    "report.factors.TOLERANCE": "decides what is close enough",
    "report.factors.CHECKED": "rows of a check",
    "report.factors.STEPS": "the largest number of a byte",
    "report.words.MOST": "names in a sentence",
    "report.words.FEATURES": "names in a sentence",
    "report.findings.SLIGHT": "decides what is named",
    "report.contrasts.SMALL": "decides what is named",
    "report.sections.SMALL": "decides what is shown",
    "report.row_reasons.DIGITS": "what counts as equal",
}


@cache
def told_fit() -> tuple[FunctionalANOVA, FunctionalANOVA, np.ndarray]:
    """Two fits with a link, of columns that share, and their rows."""
    x = table(0, (2, 3, 4, 3), 45)
    x = np.vstack([np.column_stack([x, x[:, 1]])] * 2)
    values = np.exp(0.2 * model(x))
    anova = FunctionalANOVA(shrinkage=None, max_order=3, link="log", sampled=True)
    early = FunctionalANOVA(shrinkage=None, max_order=3, link="log", sampled=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return anova.fit(x, values), early.fit(x[:60], values[:60] * 1.1), x


def report_numbers() -> tuple[dict[str, set[float]], str]:
    """The numbers of every section of a report by the name of their field, and everything it says in words."""
    from exanova.report.markdown import to_markdown
    from exanova.report.notebook import comparison_html, decomposition_html, effect_html, explanation_html
    from exanova.report.page import Page
    from exanova.report.summary import summarise

    anova, early, x = told_fit()
    groups = {"first": ["x0", "x1"], "second": ["x2", "x3"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {
            "X": x,
            "model": lambda rows: np.exp(0.2 * model(rows)),
            "by": np.arange(len(x)) % 3,
            "since": early,
            "groups": groups,
        }
        summary = summarise(anova.decomposition_, **given)
        page = Page(summary).payload.to_json()
        shown = decomposition_html(anova.decomposition_) + explanation_html(anova.explain(x[:8]))
        shown += effect_html(anova.effects_["x2"]) + comparison_html(early.compare(anova))
    found: dict[str, set[float]] = {}

    def collect(value: object, key: str) -> None:
        if isinstance(value, dict):
            added_up = str(value.get("part", "")).endswith("others)")
            for name, inner in value.items():
                collect(inner, f"{key}.{name}") if not added_up else None
        elif isinstance(value, list):
            for inner in value:
                collect(inner, key)
        elif isinstance(value, float):
            found.setdefault(key, set()).add(float(f"{value:.9g}"))

    for name in ("importance", "effects", "pairs", "higher", "strongest", "groups", "change", "tariff", "domains"):
        collect(getattr(summary, name), name)
    return found, "\n".join([to_markdown(summary), page, shown])


@cache
def whole_report() -> tuple[dict[str, set[float]], str]:
    return report_numbers()


@pytest.mark.parametrize("limits", REPORT_LIMITS, ids=lambda moves: ", ".join(f"{n}={v:g}" for n, v in moves))
def test_a_limit_of_a_report_takes_things_away_and_changes_no_number(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[Threshold, ...]
) -> None:
    before, said = whole_report()
    moved(monkeypatch, limits)
    after, told = report_numbers()
    assert told != said, "the limit was not reached"
    for name, numbers in after.items():
        if not name.endswith(".share"):  # of an effect that the cells shown carry
            assert numbers <= before[name], name


def report_constants() -> set[str]:
    """Names in capitals that a module of the report gives a number."""
    return {name for name in constants(("report",)) if name.startswith("report.")}


def test_every_limit_of_a_report_is_moved() -> None:
    assert "report.live.NUMBERS" in report_constants()
    moved_names = {name for limits in REPORT_LIMITS for name, _ in limits} - {
        "report.sections.EFFECT_LEVELS",  # imported
        "report.sections.PAIR_LEVELS",
        "report.live_rows.ROWS",
        "report.page.ROW_FEATURES",
    }
    assert report_constants() - moved_names == set(REPORT_APART)
