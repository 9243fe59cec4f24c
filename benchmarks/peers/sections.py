"""The words of the page: what each case is, why we lose where we lose, and when a peer is the better choice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Attributes:
        key: name of its picture.
        title, about: what was done.
        cases: the cases of its tables, and how they are called.
        size: what the sizes of its cases are.
        slower: the reason, where exanova is slower than a peer.
        choose: for each peer, when to take it.
        by_rows: whether cost is drawn against the rows explained.
    """

    key: str
    title: str
    about: str
    cases: dict[str, str]
    size: str
    slower: str
    choose: dict[str, str]
    by_rows: bool = False


SMALL_TABLE = (
    "a fit reads levels, surveys the cells, chooses a route, solves and then measures the result, a few "
    "thousandths of a second however small the table is; the peer receives a tensor and returns tensors"
)
TO_ROUNDING = (
    "under strongly uneven weights iterations go on until margins vanish to rounding, where `purify` stops earlier, as "
    "its orthogonality shows"
)
ALL_FUNCTIONS = (
    "With many cells, the elimination that finds rank and redundancy dominates; it holds a matrix of all functions by "
    "all functions, and so loses in memory by the most, while `purify` holds little more than the table"
)

DESCRIBED = """## Not measured: conditional Shapley values by shapr

shapr (R; shaprpy calls it from Python) is the nearest relative for dependent categories. With
`approach="categorical"` it takes the distribution of the features outside a coalition, given those inside, from the
table of joint frequencies (or from one that is given), and averages the model over it: v(S) = E[f | x_S] is then exact
for that table. Rows to be explained whose combination is not among the training rows get a small frequency of their
own. It asks the model about combinations that occur, as exanova does, and it respects dependence.

It answers another question with the same ingredients. Its game is v(S) = E[f | x_S]; the game here is the sum of the
effects inside S. They agree when the features are independent. Under dependence a feature that the model never reads
can have a conditional Shapley value other than 0, because it tells something of those that it does read. shapr gives
one number per feature for each row that is explained, over coalitions whose number doubles with every feature (or over
a sample of them); it has no effect tables, no interactions, and no statement of what the rows determine. R is not part
of this benchmark, so that no time is given."""
"""A peer that is described in words."""

