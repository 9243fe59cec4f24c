"""Reasons for rows: contributions by brute force from effect tables, their order, and what can be told apart."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import exanova
from exanova import FunctionalANOVA
from exanova.errors import InputError, OutsideSupportWarning
from exanova.explain import ranking
from strategies import examples

NAMES = ["job", "home", "age"]


def table(seed=0, n=300, noise=0.3):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "job": rng.choice(["none", "clerk", "boss"], n),
            "home": rng.choice(["rent", "own"], n),
            "age": rng.integers(18, 80, n),
        }
    )
    y = (frame["job"] == "boss") * 1.0 - (frame["home"] == "rent") * (frame["age"] < 40) + frame["age"] / 80
    return frame, y.to_numpy() + noise * rng.normal(size=n)


def fitted(frame, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA(**{"shrinkage": None, "n_bins": 4, **given}).fit(frame, y, output_names=["score"])


@examples(12)
@given(seed=st.integers(0, 20), direction=st.sampled_from(["lower", "higher", "both"]), against=st.booleans())
def test_reasons_are_ranked_shapley_values(seed, direction, against):
    frame, y = table(seed)
    anova = fitted(frame, y)
    e = anova.explain(frame[:20])
    values = e.values - (e.values[7] if against else 0.0)
    found = anova.reasons(frame[:20], 2, direction=direction, against=frame[7:8] if against else "mean", model=y[:20])
    for k, row in enumerate(found):
        key = {"lower": values[k], "higher": -values[k], "both": -np.abs(values[k])}[direction]
        order = [j for j in np.argsort(key, kind="stable") if key[j] < -1e-12][:2]
        assert [r.feature for r in row.reasons] == [NAMES[j] for j in order]
        assert np.allclose([r.contribution for r in row.reasons], values[k, order])
        assert [r.level for r in row.reasons] == [e.display_data[k, j] for j in order]
        assert [r.value for r in row.reasons] == [str(frame.iloc[k, j]) for j in order]
        assert np.isclose(row.fitted + row.residual, y[k])
        assert np.isclose(row.compared, anova.predict(frame[7:8])[0] if against else anova.intercept_[0])


def test_all_contributions_against_a_row_add_up_to_the_difference():
    frame, y = table()
    anova = fitted(frame, y)
    for against in (dict(frame.iloc[3]), "best"):
        for row in anova.reasons(frame[:30], 9, direction="both", against=against):
            assert np.isclose(sum(r.contribution for r in row.reasons), row.fitted - row.compared)
    best = anova.reasons(frame[:2], against="best")
    assert np.isclose(best[0].compared, anova.predict(frame).max())
    assert best.against == "the highest of the rows of the fit"
    worst = anova.reasons(frame[:2], against="best", direction="higher")
    assert np.isclose(worst[0].compared, anova.predict(frame).min())


@pytest.mark.parametrize("against", ["mean", "row"])
def test_standard_errors_are_those_of_explanations_and_of_differences(against, monkeypatch):
    frame, y = table()
    anova = fitted(frame, y)
    given = {"against": "mean" if against == "mean" else frame[5:6]}
    found = anova.reasons(frame[:15], 3, direction="both", **given)
    covariance = anova.decomposition_.uncertainty.all_cells[0]
    state = anova.decomposition_
    place = ranking.cells_at(state.family, state.encoding.encode(exanova.data.table.Table.read(frame[:15]), "error"))
    for k, row in enumerate(found):
        weights = {}
        for j, name in enumerate(NAMES):
            w = np.zeros(len(covariance))
            for s, subset in enumerate(state.family.subsets):
                if j in subset:
                    w[place[k, s]] += 1.0 / len(subset)
                    if against == "row":
                        w[place[5, s]] -= 1.0 / len(subset)
            weights[name] = w
        for reason, after in zip(row.reasons, [*row.reasons[1:], None], strict=False):
            w = weights[reason.feature]
            assert np.isclose(reason.stderr, np.sqrt(w @ covariance @ w))
            if after is not None:
                sign = np.sign(reason.contribution) * np.sign(after.contribution)
                w = w - sign * weights[after.feature]
                distance = abs(reason.contribution) - abs(after.contribution)
                assert reason.distinguishable == bool(distance > 1.959964 * np.sqrt(w @ covariance @ w))
    monkeypatch.setattr(ranking, "MOST_CELLS", 0)
    again = fitted(frame, y).reasons(frame[:15], 3, direction="both", **given)
    assert np.allclose([r.stderr for x in again for r in x.reasons], [r.stderr for x in found for r in x.reasons])


def test_what_carries_the_same_information_is_not_unique():
    frame, y = table()
    twice = frame.assign(flat=frame["home"])
    anova = fitted(twice, y, max_order=1)
    rows = anova.reasons(twice[:20], 4, direction="both")
    for row in rows:
        told = {r.feature: r for r in row.reasons}
        assert not told["home"].unique
        assert not told["flat"].unique
        assert told["job"].unique
        assert np.isnan(told["home"].stderr)
        assert np.isfinite(told["job"].stderr)
        assert not row.unique
        assert "not unique" in told["home"].sentence("score")
    assert any("a convention" in note for note in rows.notes)
    together = anova.reasons(twice[:20], 4, direction="both", groups={"home": ["home", "flat"]})
    assert all(row.unique for row in together)


def test_reasons_that_cannot_be_told_apart_are_flagged():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 3))
    y = X[:, 0] * 1.0 + X[:, 1] * 1.01 + X[:, 2] * 5.0 + rng.normal(size=200)
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(X, y)
    row = anova.reasons(np.zeros((1, 3), dtype=int), 2)[0]
    assert row.reasons[0].feature == "x2"
    assert row.reasons[0].distinguishable is True
    assert row.reasons[1].distinguishable is False
    assert row.distinguishable is False
    assert row.reasons[1].sentence("y").endswith("not distinguishable from the next")
    last = anova.reasons(np.zeros((1, 3), dtype=int), 3)[0].reasons[-1]
    assert last.distinguishable is True


def test_the_positive_class_identifiers_and_intervals_are_named():
    frame, y = table()
    good = np.where(y > y.mean(), "good", "bad")
    codes = frame.assign(job=frame["job"].astype("category").cat.codes, home=frame["home"] == "own") * 1.0
    model = LogisticRegression().fit(codes, good)
    anova = FunctionalANOVA(n_bins=4).fit(codes, model)
    rows = codes[:2].assign(customer=["k17", "k18"])
    found = anova.reasons(rows, 3, id="customer", model=model, direction="both")
    assert found.output == "P(good)"
    assert str(found).startswith("k17: P(good) 0.")
    ours = model.predict_proba(codes[:2])[:, list(model.classes_).index("good")]
    assert str(found).startswith(f"k17: P(good) {ours[0]:.4g} (fitted {found[0].fitted:.4g}, residual ")
    assert [row.fitted + row.residual for row in found] == pytest.approx(ours)
    frame_ = found.to_frame()
    assert set(frame_["id"]) == {"k17", "k18"}
    said = frame_[frame_["feature"] == "age"]["sentence"].iloc[0]
    assert "(in " in said
    assert "P(good) by" in said
    assert found[0].id == "k17"
    assert anova.reasons(codes[:2], id=[5, 6])[1].id == "6"


def test_no_errors_are_said_where_there_are_none(tmp_path):
    frame, y = table()
    anova = fitted(frame, y, sampled=False)
    found = anova.reasons(frame[:3])
    assert found.notes[0].startswith("no standard errors")
    assert found[0].distinguishable is None
    assert np.isnan(found[0].reasons[0].stderr)
    sampled = fitted(frame, y)
    sampled.save(tmp_path / "a.exanova")
    again = exanova.load(tmp_path / "a.exanova")
    before, after = sampled.reasons(frame[:5], 3), again.reasons(frame[:5], 3)
    assert str(before) == str(after)
    assert again.reasons(frame[:5], against="best").against == "the highest of these rows"


def test_rows_outside_the_support_are_told():
    frame, y = table(n=30)
    anova = fitted(frame, y, max_order=3)
    with pytest.warns(OutsideSupportWarning):
        other = anova.reasons(table(1, 200)[0])
    told = [row for row in other if row.outside]
    assert told
    assert any("never observed" in line for line in other.lines_of(told[0]))


def test_a_row_with_nothing_in_that_direction_says_so():
    frame, y = table(noise=0.0)
    anova = fitted(frame, y)
    best = frame.iloc[[int(np.argmax(anova.predict(frame)))]]
    found = anova.reasons(best, against="best")
    assert found[0].reasons == ()
    assert "nothing makes it lower" in str(found)
    assert "1 row" in repr(found)
    assert "nothing makes it lower" in found._repr_html_()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n": 0}, "n=0 was given"),
        ({"n": True}, "n=True was given"),
        ({"direction": "down"}, "expected 'lower', 'higher' or 'both'"),
        ({"against": "worst"}, "expected 'mean', 'best', or one row"),
        ({"against": {"job": "boss"}}, "no value of 'home', 'age'"),
        ({"against": "two"}, "has 2 rows"),
        ({"id": [1]}, "one for each of 300 rows"),
        ({"id": "nobody"}, "no column 'nobody'"),
    ],
)
def test_what_cannot_be_asked_is_refused(given, words):
    frame, y = table()
    anova = fitted(frame, y)
    given = {k: frame[:2] if isinstance(v, str) and v == "two" else v for k, v in given.items()}
    with pytest.raises(InputError, match=words):
        anova.reasons(frame, **given)


def test_one_of_several_outputs_has_to_be_named():
    frame, y = table()
    anova = FunctionalANOVA(shrinkage=None, n_bins=4).fit(frame, np.column_stack([y, -y]), output_names=["up", "down"])
    with pytest.raises(InputError, match="one of 'up', 'down'"):
        anova.reasons(frame)
    up, down = (anova.reasons(frame[:9], direction=d, output=o) for d, o in (("lower", "up"), ("higher", 1)))
    for a, b in zip(up, down, strict=True):
        assert [r.feature for r in a.reasons] == [r.feature for r in b.reasons]
        assert np.allclose([r.contribution for r in a.reasons], [-r.contribution for r in b.reasons])


def test_values_are_as_short_as_they_are_exact_and_intervals_read_as_sentences():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"mass": rng.integers(30, 60, 300) * 100.0, "grade": rng.choice([1.0, 2.5], 300)})
    frame["single"] = (rng.integers(0, 90, 300) / 10).astype(np.float32)
    y = frame["mass"] / 1000 + frame["grade"] - frame["single"].to_numpy()
    anova = fitted(frame, y)
    texts = set()
    for row in anova.reasons(frame, 9, direction="both", id=frame["mass"]):
        given = frame.iloc[row.row]
        assert row.id == f"{given['mass']:.0f}"
        for reason in row.reasons:
            assert float(reason.value) == pytest.approx(given[reason.feature], rel=1e-6)
            assert len(reason.value) <= 4
            level = anova.effects_[reason.feature].levels
            assert (reason.level,) in level
            inside = reason.sentence("y").partition(" lowers")[0].partition(" raises")[0]
            held = "" if reason.level == reason.value else f" (in {reason.level})"
            if reason.level.startswith(("<", ">=")):
                held = f" ({reason.level})"
            assert inside == f"{reason.feature} = {reason.value}{held}"
            texts.add(held[:3])
    assert texts == {"", " (<", " (>", " (i"}


def test_an_output_without_a_name_is_the_output():
    frame, y = table()
    found = FunctionalANOVA(shrinkage=None, n_bins=4).fit(frame, y).reasons(frame[:3], 1)
    assert "output 0" not in str(found) + repr(found) + "".join(found.to_frame()["sentence"])
    assert str(found).startswith(f"row 0: fitted value {found[0].fitted:.4g}, the mean is")
    with_model = FunctionalANOVA(link="log").fit(frame, np.exp(y)).reasons(frame[:2], model=np.exp(y[:2]))
    assert str(with_model).startswith(f"row 0: log(value) {y[0]:.4g} (fitted ")
    assert "log(the output) by" in str(with_model)


@examples(8)
@given(seed=st.integers(0, 50), link=st.sampled_from(["log", "logit"]))
def test_factors_of_all_reasons_multiply_to_the_ratio_of_two_rows(seed, link):
    frame, y = table(seed)
    given = np.exp(y / 4) if link == "log" else 1 / (1 + np.exp(-y))
    anova = FunctionalANOVA(link=link, n_bins=4).fit(frame, given, output_names=["rate"])
    found = anova.reasons(frame[1:6], 9, direction="both", against=frame[:1])
    of = " of the odds" if link == "logit" else ""
    response = anova.predict(frame[:6], scale="response")
    size = response / (1 - response) if link == "logit" else response
    for k, row in enumerate(found, start=1):
        texts = [reason.sentence(found.output, link) for reason in row.reasons]
        factors = [float(text.partition("(a factor of ")[2].partition(f"{of})")[0]) for text in texts]
        assert np.prod(factors) == pytest.approx(size[k] / size[0], rel=0.03)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_what_is_rounding_is_printed_as_zero(scale):
    """Of a model that the effects express exactly: no residual, and no part of what it does not read."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({name: rng.choice(list("abc")[:k], 300) for name, k in (("f", 2), ("g", 3), ("h", 3))})
    y = scale * (50.0 * (X["f"] == "a") - 50.0 * (X["f"] == "b") + 38.0 * (X["h"] == "a")).to_numpy()
    anova = FunctionalANOVA(shrinkage=None).fit(X, y, output_names=["y"])
    assert all(row.residual == 0 for row in anova.reasons(X[:50], model=y[:50]))
    gap = anova.difference(X, by="f", model=y)[0]
    read = [set(s) in ({"f"}, {"h"}) for s in anova.decomposition_.difference(X, by="f").subsets]
    assert (gap.by_subset[~np.array(read)] == 0).all()
    assert gap.residual == 0
    change = anova.change(FunctionalANOVA(shrinkage=None).fit(X[100:], y[100:], output_names=["y"]))
    assert change.model_total == 0
    assert change.model_total_stderr == 0
