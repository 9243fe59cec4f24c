"""The answers to questions as sections of the report: each has the numbers of the method that answers it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import exanova
from exanova import FunctionalANOVA
from exanova.decomposition import Decomposition
from exanova.errors import InputError, InputTypeError, MemoryLimitError
from exanova.report import cohort_errors, contrasts, explorer, findings, live_rows, rating
from exanova.report.findings import signed
from exanova.report.page import Page
from exanova.report.summary import summarise
from exanova.show.records import importance_records

pytestmark = pytest.mark.filterwarnings("ignore::exanova.errors.OverfitWarning")

HOSTILE = "<b>=cmd|x"


def table(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    age = rng.choice(["young", "old", HOSTILE], n)
    car = np.where(rng.random(n) < np.where(age == "young", 0.7, 0.3), "new", "used")
    return pd.DataFrame({"age": age, "car": car, "town": rng.choice(["A", "B"], n)})


def rate(rows: pd.DataFrame) -> np.ndarray:
    young, used = rows["age"] == "young", rows["car"] == "used"
    return np.exp(-2.0 + 0.5 * young - 0.2 * used + 0.3 * (young & used) + 0.1 * (rows["town"] == "A")).to_numpy()


@pytest.fixture(scope="module")
def tariff() -> FunctionalANOVA:
    rng = np.random.default_rng(0)
    claims = rate(table()) * rng.gamma(20.0, 0.05, len(table()))
    exposure = rng.integers(1, 5, len(table()))
    return FunctionalANOVA(link="log", shrinkage=None).fit(
        table(), claims, sample_weight=exposure, weights="probability", output_names=["claims"]
    )


def written(anova, folder, suffix, **options) -> str:
    anova.report(folder / f"r.{suffix}", **options)
    return (folder / f"r.{suffix}").read_text(encoding="utf-8")


def test_a_fit_with_a_link_has_its_tariff_in_every_format(tariff, tmp_path):
    base = {"age": "old", "car": "new"}
    found = tariff.relativities(base)
    shown = json.loads(written(tariff, tmp_path, "json", base=base))["tariff"]
    assert {entry["feature"]: entry["level"] for entry in shown["base"]} == dict(found.base)
    assert shown["base_values"][0]["value"] == pytest.approx(float(found.base_value[0]))
    factors = {tuple(factor["subset"]): factor for factor in shown["factors"]}
    for factor in found.factors:
        records = factors[factor.features]["records"]
        assert [tuple(r["levels"]) for r in records] == list(factor.levels)
        for field, expected in (("relativity", factor.relativity), ("low", factor.low), ("high", factor.high)):
            np.testing.assert_allclose([r[field] for r in records], expected[:, 0])
        assert [r["exposure"] for r in records] == factor.exposure.tolist()
    assert [loss["explained"] for loss in shown["losses"]] == [loss.explained for loss in found.losses[0]]
    text, page = written(tariff, tmp_path, "md", base=base), written(tariff, tmp_path, "html", base=base)
    share = f"{100 * found.losses[0][1].explained:.1f} % of the deviance"
    assert "## Tariff" in text
    assert share in text
    assert HOSTILE not in text
    assert 'id="tariff"' in page
    assert share in page
    assert HOSTILE not in page


def test_only_a_fit_with_a_link_has_a_tariff(tmp_path):
    anova = FunctionalANOVA().fit(table(), rate(table()))
    assert summarise(anova.decomposition_).tariff is None
    assert "## Tariff" not in written(anova, tmp_path, "md")
    with pytest.raises(InputError, match="tariff"):
        anova.report(tmp_path / "r.md", base={"age": "old"})


def test_what_does_not_fit_of_a_tariff_is_counted(tariff, monkeypatch):
    monkeypatch.setattr(rating, "FACTORS", 4)
    monkeypatch.setattr(rating, "CELLS", 2)
    summary = summarise(tariff.decomposition_)
    assert [len(factor["subset"]) for factor in summary.tariff["factors"]] == [1, 1, 1, 2]
    assert all(len(factor["records"]) <= 2 for factor in summary.tariff["factors"])
    assert any("2 factors of the tariff" in sentence for sentence in summary.left_out)
    assert any("cells of factors" in sentence for sentence in summary.left_out)


def test_the_certificate_of_a_link_says_what_its_orders_lose():
    tariff = FunctionalANOVA(link="log", max_order=1).fit(table(), rate(table()), output_names=["claims"])
    loss = tariff.relativities().losses[0][-1]
    answers = {v["question"]: v for v in summarise(tariff.decomposition_).verdicts}
    lost = answers["What is lost on the scale of the output?"]
    assert lost["answer"] == f"{100 * (1 - loss.explained):.1f} %"
    assert "of the deviance" in lost["because"]
    assert f"{100 * loss.gini_share:.1f} %" in lost["because"]
    assert "deviance" in str(tariff)
    assert f"{100 * loss.explained:.1f} %" in str(tariff)
    plain = FunctionalANOVA().fit(table(), rate(table()))
    assert "deviance" not in str(plain)


@pytest.mark.parametrize("given", [True, False])
def test_the_lowest_and_the_highest_rows_have_their_reasons(tmp_path, given):
    anova = FunctionalANOVA(shrinkage=None).fit(table(), rate(table()), output_names=["rate"])
    rows = table().assign(key=[f"k{k}" for k in range(len(table()))])
    options = {"X": rows, "model": rate, "id": "key"} if given else {}
    shown = json.loads(written(anova, tmp_path, "json", **options))["reasons"]
    assert [entry["direction"] for entry in shown] == ["lower", "higher"]
    for entry, best in zip(shown, (np.min, np.max), strict=True):
        assert entry["rows"][0]["fitted"] == pytest.approx(best(anova.predict(table())))
        for row in entry["rows"] if given else []:
            at = rows.iloc[[row["row"]]]
            found = anova.reasons(at, 3, direction=entry["direction"], id="key", model=rate)
            assert row["id"] == f"k{row['row']}" == found[0].id
            assert [r["sentence"] for r in row["reasons"]] == [r.sentence("rate") for r in found[0].reasons]
            assert row["residual"] == pytest.approx(found[0].residual, abs=1e-12)
    first = shown[0]["rows"][0]["reasons"][0]
    page = written(anova, tmp_path, "html", **options)
    assert f"{first['feature']} = " in page
    assert "lowers rate by" in page
    assert "lowers rate by" in written(anova, tmp_path, "md", **options)


def test_groups_of_features_have_their_importance_in_every_format(tmp_path):
    anova = FunctionalANOVA(shrinkage=None).fit(table(), rate(table()), output_names=["rate"])
    groups = {"person": ["age", "town"]}
    shown = json.loads(written(anova, tmp_path, "json", X=table(), by="car", groups=groups))
    found = anova.importance("l1", groups=groups, stderr=True)
    assert [r["group"] for r in shown["domains"]["records"]] == list(found["group"])
    np.testing.assert_allclose([r["value"] for r in shown["domains"]["records"]], found["value"])
    np.testing.assert_allclose([r["stderr"] for r in shown["domains"]["records"]], found["stderr"])
    parts = {r["part"] for r in shown["groups"]["contrasts"][0]["records"]}
    assert parts == {"person", "car", "(total)"}
    assert all(r["feature"] in ("person", "car") for e in shown["reasons"] for row in e["rows"] for r in row["reasons"])
    for suffix in ("md", "html"):
        assert "Groups of features as one" in written(anova, tmp_path, suffix, groups=groups)
    assert json.loads(written(anova, tmp_path, "json"))["domains"] is None


@pytest.mark.parametrize("given", [True, False])
def test_errors_of_chosen_groups_are_those_of_the_difference(tariff, given):
    found = summarise(tariff.decomposition_, **({"X": table()} if given else {})).live.cohorts
    weight = tariff.decomposition_.sample.draws.weight
    assert len(found.sets) == 3 + 2 + 2 + 3
    for (feature, level, against), errors in zip(found.sets.tolist(), found.stderr, strict=True):
        name = table().columns[feature]
        labels = tariff.decomposition_.schema.labels[feature]
        first = (table()[name] == labels[level]).to_numpy()
        second = ~first if against < 0 else (table()[name] == labels[against]).to_numpy()
        expected = tariff.difference(
            table(),
            by=np.where(first, "a", np.where(second, "b", "c")),
            sample_weight=np.where(first | second, weight, 0) if against >= 0 else weight,
        )[0]
        if against < 0:  # all rows of the fit take part, and vary together with the effects
            np.testing.assert_allclose(errors[:-2, 0], expected.by_feature_stderr[:, 0], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(errors[-1, 0], expected.total_stderr[0], rtol=1e-9)
        else:  # others than those against all other rows
            of_all = found.stderr[found.sets.tolist().index([feature, level, cohort_errors.OTHERS])]
            assert np.isfinite(errors[-1, 0])
            assert not np.isclose(errors[-1, 0], of_all[-1, 0], rtol=1e-6)
    assert "vary together" in found.note


def test_a_page_without_errors_of_groups_says_why(tariff, tmp_path, monkeypatch):
    tariff.save(tmp_path / "m.exanova")
    stored = summarise(exanova.load(tmp_path / "m.exanova").decomposition_, X=table()).live.cohorts
    assert len(stored.sets) == 0
    assert "files of decompositions hold no rows" in stored.note
    monkeypatch.setattr(cohort_errors, "WORK", 0.0)
    assert "take long" in summarise(tariff.decomposition_, X=table()).live.cohorts.note
    population = FunctionalANOVA(sampled=False).fit(table(), rate(table()))
    assert summarise(population.decomposition_).live.cohorts.note.startswith("No error bars")


def test_a_report_says_that_standard_errors_were_refused(monkeypatch):
    anova = FunctionalANOVA(shrinkage=None).fit(table(), rate(table()))

    def refuse(self, *_, **__):
        raise MemoryLimitError("the covariances need 5 GB, and 1 GB is free.")

    monkeypatch.setattr(Decomposition, "errors", refuse)
    monkeypatch.setattr("exanova.infer.uncertainty.Uncertainty.cheap", property(lambda self: False))
    summary = summarise(anova.decomposition_)
    assert summary.errors == "There are no error bars: they were refused: the covariances need 5 GB, and 1 GB is free."
    assert "refused" in summary.importance_notes[0]


def test_the_intervals_of_a_page_are_those_of_the_effects():
    anova = FunctionalANOVA(shrinkage=None).fit(table()[:60], rate(table()[:60]))
    live = summarise(anova.decomposition_).live.effects
    starts = np.concatenate([[0], np.cumsum(live.cells)])
    for k, subset in enumerate(live.subsets):
        if subset:
            effect = anova.effects_[tuple(table().columns[i] for i in subset)]
            own = slice(starts[k], starts[k + 1])
            half = live.reach[own, None] * live.stderr[own]
            np.testing.assert_allclose(effect.values + half, effect.interval()[1], rtol=1e-12)
    assert (live.reach > 1.97).any()


def test_parts_of_a_change_that_do_not_fit_are_added_up(monkeypatch):
    monkeypatch.setattr(contrasts, "PARTS", 2)
    rng = np.random.default_rng(0)
    fits = []
    for shift in (0, 1):
        rows = pd.DataFrame(
            {name: rng.choice(["u", "v"], 80, p=[0.4 + 0.2 * shift, 0.6 - 0.2 * shift]) for name in "abcd"}
        )
        fits.append(FunctionalANOVA(shrinkage=None, max_order=2).fit(rows, (rows == "u").sum(axis=1) * (1.0 + shift)))
    records = contrasts.change(fits[1].decomposition_, fits[0])["records"]
    *listed, total = records
    assert [r["part"] for r in listed][2:] == ["(9 others)"]
    for field in ("mix", "model"):
        assert np.isclose(sum(r[field] for r in listed), total[field])


def test_rows_are_named_by_a_column_or_one_by_one(tmp_path):
    """The same report either way; what is not one name per row is refused, in a line."""
    anova = FunctionalANOVA(shrinkage=None).fit(table(), rate(table()))
    keys = [f"k{k}" for k in range(len(table()))]
    by_column = json.loads(written(anova, tmp_path, "json", X=table().assign(key=keys), id="key"))
    by_list, by_array = (json.loads(written(anova, tmp_path, "json", X=table(), id=i)) for i in (keys, np.array(keys)))
    assert by_column["sample"] == by_list["sample"] == by_array["sample"]
    assert all(row["id"] == keys[row["row"]] for row in by_list["sample"]["rows"])
    for wrong, expected in (({"id": keys[1:]}, InputError), ({"by": keys}, InputTypeError), ({"id": "no"}, KeyError)):
        with pytest.raises(expected) as refused:
            written(anova, tmp_path, "json", X=table(), **wrong)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 400


def test_differences_and_changes_are_told_with_their_errors(tmp_path):
    """Sentences of a report: groups named with their column, and what every number is uncertain by."""
    early = FunctionalANOVA(max_order=1).fit(table()[::2], rate(table())[::2], output_names=["rate"])
    anova = FunctionalANOVA(max_order=1).fit(table(), rate(table()), output_names=["rate"])
    shown = json.loads(written(anova, tmp_path, "json", X=table(), by="town", since=early))
    found, change = anova.difference(table(), by="town"), early.change(anova)
    for contrast, record in zip(found, shown["groups"]["contrasts"], strict=True):
        (words,) = record["words"]
        assert f"for town = {contrast.group} and " in words
        assert f"{signed(contrast.total[0])} ± {contrast.total_stderr[0]:.2g}." in words
    for value, error in (
        (change.total[0], change.total_stderr[0]),
        (change.mix_total[0], change.mix_total_stderr[0]),
        (change.model_total[0], change.model_total_stderr[0]),
    ):
        assert f"{signed(value)} ± {error:.2g}" in shown["change"]["words"][0]


def test_one_number_for_all_outputs_is_said_once():
    y = rate(table()) / 10
    anova = FunctionalANOVA().fit(table(), np.stack([y, 1 - y], axis=1), output_names=["yes", "no"])
    first = summarise(anova.decomposition_).verdicts[0]["because"]
    assert "for every output" in first
    assert " to " not in first


def test_a_page_that_shows_all_rows_does_not_say_that_some_are_left_out(monkeypatch):
    """The rows of JSON and Markdown are fewer than those of a page."""
    monkeypatch.setattr(explorer, "ROWS", 20)
    anova = FunctionalANOVA(shrinkage=None).fit(table(), rate(table()))
    shown = f"{len(table()) - 20} of {len(table())} rows given in the row explorer: 20 are shown"
    summary = summarise(anova.decomposition_, X=table())
    assert any(shown in sentence for sentence in summary.left_out)
    assert not any("row explorer" in sentence for sentence in Page(summary).left_out)
    monkeypatch.setattr(live_rows, "ROWS", 30)
    monkeypatch.setattr(live_rows, "CODES", 0)
    listed = Page(summarise(anova.decomposition_, X=table())).left_out
    assert sum("row explorer: 30 are shown" in sentence for sentence in listed) == 1
    assert not any(shown in sentence for sentence in listed)


@pytest.mark.parametrize("seed", range(6))
def test_sentences_name_the_largest_cells_of_enough_rows(seed):
    """By brute force from the tables; what rare cells would change is said."""
    rng = np.random.default_rng(seed)
    n = 400
    frame = pd.DataFrame({"a": rng.choice(list("uvwx"), n, p=[0.5, 0.3, 0.18, 0.02]), "b": rng.integers(0, 3, n)})
    y = rng.normal(size=n) + 5.0 * (frame["a"] == "x") * (seed % 2) + (frame["a"] == "u") * frame["b"]
    anova = FunctionalANOVA(shrinkage=None).fit(frame, y, output_names=["score"])
    said = findings.findings(anova.decomposition_, importance_records(anova.decomposition_, "l1"))[0]
    few = False
    for names in (("a",), ("b",), ("a", "b")):
        effect = anova.effects_[names]
        values, rows = effect.values[:, 0], effect.rows
        size = np.abs(values) if len(names) == 2 else values
        ends = [
            np.argmax(np.where(rows >= 30, sign * size, -np.inf)) for sign in ((1,) if len(names) == 2 else (-1, 1))
        ]
        for c in ends:
            level = effect.levels[c]
            amount = findings.signed(float(values[c]))
            named = (
                f"{amount} at {level[0]}" if len(names) == 1 else f"a is {level[0]} and b is {level[1]}: by {amount}"
            )
            assert named in said, (named, said)
        few |= size.max() > size[rows >= 30].max() or (len(names) == 1 and size.min() < size[rows >= 30].min())
    assert ("fewer than 30 rows are not named" in said) == few


def test_a_headline_names_no_interaction_that_hardly_matters():
    effects = [{"subset": ("a",), "order": 1, "value": 1.0}, {"subset": ("a", "b"), "order": 2, "value": 0.02}]
    importance = [{"feature": "a", "value": 1.0}, {"feature": "b", "value": 0.01}]
    assert "strongest interaction is a × b" in findings.headline(importance, effects)
    effects[1]["value"] = 0.009
    assert "interactions hardly matter" in findings.headline(importance, effects)
    assert "interaction" not in findings.headline(importance, effects[:1])


def test_a_single_feature_is_the_only_one():
    assert findings.headline([{"feature": "a", "value": 1.0}], []) == "The only feature is a."


def test_a_rare_level_with_the_largest_effect_is_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(["u", "v"], 2000) for name in "abc"} | {"rare": np.arange(2000) < 40}).astype(
        str
    )
    y = 10.0 * (X["a"] == "u") + 9.0 * (X["b"] == "u") + 8.0 * (X["c"] == "u") + 60.0 * (X["rare"] == "True")
    sentence = findings.main_findings(FunctionalANOVA(max_order=1).fit(X, y).decomposition_)[1]
    assert "The largest effect of one level is +58.8, at rare = True (2 % of the rows)." in sentence
    without = findings.main_findings(
        FunctionalANOVA(max_order=1).fit(X, y - 60.0 * (X["rare"] == "True")).decomposition_
    )
    assert "The largest effect of one level" not in without[1]


def test_findings_on_a_link_are_factors_of_the_output(tariff):
    """The mean there is the fitted value of a row without effects; factors are exponentials of effects."""
    sentence = findings.main_findings(tariff.decomposition_)[1]
    mean = float(np.exp(tariff.intercept_[0]))
    assert f"where claims is {mean:.3g}; effects are given as factors." in sentence
    effects = {feature: np.exp(tariff.effects_[feature].values[:, 0]) for feature in tariff.feature_names_in_}
    named = [
        text.partition(", from × ")[::2]
        for text in sentence.partition("on average: ")[2].partition(". ")[0].split("; ")
    ]
    assert named
    for feature, ends in named:
        low, high = (float(part.split(" at ")[0]) for part in ends.split(" to × "))
        assert low == pytest.approx(effects[feature].min(), rel=0.01)
        assert high == pytest.approx(effects[feature].max(), rel=0.01)
