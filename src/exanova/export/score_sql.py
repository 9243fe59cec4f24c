"""A decomposition as a query: the fitted value of every row of a table in a database.

The query finds the code of every level (:mod:`exanova.export.sql_codes`), then adds up one value of each effect. It
returns the result of ``predict``, by the same rules: the effect of a combination never observed is that by which the
prior of the fit continues it, or 0, and such a row is marked. Where ``predict`` raises, the fitted value is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from exanova.argument_checks import check_choice
from exanova.decomposition import Decomposition
from exanova.design.family import Family
from exanova.effects.effect import GAME
from exanova.errors import InputError
from exanova.export.contents import provenance_facts
from exanova.export.sql_codes import BRANCHES, MOST_JOINS, Coded, coded, stairs
from exanova.export.sql_literals import DIALECTS, Dialect, identifier, real
from exanova.export.typeset import one_line
from exanova.progress import Progress

CODES = "exanova_codes"
"""Name of the table expression with the codes; a column with the code of feature k is called exanova_k."""

OWN = re.compile(r"exanova_([0-9]+|impossible)")
"""Names of columns that the query creates."""

Leaf = Callable[[list[int]], str]
"""Makes an expression of the cells that agree in all features but the last."""


def to_sql(
    decomposition: Decomposition,
    about: Mapping[str, str],
    progress: Progress,
    *,
    dialect: str = "standard",
    table: str = "rows",
    keep: Sequence[str] = (),
) -> bytes:
    """A query that scores the rows of a table.

    Args:
        decomposition: the decomposition.
        about: further facts for the comment at its top.
        progress: counts the effects, once per output.
        dialect: ``"standard"``, ``"duckdb"``, ``"sqlite"`` or ``"postgres"``.
        table: name of the table of rows.
        keep: further columns of that table to return, such as a key.
    """
    check_choice("dialect", dialect, DIALECTS)
    chosen = DIALECTS[dialect]
    names = _columns(decomposition, chosen, keep)
    features = _coded(decomposition, chosen)
    parts = [
        *_comment(decomposition, about),
        "WITH",
        *_lookups(features),
        *_codes(names, features, table, chosen),
        "SELECT",
        *_results(decomposition, names, features, chosen, progress),
        f'FROM {identifier(CODES)} AS "s"',
    ]
    return ("\n".join(parts) + ";\n").encode("utf-8", "strict")


def _columns(decomposition: Decomposition, dialect: Dialect, keep: Sequence[str]) -> list[str]:
    """Columns that are returned from the table; refused if two of them have the same name."""
    features = decomposition.encoding.features
    names = [*keep, *(f.name for f in features if not f.is_left_out and f.name not in keep)]
    folded = [name.casefold() if dialect.folds_case else name for name in names]
    twice = [name for name, key in zip(names, folded, strict=True) if folded.count(key) > 1]
    own = [name for name in names if OWN.fullmatch(name.casefold())]
    if own:
        raise InputError(f"the column {own[0]!r} has a name that the query needs itself; rename it and fit again.")
    if twice:
        raise InputError(
            f"the columns {', '.join(map(repr, twice))} have one name in {dialect.name}, which ignores case; rename "
            "one of them and fit again."
        )
    return names


def _coded(decomposition: Decomposition, dialect: Dialect) -> dict[int, Coded]:
    """The code of every feature but identifiers, by position."""
    codes: dict[int, Coded] = {}
    joins = 0
    for i, feature in enumerate(decomposition.encoding.features):
        if feature.is_left_out:
            continue
        joined = identifier(f"exanova_levels_{i + 1}") if joins < MOST_JOINS else ""
        codes[i] = coded(feature, f'"t".{identifier(feature.name)}', dialect, joined, _reads_between(decomposition))
        joins += bool(codes[i].table)
    return codes


def _comment(decomposition: Decomposition, about: Mapping[str, str]) -> Iterator[str]:
    settings = decomposition.settings
    yield "-- The fitted value of every row: the sum of the effects of a functional ANOVA."
    yield f"-- Game: {GAME}"
    unknown = "its effects count as 0" if settings.handle_unknown == "ignore" else "the fitted value is NULL"
    if _reads_between(decomposition) and any(decomposition.encoding.between):
        unknown += ", those of a number are read between its neighbours"
    unseen = "the fitted value is NULL" if settings.strict else f"its effect {decomposition.everywhere.unseen}"
    yield f"-- An unknown level: {unknown}. A combination of levels never observed: {unseen}."
    for name, value in provenance_facts(decomposition, about):
        yield f"-- {one_line(name)}: {one_line(value)}"


def _reads_between(decomposition: Decomposition) -> bool:
    return decomposition.reads_between and decomposition.settings.handle_unknown == "ignore"


def _between(decomposition: Decomposition) -> tuple[int, ...]:
    """The features in which numbers never observed are read between those that were."""
    places = decomposition.encoding.between if _reads_between(decomposition) else ()
    return tuple(i for i, own in enumerate(places) if own)


def _lookups(features: Mapping[int, Coded]) -> Iterator[str]:
    """The values of columns that have many, with their codes."""
    for i, feature in features.items():
        if feature.table:
            name = identifier(f"exanova_levels_{i + 1}")
            yield f'{name} ("v", "c") AS (VALUES\n  ' + ",\n  ".join(feature.table) + "\n),"


def _codes(names: Sequence[str], features: Mapping[int, Coded], table: str, dialect: Dialect) -> Iterator[str]:
    """The table expression with the code of every feature."""
    yield f"{identifier(CODES)} AS {dialect.materialized}("
    columns = [f'"t".{identifier(name)} AS {identifier(name)}' for name in names]
    columns += [f"{feature.code} AS {code_of(i)}" for i, feature in features.items()]
    bad = [feature.impossible for feature in features.values() if feature.impossible]
    if bad:
        columns.append(f'CASE WHEN {balanced(bad, " OR ")} THEN 1 ELSE 0 END AS "exanova_impossible"')
    yield "  SELECT\n    " + ",\n    ".join(columns)
    yield f'  FROM {identifier(table)} AS "t"'
    for i, feature in features.items():
        if feature.table:
            yield f"  LEFT JOIN {identifier(f'exanova_levels_{i + 1}')} ON {feature.on}"
    yield ")"


def _results(
    decomposition: Decomposition,
    names: Sequence[str],
    features: Mapping[int, Coded],
    dialect: Dialect,
    progress: Progress,
) -> Iterator[str]:
    """The columns that are returned: those of the table, the fitted values, and whether the row is outside."""
    schema = decomposition.schema
    outside = _outside(decomposition, features)
    refused = list(_refused(decomposition, features, outside))
    taken = {name.casefold() for name in names}
    columns = [f'"s".{identifier(name)}' for name in names]
    progress.phase("exporting effects", len(schema.outputs) * (len(decomposition.family.subsets) - 1))
    for k, output in enumerate(schema.outputs):
        total = balanced(list(_terms(decomposition, k, dialect, progress)), " + ")
        value = f"CASE WHEN {balanced(refused, ' OR ')} THEN NULL ELSE {total} END" if refused else total
        name = _free("fitted" if schema.single else f"{output}:fitted", taken)
        columns.append(f"CAST({value} AS {dialect.real}) AS {identifier(name)}")
    columns.append(f"CASE WHEN {outside} THEN 1 ELSE 0 END AS {identifier(_free('outside_support', taken))}")
    yield "  " + ",\n  ".join(columns)


def _free(name: str, taken: set[str]) -> str:
    """A name that no other column has, whatever its case."""
    while name.casefold() in taken:
        name += "_"
    taken.add(name.casefold())
    return name


def _refused(decomposition: Decomposition, features: Mapping[int, Coded], outside: str) -> Iterator[str]:
    """Conditions under which ``predict`` raises."""
    settings = decomposition.settings
    if settings.handle_unknown != "ignore" and features:
        yield f"{balanced([code_of(i, 's') for i in features], ' + ')} IS NULL"
    elif any(feature.impossible for feature in features.values()):
        yield '"s"."exanova_impossible" = 1'
    if settings.strict:
        yield outside


def _terms(decomposition: Decomposition, output: int, dialect: Dialect, progress: Progress) -> Iterator[str]:
    """The intercept and the value of every effect."""
    yield real(float(decomposition.intercept[output]), dialect)
    effects = decomposition.read_with(_between(decomposition))
    family = effects.family
    for s, subset in enumerate(family.subsets):
        if subset:
            values = effects.values[family.cells_of(s), output].tolist()
            yield f"COALESCE({_value(family, s, values, dialect)}, {real(0.0, dialect)})"
            progress.step()


def _value(family: Family, s: int, values: Sequence[float], dialect: Dialect) -> str:
    """The value of one effect; NULL where it has no cell."""
    subset, codes = family.subsets[s], family.codes_of(s).tolist()

    def leaf(cells: list[int]) -> str:
        return chosen(
            code_of(subset[-1], "s"), [codes[-1][c] for c in cells], [real(values[c], dialect) for c in cells]
        )

    return _nested(subset, codes, leaf)


def _outside(decomposition: Decomposition, features: Mapping[int, Coded]) -> str:
    """The condition that some combination of levels was never observed.

    A cell of a subset was never observed if its part in a smaller one was not, so that only subsets in no other count,
    and of those only the ones that lack a combination.
    """
    family = decomposition.family
    covered = {subset[:k] + subset[k + 1 :] for subset in family.subsets for k in range(len(subset))}
    used = sorted({i for subset in family.subsets for i in subset} & set(features))
    conditions = [f"{balanced([code_of(i, 's') for i in used], ' + ')} IS NULL"] if used else []
    conditions += [f"{code_of(i, 's')} >= {family.sizes[i]}" for i in _between(decomposition) if i in used]
    for s, subset in enumerate(family.subsets):
        possible = 1
        for i in subset:
            possible *= int(family.sizes[i])
        if len(subset) > 1 and subset not in covered and family.cell_start[s + 1] - family.cell_start[s] < possible:
            conditions.append(f"{_observed(decomposition, s)} IS NULL")
    return balanced(conditions, " OR ") if conditions else "1 = 0"


def _observed(decomposition: Decomposition, s: int) -> str:
    """1 in the observed cells of a subset, else NULL."""
    family = decomposition.family
    subset, codes = family.subsets[s], family.codes_of(s).tolist()

    def leaf(cells: list[int]) -> str:
        last = sorted(codes[-1][c] for c in cells)
        if len(last) == int(family.sizes[subset[-1]]):
            return "1"
        return f"CASE WHEN {code_of(subset[-1], 's')} IN ({', '.join(map(str, last))}) THEN 1 END"

    return _nested(subset, codes, leaf)


def _nested(subset: Sequence[int], codes: Sequence[Sequence[int]], leaf: Leaf) -> str:
    """One CASE per feature inside the other, and at the last feature what ``leaf`` makes of the cells."""

    def inside(depth: int, cells: list[int]) -> str:
        if depth == len(subset) - 1:
            return leaf(cells)
        groups: dict[int, list[int]] = {}
        for c in cells:
            groups.setdefault(codes[depth][c], []).append(c)
        return chosen(code_of(subset[depth], "s"), list(groups), [inside(depth + 1, own) for own in groups.values()])

    return inside(0, list(range(len(codes[0]))))


def chosen(value: str, codes: Sequence[int], leaves: Sequence[str]) -> str:
    """The leaf whose code a value is, NULL for any other; nested where there are many.

    >>> chosen("c", [0, 2], ["'a'", "'b'"])
    "CASE c WHEN 0 THEN 'a' WHEN 2 THEN 'b' END"
    """
    order = sorted(range(len(codes)), key=codes.__getitem__)
    if len(order) <= BRANCHES:
        return f"CASE {value} {' '.join(f'WHEN {codes[k]} THEN {leaves[k]}' for k in order)} END"
    groups = [order[k : k + BRANCHES] for k in range(0, len(order), BRANCHES)]
    inner = [chosen(value, [codes[k] for k in own], [leaves[k] for k in own]) for own in groups]
    return stairs(value, [str(codes[own[0]]) for own in groups[1:]], inner)


def balanced(terms: Sequence[str], operator: str) -> str:
    """Terms joined by an operator, in parentheses so that no expression is deep: databases limit that.

    >>> balanced(["a", "b"], " + ")
    '(a + b)'
    """
    while len(terms) > 1:
        groups = [terms[k : k + BRANCHES] for k in range(0, len(terms), BRANCHES)]
        terms = [f"({operator.join(group)})" for group in groups]
    return terms[0]


def code_of(feature: int, table: str = "") -> str:
    """The column with the code of a feature."""
    return (f'"{table}".' if table else "") + f'"exanova_{feature + 1}"'