SECTIONS = (
    Section(
        key="full",
        title="Every order of a complete dependent table",
        about=(
            "A function on a complete grid of d variables with three levels each, decomposed to all orders. The "
            "weights are nearly even (a Dirichlet distribution with parameter 5) or strongly uneven (squared normals)."
        ),
        cases={"full mild": "nearly even weights", "full strong": "strongly uneven weights"},
        size="variables",
        slower=f"{SMALL_TABLE}. Also, {TO_ROUNDING}.",
        choose={
            "purify": (
                "Take interpret's `purify` for one small complete tensor whose weights are not extreme, when you "
                "need neither names, nor evidence, nor explanations of rows: it is fast and exact there."
            ),
            "dense solve": "Take the dense solve of the paper (`exanova.reference`) to follow its text line by line.",
        },
    ),
    Section(
        key="holes",
        title="The same with cells missing",
        about=(
            "30 % and 60 % of the cells drawn at random cannot occur. The decomposition is then not unique in "
            "general, so that answers may differ and both be right; what distinguishes them is whether effects are "
            "orthogonal and add up to the function."
        ),
        cases={"holes 30": "30 % missing", "holes 60": "60 % missing"},
        size="variables",
        slower=f"{SMALL_TABLE}. {ALL_FUNCTIONS}.",
        choose={
            "purify": (
                "Take `purify` for a table with few holes if you check its margins yourself: it stops when they no "
                "longer improve, and does not say how large they are."
            ),
            "Algorithm 1": (
                "Take Algorithm 1 of the paper to see which of its functions are kept, on tables this small."
            ),
        },
    ),
    Section(
        key="boosting",
        title="Main effects and pairs of boosted trees",
        about=(
            "XGBoost, 100 trees of depth 2 or 6, trained on 10,000 rows of d dependent features with three "
            "levels; from "
            "the model and the rows to the contribution of every feature and pair to every row."
        ),
        cases={"boosting depth 2": "depth 2", "boosting depth 6": "depth 6"},
        size="features",
        slower="the family of pairs is larger than the trees need.",
        choose={
            "treehfd": (
                "Take treehfd when the inputs of the trees are continuous: it works on the partitions of the trees "
                "and needs no bins."
            ),
        },
    ),
    Section(
        key="local",
        title="Shapley values of all rows",
        about=(
            "Car (1,728 rows, 6 features), Nursery (12,960, 8) and Mushroom (8,124, 22); a random forest of 100 "
            "trees and "
            "a network of 64 and 32 units; the probability of one class. Ours decomposes all orders for Car and "
            "Nursery and two for Mushroom, and includes that fit. KernelExplainer and shapiq's TabularExplainer "
            "average over the same 100 background rows, woodelf over all rows; shapiq's TabularExplainer evaluates at "
            "most 2,048 coalitions per row. Where a peer explained a part of the rows, its time for all is in "
            "proportion, marked ≈. "
            "Car and Nursery are complete uniform grids: there the marginal game of the peers is the game solved "
            "here, and "
            "the difference is their sampling error or that of the trees' own counts. On Mushroom the games differ."
        ),
        cases={"local forest": "random forest", "local network": "network"},
        size="table",
        slower="the decomposition of all rows comes first, however few are explained.",
        choose={
            "shap KernelExplainer": (
                "Take KernelExplainer when you want the marginal game, or inputs are continuous, and a few "
                "rows "
                "are enough."
            ),
            "shap TreeExplainer": (
                "Take shap's TreeExplainer for a few rows of a tree model, or for trees on continuous inputs: it needs "
                "no fit."
            ),
            "shapiq TabularExplainer": (
                "Take shapiq for a few rows of any model on continuous inputs, or for the games and indices that are "
                "not functional ANOVA."
            ),
            "shapiq TreeExplainer": (
                "Take shapiq's TreeExplainer for interactions of any order of trees on continuous inputs."
            ),
            "woodelf": (
                "Take woodelf for the marginal game of trees over a large background, or for millions of rows: its "
                "cost grows with the rows explained plus the background, not with their product."
            ),
        },
        by_rows=True,
    ),
    Section(
        key="pairs",
        title="Pairwise interactions of all rows",
        about=(
            "The same tables and models; the pairs of k-SII of order two, which are those of SII (shap's values "
            "[i, j] and "
            "[j, i] together)."
        ),
        cases={"pairs forest": "random forest", "pairs network": "network"},
        size="table",
        slower="the decomposition of all rows comes first, however few are explained.",
        choose={
            "shap TreeExplainer": "Take shap's TreeExplainer for pairs of a tree model on continuous inputs.",
            "shapiq TabularExplainer": "Take shapiq where a few rows are enough and inputs are continuous.",
            "shapiq TreeExplainer": "Take shapiq's TreeExplainer for the trees it supports when inputs are continuous.",
            "woodelf": "Take woodelf for pairs in the marginal game of trees, which shap does not compute.",
        },
        by_rows=True,
    ),
    Section(
        key="gram",
        title="Weighted Gram matrix of categories and pairs",
        about=(
            "50,000 rows of d features with four levels: the mean, every level but one and their products, weighted by "
            "whole numbers or by real ones. The peers build their columns before the clock starts; ours packs its bits "
            "(whole numbers) or finds the cells of every row (real numbers) within the time."
        ),
        cases={"gram counts": "whole-number weights", "gram weights": "real weights"},
        size="features",
        slower=(
            "real weights are added up row by row and pair by pair: with few features, finding the cells of every row "
            "takes longer than the products themselves."
        ),
        choose={
            "tabmat sandwich": (
                "Take tabmat for generalised linear models: the columns are kept while the weights change from step "
                "to step."
            ),
            "scipy.sparse": "Take scipy.sparse for columns of a mixed kind, and no more than some hundreds of them.",
            "dense BLAS": "Take BLAS when the dense columns fit in memory several times and weights are real.",
        },
    ),
)
