"""On a cluster the answer is the same, also when workers die; a lost scheduler is one error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from exanova import FunctionalANOVA, load
from exanova.errors import EngineError, InputError
from exanova.progress import Progress
from exanova.sources.cluster import OnCluster
from exanova.sources.opening import open_source
from sources.test_split_law import FEATURES, fitted, rows, same, write

dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # engines warn of what they do with pandas, sockets and processes

TABLE = rows(400)[[*FEATURES, "score"]]
LOCAL = {"dashboard_address": "127.0.0.1:0", "threads_per_worker": 1, "silence_logs": 50}


@pytest.fixture(scope="module")
def client() -> Iterator[object]:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 3}),
        distributed.LocalCluster(n_workers=2, processes=True, host="127.0.0.1", **LOCAL) as cluster,
        distributed.Client(cluster) as found,
    ):
        # A nanny whose worker is killed while it starts gives up; whoever runs a cluster then starts another.
        cluster.adapt(minimum=2, maximum=2, interval="200ms")
        yield found


@pytest.fixture
def path(tmp_path):
    return write(TABLE, tmp_path / "parts", 11, "parquet", seed=1)


@dataclass(frozen=True)
class KillingPart:
    """A part that kills the worker that reads it, at the first reading or at the second, so many times."""

    part: object
    folder: Path
    reading: int
    times: int = 1

    @property
    def name(self) -> str:
        return self.part.name

    def blocks(self, columns):
        readings = sorted(self.folder.glob("reading*"))
        kills = sorted(self.folder.glob("kill*"))
        if len(readings) == self.reading and len(kills) < self.times:
            (self.folder / f"kill{len(kills)}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from self.part.blocks(columns)
        (self.folder / f"reading{len(readings)}").touch()


def nothing_left(client) -> bool:
    """Whether the cluster soon neither computes nor keeps anything."""
    deadline = time.monotonic() + 20
    while any(client.processing().values()) or any(client.who_has().values()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def killing(path, folder, reading, times=1):
    source = open_source(path)
    first = KillingPart(source.parts[4], folder, reading, times)
    return replace(source, parts=(*source.parts[:4], first, *source.parts[5:]))


def test_two_workers_give_the_same_bytes(client, path):
    same(fitted(path, "score", parameters={"engine": client}), fitted(TABLE, "score"), exact=True)


@pytest.mark.parametrize(("reading", "spilled"), [(0, False), (1, False), (1, True)])
def test_workers_killed_in_either_pass_again_and_again_change_nothing(
    client, path, tmp_path, reading, spilled, monkeypatch
):
    source = killing(path, tmp_path, reading, times=2)
    if reading:  # a part of about as many distinct rows as rows is read twice
        monkeypatch.setattr("exanova.sources.reading.ColumnCounter", no_keeping)
    if spilled:  # rows that take too much memory are taken from the workers one part after the other
        monkeypatch.setattr("exanova.sources.runs.SHARE", 0.0)
    found = fitted(source, "score", parameters={"engine": client})
    assert found.plan_.on_disk == spilled
    same(found, fitted(TABLE, "score"), exact=True)
    assert (tmp_path / "kill1").exists()
    assert nothing_left(client)


def no_keeping(roles, most):
    from exanova.sources.counting_passes import ColumnCounter

    return ColumnCounter(roles, most, keep=False)


def test_workers_killed_while_results_are_merged_change_nothing(client, tmp_path):
    found = OnCluster(client)(double, list(range(20)), MergeAndDie(str(tmp_path)), Progress(enabled=False))
    assert found == 2 * sum(range(20))
    assert len(list(tmp_path.glob("killed*"))) == 2
    assert nothing_left(client)


def double(part):
    return 2 * part


@dataclass(frozen=True)
class MergeAndDie:
    folder: str

    def __call__(self, several):
        killed = len(list(Path(self.folder).glob("killed*")))
        if killed < 2:
            Path(self.folder, f"killed{killed}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return sum(several)


def test_a_thousand_files_on_two_workers_give_the_same_bytes(client, tmp_path):
    table = rows(1000)[["colour", "size", "score"]]
    path = write(table, tmp_path / "parts", 1000, "parquet", seed=2)
    same(fitted(path, "score", parameters={"engine": client}), fitted(table, "score"), exact=True)


def test_a_part_that_kills_every_worker_is_one_error_and_leaves_nothing(client, path, tmp_path):
    source = killing(path, tmp_path, 0, times=100)
    with pytest.raises(EngineError, match="the cluster did not finish: KilledWorker"):
        fitted(source, "score", parameters={"engine": client})
    assert nothing_left(client)


def test_an_error_in_a_file_is_that_of_the_file(client, path, tmp_path):
    Path(path.replace("*", "0003")).write_bytes(b"PAR1 nothing else")
    with pytest.raises(InputError, match=r"0003\.parquet"):
        fitted(path, "score", parameters={"engine": client})


def test_a_lost_scheduler_is_one_error(path, tmp_path):
    """It has no workers, so that the fit is certain to wait for it when it is killed."""
    where = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(where)]
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    timer = threading.Timer(2.0, scheduler.kill)
    try:
        with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
            client = distributed.Client(scheduler_file=str(where), timeout="60s")
            timer.start()
            with pytest.raises(EngineError, match="the cluster did not finish"):
                fitted(path, "score", parameters={"engine": client})
            client.close(timeout=1)
    finally:
        timer.cancel()
        scheduler.kill()
        scheduler.wait(timeout=20)


def test_a_cluster_without_workers_is_one_error_after_a_while(path, monkeypatch):
    """All of its workers may have died, or none may ever come; tasks would wait for ever."""
    monkeypatch.setattr("exanova.sources.cluster.CHECKED_EVERY", 0.1)
    monkeypatch.setattr("exanova.sources.cluster.WITHOUT_WORKERS", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, processes=True, host="127.0.0.1", **LOCAL) as cluster,
        distributed.Client(cluster, set_as_default=False) as alone,
    ):
        with pytest.raises(EngineError, match=r"it has had no worker for .* seconds"):
            fitted(path, "score", parameters={"engine": alone})
        with pytest.raises(EngineError, match=r"it has had no worker for .* seconds"):
            list(OnCluster(alone).each(double, [1, 2], Progress(enabled=False)))
        assert nothing_left(alone)


def test_an_engine_is_a_parameter_that_is_cloned_and_not_saved(client, path, tmp_path):
    anova = FunctionalANOVA(engine=client).fit(path, "score")
    assert clone(anova).engine is client
    anova.save(tmp_path / "model.exanova")
    again = load(tmp_path / "model.exanova")
    assert again.engine is None
    assert np.array_equal(again.decomposition_.values, anova.decomposition_.values)
    assert "engine" not in dict(anova.provenance_.settings)
