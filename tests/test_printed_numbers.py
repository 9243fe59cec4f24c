"""Numbers in sentences: close to the value, without powers of ten where whole numbers fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.printed_numbers import plus_minus, printed, printed_change, printed_error
from strategies import examples

ordinary = st.builds(lambda m, e: m * 10.0**e, st.floats(1.0, 9.999), st.integers(-4, 13))


@examples(200)
@given(size=ordinary, sign=st.sampled_from([-1.0, 1.0]), digits=st.integers(2, 6))
def test_ordinary_numbers_are_close_and_have_no_power_of_ten(size, sign, digits):
    value = sign * size
    for text, relative in (
        (printed(value, digits), 10.0 ** (1 - digits)),
        (printed_change(value, digits), 10.0 ** (1 - digits)),
        (printed_error(size), 0.1),
    ):
        assert "e" not in text
        assert abs(abs(float(text.replace(",", ""))) - size) <= 0.51 * relative * size
        assert not text.endswith(".")
    assert printed_change(value, digits)[0] == ("-" if sign < 0 else "+")
    assert plus_minus(size) == f" ± {printed_error(size)}"


@examples(100)
@given(size=ordinary)
def test_the_last_bit_does_not_decide(size):
    assert printed(size) == printed(float(np.nextafter(size, 0.0))) or not np.isclose(
        size, float(f"{size:.12g}"), rtol=1e-15
    )


def test_money_is_printed_as_money():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"job": rng.choice(["clerk", "boss"], 200), "town": rng.choice(["u", "v", "w"], 200)})
    pay = 41_500.0 + 12_000.0 * (X["job"] == "boss") + 3_250.0 * (X["town"] == "u") + rng.normal(0, 900, 200)
    anova = FunctionalANOVA().fit(X, pay, output_names=["pay"])
    later = FunctionalANOVA().fit(X[:120], 1.1 * pay[:120], output_names=["pay"])
    answers = [
        anova,
        anova.reasons(X[:3], model=pay[:3]),
        anova.difference(X, by="job", model=pay),
        anova.change(later),
    ]
    for answer in answers:
        for text in (str(answer), answer._repr_html_()):
            assert "e+0" not in text
    assert f"mean of pay: {anova.intercept_[0]:,.0f} -> " in str(answers[3])
