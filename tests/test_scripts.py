"""The rules kept by scripts: each finds a violation in a small tree, and the real tree passes; so do those that try."""

from __future__ import annotations

import importlib.util
import io
import itertools
import queue
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import exanova

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


def load(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


check_imports, check_public = load("check_imports"), load("check_public")
mutate, kernels, dist = load("mutate"), load("test_kernels"), load("dist")
trace = load("trace")


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


def test_a_decomposition_may_hand_itself_to_its_readers_and_nobody_else(package):
    late = "def plot():\n    from exanova.show import plots"
    assert package({"decomposition.py": late, "show/plots.py": "import exanova.decomposition"}) == []
    assert len(package({"queries/query.py": late})) == 1


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


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("solve/dense.py", "def late():\n    import numba", "numba is imported, which only compiled, phi"),
        ("effects/effect.py", "from narwhals.typing import Frame", "narwhals is imported, which only data, show"),
        ("show/charts/pair.py", "import typer", "typer is imported, which only cli may"),
        ("show/html.py", "from rich import box", "rich is imported, which only cli may"),
        ("estimator.py", "import sklearn.base", "sklearn is imported, which only"),
        ("phi/gram.py", "from numba import njit", "numba is imported, which only"),
        ("data/table.py", "if TYPE_CHECKING:\n    import vaex", "vaex is imported, which is in no list"),
        ("reference.py", "import scipy.linalg", "scipy is imported, which only basis"),
    ],
)
def test_a_third_party_package_out_of_its_place_is_found(package, path, text, says):
    (found,) = package({path: text})
    assert f"{Path(path).name}:" in found
    assert says in found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("solve/dense.py", "import os.path, numpy.linalg\nfrom scipy.linalg import solve_triangular"),
        ("phi/gram_kernels.py", "from numba.extending import intrinsic"),
        ("compiled.py", "import numba"),
        ("show/charts/canvas.py", "import altair"),
        ("show/records/decomposition.py", "import narwhals as nw"),
        ("cli/screen.py", "from rich import box"),
    ],
)
def test_a_third_party_package_in_its_place_is_no_violation(package, path, text):
    assert package({path: text}) == []


def test_every_place_of_a_third_party_package_is_there_and_imports_it():
    package = SCRIPTS.parent / "src" / "exanova"
    for name, places in check_imports.PLACES.items():
        for place in places:
            module = (package / place).with_suffix(".py")
            files = [module] if module.exists() else list((package / place).rglob("*.py"))
            texts = [file.read_text(encoding="utf-8") for file in files]
            assert any(re.search(rf"(import|from) {name}\b", text) for text in texts), (name, place)


@pytest.mark.parametrize(
    ("files", "circle"),
    [
        (
            {"data/a.py": "from exanova.data.b import x", "data/b.py": "def late():\n    from exanova.data import a"},
            {"data/a", "data/b"},
        ),
        (
            {
                "show/charts/a.py": "from exanova.show.records import x",
                "show/records/__init__.py": "from .b import x",
                "show/records/b.py": "from ..html import x",
                "show/html.py": "import exanova.show.charts.a",
            },
            {"show/charts/a", "show/records/__init__", "show/records/b", "show/html"},
        ),
        ({"cli/__init__.py": "from .a import x", "cli/a.py": "from exanova.cli import x"}, {"cli/__init__", "cli/a"}),
    ],
)
def test_modules_of_a_folder_that_import_each_other_in_a_circle_are_found(package, files, circle):
    (found,) = package(files)
    path = found.partition("circle, ")[2].partition(";")[0].split(" -> ")
    assert set(path) == circle
    assert path[0] == path[-1]
    if len(circle) > 2:  # told in the direction of the imports
        assert ("show/html", "show/charts/a") in itertools.pairwise(path)


@pytest.mark.parametrize(
    "files",
    [
        {"data/same.py": "", "show/charts/same.py": ""},
        {"data/a.py": "class Same:\n    pass", "data/b.py": "class Same:\n    pass"},
    ],
)
def test_a_name_of_two_things_is_found(package, files):
    (found,) = package(files)
    assert "same" in found.lower()
    assert "more than once" in found
    assert all(name.removesuffix(".py") in found for name in files)


def test_modules_of_a_folder_in_an_order_are_no_violation(package):
    files = {
        "data/__init__.py": "from exanova.data.c import x",
        "data/a.py": "if TYPE_CHECKING:\n    from exanova.data.c import X",
        "data/b.py": "from . import a\nfrom exanova.data.a import x",
        "data/c.py": "from exanova.data import a, b\nfrom exanova.errors import InputError",
        "errors.py": "",
    }
    assert package(files) == []


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
    assert re.search(r"Old, 2 BLAS threads: \S*test_small::test_bad", shown)
    assert "Old, 1 BLAS threads" not in shown


def test_nothing_run_is_no_success(monkeypatch):
    monkeypatch.setattr(kernels, "active_kernel", lambda kernel: (False, "skipped: NumPy does not use OpenBLAS here"))
    assert kernels.main(["--kernels", "Old"]) == 1


def test_the_kernel_that_is_active_is_named():
    runs, active = kernels.active_kernel("Nehalem")
    assert runs == (not active.startswith("skipped"))


# Distributions


