"""The report says which levels are read as one: neighbouring intervals that do not differ, and joined names."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from exanova import FunctionalANOVA


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 3000
    kinds = rng.integers(0, 3, 120)
    code = rng.integers(0, 120, n)
    rows = pd.DataFrame({"zip": [f"z{k:03d}" for k in code], "x": rng.uniform(0, 1, n).round(3)})
    outputs = 2.0 * kinds[code] + (rows["x"] > 0.5) + 0.1 * rng.normal(size=n)
    anova = FunctionalANOVA(max_order=1).fit(rows, outputs)
    folder = tmp_path_factory.mktemp("alike")
    for suffix in ("html", "json", "md"):
        anova.report(folder / f"r.{suffix}", X=rows, model=outputs)
    texts = {suffix: (folder / f"r.{suffix}").read_text(encoding="utf-8") for suffix in ("html", "json", "md")}
    return anova, kinds, texts


def test_the_members_of_joined_levels_are_listed(reports):
    anova, kinds, texts = reports
    effects = {effect["feature"]: effect for effect in json.loads(texts["json"])["effects"]}
    joined = effects["zip"]["joined"]
    assert sorted(name for names in joined.values() for name in names) == sorted(f"z{k:03d}" for k in range(120))
    assert joined == {label: list(names) for label, names in anova.decomposition_.joined_levels["zip"].items()}
    for label, names in joined.items():
        assert len({kinds[int(name[1:])] for name in names}) == 1
        count, first = label.partition(":")[0], ", ".join(names[:30])
        said = f"{count}: {first}" + (f" and {len(names) - 30} more." if len(names) > 30 else ".")
        assert said in effects["zip"]["notes"]
        assert said in texts["html"]
        assert said in texts["md"].replace("\\", "")


def test_neighbours_that_do_not_differ_are_listed(reports):
    anova, _, texts = reports
    effects = {effect["feature"]: effect for effect in json.loads(texts["json"])["effects"]}
    groups = anova.effects_["x"].joined()
    assert len(groups.levels) < len(anova.effects_["x"].levels)
    (note,) = effects["x"]["notes"]
    assert note.startswith("Neighbours that do not differ beyond their error, as one: ")
    for (label,), value in zip(groups.levels, groups.values[:, 0], strict=True):
        assert f"{label}: {value:.3g}" in note
    assert "Neighbours that do not differ beyond their error" in texts["html"]
    assert "Neighbours that do not differ" in texts["md"]
