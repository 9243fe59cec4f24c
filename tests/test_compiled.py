"""Inner loops compile wherever the package is, and whether or not anything may be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import exanova
from exanova.compiled import compiled

FIT = """
import numpy as np
import exanova
from exanova.design import pass_kernels, passes
assert {place!r} in exanova.__file__
passes.COMPILED_FROM = 0
X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
anova = exanova.FunctionalANOVA(shrinkage=None).fit(X, np.array([2.0, 1.0, 5.0]))
assert pass_kernels.gather_kernel.signatures, "no kernel was compiled"
print(anova.predict(X).round(12).tolist())
"""


def test_a_fit_where_nothing_can_be_written(tmp_path: Path) -> None:
    """Files stand where numba would make its folders, which keeps out even those whom no permission does."""
    package = tmp_path / "exanova"
    shutil.copytree(Path(exanova.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in package.rglob("*.py")}:
        (folder / "__pycache__").touch()
    nowhere = tmp_path / "nowhere"
    nowhere.touch()
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    places = {"PYTHONPATH": str(tmp_path), "HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", FIT.format(place=str(tmp_path))],
        env={**kept, **places, "LOCALAPPDATA": str(nowhere)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[2.0, 1.0, 5.0]"


def test_what_else_is_wrong_with_a_function_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**options: object) -> None:
        raise RuntimeError("no compiler at all")

    monkeypatch.setattr(numba, "njit", broken)
    with pytest.raises(RuntimeError, match="no compiler at all"):
        compiled()(len)