@pytest.fixture
def archives(tmp_path):
    """A small package, and a function that packs the files it is given into a wheel and a source distribution."""
    package = tmp_path / "src" / "exanova"
    for name in ("__init__.py", "py.typed", "show/templates/page.html", "show/README.md", "__pycache__/__init__.pyc"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()

    def pack(*names):
        wheel, sources = tmp_path / "exanova-1.2.0-py3-none-any.whl", tmp_path / "exanova-1.2.0.tar.gz"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in (*names, "exanova-1.2.0.dist-info/METADATA"):
                archive.writestr(name, "")
        with tarfile.open(sources, "w:gz") as archive:
            for name in (*(f"src/{name}" for name in names), "README.md"):
                archive.addfile(tarfile.TarInfo(f"exanova-1.2.0/{name}"), io.BytesIO())
        return [dist.wrong_contents(archive, package, ["README.md"]) for archive in (wheel, sources)]

    return pack


def test_archives_with_every_file_of_the_package_are_right(archives):
    assert archives("exanova/__init__.py", "exanova/py.typed", "exanova/show/templates/page.html") == [[], []]


def test_what_an_archive_lacks_or_should_not_have_is_named(archives):
    (template, stranger), (same,) = archives("exanova/__init__.py", "exanova/py.typed", "tests/test_small.py")[:2]
    assert "lacks exanova/show/templates/page.html" in template
    assert "has tests/test_small.py, which is not part of the package" in stranger
    assert "lacks src/exanova/show/templates/page.html" in same


def test_the_package_has_its_types_and_its_templates():
    files = dist.package_files(dist.PACKAGE)
    assert {"exanova/__init__.py", "exanova/py.typed"} <= files
    assert any(name.endswith(".html.j2") for name in files)
    assert all((SCRIPTS.parent / name).is_file() for name in dist.WITH_SOURCES)


@pytest.mark.parametrize(
    ("name", "version"), [("exanova-0.2.0.dev0-py3-none-any.whl", "0.2.0.dev0"), ("exanova-1.0.0.tar.gz", "1.0.0")]
)
def test_the_version_is_in_the_name_of_an_archive(name, version):
    assert dist.version_of(Path(name)) == version


def test_a_name_of_something_else_is_refused():
    with pytest.raises(ValueError, match=r"other-1\.0\.tar\.gz is not the name"):
        dist.version_of(Path("other-1.0.tar.gz"))


def test_a_command_that_ends_otherwise_stops_the_trial(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTS))
    program = [sys.executable, "-c", "import os, sys; print(os.environ.get('PYTHONPATH')); sys.exit(3)"]
    assert dist.run(program, tmp_path, expect=3).stdout == "None\n"
    with pytest.raises(SystemExit, match=r"ended with 3 and not 0:\nNone"):
        dist.run(program, tmp_path)


def test_what_is_tried_in_a_clean_environment_works_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = dist.FIT.replace("assert sys.prefix in exanova.__file__", "assert exanova.__file__")
    assert code != dist.FIT
    exec(compile(code + dist.REPORT, "trial", "exec"), {})


# What is said in more than one file


def text_of(name):
    return (SCRIPTS.parent / name).read_text(encoding="utf-8")


def test_the_supported_pythons_are_the_same_everywhere():
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert project["requires-python"] == f">={named[0]}"
    assert re.findall(r'"(3\.\d+)"', re.search(r"python: (\[.*\])", text_of(".github/workflows/ci.yml"))[1]) == named
    assert f"Python {', '.join(named[:-1])} and {named[-1]}" in text_of("docs/versions.md")


def test_the_hooks_of_pre_commit_are_those_of_make_lint_and_come_from_nowhere_else():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", text_of("Makefile"), re.MULTILINE)[1]
    checks = [line.replace("$(BIN)/", "").removesuffix(" .").strip() for line in recipe.splitlines()]
    hooks = re.findall(r"entry: \.venv/bin/(.*)", text_of(".pre-commit-config.yaml"))
    assert [hook.replace("--force-exclude", "").strip() for hook in hooks] == [
        check.replace("--check", "").strip() for check in checks
    ]
    assert re.findall(r"repo: (\S+)", text_of(".pre-commit-config.yaml")) == ["local"]


def test_the_version_is_written_once():
    project = tomllib.loads(text_of("pyproject.toml"))
    assert project["project"]["dynamic"] == ["version"]
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "exanova.__version__"}
    assert not re.search(r"^version:", text_of("CITATION.cff"), re.MULTILINE)
    assert f"## {exanova.__version__.partition('.dev')[0]}" in text_of("CHANGELOG.md")


def test_a_trace_names_the_modules_that_are_entered_and_the_longest_chain():
    from exanova.data.levels import label_levels
    from exanova.design.subsets import up_to_order

    entered = trace.Trace().watch(lambda: (up_to_order([0, 1], 1), label_levels(["a"])))
    assert entered.modules[0] == "design/subsets"
    assert "data/levels" in entered.modules
    assert entered.depth == len(entered.chain) == 1
    X = np.array([[0, 1], [1, 0], [1, 1]])
    fitted = trace.Trace().watch(lambda: exanova.FunctionalANOVA().fit(X, X[:, 0] * X[:, 1]))
    assert fitted.chain[:2] == ["estimator", "fitting"]
    assert {"data/observe", "phi/operator", "effects/certificate"} <= set(fitted.modules)
