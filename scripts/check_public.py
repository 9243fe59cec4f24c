"""Check the public names: none appears or vanishes unnoticed, each has an example, each is fully annotated.

The list is public_names.txt beside this file. ``python scripts/check_public.py --write`` records the present names,
for a change that is meant; without arguments the script only compares.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

NAMES = Path(__file__).resolve().parent / "public_names.txt"
HEADER = "# The public names of exanova, one a line. Kept by scripts/check_public.py.\n"


def problems(module: ModuleType, listed: set[str]) -> list[str]:
    """One sentence for each way in which the module's public names break the rules."""
    public = set(getattr(module, "__all__", ()))
    found = [
        f"{name}: is public but not in {NAMES.name}; run this script with --write if that is meant."
        for name in sorted(public - listed)
    ]
    found += [
        f"{name}: is in {NAMES.name} but no longer public; that breaks whoever uses it (--write if meant)."
        for name in sorted(listed - public)
    ]
    for name in sorted(public):
        value = getattr(module, name, None)
        found += [f"{name}: {complaint}" for complaint in [*missing_text(value), *missing_types(value)]]
    return found


def missing_text(value: Any) -> Iterator[str]:
    """Complaints about a missing docstring or example.

    Errors need no example, since they are raised and not called; modules need none beside those of their functions;
    plain values have no docstring of their own.
    """
    if not callable(value) and not inspect.ismodule(value):
        return
    text = value.__doc__
    if not text:
        yield "has no docstring."
    elif ">>>" not in text and not inspect.ismodule(value) and not is_error(value):
        yield "has no example (>>>) in its docstring."


def is_error(value: Any) -> bool:
    """Whether the value is an exception or warning class."""
    return inspect.isclass(value) and issubclass(value, BaseException)


def missing_types(value: Any) -> Iterator[str]:
    """Complaints about parameters and results without a type, of a function or of a class's public methods."""
    if isinstance(value, FunctionType):
        yield from unannotated(value, "")
    elif inspect.isclass(value) and not is_error(value):
        for name, method in own_methods(value):
            yield from unannotated(method, f".{name}", skip_first=True)


def own_methods(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Constructor, call and public methods and properties that the package itself defines."""
    package = cls.__module__.split(".")[0]
    for owner in cls.__mro__:
        if owner.__module__.split(".")[0] != package:
            continue
        for name, member in vars(owner).items():
            if not name.startswith("_") or name in ("__init__", "__call__"):
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if isinstance(function, FunctionType):
                    yield name, function


def unannotated(function: Callable[..., Any], suffix: str, skip_first: bool = False) -> Iterator[str]:
    """Complaints about one function; ``skip_first`` leaves out self or cls."""
    signature = inspect.signature(function)
    for k, parameter in enumerate(signature.parameters.values()):
        if parameter.annotation is parameter.empty and not (
            skip_first and k == 0 and parameter.name in ("self", "cls")
        ):
            yield f"{suffix}({parameter.name}) has no type."
    if signature.return_annotation is signature.empty:
        yield f"{suffix}() does not say what type it returns."


def read_names() -> set[str]:
    """The recorded names."""
    lines = NAMES.read_text(encoding="utf-8").splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def main(arguments: list[str]) -> int:
    """Print every problem of the real package; exit status 1 if there is any."""
    module = importlib.import_module("exanova")
    if arguments == ["--write"]:
        NAMES.write_text(HEADER + "".join(f"{name}\n" for name in sorted(getattr(module, "__all__", ()))), "utf-8")
    found = problems(module, read_names())
    print("\n".join(found) if found else "public names: listed, documented, annotated")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
