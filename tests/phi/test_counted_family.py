"""A family whose common rows were counted: the exact choice of functions reads them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exanova.design.family import build_family
from exanova.design.subsets import up_to_order
from exanova.phi.counted_family import CountedFamily
from exanova.phi.gram import common_rows
from exanova.solve import choice as choices
from exanova.solve.choice import PaperChoice
from strategies import examples, supports


@examples(30)
@given(case=supports(("equal", "counts"), max_features=4), order=st.integers(1, 4), batch=st.sampled_from([3, 2048]))
def test_common_rows_that_were_counted_lead_to_the_same_choice(case, order, batch):
    """Rows then count as often as they occur, which changes no rank."""
    varying = [i for i, n in enumerate(case.sizes) if n > 1]
    assume(varying)
    codes, subsets = np.ascontiguousarray(case.rows.T).astype(np.uint8), up_to_order(varying, order)
    family = build_family(codes, case.weight.astype(float), case.sizes, subsets)
    counted = CountedFamily(family, common_rows(family, codes, case.weight))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "BATCH", batch)
        given = PaperChoice(codes, case.weight, case.sizes, counted=counted)
        grown = PaperChoice(codes, case.weight, case.sizes)
        assert given.add_family(subsets).tolist() == grown.add_family(subsets).tolist()
    assert given.family.subsets == grown.family.subsets
    assert [own.tolist() for own in given.chosen] == [own.tolist() for own in grown.chosen]
