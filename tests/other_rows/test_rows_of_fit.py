"""Rows of the fit that are given as held-out rows do not tell whether it holds on others, in whatever way they come."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exanova
from exanova import FunctionalANOVA
from exanova.data.sample import Sample
from exanova.errors import OverfitWarning
from exanova.other_rows.rows_of_fit import ENOUGH_NEW, FEW_NEW, RowsOfFit


def drawn(seed, rows=400, levels=4, features=6):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.integers(0, levels, (rows, features)), columns=list("abcdef")[:features])
    return table, table["a"] + rng.normal(0, 1, rows)


def own_rows(table, y, way, tmp_path):
    match way:
        case "as they are":
            return table, y.to_numpy()
        case "a part":
            return table[:60], y[:60].to_numpy()
        case "in another order":
            return table[::-1], y[::-1]
        case "some of them often":
            return pd.concat([table, table[:30]]), np.r_[y, y[:30]]
        case "from a file":
            path = tmp_path / "own.parquet"
            table.assign(y=y).to_parquet(path, index=False)
            return str(path), "y"
        case "with a few others":
            other, values = drawn(7)
            return pd.concat([table, other[:20]]), np.r_[y, values[:20]]


@pytest.mark.parametrize("shrinkage", ["auto", None])
@pytest.mark.parametrize(
    "way", ["as they are", "a part", "in another order", "some of them often", "from a file", "with a few others"]
)
def test_rows_of_the_fit_are_no_other_rows(way, shrinkage, tmp_path):
    table, y = drawn(0)
    anova = FunctionalANOVA(shrinkage=shrinkage)
    with pytest.warns(OverfitWarning, match="are rows of the fit"):
        certificate = anova.fit(table, y, eval_set=own_rows(table, y, way, tmp_path)).certificate_
    assert certificate.holds is None
    assert "NOT known, because these were fitted" in str(certificate).splitlines()[0]
    anova.save(tmp_path / "kept.exanova")
    assert exanova.load(tmp_path / "kept.exanova").certificate_.holds is None
    anova.report(tmp_path / "report.html")
    assert "These were fitted, so " in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_numbers_that_differ_in_their_last_digits_are_the_same_rows():
    table, y = drawn(1)
    table["a"] = np.random.default_rng(2).normal(size=len(table))
    with pytest.warns(OverfitWarning, match="are rows of the fit"):
        certificate = FunctionalANOVA().fit(table, y, eval_set=(table.assign(a=table["a"] + 1e-13), y)).certificate_
    assert certificate.holds is None


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 5), st.booleans())
def test_other_rows_are_never_taken_for_rows_of_the_fit(seed, features, levels, is_model):
    """Drawn alike, or the same combinations measured again with other noise; also where all combinations are known."""
    table, y = drawn(seed, 200, levels, features)
    other, values = drawn(seed + 1, 300, levels, features)
    again = (table, y + np.random.default_rng(seed).normal(0, 0.1, len(y)))
    if is_model:
        y, values = table["a"] ** 2.0, other["a"] ** 2.0
    for eval_set in [(other, values)] if is_model else [(other, values), again]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            anova = FunctionalANOVA(max_order=1, handle_unknown="ignore").fit(table, y, eval_set=eval_set)
        assert anova.certificate_.holds is not None
        assert not any("rows of the fit" in str(warning.message) for warning in caught)


@given(st.data())
def test_new_rows_are_counted_one_by_one(data):
    """The counts and the verdict, against sets of rows in plain Python; levels never observed are new."""
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=16, unique=True))
    copies = data.draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))
    held = data.draw(st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4), st.integers(0, 1)), max_size=60))
    values = {row: float(k % 2) for k, row in enumerate(rows)}
    at_rows = np.array(list(values.values()))[:, None]
    own = RowsOfFit(Sample(np.array(rows, dtype=np.uint8).T, np.array(copies), (4, 4), at_rows, sum(copies)))
    codes = np.array([row[:2] for row in held], dtype=np.int32).reshape(-1, 2).T
    for part in (slice(0, 5), slice(5, None)):
        own.add(codes[:, part], np.array([row[2] for row in held], dtype=float)[part, None])
    often = dict(zip(rows, copies, strict=True))
    known = [row[:2] in often and (often[row[:2]] > 1 or values[row[:2]] == row[2]) for row in held]
    expected = len(held) * copies.count(1) / sum(copies)
    assert (own.seen, own.new) == (len(held), len(held) - sum(known))
    assert own.expected == pytest.approx(expected)
    assert own.are_those == (expected >= ENOUGH_NEW and own.new <= FEW_NEW * expected)
