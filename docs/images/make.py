"""Draw the pictures of the documentation again: ``python docs/images/make.py`` from the top folder."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from exanova import FunctionalANOVA, Support, demo

HERE = Path(__file__).resolve().parent
BOARD = ("x", "o", "x", "o", "x", "blank", "o", "blank", "x")
"""x has won along a diagonal."""

ABOARD = np.array([[[5, 175], [1, 144]], [[11, 168], [13, 93]], [[48, 462], [31, 165]], [[0, 862], [0, 23]]])
"""People aboard the Titanic by class, sex and age."""

SURVIVED = np.array([[[5, 57], [1, 140]], [[11, 14], [13, 80]], [[13, 75], [14, 76]], [[0, 192], [0, 20]]])


def quickstart() -> None:
    """The effect of a number, with the table and the model of the first block of code in the README."""
    readme = (HERE.parent.parent / "README.md").read_text(encoding="utf-8")
    namespace: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(readme.partition("```python\n")[2].partition("```")[0], namespace)
    anova = FunctionalANOVA(n_bins=12).fit(namespace["loans"], namespace["risk"])
    anova.plot.effect("income").save(HERE / "income.png", ppi=90)


def waterfall() -> None:
    """One board of the demo, from the mean to the prediction."""
    boards = demo.end_positions()
    model = demo.train(boards)
    probability = model.predict_proba(np.array(boards))[:, 1]
    anova = demo.decompose(boards, probability)
    of_board = probability[[boards.index(BOARD)]]
    anova.plot.waterfall(dict(zip(demo.SQUARES, BOARD, strict=True)), of_board).save(HERE / "waterfall.png", ppi=90)


def titanic() -> None:
    """Effects on the share of survivors; no child belonged to the crew."""
    levels = [["1st", "2nd", "3rd", "crew"], ["male", "female"], ["child", "adult"]]
    support = Support.from_pmf(ABOARD, feature_names=["class", "sex", "age"], levels=levels)
    share = (SURVIVED / np.maximum(ABOARD, 1))[tuple(support.codes)]
    plot = FunctionalANOVA(max_order=2).fit(support, share, output_names=["survived"]).plot
    plot.importance().save(HERE / "importance.png", ppi=90)
    plot.effect("class").save(HERE / "effect.png", ppi=90)
    plot.pair("class", "age").save(HERE / "pair.png", ppi=90)
    plot.network().save(HERE / "network.png", ppi=60)
    plot.certificate().save(HERE / "certificate.png", ppi=70)


if __name__ == "__main__":
    quickstart()
    waterfall()
    titanic()
