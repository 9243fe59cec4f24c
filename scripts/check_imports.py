"""Check that imports inside the package run one way: from later layers to earlier ones, never back.

Imports inside functions count too: a lazy import saves time, not a dependency. Run from anywhere, no arguments.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

LAYERS: list[set[str]] = [
    {"errors", "typing", "tolerances", "parallel", "compiled", "progress", "files"},
    {"data"},
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
    {"fitted"},
    {"show"},
    {"answers", "parameters"},
    {"estimator"},
    {"distributed", "demo", "cli", "datasets"},
]
"""The path of the data. Members of one layer may import each other and everything in earlier layers."""

APART: dict[str, set[str]] = {"reference": {"errors", "typing"}}
"""Modules off the path, with all they may import. Nothing in the package imports them; tests and benchmarks do."""

ROOT = "the package itself"
"""Stands for a name taken from the package's __init__, which only the last layer may do."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names} | {ROOT: len(LAYERS) - 1}


def violations(package: Path) -> list[str]:
    """One sentence for each module that is in no layer and each import that runs backwards."""
    members = {path.stem for path in package.iterdir() if path.suffix == ".py" or any(path.glob("**/*.py"))}
    known = set(LEVEL) | set(APART) | {"__init__", "__main__"}
    found = [
        f"{package / name}: is in no layer; add it to LAYERS in scripts/check_imports.py where it belongs."
        for name in sorted(members - known)
    ]
    for path in sorted(package.rglob("*.py")):
        source = path.relative_to(package).with_suffix("").parts
        for line, target in imports(path, package.name, source, members):
            reason = refusal(source[0], target)
            if reason:
                found.append(f"{path}:{line}: {reason}")
    return found


def imports(path: Path, package: str, source: tuple[str, ...], members: set[str]) -> Iterator[tuple[int, str]]:
    """Line and first component of every import of the package's own modules, lazy ones included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        base = f"{absolute(node, (package, *source))}." if isinstance(node, ast.ImportFrom) else ""
        for name in (base + alias.name for alias in node.names):
            parts = name.split(".")
            if parts[0] == package:
                component = parts[1] if len(parts) > 1 else ROOT
                # `from exanova.data import X` names a component; `from exanova import X` may name a mere object.
                yield node.lineno, component if component in members or component in LEVEL else ROOT


def absolute(node: ast.ImportFrom, importer: tuple[str, ...]) -> str:
    """The dotted name that a ``from`` import starts at, dots resolved against the importing module."""
    if node.level == 0:
        return node.module or ""
    # A package's __init__ is one name longer here than the package it stands for, like any module inside it.
    return ".".join([*importer[: len(importer) - node.level], *([node.module] if node.module else [])])


def refusal(source: str, target: str) -> str | None:
    """Why ``source`` may not import ``target``; None if it may. The package's __init__ may import all the path."""
    if source == target:
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
    print("\n".join(found) if found else "imports: one way only")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
