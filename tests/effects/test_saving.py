"""Saving: no crash loses a file, and places that cannot be written are named."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA, atomic_files
from exanova.errors import FileWriteError, InputTypeError

KILLER = """
import os, random, signal, sys, time
from pathlib import Path
import exanova

folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
first, second = (exanova.load(folder / name) for name in ("first", "second"))
wanted = {(folder / name).read_bytes() for name in ("first", "second")}
target = folder / "target"
first.save(target)
chance, torn = random.Random(7), 0
for _ in range(rounds):
    child = os.fork()
    if child == 0:
        while True:
            second.save(target)
            first.save(target)
    time.sleep(chance.uniform(0.002, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    exanova.load(target)
    assert target.read_bytes() in wanted
    torn += len(list(folder.glob(".*.part")))
    for left in folder.glob(".*.part"):
        left.unlink()
print(torn)
"""


def small_fit():
    """A decomposition of a few rows."""
    rows = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    return FunctionalANOVA(shrinkage=None).fit(rows, np.array([0.0, 1.0, 5.0]))


def test_a_kill_at_any_moment_of_saving_loses_nothing(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (300, 4))
    for name in ("first", "second"):
        FunctionalANOVA(shrinkage=None, max_order=2).fit(X, rng.normal(size=(300, 100))).save(tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path), "25"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0, "no kill fell into a write: the test would not notice a torn one"


@pytest.mark.parametrize("before", [None, b"what was there before"])
@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_a_disk_that_refuses_leaves_what_was_there(tmp_path, monkeypatch, before, function, number):
    anova = small_fit()
    path = tmp_path / "it.exanova"
    if before is not None:
        path.write_bytes(before)

    def refuse(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic_files.os, function, refuse)
    with pytest.raises(FileWriteError, match=os.strerror(number)) as caught:
        anova.save(path)
    assert isinstance(caught.value, OSError)
    assert os.listdir(tmp_path) == ([] if before is None else ["it.exanova"])
    assert before is None or path.read_bytes() == before


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch):
    anova = small_fit()

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic_files.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        anova.save(tmp_path / "it")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    """The write itself fails, not only the flush: what the disk holds by then is removed."""
    anova = small_fit()
    opened = open

    class Full:
        def __init__(self, *arguments):
            self.file = opened(*arguments)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, body):
            self.file.write(body[: len(body) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic_files, "open", Full, raising=False)
    with pytest.raises(FileWriteError, match="No space left"):
        anova.save(tmp_path / "it")
    assert os.listdir(tmp_path) == []


def test_places_that_cannot_be_written_are_named(tmp_path):
    anova = small_fit()
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    places = [tmp_path / "missing" / "it", tmp_path / "folder", tmp_path / "file" / "it", "", ".", f"{tmp_path}/\0"]
    places.append(tmp_path / ("n" * 300))
    for place in places:
        with pytest.raises(FileWriteError, match="cannot be written"):
            anova.save(place)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert os.listdir(tmp_path / "folder") == []
    if os.geteuid():  # root may write everywhere
        (tmp_path / "folder").chmod(0o500)
        with pytest.raises(FileWriteError, match="Permission denied"):
            anova.save(tmp_path / "folder" / "it")


def test_a_name_may_be_as_long_as_the_disk_allows(tmp_path):
    anova = small_fit()
    anova.save(tmp_path / ("n" * 255))
    assert exanova.load(tmp_path / ("n" * 255)).plan_ == anova.plan_


def test_levels_that_cannot_be_written_are_named_before_anything_is(tmp_path):
    X = np.empty((2, 1), dtype=object)
    X[:, 0] = [(1, 2), "b"]
    with pytest.raises(InputTypeError, match=r"\(1, 2\).*cannot be written"):
        FunctionalANOVA(shrinkage=None).fit(X, np.array([1.0, 2.0])).save(tmp_path / "it")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    anova = small_fit()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileWriteError, match="it exists and is not a file"):
        anova.save(pipe)
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


FIRST = pd.Timestamp("2001-02-01")
KINDS = {
    "whole": lambda k: k,
    "decimal": lambda k: k / 8,
    "single": lambda k: np.asarray(k / 10, dtype=np.float32).astype(np.float64),
    "month": lambda k: FIRST.to_period("M").to_timestamp() + np.array([pd.DateOffset(months=int(m)) for m in k]),
    "day": lambda k: FIRST + pd.to_timedelta(k, unit="D"),
    "hour": lambda k: (FIRST + pd.to_timedelta(k, unit="h")).tz_localize("UTC"),
    "duration": lambda k: pd.to_timedelta(k, unit="h"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@given(data=st.data())
@settings(deadline=None, max_examples=8)
def test_every_cut_column_is_loaded_as_it_was_saved(kind, strategy, data, tmp_path_factory):
    """Whatever values are heavy: one in the middle, the first, or the last, such as numbers that stop at a top."""
    low, high = sorted(data.draw(st.lists(st.integers(0, 60), min_size=2, max_size=2, unique=True)))
    steps = np.clip(np.arange(61), low, max(high, low + 22))
    heavy = data.draw(st.lists(st.sampled_from(steps.tolist()), max_size=40))
    X = pd.DataFrame({"a": KINDS[kind](np.array([*steps, *heavy]))})
    fitted = FunctionalANOVA(max_order=1, strategy=strategy).fit(X, np.sqrt(np.arange(len(X))))
    path = tmp_path_factory.mktemp("cut") / "one.exanova"
    fitted.save(path)
    loaded = exanova.load(path)
    assert loaded.effects_["a"].levels == fitted.effects_["a"].levels
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
