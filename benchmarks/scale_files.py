"""Rows from Parquet files under a memory limit: fits, the same group-by by other engines, and explanations to files."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

LEVELS = (2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 8)
LIMIT = "2 GB"
FILE_ROWS = 10**6
FEW = 33_000


def write(path: Path, start: int, count: int, distinct: int) -> None:
    """A file of 12 columns of text with a score; about ``distinct`` different rows, or nearly all different for 0."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sizes = LEVELS if distinct else (8,) * len(LEVELS)
    kinds = np.random.default_rng(7).integers(0, sizes, size=(distinct, len(sizes))) if distinct else None
    names = [np.array([f"level {k}" for k in range(size)]) for size in sizes]
    rng = np.random.default_rng(start)
    codes = rng.integers(0, sizes, size=(count, len(sizes)))
    codes = codes if kinds is None else kinds[(distinct * rng.random(count) ** 2).astype(int)]
    score = codes[:, 0] * codes[:, 11] + codes[:, 4] * 2 - codes[:, 9]
    columns = {
        f"x{i}": pa.DictionaryArray.from_arrays(codes[:, i].astype(np.int8), names[i]).cast(pa.string())
        for i in range(len(sizes))
    }
    unfinished = path.with_suffix(".unfinished")
    pq.write_table(pa.table({**columns, "score": score}), unfinished)
    unfinished.rename(path)


def files(work: Path, kind: str, rows: int) -> list[str]:
    """The first files of a kind that hold so many rows, each written if it is not there."""
    folder = work / kind
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [folder / f"{k:05d}.parquet" for k in range(-(-rows // FILE_ROWS))]
    for k, path in enumerate(wanted):
        if not path.exists():
            write(path, k * FILE_ROWS, FILE_ROWS, FEW if kind == "few" else 0)
    return [str(path) for path in wanted]


def fit(paths: list[str]) -> str:
    from exanova import FunctionalANOVA

    anova = FunctionalANOVA(memory_limit=LIMIT, n_jobs=1, shrinkage=None).fit(paths, "score")
    disk = ", on disk" if anova.plan_.on_disk else ""
    return f"{anova.plan_.distinct_rows:,} distinct rows{disk}, R2 {anova.certificate_.r2[0]:.6f}"


def shrunk_fit(paths: list[str]) -> str:
    from exanova import FunctionalANOVA

    anova = FunctionalANOVA(memory_limit=LIMIT, n_jobs=1).fit(paths, "score")
    return f"{anova.plan_.distinct_rows:,} distinct rows, R2 on other rows {anova.certificate_.r2_eval[0]:.6f}"


def _columns() -> list[str]:
    return [*(f"x{i}" for i in range(len(LEVELS))), "score"]


def count_in_duckdb(paths: list[str]) -> str:
    import duckdb

    listed = ", ".join(_columns())
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"CREATE TABLE counts AS SELECT {listed}, count(*) AS n FROM read_parquet({paths}) GROUP BY ALL")
    return f"{connection.execute('SELECT count(*) FROM counts').fetchall()[0][0]:,} distinct rows"


def count_in_polars(paths: list[str]) -> str:
    import polars as pl

    found = pl.scan_parquet(paths).group_by(_columns()).len().collect(engine="streaming")
    return f"{found.height:,} distinct rows"


def explain_rows(paths: list[str]) -> str:
    """``exanova rows``: Shapley values of every row of the files, block by block, to a folder of Parquet."""
    import pyarrow.parquet as pq

    from exanova import FunctionalANOVA
    from exanova.cli import main

    with tempfile.TemporaryDirectory() as place:
        source, saved, out = Path(place) / "data", f"{place}/model.exanova", f"{place}/values"
        source.mkdir()
        for path in paths:
            (source / Path(path).name).symlink_to(path)
        FunctionalANOVA(memory_limit=LIMIT, n_jobs=1, shrinkage=None).fit(paths[:1], "score").save(saved)
        sys.argv = ["exanova", "rows", saved, str(source), "--output", out, "--quiet"]
        with suppress(SystemExit):
            main()
        rows = sum(pq.read_metadata(path).num_rows for path in Path(out).iterdir())
        written = sum(path.stat().st_size for path in Path(out).iterdir())
    return f"{rows:,} rows explained, {written / 1e6:,.0f} MB written"


TASKS: dict[str, Callable[[list[str]], str]] = {
    "exanova: the whole fit": fit,
    "exanova: the fit with shrinkage": shrunk_fit,
    "DuckDB: the group-by": count_in_duckdb,
    "polars: the group-by": count_in_polars,
    "exanova rows: Shapley values": explain_rows,
}
FIT, SHRUNK, DUCK, POLARS, ROWS = TASKS


def plan_of_work(most: int) -> list[tuple[str, str, int]]:
    """Task, kind of rows and number of rows of every measurement, at most so many rows."""
    growth = [n for n in (10**6, 3 * 10**6, 10**7, 3 * 10**7) if n <= most]
    found = [(FIT, kind, n) for kind in ("few", "all") for n in growth]
    found += [(task, kind, growth[-1]) for task in (DUCK, POLARS) for kind in ("few", "all")]
    found += [(SHRUNK, "few", growth[-1])]
    return [*found, *((ROWS, "few", n) for n in growth[:3:2])]


def run(work: Path, task: str, kind: str, rows: int) -> dict[str, Any]:
    """One measurement, in this process."""
    return {"said": TASKS[task](files(work, kind, rows))}
