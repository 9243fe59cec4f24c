"""Check the imports of the package.

Between folders they run one way, from later layers to earlier ones; inside a folder they form no circle; and each
third-party package is imported only where PLACES says. No two modules and no two classes share a name. Imports inside
functions count too: a lazy import saves time, not a dependency. Imports for type checkers alone count everywhere but in
circles. Imports by a name in a string (importlib) are not seen. Run from anywhere, no arguments.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeAlias

Module: TypeAlias = tuple[str, ...]
"""A module of the package by its place in it: ("data", "table"), ("data", "__init__"), ("errors",)."""

LAYERS: list[set[str]] = [
    {
        "argument_checks",
        "errors",
        "messages",
        "typing",
        "tolerances",
        "parallel",
        "compiled",
        "progress",
        "atomic_files",
        "packages",
        "printed_numbers",
        "warned",
    },
    {"data"},
    {"sources"},
    {"design"},
    {"basis"},
    {"phi"},
    {"solve"},
    {"shrink"},
    {"select"},
    {"fitting"},
    {"effects"},
    {"infer"},
    {"explain"},
    {"queries", "provenance"},
    {"decomposition"},
    {"show"},
    {"report", "export"},
    {"assembly", "decomposition_file", "given", "other_rows"} | {"parameters", "parametrised", "tags"},
    {"apart"},
    {"estimator"},
    {"demo", "cli", "datasets"},
]
"""The path of the data. Members of one layer may import each other and everything in earlier layers."""

HANDED_ON = {
    ("decomposition", "show"),
    ("decomposition", "report"),
    ("decomposition", "export"),
    ("effects", "report"),
    ("explain", "report"),
}
"""Imports against the path, made inside methods: results hand themselves to those who draw and report them."""

APART: dict[str, set[str]] = {"reference": {"errors", "typing"}}
"""Modules off the path, with all they may import. Nothing in the package imports them; tests and benchmarks do."""

EVERYWHERE = {"numpy"}
"""Third-party packages that every module may import."""

PLACES: dict[str, set[str]] = {
    "scipy": {"basis", "phi", "solve", "shrink", "select", "infer", "explain"},
    "numba": {"compiled", "phi/gram_kernels"},
    "threadpoolctl": {"parallel"},
    "narwhals": {"data", "show/records"},
    "pandas": {"data", "datasets"},
    "pyarrow": {"data"},
    "openpyxl": {"export/workbook"},
    "sklearn": {"data/binning", "datasets", "demo", "tags"},
    "shap": {"explain/explanation"},
    "shapiq": {"explain/interactions"},
    "altair": {"show"},
    "vl_convert": {"show/charts/canvas"},
    "jinja2": {"report/html"},
    "typer": {"cli"},
    "rich": {"cli"},
    "joblib": {"cli"},
}
"""Every other third-party package, and the folders and modules that may import it."""

FINE = "imports: one way, no circles, third-party packages in their places, one name for each thing"

ROOT = "the package itself"
"""Stands for a name taken from the package's __init__, which only the last layer may do."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names} | {ROOT: len(LAYERS) - 1}


def violations(package: Path) -> list[str]:
    """One sentence for each module in no layer, each import that is not allowed, and one circle per folder."""
    members = {path.stem for path in package.iterdir() if path.suffix == ".py" or any(path.glob("**/*.py"))}
    known = set(LEVEL) | set(APART) | {"__init__", "__main__"}
    found = [
        f"{package / name}: is in no layer; add it to LAYERS in scripts/check_imports.py where it belongs."
        for name in sorted(members - known)
    ]
    trees: dict[Module, ast.Module] = {}
    for path in sorted(package.rglob("*.py")):
        source = path.relative_to(package).with_suffix("").parts
        trees[source] = ast.parse(path.read_text(encoding="utf-8"))
        for line, name in imported(trees[source], (package.name, *source)):
            if name == (package.name, "__version__"):
                continue  # a text that is there before anything is imported
            if name[0] != package.name:
                reason = stranger(source, name[0])
            else:
                # `from exanova.data import X` names a component; `from exanova import X` may name a mere object.
                component = name[1] if len(name) > 1 and (name[1] in members or name[1] in LEVEL) else ROOT
                reason = refusal(source[0], component)
            if reason:
                found.append(f"{path}:{line}: {reason}")
    return found + circles(package, trees) + namesakes(package, trees)


