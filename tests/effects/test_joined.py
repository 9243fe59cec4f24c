"""Effects for reading: neighbours that do not differ beyond their error are one level, and nothing else changes."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_helpers import inside
from exanova import FunctionalANOVA, load
from exanova.data import Table, learn_encoding
from exanova.data.run_labels import run_label
from exanova.effects.joined import group_means, neighbours_alike
from exanova.errors import InputError


@pytest.fixture(scope="module")
def anova():
    rng = np.random.default_rng(0)
    n = 1200
    sizes = pd.Categorical(rng.choice(list("SML"), n), categories=list("SML"), ordered=True)
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    X = pd.DataFrame({"age": rng.uniform(18, 90, n), "when": days, "size": sizes, "c": rng.choice(list("abc"), n)})
    X.loc[::50, "age"] = np.nan
    steps = np.select([X["age"] < 40, X["age"] < 65, X["age"].isna()], [0.0, 1.0, 0.5], 3.0)
    y = steps + (X["size"] == "L") + 0.5 * rng.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA().fit(X, y)


def test_a_stair_is_read_as_a_stair(anova):
    effect = anova.effects_["age"]
    joined = effect.joined()
    assert 4 <= len(joined.levels) <= 7 < len(effect.levels)
    assert joined.levels[0][0].startswith("< 3")
    assert joined.levels[-2][0].startswith(">= ")
    assert joined.levels[-1] == ("(missing)",)
    assert anova.effects_["size"].joined().levels == (("S to M",), ("L",))
    assert anova.effects_["when"].joined().levels == (("any time",),)


def test_probabilities_rows_and_the_mean_are_kept(anova):
    for name in ("age", "when", "size"):
        effect = anova.effects_[name]
        joined = effect.joined()
        assert joined.probability.sum() == pytest.approx(1.0)
        assert joined.rows.sum() == effect.rows.sum()
        assert joined.probability @ joined.values == pytest.approx(effect.probability @ effect.values, abs=1e-12)
        assert (joined.norm2 <= effect.norm2 + 1e-12).all()
        frame = joined.to_frame()
        assert list(frame.columns) == list(effect.to_frame().columns)
        assert (joined.stderr > 0).all() or name == "when"
        low, high = joined.interval(simultaneous=True)
        assert (low <= joined.values).all()
        assert (joined.values <= high).all()


def test_neighbours_that_are_left_differ_beyond_their_error(anova):
    effect = anova.effects_["age"]
    joined = effect.joined()
    steps = np.diff(np.eye(len(joined.levels) - 1), axis=0)
    block = joined.knowledge.covariance_of(0)[0][:-1, :-1]
    apart = np.abs(steps @ joined.values[:-1, 0]) / np.sqrt(np.diagonal(steps @ block @ steps.T))
    assert apart.min() > 2.5
    assert len(effect.joined(0.5).levels) >= len(joined.levels) >= len(effect.joined(0.999999).levels)


def test_effects_without_an_order_stay_as_they_are(anova):
    for name in (("c",), ("age", "c"), ()):
        effect = anova.effects_[name]
        assert effect.joined() is effect


@pytest.mark.parametrize("level", [0, 1, 1.5, True, "much"])
def test_a_level_is_a_probability(anova, level):
    with pytest.raises(InputError, match=r"level=.* was given; expected a number between 0 and 1"):
        anova.effects_["age"].joined(level)


@given(st.integers(1, 8), st.floats(0.0, 5.0), st.integers(0, 10**6))
def test_groups_are_runs_and_grow_with_the_limit(size, limit, seed):
    rng = np.random.default_rng(seed)
    values, weight = rng.normal(size=(size, 2)), rng.random(size) + 0.1
    root = rng.normal(size=(2, size, size))
    covariance = root @ root.transpose(0, 2, 1)
    group = neighbours_alike(values, weight, covariance, limit)
    assert group[0] == 0
    assert set(np.diff(group)) <= {0, 1}
    assert neighbours_alike(values, weight, covariance, np.inf).max() == 0
    assert group_means(group, weight).sum(axis=1) == pytest.approx(1.0)
    apart = neighbours_alike(values, weight, np.zeros_like(covariance), limit)
    assert apart.tolist() == list(range(size))


def test_runs_of_times_are_called_by_their_ends():
    days = [datetime.datetime(2021, 1, 1) + datetime.timedelta(days=30 * k) for k in range(24)]
    calendar = learn_encoding(Table.read(pd.DataFrame({"t": days}))).features[0]
    assert run_label(calendar, 0, len(calendar.labels) - 1) == "any time"
    days = [datetime.datetime(2021, 1, 1) + datetime.timedelta(days=15 * k) for k in range(100)]
    calendar = learn_encoding(Table.read(pd.DataFrame({"t": days}))).features[0]
    assert len(calendar.labels) > 3
    assert run_label(calendar, 0, 1) == f"{calendar.labels[1].rpartition(' to ')[2]} or before"
    assert run_label(calendar, 1, 2).startswith(calendar.labels[1].partition(" to ")[0] + " to ")
    assert run_label(calendar, 1, len(calendar.labels) - 1).endswith(" or later")
    cut = learn_encoding(Table.read(pd.DataFrame({"t": days})), n_bins={"t": 4}).features[0]
    assert run_label(cut, 0, 1) == "before " + cut.labels[2].partition(",")[0][1:]
    assert run_label(cut, 2, 3) == cut.labels[2].partition(",")[0][1:] + " or later"
    assert run_label(cut, 1, 2).startswith("[")


def test_joined_levels_on_pictures_in_files_and_on_the_terminal(anova, tmp_path, capsys):
    count = len(anova.effects_["age"].joined().levels)
    drawn = anova.plot.effect("age", joined=True).to_dict()
    shown = {row["level"] for rows in drawn["datasets"].values() for row in rows if "level" in row}
    assert len(shown) == count
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": anova.categories_[2] * 40, "c": rng.choice(list("abc"), 120)})
    X["size"] = pd.Categorical(X["size"], categories=list("SML"), ordered=True)
    small = FunctionalANOVA(max_order=1).fit(X, (X["size"] == "L") + rng.normal(size=120) / 2)
    small.errors()
    small.save(tmp_path / "steps.exanova")
    again = load(tmp_path / "steps.exanova").effects_["size"].joined()
    assert again.levels == small.effects_["size"].joined().levels == (("S to M",), ("L",))
    assert again.stderr == pytest.approx(small.effects_["size"].joined().stderr)
    printed = inside(capsys, "show", str(tmp_path / "steps.exanova"), "--effect", "size", "--joined")
    assert printed.code == 0
    assert "S to M" in printed.out
