"""Settings of queries, and new rows: encoding, location in the support, and memory limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova import parallel
from exanova.data.encoding import Encoding
from exanova.data.sample import NewRows
from exanova.data.table import Table
from exanova.design.continuation import Everywhere
from exanova.design.family import Family
from exanova.design.memory import readable, resolve_limit
from exanova.errors import MemoryLimitError, OutsideSupportError, OutsideSupportWarning
from exanova.messages import Parameter, Words, count_of
from exanova.phi.operator import Phi
from exanova.typing import Codes
from exanova.warned import warn

ENCODING_CELL = 16
"""Bytes per entry of new rows while they are encoded."""


@dataclass(frozen=True)
class QuerySettings:
    """Parameters of the estimator that queries depend on; :class:`FunctionalANOVA` documents them.

    Attributes:
        handle_unknown, strict: what to do with unseen levels and unseen combinations in new rows.
        response_method, batch_size: how a model is called.
        memory_limit, n_jobs: resources a query may use.
        random_state: seed of refits.
        verbose: whether progress is shown.
    """

    handle_unknown: str = "error"
    strict: bool = False
    response_method: str = "auto"
    batch_size: int | None = None
    memory_limit: int | float | str | None = None
    n_jobs: int | None = None
    random_state: int | None = 0
    verbose: bool | None = None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> QuerySettings:
        """The settings among the parameters of an estimator."""
        return cls(**{field.name: parameters[field.name] for field in fields(cls)})

    @property
    def threads(self) -> int:
        """Number of threads according to ``n_jobs``."""
        return parallel.thread_count(self.n_jobs)


@dataclass(frozen=True)
class Work:
    """The memory a query needs, which is checked before its rows are encoded.

    Attributes:
        what: the result, in words.
        row: bytes of the result per row.
        chunk: largest number of bytes of work at a time.
    """

    what: str
    row: int = 0
    chunk: int = 0


def seed_of(random_state: int | None) -> int:
    """A seed: the one given, or a fresh one for ``None``.

    >>> seed_of(7)
    7
    """
    return int(np.random.SeedSequence().generate_state(1)[0]) if random_state is None else int(random_state)


def locate(
    X: Any,
    encoding: Encoding,
    family: Family,
    read_at: Callable[[Codes], Everywhere],
    settings: QuerySettings,
    work: Work,
    between: bool = False,
) -> tuple[Codes, NDArray[np.bool_]]:
    """(d, n) codes of new rows, and (n,) which of them fall outside the support, with a warning or an error.

    Numbers never observed have the codes of their places ``between`` those that were, if asked. ``read_at`` gives the
    effects as rows with some codes read them.

    Raises:
        MemoryLimitError: before the rows are encoded, if ``work`` does not fit in the memory limit.
        OutsideSupportError: if ``strict`` is set and a row has a combination that never occurred.
    """
    table = Table.read(X)
    what = f"{work.what} of {table.n_rows:,} rows"
    known = read_at(np.zeros((len(family.sizes), 0), dtype=np.int32))
    check_memory(what, bytes_at_rows(known, table.n_rows, work), settings.memory_limit)
    codes = encoding.encode(table, settings.handle_unknown, between=between).astype(np.int32)
    outside = Phi(family, NewRows(codes), settings.threads).outside()
    if not outside.any():
        return codes, outside
    read = read_at(codes)
    check_memory(what, bytes_at_rows(read, table.n_rows, work), settings.memory_limit)
    beyond = int((codes >= family.sizes[:, None]).any(axis=0).sum())
    _tell_outside(outside, beyond, settings.strict, read.unseen)
    return codes, outside


def bytes_at_rows(effects: Everywhere, rows: int, work: Work) -> int:
    """Bytes of a query: its rows while they are encoded, or its result together with their codes.

    The effects over all keys and the fitted part of the rows are included.
    """
    family, outputs = effects.family, effects.values.shape[1]
    d = len(family.sizes)
    tables = 8 * outputs * (family.n_keys + family.n_cells)
    working = min(work.chunk, 16 * rows * len(family.subsets) * outputs)
    return int(max(rows * ENCODING_CELL * d, rows * (4 * d + 8 * outputs + work.row) + working + tables))


def check_memory(what: str, size: int, memory_limit: int | float | str | None) -> None:
    """Refuse a query whose ``size`` in bytes exceeds the memory limit."""
    limit = resolve_limit(memory_limit)
    if size > limit:
        raise MemoryLimitError(
            f"{what} take about {readable(size)}, the memory limit is {readable(limit)}",
            remedy=["use fewer rows at a time, or a larger ", Parameter("memory_limit")],
        )


def _tell_outside(outside: NDArray[np.bool_], beyond: int, strict: bool, unseen: str) -> None:
    """Warn or raise for rows outside the support, of which some may hold numbers ``beyond`` those observed."""
    count = int(outside.sum())
    if count and strict:
        raise OutsideSupportError(
            f"{count:,} of {len(outside):,} rows hold a combination of levels that never occurred, the first in "
            f"row {int(np.flatnonzero(outside)[0])}; its effect is undefined",
            remedy=["With ", Parameter("strict", False), f" it {unseen}"],
        )
    numbers = f" {count_of(beyond, 'row')} of these: numbers never observed, read between their neighbours."
    if count:
        warn(
            Words(
                f"{count:,} of {len(outside):,} rows hold a combination of levels that never occurred; "
                f"the effect of such a combination {unseen}.{numbers if beyond else ''} With ",
                Parameter("strict", True),
                " such rows are refused.",
            ),
            OutsideSupportWarning,
        )