def imported(tree: ast.Module, importer: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line and dotted name, in parts, of everything that a module imports, lazy imports included."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        base = f"{absolute(node, importer)}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            yield node.lineno, tuple((base + alias.name).split("."))


def stranger(source: Module, name: str) -> str | None:
    """Why a module may not import a third-party package; None if it may, and for the standard library."""
    if name in EVERYWHERE or name in sys.stdlib_module_names:
        return None
    if name not in PLACES:
        return f"{name} is imported, which is in no list; add it to PLACES in scripts/check_imports.py if it is meant."
    if PLACES[name] & {"/".join(source[: k + 1]) for k in range(len(source))}:
        return None
    return f"{name} is imported, which only {', '.join(sorted(PLACES[name]))} may do; call what is there."


def circles(package: Path, trees: dict[Module, ast.Module]) -> list[str]:
    """One sentence for each folder directly in the package whose modules import each other in a circle."""
    found = []
    for folder in sorted({source[0] for source in trees if len(source) > 1}):
        inside = {source: tree for source, tree in trees.items() if source[0] == folder}
        graph = {source: needed(package.name, source, tree, set(inside)) for source, tree in inside.items()}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            # The sorter lists each module before the one that imports it.
            circle = " -> ".join("/".join(source) for source in reversed(error.args[1]))
            found.append(f"{package / folder}: modules import each other in a circle, {circle}; move what they share.")
    return found


def namesakes(package: Path, trees: dict[Module, ast.Module]) -> list[str]:
    """One sentence for each name that two modules, or two classes, share: one name stands for one thing."""
    places: dict[str, list[str]] = {}
    for source, tree in trees.items():
        if source[-1] not in ("__init__", "__main__"):
            places.setdefault(f"the module {source[-1]}", []).append("/".join(source))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(f"the class {node.name}", []).append("/".join(source))
    return [
        f"{package}: {name} is there more than once ({', '.join(where)}); rename one."
        for name, where in sorted(places.items())
        if len(where) > 1
    ]


def needed(package: str, source: Module, tree: ast.Module, modules: set[Module]) -> set[Module]:
    """The modules among ``modules`` that a module imports in order to run; a folder stands for its __init__."""
    runs = ast.Module([node for node in tree.body if not is_for_types(node)], [])
    found = set()
    for _, name in imported(runs, (package, *source)):
        # The last part may be a module, a folder, or an object in one of them.
        candidates = (name[1:], (*name[1:], "__init__"), name[1:-1], (*name[1:-1], "__init__"))
        if name[0] == package:
            found.update([target for target in candidates if target in modules][:1])
    return found - {source}


def is_for_types(node: ast.stmt) -> bool:
    """Whether a statement is ``if TYPE_CHECKING``."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def absolute(node: ast.ImportFrom, importer: tuple[str, ...]) -> str:
    """The dotted name that a ``from`` import starts at, dots resolved against the importing module."""
    if node.level == 0:
        return node.module or ""
    # A package's __init__ is one name longer here than the package it stands for, like any module inside it.
    return ".".join([*importer[: len(importer) - node.level], *([node.module] if node.module else [])])


def refusal(source: str, target: str) -> str | None:
    """Why ``source`` may not import ``target``; None if it may. The package's __init__ may import all the path."""
    if source == target or (source, target) in HANDED_ON:
        return None
    if target in APART:
        return f"{source} imports {target}, which only tests and benchmarks may import."
    if source in APART:
        allowed = sorted(APART[source])
        return None if target in allowed else f"{source} imports {target}; it may import only {', '.join(allowed)}."
    if source in ("__init__", "__main__") or LEVEL.get(target, -1) <= LEVEL.get(source, len(LAYERS)):
        return None
    return f"{source} imports {target}, which comes later on the path of the data; move the code or turn the call."


def main() -> int:
    """Print every violation in the real tree; exit status 1 if there is any."""
    found = violations(Path(__file__).resolve().parent.parent / "src" / "exanova")
    print("\n".join(found) if found else FINE)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
