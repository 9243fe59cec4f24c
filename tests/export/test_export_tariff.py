"""The tariff of a fit with a link, in every format that has tables: what ``relativities`` says, and nothing without."""

from __future__ import annotations

import json
import math
import re

import jsonschema
import numpy as np
import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exanova import FunctionalANOVA
from exanova.export import write_export
from exanova.export.contents import BASE_VALUE, tariff_sheets
from exanova.export.json_tables import SCHEMA
from exanova.infer import uncertainty
from strategies import examples


def fitted(seed=0, link="log", outputs=1, **given):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.choice(list("xyz"), 300), "b": rng.choice(list("uv"), 300)})
    rate = np.exp(0.3 * (frame["a"] == "x") - 0.5 * (frame["b"] == "u") - 2.0).to_numpy()
    values = rate[:, None] * rng.uniform(0.7, 1.3, (300, outputs))
    names = ["rate", "other"][:outputs]
    anova = FunctionalANOVA(link=link, **{"shrinkage": None, **given})
    return anova.fit(frame, values, sample_weight=rng.uniform(0.5, 2.0, 300), output_names=names), frame


def numbers(lines, name):
    return [math.nan if cell in (None, "") else float(cell) for cell in lines[name]]


def same_tariff(lines, anova):
    """Whether columns after the lines of base values hold what ``relativities`` says."""
    tariff = anova.relativities()
    count = len(tariff.names)
    assert lines["factor"][:count] == [BASE_VALUE] * count
    assert np.allclose(numbers(lines, "relativity")[:count], tariff.base_value, rtol=1e-14)
    frame = tariff.to_frame()
    assert lines["factor"][count:] == frame["factor"].tolist()
    assert lines["level"][count:] == frame["level"].tolist()
    for name in ("exposure", "relativity", "low", "high"):
        np.testing.assert_allclose(numbers(lines, name)[count:], frame[name], rtol=1e-14)
    assert [str(cell) == "True" for cell in lines["base"][count:]] == frame["base"].tolist()


@examples(6)
@given(
    seed=st.integers(0, 9),
    link=st.sampled_from(["log", "logit"]),
    outputs=st.integers(1, 2),
    sampled=st.sampled_from(["auto", False]),
)
def test_the_base_value_times_one_relativity_of_each_factor_is_the_fitted_value(seed, link, outputs, sampled):
    anova, frame = fitted(seed, link, outputs, sampled=sampled)
    sheet, loss = tariff_sheets(anova.relativities())
    lines = list(zip(*sheet.columns.values(), strict=True))
    of = {(factor, level, output): value for factor, level, output, _, value, *_ in lines}
    response = np.reshape(anova.predict(frame[:20], scale="response"), (20, outputs))
    for k, output in enumerate(["rate", "other"][:outputs]):
        base = next(line[4] for line in lines if line[0] == BASE_VALUE and line[2] == output)
        for (a, b), value in zip(frame[:20].itertuples(index=False), response[:, k], strict=True):
            product = base * of["a", a, output] * of["b", b, output] * of["a x b", f"{a} x {b}", output]
            assert np.isclose(product, value if link == "log" else value / (1 - value))
    assert loss.columns["order"] == [0, 1, 2] * outputs


@pytest.mark.parametrize("outputs", [1, 2])
def test_every_format_with_tables_has_the_tariff_that_relativities_gives(tmp_path, outputs):
    anova, _ = fitted(outputs=outputs)
    for name in ("b.xlsx", "t.json", "t.md", "t.tex", "folder/"):
        anova.export(f"{tmp_path}/{name}")
    book = openpyxl.load_workbook(tmp_path / "b.xlsx")
    header, *lines = book["tariff"].iter_rows(values_only=True)
    same_tariff(dict(zip(header, map(list, zip(*lines, strict=True)), strict=True)), anova)
    same_tariff(pq.read_table(tmp_path / "folder" / "tariff.parquet").to_pydict(), anova)
    same_tariff(pd.read_csv(tmp_path / "folder" / "tariff.csv").to_dict("list"), anova)
    loss = np.concatenate([[line.deviance for line in losses] for losses in anova.relativities().losses])
    assert np.allclose(pd.read_csv(tmp_path / "folder" / "tariff loss.csv")["deviance"], loss)
    document = json.loads((tmp_path / "t.json").read_bytes())
    jsonschema.validate(document, json.loads(SCHEMA.read_bytes()))
    tariff, found = anova.relativities(), document["tariff"]
    assert (found["link"], found["base"], found["base_value"]) == ("log", tariff.base, tariff.base_value.tolist())
    frame = tariff.to_frame()
    assert [line["relativity"] for line in found["relativities"]] == frame["relativity"].tolist()
    assert [line["high"] for line in found["relativities"]] == frame["high"].tolist()
    assert np.allclose([line["deviance"] for line in found["loss"]], loss)
    text = (tmp_path / "t.md").read_text("utf-8")
    assert text.count("## Tariff") == outputs
    first = frame[~frame["base"]].iloc[0]
    shown = f"{first['relativity']:.4g} | {first['low']:.4g} to {first['high']:.4g} |"
    assert shown in text
    assert "## Loss of a tariff" in text
    assert r"\caption{Tariff" in (tmp_path / "t.tex").read_text("utf-8")


def test_without_a_link_no_format_has_a_tariff(tmp_path):
    anova, _ = fitted(link="identity")
    for name in ("b.xlsx", "t.json", "t.md"):
        anova.export(tmp_path / name)
    assert "tariff" not in openpyxl.load_workbook(tmp_path / "b.xlsx").sheetnames
    document = json.loads((tmp_path / "t.json").read_bytes())
    jsonschema.validate(document, json.loads(SCHEMA.read_bytes()))
    assert document["tariff"] is None
    assert "Tariff" not in (tmp_path / "t.md").read_text("utf-8")


def test_an_export_starts_no_long_computation_for_the_intervals_of_a_tariff(tmp_path, monkeypatch):
    anova, _ = fitted()
    monkeypatch.setattr(uncertainty, "CHEAP_WORK", 0.0)
    write_export(anova.decomposition_, tmp_path / "t.json")
    found = json.loads((tmp_path / "t.json").read_bytes())["tariff"]
    assert not anova.decomposition_.uncertainty.known
    assert {line["low"] for line in found["relativities"]} == {None}
    assert any(re.match("no intervals: .*errors", note) for note in found["notes"])
