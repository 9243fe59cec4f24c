"""An output is named in the same way in every query that takes one."""

import numpy as np
import pytest

from exanova import FunctionalANOVA
from exanova.errors import ExanovaError, InputError, UnknownFeatureError

ROWS = np.array([[a, b] for a in "uvw" for b in "xy"])

HOW = {"shrinkage": None, "sampled": False}

QUERIES = {
    "reasons": lambda anova, output: (
        anova.reasons(ROWS, output=output, stderr=False).to_frame()["contribution"].tolist()
    ),
    "interactions": lambda anova, output: [i.values for i in anova.interactions(ROWS).to_shapiq(output)],
    "plot": lambda anova, output: anova.plot.waterfall(ROWS[:1], output=[output]).to_dict()["datasets"],
}
"""Each query by what it answers about one output."""


def fitted(*names: str) -> FunctionalANOVA:
    values = np.random.default_rng(0).normal(size=(len(ROWS), len(names)))
    return FunctionalANOVA(**HOW).fit(ROWS, values if len(names) > 1 else values[:, 0], output_names=list(names))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    ("output", "name"), [("3", "3"), (3, "3"), (1, "1"), (np.int64(1), "1"), (0, "2"), (-1, "1"), ("2", "2")]
)
def test_a_number_is_a_name_where_there_is_one_and_a_place_elsewhere(query: str, output: object, name: str) -> None:
    anova, answer = fitted("2", "3", "1"), QUERIES[query]
    np.testing.assert_equal(answer(anova, output), answer(anova, name))
    others = [answer(anova, other) for other in ("1", "2", "3") if other != name]
    for other in others:
        with pytest.raises(AssertionError):
            np.testing.assert_equal(answer(anova, output), other)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("output", ["c", "", 2, -3, 0.0, True, ("a",)])
def test_an_output_that_does_not_exist_is_refused_in_one_sentence(query: str, output: object) -> None:
    expected = r"there is no output .*; expected one of 'a', 'b', or its number\."
    with pytest.raises(UnknownFeatureError, match=expected):
        QUERIES[query](fitted("a", "b"), output)
    with pytest.raises(UnknownFeatureError, match="expected one of 'a', or its number"):
        QUERIES[query](fitted("a"), output)


@pytest.mark.parametrize("query", ["reasons", "interactions"])
def test_one_of_several_has_to_be_named_and_the_only_one_need_not(query: str) -> None:
    with pytest.raises(InputError, match="there are several outputs; expected one of 'a', 'b', or its number"):
        QUERIES[query](fitted("a", "b"), None)
    np.testing.assert_equal(QUERIES[query](fitted("a"), None), QUERIES[query](fitted("a"), "a"))


def test_a_message_names_ten_outputs_at_most() -> None:
    with pytest.raises(ExanovaError, match=r"'o9', \.\.\., or its number"):
        QUERIES["reasons"](fitted(*(f"o{k}" for k in range(12))), "o12")
