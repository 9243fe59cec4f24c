"""The decomposition: one immutable record that answers, whoever holds it and wherever it comes from."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pandas as pd
import pytest

import exanova
from exanova import Decomposition, FunctionalANOVA
from exanova.decomposition_file import from_file, to_file
from exanova.errors import (
    InputError,
    InputTypeError,
    MemoryLimitError,
    NotFittedError,
    OutsideSupportError,
    OutsideSupportWarning,
    UnknownLevelError,
)
from exanova.explain import mean_shapley
from exanova.queries.query import QuerySettings

KINDS = ("l1", "l2", "shapley", "variance", "shapley-effects")

FORWARDED = (
    "predict",
    "components",
    "explain",
    "interactions",
    "importance",
    "errors",
    "significance",
    "score",
    "difference",
    "reasons",
    "compare",
    "export",
    "change",
    "relativities",
    "report",
)


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    drawn = {name: rng.choice(list("uvw"), n) for name in "abcd"}
    return pd.DataFrame(drawn)[lambda X: (X["a"] != "u") | (X["b"] != "v")]  # one combination never occurs


def outputs(X: pd.DataFrame) -> np.ndarray:
    first = (X["a"] == "u") * 2.0 + (X["b"] == "v") * (X["c"] == "w")
    return np.column_stack([first, (X["d"] == "u") - first])


@pytest.fixture
def anova() -> FunctionalANOVA:
    X = table()
    return FunctionalANOVA(shrinkage=None, max_order=2).fit(X, outputs)


NEVER_SEEN = pd.DataFrame([dict(a="u", b="v", c="u", d="u")])


def answers(found: FunctionalANOVA | Decomposition) -> dict[str, np.ndarray]:
    """Every query that needs no rows of the fit, as arrays."""
    X = table()
    told, parts, pairs = found.explain(X, outputs), found.components(X), found.interactions(X)
    return {
        "predict": found.predict(X),
        "components": parts.values,
        "explain": told.values,
        "residual": told.residual,
        "interactions": pairs.values,
        "score": np.asarray(found.score(X, outputs)),
        **{kind: found.importance(kind)["value"].to_numpy() for kind in KINDS},
        **{f"{kind} by subset": found.importance(kind, by="subset")["value"].to_numpy() for kind in ("l1", "variance")},
        "compare": np.array([change.difference for change in found.compare(found).changes]),
        "effects": np.concatenate([effect.values for effect in _effects(found).values()]),
        "stderr": np.concatenate([effect.stderr for effect in _effects(found).values()]),
    }


def _effects(found: FunctionalANOVA | Decomposition) -> exanova.Effects:
    return found.effects if isinstance(found, Decomposition) else found.effects_


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


def test_the_estimator_answers_what_its_decomposition_answers(anova: FunctionalANOVA) -> None:
    same(answers(anova), answers(anova.decomposition_))
    assert str(anova) == str(anova.decomposition_)
    assert anova.plot.importance().to_dict() == anova.decomposition_.plot.importance().to_dict()


@pytest.mark.parametrize("name", FORWARDED)
def test_a_forwarded_query_has_the_signature_and_the_words_of_the_decomposition(name: str) -> None:
    ours, theirs = getattr(FunctionalANOVA, name), getattr(Decomposition, name)
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert ours.__doc__ == theirs.__doc__
    with pytest.raises(NotFittedError, match=r"call fit\(X, model\) first"):
        getattr(FunctionalANOVA(shrinkage=None), name)(*(["x"] * (2 if name == "score" else 1)))


def test_every_public_query_is_forwarded() -> None:
    own = {name for name, member in inspect.getmembers(Decomposition, inspect.isfunction) if not name.startswith("_")}
    inside = {"reasons_of_rows", "error_sources", "encode", "read_at", "read_with"}
    assert own == {*FORWARDED, "model_values", "with_settings", *inside}


def test_the_record_is_frozen(anova: FunctionalANOVA) -> None:
    for field in fields(Decomposition):
        with pytest.raises(FrozenInstanceError):
            setattr(anova.decomposition_, field.name, None)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_answers_the_same(anova: FunctionalANOVA, copied: object) -> None:
    before = answers(anova.decomposition_)
    same(before, answers(copied(anova.decomposition_)))  # type: ignore[operator]
    same(before, answers(copied(anova)))  # type: ignore[operator]


def test_a_loaded_decomposition_answers_what_the_fitted_one_answers(anova: FunctionalANOVA, tmp_path) -> None:
    anova.errors()
    anova.save(tmp_path / "it.exanova")
    loaded = exanova.load(tmp_path / "it.exanova")
    same(answers(anova.decomposition_), answers(loaded.decomposition_))
    assert loaded.decomposition_.settings == anova.decomposition_.settings
    assert loaded.decomposition_.sample is None


# Settings


def test_parameters_set_after_the_fit_hold_for_queries(anova: FunctionalANOVA) -> None:
    held = anova.decomposition_
    with pytest.warns(OutsideSupportWarning):
        anova.predict(NEVER_SEEN)
    anova.set_params(strict=True)
    with pytest.raises(OutsideSupportError):
        anova.predict(NEVER_SEEN)
    with pytest.warns(OutsideSupportWarning):
        held.predict(NEVER_SEEN)  # a record never changes
    anova.strict = False
    unknown = NEVER_SEEN.assign(a="z")
    with pytest.raises(UnknownLevelError):
        anova.predict(unknown)
    with pytest.warns(OutsideSupportWarning):
        assert anova.set_params(handle_unknown="ignore").predict(unknown).shape == (1, 2)
    with pytest.raises(MemoryLimitError):
        anova.set_params(memory_limit=10).explain(table())


def test_settings_are_parameters_of_the_estimator_with_their_defaults() -> None:
    given = FunctionalANOVA(shrinkage=None).get_params()
    assert {field.name: field.default for field in fields(QuerySettings)}.items() <= given.items()


def test_other_settings_share_what_was_computed(anova: FunctionalANOVA, monkeypatch: pytest.MonkeyPatch) -> None:
    anova.errors()
    anova.importance("shapley")
    monkeypatch.setattr(mean_shapley, "mean_absolute", lambda *given: pytest.fail("computed again"))
    again = anova.set_params(strict=True).decomposition_
    assert again.uncertainty.known
    again.importance("shapley")


def test_ties_are_those_of_the_fit(anova: FunctionalANOVA, tmp_path) -> None:
    """What settled the redundancy of these effects, not what would settle it in another fit."""
    anova.set_params(ties="first").save(tmp_path / "it.exanova")
    assert anova.decomposition_.ties == exanova.load(tmp_path / "it.exanova").decomposition_.ties == "share"
    assert anova.fit(table(), outputs).decomposition_.ties == "first"


def test_a_warning_names_the_line_that_asked(anova: FunctionalANOVA) -> None:
    for found in (anova, anova.decomposition_):
        for ask in (found.predict, found.components, found.explain, found.interactions):
            with pytest.warns(OutsideSupportWarning) as caught:
                ask(NEVER_SEEN)
            assert caught[0].filename == __file__


def test_only_decompositions_are_compared(anova: FunctionalANOVA) -> None:
    first, second = anova.compare(anova.decomposition_), anova.decomposition_.compare(anova)
    assert str(first) == str(second)
    with pytest.raises(NotFittedError):
        anova.compare(FunctionalANOVA(shrinkage=None))
    with pytest.raises(InputTypeError, match="expected another fitted FunctionalANOVA"):
        anova.compare(3)


# Mean absolute Shapley values: nothing is computed for a file


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mean_shapley, "CHEAP", -1)


@pytest.mark.usefixtures("costly")
def test_a_file_has_what_was_computed_and_says_what_to_do_about_the_rest(tmp_path, monkeypatch) -> None:
    anova = FunctionalANOVA(shrinkage=None).fit(table(), outputs)
    with monkeypatch.context() as patch:
        patch.setattr(mean_shapley, "mean_absolute", lambda *given: pytest.fail("computed unasked"))
        anova.save(tmp_path / "before.exanova")
    loaded = exanova.load(tmp_path / "before.exanova")
    for kind in KINDS:
        if kind != "shapley":
            loaded.importance(kind)
    with pytest.raises(InputError, match=r"files contain no rows.*importance\('shapley'\).*before save\(\)"):
        loaded.importance("shapley")
    expected = anova.importance("shapley")
    anova.save(tmp_path / "after.exanova")
    pd.testing.assert_frame_equal(exanova.load(tmp_path / "after.exanova").importance("shapley"), expected)


@pytest.mark.usefixtures("costly")
@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_mean_absolute_values_are_those_of_the_rows_whatever_the_threads(chunk: int, monkeypatch) -> None:
    monkeypatch.setattr(mean_shapley, "CHUNK", chunk)
    X, found = table(), []
    for n_jobs in (1, 3):
        anova = FunctionalANOVA(shrinkage=None, n_jobs=n_jobs).fit(X, outputs)
        values = anova.importance("shapley").set_index(["feature", "output"])["value"]
        mean = np.abs(anova.explain(X).values).mean(axis=0)
        for i, feature in enumerate(X.columns):
            for k, output in enumerate(anova.output_names_):
                assert values[feature, output] == pytest.approx(mean[i, k], rel=1e-12)
        found.append(values.sort_index().to_numpy())
    np.testing.assert_array_equal(*found)


# Files


def test_a_file_without_ties_has_those_of_its_parameters(anova: FunctionalANOVA) -> None:
    """As files had them before decompositions recorded how they were settled."""
    document, arrays = to_file(anova.decomposition_, {**anova.get_params(), "ties": "first"})
    assert from_file(document, arrays)[0].ties == "share"
    del document["ties"]
    assert from_file(document, arrays)[0].ties == "first"
    with pytest.raises(exanova.errors.FileFormatError):
        from_file({**document, "ties": "neither"}, arrays)
