"""Rows to evaluate a fit on that cannot be read are refused before the model is called on any row of the fit."""

import numpy as np
import pandas as pd
import pytest

from exanova import FunctionalANOVA
from exanova.errors import ExanovaError

ROWS = pd.DataFrame({"a": ["u", "v", "w"] * 20, "b": ["x", "y"] * 30})
OTHER = ROWS[:7]

REFUSED = {
    "levels never seen": ((OTHER.replace({"w": "new", "y": "unheard of"}), np.arange(7.0)), "'a'.*'b'"),
    "a column that is not there": ((OTHER[["a"]], np.arange(7.0)), "'b'"),
    "outputs of other rows": ((OTHER, np.arange(8.0)), "8.*7"),
    "outputs with other labels": ((OTHER, pd.Series(np.arange(7.0), index=np.arange(7) + 100)), "index"),
    "missing outputs": ((OTHER, np.full(7, np.nan)), "finite|missing|NaN|nan"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_held_out_rows_are_checked_before_the_model_is_called(case):
    calls = []

    def model(table):
        calls.append(len(table))
        return (table["a"] == "u") * 1.0

    eval_set, named = REFUSED[case]
    with pytest.raises(ExanovaError, match=f"(?s){named}"):
        FunctionalANOVA().fit(ROWS, model, eval_set=eval_set)
    assert not calls
