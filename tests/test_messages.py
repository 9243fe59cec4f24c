"""Messages hold parameters as data: Python and the command spell them, and nothing is found in sentences."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.main import get_group

import exanova
from cli_helpers import LOANS, PREDICTED, RISK, TABLE, inside
from exanova import FunctionalANOVA, errors
from exanova.cli.app import app
from exanova.cli.option_names import ACTIONS, OPTIONS, OTHER_NAMES, with_options
from exanova.messages import UNSAID, Action, Parameter, Value, Words, choices, from_json, joined, to_json

SOURCE = Path(exanova.__file__).parent
FAMILY = [e for e in vars(errors).values() if inspect.isclass(e) and issubclass(e, errors.ExanovaError)]

texts = st.text(st.characters(codec="utf-8"), max_size=8)
values = st.sampled_from([UNSAID, None, True, False, 3, 0.5, "4 GB", "dense", {"age": 5}, ["a", "b"]])
names = st.sampled_from(["max_order", "n_bins", "strict", "eval_set", "memory_limit", "ridge", "subsets"])
mentions = st.one_of(
    st.builds(Parameter, names, values),
    st.builds(Value, names, values.filter(lambda value: value is not UNSAID)),
    st.builds(Action, st.sampled_from(list(ACTIONS)), texts, texts),
)
parts = st.lists(st.one_of(texts, mentions), max_size=6)


def library_parameters():
    """Every parameter of a public method of the estimator and its results."""
    owners = (FunctionalANOVA, exanova.Effect, exanova.Support)
    found = {"random_state"}
    for owner in owners:
        for _, method in inspect.getmembers(owner, callable):
            try:
                found |= set(inspect.signature(method).parameters)
            except (TypeError, ValueError):
                continue
    return found


def options_of_parameters():
    """Parameters of the library that the command has as options."""
    named = {parameter for parameter, option in OTHER_NAMES.items() if option in OPTIONS}
    return sorted(named | (library_parameters() & set(OPTIONS)))


PYTHON = re.compile(rf"\b({'|'.join([*options_of_parameters(), 'interactions'])})=")


# Sentences


@given(parts)
def test_a_sentence_is_its_parts(given_parts):
    said = Words(*given_parts)
    assert said == "".join(map(str, given_parts))
    assert said.spelled(str) == said
    assert Words(said) == said
    assert Words(said).parts == said.parts
    assert said.mentions == tuple(part for part in given_parts if not isinstance(part, str))
    for again in (pickle.loads(pickle.dumps(said)), copy.deepcopy(said)):
        assert again == said
        assert again.mentions == said.mentions


@given(st.lists(parts, min_size=1, max_size=4), texts)
def test_sentences_are_joined_as_text_is(several, between):
    sentences = [Words(*one) for one in several]
    whole = joined(sentences, between)
    assert whole == between.join(sentences)
    assert whole.mentions == tuple(mention for sentence in sentences for mention in sentence.mentions)


@given(parts)
def test_a_sentence_comes_back_from_a_file(given_parts):
    said = Words(*given_parts)
    again = from_json(json.loads(json.dumps(to_json(said))))
    assert again == said
    kept = [m for m in said.mentions if isinstance(m, Parameter)]
    assert [m for m in getattr(again, "mentions", ()) if isinstance(m, Parameter)] == kept


@pytest.mark.parametrize("found", [3, {"a": 1}, [3], [[3]], [["route", "dense", 1]], [[]], None])
def test_what_is_no_sentence_in_a_file(found):
    with pytest.raises((ValueError, TypeError, IndexError)):
        from_json(found)


@given(parts)
def test_the_command_spells_no_parameter_as_python_does(given_parts):
    plain = [part for part in given_parts if not isinstance(part, str)]
    assert not PYTHON.search(with_options(Words(*plain)))
    assert with_options("max_order=3 in a plain text") == "max_order=3 in a plain text"


@pytest.mark.parametrize(
    ("mention", "python", "command"),
    [
        (Parameter("max_order", 2), "max_order=2", "--max-order 2"),
        (Parameter("max_order", None), "max_order=None", "--max-order all"),
        (Value("max_order", None), "None", "all"),
        (Parameter("min_frequency"), "min_frequency=", "--min-frequency"),
        (Parameter("n_bins", {"a b": 5, "c": 4}), "n_bins={'a b': 5, 'c': 4}", "--n-bins 'a b=5,c=4'"),
        (Parameter("memory_limit", "4 GB"), "memory_limit='4 GB'", "--memory-limit '4 GB'"),
        (Parameter("strict", True), "strict=True", "--strict"),
        (Parameter("strict", False), "strict=False", "no --strict"),
        (Parameter("selection", None), "selection=None", "no --selection"),
        (Parameter("eval_set"), "eval_set=", "--eval"),
        (Parameter("sample_weight"), "sample_weight=", "--weight"),
        (Parameter("ridge", 0), "ridge=0", "ridge 0"),
        (Value("basis", "pure"), "'pure'", "pure"),
        (Parameter("shrinkage", None), "shrinkage=None", "--shrinkage none"),
        (Parameter("shrinkage", "auto"), "shrinkage='auto'", "--shrinkage auto"),
        (Value("shrinkage", None), "None", "none"),
        (Parameter("sampled", True), "sampled=True", "--sample"),
        (Parameter("sampled", False), "sampled=False", "--population"),
        (Parameter("sampled", "auto"), "sampled='auto'", "neither --sample nor --population"),
        (Parameter("sampled"), "sampled=", "--sample or --population"),
        (Action("drop", "the id", "drop the column"), "drop the column", "leave it out with --ignore 'the id'"),
        (Action("drop", "id,key", "drop them", 2), "drop them", "leave them out with --ignore id,key"),
        (Action("categorical", "a,b", "convert", 2), "convert", "read them as text with --text a,b"),
    ],
)
def test_a_mention_in_both_tongues(mention, python, command):
    assert str(mention) == python
    assert with_options(Words(mention)) == command


# Errors


@pytest.mark.parametrize("error", FAMILY, ids=lambda e: e.__name__)
def test_every_error_has_its_fields_and_survives_a_pickle(error):
    raised = error(
        Parameter("max_terms", 3), " is low", expected=["at least ", "10"], remedy=["Use ", Parameter("n_bins")]
    )
    assert str(raised) == "max_terms=3 is low; expected at least 10. Use n_bins=."
    assert (raised.problem, raised.expected, raised.remedy) == ("max_terms=3 is low", "at least 10", "Use n_bins=")
    assert (raised.parameter, raised.parameters) == ("max_terms", ("max_terms", "n_bins"))
    again = pickle.loads(pickle.dumps(raised))
    assert (str(again), again.remedy, again.parameter) == (str(raised), raised.remedy, raised.parameter)
    assert str(error("a plain sentence.")) == "a plain sentence."
    assert error("a plain sentence.").parameter is None
    with pytest.raises(exanova.errors.ExanovaError):
        raise raised


def test_a_remedy_in_small_letters_goes_on():
    assert str(errors.InputError("it is low", remedy="raise it")) == "it is low; raise it."
    assert str(errors.InputError.given("ties", "x", *choices("ties", ["share", "first"]))) == (
        "ties='x' was given; expected 'share' or 'first'."
    )


def test_several_errors_in_one():
    both = errors.InputError.together(
        [errors.InputError.given("ties", 1, "a"), errors.InputError.given("basis", 2, "b")]
    )
    assert str(both) == "ties=1 was given; expected a. basis=2 was given; expected b."
    assert both.parameters == ("ties", "basis")


# The whole package


def messages_in_source():
    """(place, node) of everything that makes a message: raise statements, calls of Words and of errors."""
    makers = {"Words", "given", "warn", *(e.__name__ for e in FAMILY)}
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in makers:
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


def test_no_message_spells_a_parameter_itself():
    found = []
    for place, node in messages_in_source():
        for text in ast.walk(node):
            if not isinstance(text, ast.Constant) or not isinstance(text.value, str) or "report(path" in text.value:
                continue  # the command makes reports itself, and never fails in that way
            if PYTHON.search(text.value):
                found.append(f"{place}: {text.value}")
    assert not found, "\n".join(found)


def test_every_parameter_mentioned_exists():
    known = library_parameters() | set(OPTIONS) | {"interactions"}
    mentioned = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            if (
                name in ("Parameter", "Value", "given", "choices")
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                mentioned[node.args[0].value] = f"{path.relative_to(SOURCE)}:{node.lineno}"
    assert len(mentioned) > 20
    assert not {name: place for name, place in mentioned.items() if name not in known}


def test_the_options_are_those_of_the_command():
    parameters = [p for command in get_group(app).commands.values() for p in command.params]
    assert set(OPTIONS.values()) == {
        flag for p in parameters for flag in (*p.opts, *p.secondary_opts) if flag.startswith("--")
    } - {"--help"}
    assert all(flag == "--" + name.replace("_", "-") for name, flag in OPTIONS.items())


def test_every_action_has_an_option():
    used = {
        node.args[0].value
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Action"
    }
    assert used == set(ACTIONS)
    for words in ACTIONS.values():
        assert words.split()[-1] in OPTIONS.values()


# The command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("messages")
    table = TABLE.assign(size=np.linspace(0, 1, len(TABLE)))
    table.to_csv(path / "loans.csv", index=False)
    FunctionalANOVA(shrinkage=None).fit(LOANS, RISK, output_names=["risk"]).save(path / "model.exanova")
    return path


given_options = {
    "--max-order": ["-1", "0", "1", "3", "all", "x"],
    "--max-terms": ["0", "2", "9", "40"],
    "--selection": ["screen", "canonical", "lasso", "best"],
    "--n-bins": ["1", "4", "size=1", "size=3", "job=3"],
    "--strategy": ["uniform", "kmeans", "x"],
    "--min-frequency": ["0", "2", "0.2", "1.5"],
    "--ties": ["first", "x"],
    "--basis": ["paper", "x"],
    "--route": ["grid", "dense", "moments", "matrix-free", "completion", "x"],
    "--memory-limit": ["100 B", "1 kB", "20 kB", "x"],
    "--n-jobs": ["0", "1"],
    "--shrinkage": ["auto", "none", "x"],
    "--population": [],
    "--eval": ["0.01", "0.3", "7"],
    "--subsets": ["job:home", "job", "job:job", "nobody", "job:home,job:home"],
    "--ignore": ["size"],
}


def _drawn(data, values):
    return [data.draw(st.sampled_from(values))] if values else []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    command=st.sampled_from(["explain", "plan"]),
    chosen=st.lists(st.sampled_from(sorted(given_options)), unique=True, max_size=5),
    data=st.data(),
)
def test_whatever_is_typed_is_answered_in_options(folder, capsys, command, chosen, data):
    words = [w for name in chosen for w in (name, *_drawn(data, given_options[name]))]
    words = [w for k, w in enumerate(words) if command == "explain" or "--eval" not in (w, words[k - 1])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ended = inside(capsys, command, folder / "loans.csv", *PREDICTED, *words)
    assert ended.code in (0, 2), ended.err
    assert "unexpected" not in ended.err
    assert ended.code == 0 or len(ended.err.splitlines()) >= 1
    assert not PYTHON.search(ended.out + ended.err), ended.out + ended.err


def test_a_note_in_a_file_is_told_in_options(folder, capsys):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (9, 3))
    anova = FunctionalANOVA(shrinkage=None, basis="paper", ties="first").fit(X, rng.normal(size=9))
    assert any("basis='pure'" in note for note in anova.certificate_.notes)
    anova.save(folder / "paper.exanova")
    assert exanova.load(folder / "paper.exanova").certificate_.notes == anova.certificate_.notes
    for words in ([], ["--json"]):
        shown = inside(capsys, "show", folder / "paper.exanova", *words)
        assert "--basis pure" in " ".join(shown.out.split())
        assert not PYTHON.search(shown.out)


@pytest.mark.parametrize("value", [list(range(10_000)), pd.DataFrame({"a": range(500)}), np.eye(300), "x" * 10_000])
def test_a_value_given_by_mistake_is_named_and_not_printed(value):
    for mention in (Parameter("by", value), Value("by", value)):
        assert "\n" not in str(mention)
        assert len(str(mention)) < 220
    assert str(Parameter("by", [1, 2])) == "by=[1, 2]"
