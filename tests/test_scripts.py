"""The rules kept by scripts: each finds a violation in a small tree, and the real tree passes both."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


def load(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check_imports, check_public = load("check_imports"), load("check_public")


@pytest.fixture
def package(tmp_path):
    """A function that writes files into a temporary package and returns its violations."""

    def write(files):
        for path, text in files.items():
            target = tmp_path / "exanova" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        return check_imports.violations(tmp_path / "exanova")

    return write


@pytest.mark.parametrize("script", ["check_imports.py", "check_public.py"])
def test_the_real_tree_passes(script):
    run = subprocess.run([sys.executable, SCRIPTS / script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    "text",
    [
        "from exanova.solve.dense import solve",
        "import exanova.solve",
        "from exanova import solve",
        "from ..solve import dense",
        "def late():\n    from exanova.solve import dense",
        "from exanova import FunctionalANOVA",
        "from .. import FunctionalANOVA",
        "from exanova import reference",
    ],
)
def test_an_import_against_the_path_of_the_data_is_found(package, text):
    (found,) = package({"data/table.py": text, "solve/dense.py": "", "reference.py": ""})
    assert "table.py:" in found
    assert "data imports" in found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("solve/dense.py", "from exanova.data.table import read\nfrom exanova.errors import InputError"),
        ("solve/__init__.py", "from .dense import solve\nfrom . import dense"),
        ("progress.py", "import numpy\nfrom exanova.errors import InputError"),
        ("__init__.py", "from exanova.estimator import FunctionalANOVA\nfrom . import datasets"),
        ("cli.py", "from exanova import FunctionalANOVA, datasets"),
        ("reference.py", "from exanova.errors import InputError\nfrom exanova.typing import Codes"),
    ],
)
def test_an_import_along_the_path_is_not_a_violation(package, path, text):
    assert package({"data/table.py": "", "errors.py": "", "datasets.py": "", path: text}) == []


def test_the_reference_imports_only_errors_and_vocabulary(package):
    (found,) = package({"reference.py": "from exanova.data import table", "data/table.py": ""})
    assert "it may import only errors, typing" in found


def test_a_module_in_no_layer_is_found(package):
    (found,) = package({"helpers/__init__.py": "", "errors.py": ""})
    assert "helpers: is in no layer" in found


def documented(x: int) -> int:
    """Return x.

    >>> documented(1)
    1
    """
    return x


def bare(x):
    return x


class Halfway:
    """A class whose method lacks a type.

    >>> Halfway()  # doctest: +ELLIPSIS
    <...Halfway object at ...>
    """

    def fit(self, rows) -> None:
        """Do nothing."""


class MeantError(Exception):
    """Raised, not called: needs no example."""


def module_with(**names):
    module = ModuleType("sample")
    module.__all__ = list(names)
    vars(module).update(names)
    return module


def test_documented_annotated_and_listed_names_pass():
    module = module_with(documented=documented, MeantError=MeantError, __version__="1")
    assert check_public.problems(module, {"documented", "MeantError", "__version__"}) == []


def test_names_without_docstring_example_or_types_are_found():
    found = check_public.problems(module_with(bare=bare, Halfway=Halfway), {"bare", "Halfway"})
    assert found == [
        "Halfway: .fit(rows) has no type.",
        "bare: has no docstring.",
        "bare: (x) has no type.",
        "bare: () does not say what type it returns.",
    ]


def test_names_that_appear_or_vanish_are_found():
    appeared, vanished = check_public.problems(module_with(documented=documented), {"gone"})
    assert "documented: is public but not in" in appeared
    assert "gone: is in" in vanished
