"""Every warning of the package names the line of its user."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import exanova
from exanova import FunctionalANOVA
from exanova import datasets as datasets_of_exanova
from exanova.errors import InexactWarning, OutsideSupportWarning, OverfitWarning

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.integers(0, 4, (60, 6)), columns=list("abcdef"))
Y = RNG.normal(size=60)
NAMED = X.assign(i=[f"r{k}" for k in range(60)])


def _fit(**parameters: object) -> FunctionalANOVA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FunctionalANOVA(**parameters).fit(X.head(20), Y[:20])


def _from_file(folder: Path) -> object:
    NAMED.assign(p=Y).to_parquet(folder / "rows.parquet")
    return FunctionalANOVA().fit(folder / "rows.parquet", "p")


KINDS: dict[str, tuple[type[Warning], Callable[[Path], object]]] = {
    "overfit": (OverfitWarning, lambda _: FunctionalANOVA(shrinkage=None).fit(X, Y)),
    "overfit, held-out rows": (OverfitWarning, lambda _: FunctionalANOVA(shrinkage=None).fit(X, Y, eval_set=0.5)),
    "inexact": (InexactWarning, lambda _: FunctionalANOVA(ridge=0.1).fit(X, Y)),
    "former parameter": (FutureWarning, lambda _: FunctionalANOVA(interactions=[("a", "b")]).fit(X, Y)),
    "identifier": (UserWarning, lambda _: FunctionalANOVA().fit(NAMED, Y)),
    "identifier, planned": (UserWarning, lambda _: FunctionalANOVA().plan(NAMED)),
    "identifier, from a file": (UserWarning, _from_file),
    "outside, predicted": (OutsideSupportWarning, lambda _: _fit().predict(X)),
    "outside, explained": (OutsideSupportWarning, lambda _: _fit().explain(X)),
    "outside, scored": (OutsideSupportWarning, lambda _: _fit().score(X, Y)),
    "cache": (UserWarning, lambda folder: datasets_of_exanova.keep(folder / "file" / "kept", b"")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_warning_names_the_file_that_called(kind: str, tmp_path: Path) -> None:
    category, call = KINDS[kind]
    (tmp_path / "file").write_text("no folder")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(tmp_path)
    assert category in {warning.category for warning in caught}
    assert {warning.filename for warning in caught} == {__file__}


def test_a_warning_names_the_line_of_the_innermost_caller() -> None:
    def inner() -> None:
        FunctionalANOVA(ridge=0.1).fit(X, Y)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inner()
    assert {warning.lineno for warning in caught} == {inner.__code__.co_firstlineno + 1}


def test_a_script_of_one_level_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("FunctionalANOVA(ridge=0.1).fit(X, Y)\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(script.read_text(), str(script), "exec"), {"FunctionalANOVA": FunctionalANOVA, "X": X, "Y": Y})
    assert {(warning.filename, warning.lineno) for warning in caught} == {(str(script), 1)}


def test_no_module_warns_past_the_helper() -> None:
    package = Path(exanova.__file__).parent
    warning = [
        path.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "warn"
    ]
    assert warning == ["warned.py"]
