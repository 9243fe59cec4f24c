"""The rules kept by scripts: each finds a violation in a small tree, and the real tree passes; so do those that try."""

from __future__ import annotations

import importlib.util
import queue
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


def load(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


check_imports, check_public = load("check_imports"), load("check_public")
mutate, kernels = load("mutate"), load("test_kernels")


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


# Deliberate bugs


def test_every_deliberate_bug_applies_to_the_real_tree():
    listed = mutate.listed()
    assert len(listed) >= 50
    assert mutate.inapplicable(listed) == []
    assert all((SCRIPTS.parent / test.partition("::")[0]).exists() for bug in listed for test in bug.tests)


def test_a_bug_whose_text_is_gone_or_occurs_twice_does_not_apply():
    bug = mutate.Mutation("sign", "small.py", "+ 1", "- 1", ("tests",))
    assert bug.applied("x + 1") == "x - 1"
    assert bug.applied("x + 2") is None
    assert bug.applied("x + 1 + 1") is None


@pytest.mark.parametrize(
    "entry",
    [
        'name = "a"\nfile = "f"\nbefore = "x"\nafter = "x"\ntests = ["t"]',
        'name = "a"\nfile = "f"\nbefore = "x"\nafter = "y"\ntests = []',
        'name = "a"\nfile = "f"\nbefore = "x"\nafter = "y"\ntests = ["t"]\n\n[[mutation]]\n'
        'name = "a"\nfile = "f"\nbefore = "z"\nafter = "y"\ntests = ["t"]',
    ],
)
def test_a_list_of_bugs_that_do_nothing_or_share_a_name_is_refused(tmp_path, entry):
    (tmp_path / "list.toml").write_text(f"[[mutation]]\n{entry}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"list\.toml"):
        mutate.listed(tmp_path / "list.toml")


@pytest.mark.parametrize(
    ("before", "after", "tests", "verdict"),
    [
        ("x + 1", "x - 1", "test_small.py::test_above", "killed"),
        ("x + 1", "x + 2", "test_small.py::test_above", "SURVIVED"),
        ("x + 1", "sum(iter(int, 1))", "test_small.py::test_above", "killed"),
        ("x + 1", "x +", "test_small.py::test_above", "tests cannot run"),
        ("x * 2", "x * 3", "test_small.py::test_above", "does not apply"),
        ("x + 1", "x + 2", "test_small.py::test_none", "tests cannot run"),
    ],
)
def test_a_bug_is_killed_or_survives_and_the_copy_is_as_it_was(tmp_path, before, after, tests, verdict):
    package = tmp_path / "copy" / "src" / "exanova"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def f(x):\n    return x + 1\n", encoding="utf-8")
    (tmp_path / "copy" / "test_small.py").write_text(
        "from exanova import f\n\ndef test_above():\n    assert f(1) > 1\n", encoding="utf-8"
    )
    free = queue.Queue()
    free.put(tmp_path / "copy")
    limit = 2 if "iter" in after else 60  # one of them never ends
    outcome = mutate.tried(mutate.Mutation("small", "__init__.py", before, after, (tests,)), free, limit)
    assert outcome.verdict == verdict
    assert (package / "__init__.py").read_text(encoding="utf-8") == "def f(x):\n    return x + 1\n"
    assert free.get_nowait() == tmp_path / "copy"


# BLAS kernels


def test_every_configuration_is_run_and_a_failure_is_told(tmp_path, monkeypatch, capfd):
    runs = {"Old": (True, "Older"), "New": (False, "skipped: this processor cannot run it (signal 4)")}
    monkeypatch.setattr(kernels, "active_kernel", runs.get)
    test = tmp_path / "test_small.py"
    test.write_text(
        "import os\n\n\ndef test_good():\n    assert os.environ['OPENBLAS_CORETYPE'] == 'Old'\n\n\n"
        "def test_bad():\n    assert os.environ['OPENBLAS_NUM_THREADS'] == '1'\n",
        encoding="utf-8",
    )
    options = ["--kernels", "Old,New", "--threads", "1,2"]
    assert kernels.main([*options, f"{test}::test_good"]) == 0
    assert kernels.main([*options, str(test)]) == 1
    shown = capfd.readouterr().out
    assert "this processor cannot run it" in shown
    assert re.search(r"Old, 2 BLAS threads: \S*test_small::test_bad", shown)  # pytest adds folders above it
    assert "Old, 1 BLAS threads" not in shown


def test_nothing_run_is_no_success(monkeypatch):
    monkeypatch.setattr(kernels, "active_kernel", lambda kernel: (False, "skipped: NumPy does not use OpenBLAS here"))
    assert kernels.main(["--kernels", "Old"]) == 1


def test_the_kernel_that_is_active_is_named():
    runs, active = kernels.active_kernel("Nehalem")
    assert runs == (not active.startswith("skipped"))
