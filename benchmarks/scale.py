"""Rows from Parquet files under a memory limit, beside the same group-by by DuckDB and polars alone.

Run ``python -m benchmarks.scale --rows 30000000 --page docs/scale.md``. Every measurement is a process of its own, with
one thread, so that its CPU seconds and its peak of memory are its own. The page is written by this script.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

LEVELS = (2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 8)
LIMIT = "2 GB"
FILE_ROWS = 10**6


def write(folder: Path, rows: int, distinct: int) -> None:
    """Files of 12 columns of text with a score; about ``distinct`` different rows, or nearly all different for 0."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sizes = LEVELS if distinct else (8,) * len(LEVELS)
    kinds = np.random.default_rng(7).integers(0, sizes, size=(distinct, len(sizes))) if distinct else None
    names = [np.array([f"level {k}" for k in range(size)]) for size in sizes]
    for start in range(0, rows, FILE_ROWS):
        rng, count = np.random.default_rng(start), min(FILE_ROWS, rows - start)
        codes = rng.integers(0, sizes, size=(count, len(sizes)))
        codes = codes if kinds is None else kinds[(distinct * rng.random(count) ** 2).astype(int)]
        score = codes[:, 0] * codes[:, 11] + codes[:, 4] * 2 - codes[:, 9]
        columns = {
            f"x{i}": pa.DictionaryArray.from_arrays(codes[:, i].astype(np.int8), names[i]).cast(pa.string())
            for i in range(len(sizes))
        }
        pq.write_table(pa.table({**columns, "score": score}), folder / f"{start // FILE_ROWS:05d}.parquet")


def fit(folder: str) -> str:
    from exanova import FunctionalANOVA

    anova = FunctionalANOVA(memory_limit=LIMIT, n_jobs=1, shrinkage=None).fit(folder, "score")
    return f"{anova.decomposition_.sample.n_rows:,} distinct rows, R2 {anova.certificate_.r2[0]:.6f}"


def count_in_duckdb(folder: str) -> str:
    import duckdb

    columns = ", ".join([*(f"x{i}" for i in range(len(LEVELS))), "score"])
    connection = duckdb.connect(config={"threads": 1})
    found = connection.sql(f"SELECT {columns}, count(*) FROM '{folder}/*.parquet' GROUP BY ALL").to_arrow_table()
    return f"{found.num_rows:,} distinct rows"


def count_in_polars(folder: str) -> str:
    import polars as pl

    columns = [*(f"x{i}" for i in range(len(LEVELS))), "score"]
    found = pl.scan_parquet(f"{folder}/*.parquet").group_by(columns).len().collect(engine="streaming")
    return f"{found.height:,} distinct rows"


TASKS: dict[str, Callable[[str], str]] = {
    "exanova: the whole fit": fit,
    "DuckDB: the group-by": count_in_duckdb,
    "polars: the group-by": count_in_polars,
}


def measured(task: str, folder: str) -> dict[str, object]:
    """CPU seconds and peak of memory of one task, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", "--task", task, "--folder", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"said": done.stderr.strip().splitlines()[-1][:200], "cpu": float("nan"), "peak": float("nan")}
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_here(task: str, folder: str) -> None:
    started = time.process_time()
    said = TASKS[task](folder)
    peak = peak_of_memory()
    print(json.dumps({"said": said, "cpu": time.process_time() - started, "peak": peak}))


def peak_of_memory() -> float:
    """The largest resident size of this process, in GB. What getrusage says would include that of its parent."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e9


def page(lines: list[tuple[int, str, str, dict[str, object]]]) -> str:
    head = [
        "# Scale\n",
        "Made by `make bench-scale`. Rows of 12 columns of text and a score, in Parquet files of a million rows, read",
        f'with `memory_limit="{LIMIT}"`. CPU seconds with one thread and the peak of memory, each task in a process of',
        "its own. The fit has order two, on some 33,000 distinct rows (2 to 8 levels per column), or on rows that are",
        "nearly all distinct (8 levels per column). The others group the same columns and count.\n",
        "| rows | distinct rows | task | CPU seconds | peak, GB | |",
        "|---|---|---|---|---|---|",
    ]
    body = [
        f"| {rows:,} | {kinds} | {task} | {found['cpu']:.1f} | {found['peak']:.2f} | {found['said']} |"
        for rows, kinds, task, found in lines
    ]
    ours = [(rows, found["cpu"]) for rows, kinds, task, found in lines if task == next(iter(TASKS)) and kinds == "few"]
    (n0, t0), (n1, t1) = ours[0], ours[-1]
    growth = np.log(float(t1) / float(t0)) / np.log(n1 / n0) if n1 > n0 else float("nan")  # type: ignore[arg-type]
    later = float(t1) * (10**8 / n1) ** max(growth, 1.0)  # type: ignore[arg-type]
    tail = [
        f"\nThe seconds of the fit grow as the rows to the power {growth:.2f}. By that, and at least in proportion to",
        f"the rows, 100,000,000 rows would take {later:,.0f} CPU seconds; that was not measured.",
    ]
    return "\n".join([*head, *body, *tail]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--all-distinct", type=int, default=10_000_000)
    parser.add_argument("--page")
    parser.add_argument("--task", choices=list(TASKS))
    parser.add_argument("--folder")
    given = parser.parse_args()
    if given.task:
        run_here(given.task, given.folder)
        return
    lines = []
    for rows, kinds in ((min(10**6, given.rows), "few"), (given.rows, "few"), (given.all_distinct, "nearly all")):
        if not rows:
            continue
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), rows, 33_000 if kinds == "few" else 0)
            for task in TASKS if kinds == "few" else [next(iter(TASKS))]:
                lines.append((rows, kinds, task, measured(task, folder)))
                print(*lines[-1])
    if given.page:
        Path(given.page).write_text(page(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
