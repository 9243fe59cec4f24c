"""Random tables, stored in random ways, with random options: files and engines give what memory gives, or its error."""

from __future__ import annotations

import datetime
import os
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from pyarrow.dataset import dataset

from exanova import FunctionalANOVA
from exanova.errors import ExanovaError
from sources.test_split_law import fitted, same, write

CASES = range(int(os.environ.get("RANDOM_FITS", "24")))
"""Seeds of the cases; a run over many is ``RANDOM_FITS=500 pytest tests/sources/test_random_fits.py``."""

COLUMNS = {
    "text": lambda rng, n: rng.choice(["a", "", None, "b b", "NaN"], n),
    "few": lambda rng, n: rng.integers(-2, 3, n),
    "many": lambda rng, n: np.exp(rng.normal(4, 1, n)).astype(int),
    "number": lambda rng, n: np.where(rng.random(n) < 0.05, np.nan, rng.normal(size=n).round(2)),
    "zero": lambda rng, n: rng.choice([0.1, -0.0, 0.0, np.nan], n),
    "flag": lambda rng, n: rng.random(n) < 0.3,
    "day": lambda rng, n: [datetime.date(2021, 1, 1) + datetime.timedelta(int(k)) for k in rng.integers(0, 400, n)],
    "constant": lambda rng, n: np.full(n, 7),
}

PARAMETERS: dict[str, list[Any]] = {
    "link": ["identity", "identity", "identity", "log"],
    "n_bins": ["auto", "auto", 4],
    "min_frequency": [None, None, 0.1, 5],
    "strategy": ["quantile", "quantile", "uniform", "kmeans"],
    "max_order": [1, 2, 2, 3],
    "shrinkage": ["auto", "auto", None],
    "ties": ["share", "share", "share", "first"],
}

ENGINES = {
    "files": lambda pattern: pattern,
    "dataset": lambda pattern: dataset(os.path.dirname(pattern)),
    "polars": pl.scan_parquet,
    "duckdb": lambda pattern: duckdb.connect().read_parquet(pattern),
}


def random_table(rng: np.random.Generator) -> pd.DataFrame:
    """Features of random kinds, and outputs that differ between equal rows, or not."""
    n, kinds = int(rng.choice([2, 40, 300, 900])), rng.choice(list(COLUMNS), int(rng.integers(1, 4)))
    table = pd.DataFrame({f"{kind} {i}": COLUMNS[kind](rng, n) for i, kind in enumerate(kinds)})
    codes = [pd.factorize(table[name], use_na_sentinel=False)[0] for name in table]
    noise = rng.choice([0.0, 1.0]) * rng.normal(size=n)
    score = sum(np.sin(1.3 * own + i) for i, own in enumerate(codes)) + codes[0] * codes[-1] % 3 + noise
    return table.assign(score=np.exp(np.round(score * 2) / 4) if rng.random() < 0.5 else np.exp(score / 2))


def random_design(rng: np.random.Generator, table: pd.DataFrame) -> dict[str, Any]:
    """Columns of weights, clusters and strata, which are added to the table, and how they are named."""
    n, how = len(table), {}
    if rng.random() < 0.5:
        table["weight"] = rng.integers(1, 4, n) if rng.random() < 0.5 else rng.choice([0.25, 0.5, 1.3], n)
        how["sample_weight"] = "weight"
        if rng.random() < 0.3:
            how["weights"] = "probability"
    drawn = rng.choice(["rows", "rows", "clusters", "replicates"])
    if drawn == "clusters" and n > 2:
        table["house"] = rng.integers(0, n // 4, n)
        how["clusters"] = "house"
    if drawn == "replicates":
        table[["r1", "r2", "r3"]] = rng.integers(1, 4, (n, 3)) * 0.75
        how["replicate_weights"] = (["r1", "r2", "r3"], 0.25)
    if rng.random() < 0.3 and n > 40:
        how["eval_set"] = 0.25
    return how


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", CASES)
def test_random_fits_are_those_of_memory(tmp_path, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    how = random_design(rng, table)
    parameters = {name: values[rng.integers(len(values))] for name, values in PARAMETERS.items()}
    parts, block = min(len(table), int(rng.choice([1, 2, 7, 30]))), int(rng.choice([3, 17, 10**6]))
    pattern = write(table, tmp_path / "parts", parts, "parquet", seed=seed)
    name = str(rng.choice(list(ENGINES)))
    monkeypatch.setattr("exanova.sources.parts.BLOCK_ROWS", block)
    expected, refused = fit_or_error(table, parameters, how)
    found, error = fit_or_error(ENGINES[name](pattern), parameters, how)
    assert error == refused
    if expected is not None:
        same(found, expected, exact=False, evaluated=1e-6)  # a step of a likelihood search multiplies rounding


def fit_or_error(X: Any, parameters: dict[str, Any], how: dict[str, Any]) -> tuple[FunctionalANOVA | None, str]:
    """The fit, or the kind of its error and what it says up to the number of a row."""
    try:
        return fitted(X, "score", parameters=dict(parameters), **how), ""
    except ExanovaError as error:
        return None, f"{type(error).__name__}: {error}".split(" in row ")[0]
