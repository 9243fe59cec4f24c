"""Exact Shapley values on a complete grid beside KernelSHAP's, for the experiments that do this."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.harness import clocked

from exanova import Explanation, FunctionalANOVA
from exanova.typing import FloatArray, IntArray
from experiments.charts import bars
from experiments.harness import SEED, Figure, Report, Row, Settings, Table, below, equal

BACKGROUND = 200


@dataclass(frozen=True)
class Grid:
    """A complete grid with a model on it.

    Attributes:
        X: the rows as text.
        codes: (n, d) the same as numbers.
        values: (n, m) outputs of the model.
        classes: names of the outputs.
        accuracy: of the model on rows it was not trained on.
    """

    X: Any
    codes: IntArray
    values: FloatArray
    classes: list[str]
    accuracy: float

    def model(self) -> Callable[[Any], FloatArray]:
        """The model as a function of codes. All its inputs are on the grid, so that its values are looked up."""
        sizes = self.codes.max(axis=0) + 1
        strides = np.append(np.cumprod(sizes[:0:-1])[::-1], 1).astype(np.float64)
        looked_up = np.empty_like(self.values)
        looked_up[(self.codes @ strides).astype(np.intp)] = self.values
        return lambda rows: looked_up[(np.asarray(rows, dtype=np.float64) @ strides).astype(np.intp)]


@dataclass(frozen=True)
class Case:
    """What a page says of a grid, and the paper's figures.

    Attributes:
        name: of the experiment.
        title, about, model: as in :class:`Report`.
        accuracy, seconds: the paper's, as printed.
        ise: the paper's 100 x ISE by class, in alphabetical order (the paper numbers them), and feature.
        digits: how many of them the paper prints.
        rows: how many KernelSHAP explains here.
    """

    name: str
    title: str
    about: str
    model: str
    accuracy: str
    seconds: str
    ise: dict[str, list[float]]
    digits: int
    rows: int


def explained(grid: Grid) -> Explanation:
    """From text and outputs to the Shapley values of every row and class."""
    return (
        FunctionalANOVA(shrinkage=None, max_order=None)
        .fit(grid.X, grid.values, output_names=grid.classes)
        .explain(grid.X)
    )


def kernel_values(grid: Grid, background: IntArray, rows: IntArray, **options: Any) -> FloatArray:
    """(rows, d, m) values of KernelExplainer, one column one player."""
    import shap

    logging.getLogger("shap").setLevel(logging.ERROR)  # it finds 200 background rows many; the paper has 200
    explainer = shap.KernelExplainer(grid.model(), grid.codes[background])
    return np.asarray(explainer.shap_values(grid.codes[rows], silent=True, **options))


def compare(settings: Settings, case: Case, grid: Grid) -> Report:
    """Explain all rows exactly and some by KernelSHAP, with the first and with random rows as background."""
    explained(grid)  # compiles
    seconds, exact = clocked(lambda: explained(grid))
    count = len(grid.codes)
    rng = np.random.default_rng(SEED)
    rows = np.sort(rng.choice(count, min(20 if settings.quick else case.rows, count), replace=False))
    backgrounds = {"first": np.arange(BACKGROUND), "random": rng.choice(count, BACKGROUND, replace=False)}
    ise = {
        kind: 100 * ((kernel_values(grid, background, rows) - exact.values[rows]) ** 2).mean(axis=0).T
        for kind, background in backgrounds.items()
    }
    whole = kernel_values(grid, np.arange(count), rows[:3], l1_reg=False)
    printed = np.array(list(case.ise.values()))
    return Report(
        title=case.title,
        about=case.about,
        model=case.model,
        rows=[
            Row("accuracy of the model", case.accuracy, f"{grid.accuracy:.4f}", "on a fifth of the rows, held out"),
            Row(
                "decomposition and all Shapley values", case.seconds, f"{seconds:.2f} s", "another machine", chief=True
            ),
            Row(
                "largest 100 x ISE",
                f"{printed.max():.2f}",
                f"{ise['first'].max():.2f}",
                sampled(len(rows), count),
                True,
            ),
            Row("the same, background at random", "", f"{ise['random'].max():.2f}", "what 200 rows can tell"),
        ],
        tables=[ise_table(exact, case, ise)],
        figures=[figure(settings, case, exact, ise)],
        checks=[
            equal("rows of the complete grid", exact.values.shape[0], count),
            below("Shapley values and mean against the model", additivity(exact, grid), 1e-10),
            below("largest difference to KernelSHAP, whole grid as background", largest(whole, exact, rows[:3]), 1e-10),
            below("100 x ISE with a random background", float(ise["random"].max()), float(ise["first"].max())),
        ],
        remarks=[WHY],
    )


WHY = (
    "The grid is uniform and the features are independent, so both methods aim at the same numbers: with the whole "
    "grid as background KernelSHAP gives ours to rounding (below; shap's own selection of features switched off). With "
    "200 background rows the tables measure those rows. The file is sorted by one feature after the other, so its "
    "first 200 rows hold one or two levels of the first features and all levels of the last. With them the errors are "
    "those of the paper, feature by feature; with 200 rows drawn at random they are tens of times smaller."
)


def sampled(rows: int, count: int) -> str:
    sample = "" if rows >= count else f"; {rows:,} rows drawn at random, all in the paper"
    return f"with the first 200 rows of the file as background{sample}"


def additivity(exact: Explanation, grid: Grid) -> float:
    return float(np.abs(exact.values.sum(axis=1) + exact.base_values - grid.values).max())


def largest(values: FloatArray, exact: Explanation, rows: IntArray) -> float:
    return float(np.abs(values - exact.values[rows]).max())


def ise_table(exact: Explanation, case: Case, ise: dict[str, FloatArray]) -> Table:
    """Three lines a class: the paper, then ours with both backgrounds."""
    lines = []
    for k, (label, printed) in enumerate(case.ise.items()):
        for what, values in (("the paper", printed), ("first 200", ise["first"][k]), ("random 200", ise["random"][k])):
            first = label if what == "the paper" else ""
            lines.append([first, what, *(f"{value:.{case.digits}f}" for value in values)])
    caption = "100 x ISE, the mean squared difference between KernelSHAP's values and the exact ones:"
    return Table(caption, ["class", "background", *exact.feature_names], lines)


def figure(settings: Settings, case: Case, exact: Explanation, ise: dict[str, FloatArray]) -> Figure:
    """Sum over the classes, feature by feature."""
    series = {"the paper": np.array(list(case.ise.values())), "first 200 rows": ise["first"]}
    series["random 200 rows"] = ise["random"]
    totals = {kind: dict(zip(exact.feature_names, table.sum(axis=0), strict=True)) for kind, table in series.items()}
    title = "KernelSHAP against the exact values"
    chart = bars(totals, axis="100 x ISE, sum over the classes", title=title, format=".2f")
    caption = "Error of KernelSHAP by feature: the paper, and two backgrounds here."
    return settings.figure(f"{case.name}-ise.svg", chart, caption)
