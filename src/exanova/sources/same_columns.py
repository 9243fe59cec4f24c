"""Whether files have the same columns of the same types; every difference is named at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from exanova.errors import InputError
from exanova.packages import package
from exanova.sources.files import TEXT_FORMATS, FilePart


def check_columns(files: Sequence[FilePart], schemas: Sequence[Any]) -> None:
    """Raise if a file repeats a column, or has other columns or types than the first; every difference at once."""
    first = schemas[0]
    repeated = sorted({name for name in first.names if first.names.count(name) > 1})
    if repeated:
        raise InputError(
            f"{files[0].name} has more than one column called {', '.join(map(repr, repeated))}; rename or drop them."
        )
    wrong = [
        f"{file.name} {difference}"
        for file, schema in zip(files[1:], schemas[1:], strict=True)
        if (difference := _difference(first, schema))
    ]
    if wrong:
        more = f" and {len(wrong) - 3} more files" if len(wrong) > 3 else ""
        raise InputError(
            f"the files do not have the same columns as {files[0].name}: {'; '.join(wrong[:3])}{more}",
            remedy="Give files with the same columns and types, or convert those that differ",
        )


def with_types(files: Sequence[FilePart], schemas: Sequence[Any]) -> tuple[list[FilePart], list[Any]]:
    """The files and their schemas, with columns without a single value of the type that they have in other files.

    pandas writes a column of Parquet that is missing in every row with the type null, whatever it is elsewhere.
    """
    arrow, known = package("pyarrow"), dict[str, Any]()
    for file, schema in zip(files, schemas, strict=True):
        for field in schema if file.format not in TEXT_FORMATS else ():
            if not arrow.types.is_null(field.type):
                known.setdefault(field.name, field.type)
    typed, filled = [], []
    for file, schema in zip(files, schemas, strict=True):
        without = tuple((f.name, known[f.name]) for f in schema if arrow.types.is_null(f.type) and f.name in known)
        typed.append(replace(file, without_values=without) if without else file)
        kinds = dict(without)
        filled.append(arrow.schema([f.with_type(kinds.get(f.name, f.type)) for f in schema]))
    return typed, filled


def _difference(first: Any, other: Any) -> str:
    """What a schema has that the first has not, in words; empty if they are alike, in any order."""
    lacks = [name for name in first.names if name not in other.names]
    adds = [name for name in other.names if name not in first.names]
    if lacks or adds:
        parts = [f"lacks {', '.join(map(repr, lacks))}"] * bool(lacks) + [f"adds {', '.join(map(repr, adds))}"] * bool(
            adds
        )
        return " and ".join(parts)
    types = [
        f"{name!r} is {other.field(name).type} in place of {first.field(name).type}"
        for name in first.names
        if _type(first, name) != _type(other, name)
    ]
    return ", ".join(types)


def _type(schema: Any, name: str) -> Any:
    """The type of a column as far as its values go: the width of codes and the layout of text are ignored."""
    arrow = package("pyarrow")
    kind = schema.field(name).type
    if arrow.types.is_dictionary(kind):
        return "categories", str(kind.value_type).replace("large_", ""), kind.ordered
    return arrow.string() if kind in (arrow.large_string(), arrow.string_view()) else kind
