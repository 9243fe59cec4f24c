"""Inner loops compile wherever the package is, and whether or not anything may be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest

import exanova
from exanova.compiled import compiled, private_directory, worth_loading

FIT = """
import tempfile
tempfile.tempdir = {temporary!r}
import numpy as np
import exanova
from exanova.design import passes
from exanova.design.pass_kernels import gather_kernel
assert {place!r} in exanova.__file__
passes.COMPILED_FROM = 0
X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
anova = exanova.FunctionalANOVA(shrinkage=None).fit(X, np.array([2.0, 1.0, 5.0]))
assert gather_kernel.signatures, "no kernel was compiled"
print(anova.predict(X).round(12).tolist(), "from the cache" if gather_kernel.stats.cache_hits else "compiled")
"""


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """A copy of the package beside which nothing can be cached.

    Files stand where numba would make its folders, which keeps out even those whom no permission does.
    """
    package = tmp_path / "exanova"
    shutil.copytree(Path(exanova.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in package.rglob("*.py")}:
        (folder / "__pycache__").touch()
    (tmp_path / "nowhere").touch()
    return tmp_path


def fitted_in(sealed: Path, temporary: Path) -> str:
    """What the fit prints in a process of its own that can write to ``temporary`` alone."""
    nowhere = str(sealed / "nowhere")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    places = {"PYTHONPATH": str(sealed), "HOME": nowhere, "XDG_CACHE_HOME": nowhere, "LOCALAPPDATA": nowhere}
    code = FIT.format(place=str(sealed), temporary=str(temporary))
    done = run_python(["-B", "-c", code], kept | places)
    return done.stdout.strip()


def run_python(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_a_fit_where_nothing_can_be_written(sealed: Path) -> None:
    assert fitted_in(sealed, sealed / "nowhere") == "[2.0, 1.0, 5.0] compiled"


def test_loops_are_compiled_once_where_only_temporary_files_can_be_written(sealed: Path) -> None:
    temporary = sealed / "temporary"
    temporary.mkdir()
    assert fitted_in(sealed, temporary) == "[2.0, 1.0, 5.0] compiled"
    (own,) = temporary.iterdir()
    assert list(own.rglob("pass_kernels.gather_kernel*.nbi"))
    assert fitted_in(sealed, temporary) == "[2.0, 1.0, 5.0] from the cache"


def test_a_directory_that_others_can_write_to_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = Path(private_directory())
    assert own.parent == tmp_path
    assert private_directory() == str(own)
    if hasattr(os, "getuid"):
        own.chmod(0o777)
        assert private_directory() == ""
        own.rmdir()
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        own.symlink_to(tmp_path / "elsewhere")
        assert private_directory() == ""


TINY = """
import sys
import numpy as np
import exanova
rng = np.random.default_rng(0)
X = rng.integers(0, 3, (300, 6))
anova = exanova.FunctionalANOVA({parameters}).fit(X, X[:, 0] * X[:, 1] + rng.normal(size=300))
anova.explain(X, stderr=True), anova.importance("shapley"), anova.errors(), anova.predict(X), str(anova)
assert "numba" not in sys.modules, "numba was imported"
"""


@pytest.mark.parametrize("parameters", ["", "shrinkage=None", "max_terms=40", "route='moments'"])
def test_a_small_fit_in_a_fresh_process_compiles_nothing(tmp_path: Path, parameters: str) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run_python(["-W", "ignore", "-c", TINY.format(parameters=parameters)], environment)
    assert not list(tmp_path.iterdir())


def test_the_command_compiles_nothing_for_a_small_table(tmp_path: Path) -> None:
    rows = [f"{'ab'[k % 2]},{'uvw'[k % 3]},{k % 5}" for k in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(["first,second,score", *rows]), encoding="utf-8")
    cache = tmp_path / "cache"
    cache.mkdir()
    asked = ["explain", str(tmp_path / "table.csv"), "--prediction", "score", "--report", str(tmp_path / "it.html")]
    run_python(["-m", "exanova", *asked], {**os.environ, "NUMBA_CACHE_DIR": str(cache)})
    assert (tmp_path / "it.html").exists()
    assert not list(cache.iterdir())


def test_loops_are_loaded_once_they_would_have_saved_their_price() -> None:
    assert worth_loading("exanova.compiled", saved=0.0, price=1.0)  # loaded already
    name = "exanova.no_such_module_of_loops"
    assert [worth_loading(name, saved=0.3, price=0.5) for _ in range(3)] == [False, True, True]


def test_what_else_is_wrong_with_a_function_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**options: object) -> None:
        raise RuntimeError("no compiler at all")

    monkeypatch.setattr(numba, "njit", broken)
    with pytest.raises(RuntimeError, match="no compiler at all"):
        compiled()(len)
