"""Build the wheel and the source distribution, and try each in a clean environment: ``make dist``.

Both go to ``dist/``. What is tried: the files inside; the library alone (a fit, and the command naming the package that
it lacks); with the extra ``app`` the command, its demo, and a report written from Python. Each archive gets a virtual
environment and an empty working folder, so that nothing of the source tree can stand in for what was left out.
``--only wheel`` or ``--only sdist`` tries one of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "exanova"

WITH_SOURCES = (
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "Makefile",
    "tests/conftest.py",
    "docs/index.md",
)
"""Files that a source distribution needs beside the package, so that its tests and documentation can be run."""

FIT = """
import sys
import numpy as np
import exanova
X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
y = np.array([0.0, 1.0, 1.0, 4.0])
anova = exanova.FunctionalANOVA().fit(X, y)
assert abs(anova.predict(X) - y).max() < 1e-12, anova.predict(X)
assert sys.prefix in exanova.__file__, exanova.__file__
anova.save("small.exanova")
assert (exanova.load("small.exanova").predict(X) == anova.predict(X)).all()
"""

REPORT = """
from pathlib import Path
anova.report("small.html", X=X, model=y)
assert "<html" in Path("small.html").read_text(encoding="utf-8")
"""

LACKS_TYPER = 'error: the command needs typer; install it with: pip install "exanova[app]"\n'


def package_files(package: Path) -> set[str]:
    """The files that every distribution must hold, named from the folder that the package is in.

    Pages for maintainers (.md) may be left out.
    """
    return {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".md"
    }


def contents(archive: Path) -> set[str]:
    """The files in a wheel or in a source distribution; of the latter without its outermost folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return set(wheel.namelist())
    with tarfile.open(archive) as sources:
        return {member.name.partition("/")[2] for member in sources if member.isfile()}


def wrong_contents(archive: Path, package: Path, with_sources: Iterable[str] = WITH_SOURCES) -> list[str]:
    """One sentence for each file that an archive lacks, and for each that a wheel should not have."""
    found, needed = contents(archive), package_files(package)
    strangers: set[str] = set()
    if archive.suffix == ".whl":
        strangers = {name for name in found - needed if ".dist-info/" not in name}
    else:
        needed = {f"src/{name}" for name in needed} | set(with_sources)
    return [
        *(f"{archive.name} lacks {name}; see package-data in pyproject.toml." for name in sorted(needed - found)),
        *(f"{archive.name} has {name}, which is not part of the package." for name in sorted(strangers)),
    ]


def version_of(archive: Path) -> str:
    """The version in the name of an archive.

    >>> version_of(Path("exanova-1.2.0-py3-none-any.whl")), version_of(Path("exanova-1.2.0.dev0.tar.gz"))
    ('1.2.0', '1.2.0.dev0')
    """
    match = re.fullmatch(r"exanova-(.+?)(-py3-none-any\.whl|\.tar\.gz)", archive.name)
    if match is None:
        raise ValueError(f"{archive.name} is not the name of a distribution of exanova.")
    return match[1]


def run(command: Sequence[str | Path], folder: Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder without the variables that could show it the source tree; stop if it ends otherwise."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != expect:
        shown = " ".join(map(str, command))
        sys.exit(f"{shown}\nended with {done.returncode} and not {expect}:\n{done.stdout}{done.stderr}")
    return done


def environment_in(folder: Path) -> Path:
    """A new virtual environment; the folder of its programs."""
    run([sys.executable, "-m", "venv", folder], folder.parent)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def install(programs: Path, *what: str) -> None:
    """Install packages in an environment."""
    run([programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what], programs)


def build(folder: Path) -> list[Path]:
    """The source distribution and the wheel that is built from it, in a folder that holds nothing else afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        programs = environment_in(Path(scratch) / "build")
        install(programs, "build")
        run([programs / "python", "-m", "build", "--outdir", folder, ROOT], Path(scratch))
    return sorted(folder.iterdir())


def try_out(archive: Path) -> None:
    """Install an archive in an environment of its own and use it, first the library alone, then with everything."""
    with tempfile.TemporaryDirectory() as scratch:
        programs, empty = environment_in(Path(scratch) / "environment"), Path(scratch) / "empty"
        empty.mkdir()
        install(programs, str(archive))
        run([programs / "python", "-c", FIT], empty)
        refused = run([programs / "exanova", "--version"], empty, expect=2)
        check(refused.stderr == LACKS_TYPER, f"without typer the command says {refused.stderr!r}")
        install(programs, f"{archive}[app]")
        version = run([programs / "exanova", "--version"], empty).stdout
        check(version == f"exanova {version_of(archive)}\n", f"{archive.name} calls itself {version!r}")
        run([programs / "python", "-c", FIT + REPORT], empty)
        run([programs / "exanova", "demo"], empty)
        check((empty / "demo" / "report.html").stat().st_size > 100_000, "the report of the demo is too short")


def check(condition: bool, message: str) -> None:
    """Stop with a message unless the condition holds."""
    if not condition:
        sys.exit(message)


def main(arguments: Sequence[str]) -> int:
    """Build both, then try those asked for."""
    parser = argparse.ArgumentParser(description="Build the distributions and try them in clean environments.")
    parser.add_argument("--only", choices=("wheel", "sdist"), help="try one of them (both are built)")
    only = parser.parse_args(arguments).only
    archives = build(ROOT / "dist")
    wrong = [sentence for archive in archives for sentence in wrong_contents(archive, PACKAGE)]
    check(not wrong, "\n".join(wrong))
    for archive in archives:
        if only is None or (only == "wheel") == (archive.suffix == ".whl"):
            try_out(archive)
            print(f"{archive.name}: installed, fitted, command, demo and report work")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
