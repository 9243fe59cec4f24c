"""Distinct rows that take more memory than they may go to disk: the same answer, and nothing is left there."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.data.mapped import mapping_of, release
from exanova.errors import FileWriteError, MemoryLimitError
from exanova.sources import sketch
from exanova.sources.counting_passes import CountedRows
from exanova.sources.disk import disk_array, on_disk
from exanova.sources.runs import Runs, place_of, ranges, stored
from exanova.sources.tally import merge_tallies, tally_rows, together
from sources.test_split_law import fitted, same, write


def wide(n=4000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"x{i}": rng.integers(0, 7, n) for i in range(6)})
    return table.assign(score=table.x0 * table.x1 + table.x2)


@pytest.fixture
def path(tmp_path):
    return write(wide(), tmp_path / "parts", 5, "parquet", seed=1)


def spilled(monkeypatch, share=0.0):
    monkeypatch.setattr("exanova.sources.runs.SHARE", share)
    monkeypatch.setattr("exanova.sources.parts.BLOCK_ROWS", 300)
    monkeypatch.setattr("exanova.sources.pieces.PIECE_ROWS", 700)


def test_rows_on_disk_give_the_same_bytes_and_leave_nothing(path, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    spilled(monkeypatch)
    found = fitted(path, "score", parameters={"max_order": 1})
    assert found.plan_.on_disk
    assert found.decomposition_.sample.on_disk
    assert mapping_of(found.decomposition_.sample.codes) is not None
    assert os.listdir(tmp_path / "temporary") == []
    same(found, fitted(wide(), "score", parameters={"max_order": 1}), exact=True)


def test_rows_stay_in_memory_where_they_fit(path):
    found = fitted(path, "score", parameters={"max_order": 1})
    assert not found.plan_.on_disk
    assert mapping_of(found.decomposition_.sample.codes) is None


def test_the_plan_states_passes_and_about_how_many_rows_are_distinct(path, monkeypatch):
    plan = FunctionalANOVA(max_order=1).plan(path)
    assert (plan.source_passes, plan.distinct_estimate, plan.rows) == (2, len(wide().drop_duplicates()), 4000)
    assert "read in 2 passes (about 3,9" in str(plan)
    assert FunctionalANOVA().plan(wide()).source == ""
    spilled(monkeypatch)
    assert str(FunctionalANOVA(max_order=1).plan(path)).endswith("by the first, distinct rows on disk)")


def test_few_distinct_rows_are_read_once(tmp_path):
    table = pd.concat([wide(20)] * 50)
    plan = FunctionalANOVA(max_order=1).plan(write(table, tmp_path / "parts", 3, "parquet"))
    assert (plan.source_passes, plan.distinct_estimate) == (1, 20)


def test_a_full_disk_is_one_error(path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    spilled(monkeypatch)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(FileWriteError, match=r"do not fit on the disk of .*: No space left on device.*TMPDIR"):
        fitted(path, "score", parameters={"max_order": 1})


def test_room_is_reserved_by_zeros_where_it_cannot_be_asked_for(monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr("exanova.sources.disk.ZEROS", 100)
    made = disk_array((7, 33), np.float64)
    assert not made.any()
    made[3] = 2.0
    release(made)
    assert made.sum() == 66.0
    assert isinstance(mapping_of(made[2:, 1:]), mmap.mmap)


def test_replicate_weights_stay_in_memory_or_are_refused(tmp_path, monkeypatch):
    path = write(wide().assign(r=1.0), tmp_path / "parts", 2, "parquet")
    spilled(monkeypatch)
    with pytest.raises(MemoryLimitError, match="distinct rows were counted so far"):
        fitted(path, "score", replicate_weights=(["r"], 1.0))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_runs_are_merged_as_in_memory(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    w, runs = data.draw(st.integers(1, 3)), []
    for _ in range(data.draw(st.integers(1, 5))):
        n = data.draw(st.integers(1, 60))
        words = rng.integers(0, 4, size=(w, n)).astype(np.uint64)
        runs.append(together(tally_rows(words, rng.integers(0, 9, (n, 2)) * 1.0, np.ones(n), np.ones(n), True)))
    expected = merge_tallies(runs)
    pieces = list(ranges([stored(run) for run in runs], data.draw(st.integers(1, 80))))
    found = [merge_tallies(piece) for piece in pieces]
    for name in ("weight", "lowest", "first", "second"):
        assert np.array_equal(np.concatenate([getattr(one, name) for one in found]), getattr(expected, name))
    assert np.array_equal(np.concatenate([one.words for one in found], axis=1), expected.words)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1), st.integers(0, 3), st.integers(0, 3))
def test_the_place_of_a_key_among_sorted_words(pairs, a, b):
    words = np.array(sorted(pairs), dtype=np.uint64).T
    place = place_of(words, np.array([a, b], dtype=np.uint64))
    assert place == sum(pair < (a, b) for pair in pairs)


def test_nothing_goes_to_disk_while_it_fits():
    runs = Runs(10**12)
    assert runs.finish() is None
    assert not runs.would_spill(10**6, 1, 1)
    assert Runs(10**6).would_spill(10**6, 1, 1)


def test_arrays_on_disk_are_copies():
    array = np.arange(6.0).reshape(2, 3)
    copy = on_disk(array)
    array[:] = 0.0
    assert copy.sum() == 15.0


@pytest.mark.parametrize("distinct", [10, 4000, 50_000, 700_000])
def test_distinct_rows_are_estimated_to_a_few_percent(distinct):
    hashes = sketch.mixed(np.arange(distinct, dtype=np.uint64))
    own = sketch.sketch_of(np.repeat(hashes, 2))
    found = sketch.distinct_about(own)
    assert found == distinct if distinct < sketch.KEPT else abs(found / distinct - 1.0) < 0.06
    parts = [sketch.sketch_of(part) for part in np.array_split(hashes, 7)]
    assert np.array_equal(sketch.merge_sketches(parts[::-1]), own)


def test_a_sketch_of_few_values_that_repeat_is_exact():
    hashes = np.repeat(sketch.mixed(np.arange(5, dtype=np.uint64)), 5000)
    assert sketch.distinct_about(sketch.sketch_of(hashes)) == 5


def test_rows_that_went_to_disk_are_not_kept_in_memory():
    runs = Runs(10_000)
    words = np.arange(1000, dtype=np.uint64)[None]
    runs.add(CountedRows(tally_rows(words, np.ones((1000, 1)), np.ones(1000), np.ones(1000), True)))
    assert len(runs.runs) == 1
    kept = [array if array.base is None else array.base for rows in runs.rest for array in rows.tally.arrays]
    assert sum(array.size for array in kept) == 0


def test_blocks_on_disk_leave_memory_one_after_the_other(tmp_path, monkeypatch):
    table = pd.DataFrame({"a": np.arange(40) % 8, "b": np.arange(40) // 8, "score": np.arange(40.0)})
    monkeypatch.setattr("exanova.sources.runs.SHARE", 0.0)
    sample = fitted(write(table, tmp_path / "parts", 2, "parquet"), "score").decomposition_.sample
    monkeypatch.setattr("exanova.data.sample.PART_ROWS", 9)
    released = []
    monkeypatch.setattr("exanova.data.sample.release", lambda *arrays: released.append(arrays))
    assert len(list(sample.each_block())) == len(released) == 5
    assert all(mapping_of(array) is not None for array in released[0][:3])
