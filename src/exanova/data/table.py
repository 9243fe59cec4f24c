"""Any table as named columns: pandas, polars, pyarrow (through narwhals) and NumPy.

The table is never changed; a model always receives a table of the same library, names and dtypes as the user's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from exanova.data.arrow import take_rows
from exanova.data.column import Column, plain_cells
from exanova.data.series import read_series, what_it_holds
from exanova.errors import InputError, InputTypeError
from exanova.messages import count_of

ACCEPTED = "a pandas, polars or pyarrow table, or a two-dimensional NumPy array"


@dataclass(frozen=True, eq=False)
class Table:
    """A table of ``n_rows`` rows and named columns.

    Attributes:
        names: the names of the columns, as strings, without repetition.
        kind: the library of the table: ``"pandas"``, ``"polars"``, ``"pyarrow"``, ``"numpy"``...
        native: the table itself, as given.

    >>> table = Table.read(np.array([["a", "u"], ["b", "v"]]))
    >>> table.names, table.n_rows, table.kind
    (('x0', 'x1'), 2, 'numpy')
    >>> table.column("x1").values.tolist()
    ['u', 'v']
    """

    names: tuple[str, ...]
    kind: str
    native: Any

    @classmethod
    def read(cls, X: Any) -> Table:
        """Read ``X`` as a table; raises if it is not one, if it is empty, or if two columns share a name."""
        if isinstance(X, Table):
            return X
        table = _read_array(X) if isinstance(X, np.ndarray) else _read_frame(X)
        if not table.n_columns or not table.n_rows:
            raise InputError(
                f"The table has {table.n_rows} rows and {table.n_columns} columns; "
                "at least one row and one column are needed."
            )
        _check_unique(table.names)
        return table

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.native.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

    def column(self, name: str) -> Column:
        """The column called ``name``."""
        self._check_known((name,))
        position = self._position[name]
        if self.kind == "numpy":
            return Column.from_array(name, np.asarray(self.native)[:, position])
        series = self._frame[:, position]
        if what_it_holds(series) is not None:
            raise InputTypeError(_no_levels_message(self.names, self._frame))
        return read_series(name, series)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.names)}

    @property
    def index(self) -> Any:
        """The index of the rows if they are of pandas, else ``None``."""
        index = getattr(self.native, "index", None)
        return index if nw.dependencies.is_pandas_index(index) else None

    def take(self, indices: NDArray[Any]) -> Any:
        """The native table that holds the rows ``indices`` (k,), in that order."""
        if self.kind == "numpy":
            return self.native[indices]
        rows = np.asarray(indices, dtype=np.int64)
        try:
            return take_rows(self.native, rows) if self.kind == "pyarrow" else self._frame[rows].to_native()
        except Exception as error:
            raise InputTypeError(
                f"{self.kind} cannot select rows of this table: {error}. "
                "Convert the columns of that type, for example to strings, or drop them."
            ) from error

    def rows(self, indices: NDArray[Any]) -> Table:
        """The rows ``indices`` (k,) as a table with the same names."""
        return Table(self.names, self.kind, self.take(indices))

    def select(self, names: Sequence[str]) -> Table:
        """The columns ``names`` in that order; other columns are left out.

        A NumPy array has no names: its columns are taken by position and their number has to agree.
        """
        wanted = tuple(names)
        if wanted == self.names:
            return self
        if self.kind == "numpy":
            return self._renamed(wanted)
        self._check_known(wanted)
        positions = [self.names.index(name) for name in wanted]
        return Table(wanted, self.kind, self._frame[:, positions].to_native())

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """A new table of the same kind with these columns; for NumPy see ``frame_of_kind``."""
        return frame_of_kind(self.kind, columns)

    @cached_property
    def _frame(self) -> nw.DataFrame[Any]:
        return nw.from_native(self.native, eager_only=True)

    def _renamed(self, names: tuple[str, ...]) -> Table:
        if len(names) != self.n_columns:
            raise InputError(
                f"The array has {self.n_columns} columns, but {len(names)} are expected: {_listed(names)}. "
                "The columns of an array are read by position; give them all, in that order."
            )
        return Table(names, self.kind, self.native)

    def _check_known(self, names: Sequence[str]) -> None:
        absent = [name for name in names if name not in self._position]
        if absent:
            raise InputError(
                f"The table has no column {_listed(absent)}; its columns are {_listed(self.names)}. "
                "Give a table with all the columns that were used in fitting, under the same names."
            )


def frame_of_kind(kind: str, columns: Mapping[str, Sequence[Any]]) -> Any:
    """A dataframe of the library ``kind`` from named columns of equal length.

    For ``"numpy"`` the result is a pandas dataframe when pandas is installed, else a dictionary of arrays.
    polars and pyarrow columns hold one type: a column that mixes types is written there as text.

    >>> frame_of_kind("polars", {"feature": ["a", "b"], "share": np.array([0.5, 0.5])}).shape
    (2, 2)
    """
    if kind == "numpy":
        try:
            import pandas  # noqa: F401 - only to learn whether it is there
        except ImportError:
            return {name: np.asarray(column) for name, column in columns.items()}
        kind = "pandas"
    native = {name: _writable(column, mixed=kind in ("pandas", "modin")) for name, column in columns.items()}
    return nw.from_dict(native, backend=cast(Any, kind)).to_native()


def installed_kind(kind: str) -> str:
    """``kind`` if its library is installed, else another that is; ``"numpy"`` if there is none.

    >>> installed_kind("numpy"), installed_kind("no such library") in ("pandas", "polars", "pyarrow", "numpy")
    ('numpy', True)
    """
    others = ("pandas", "polars", "pyarrow", "numpy")
    return next(name for name in (kind, *others) if find_spec(name) is not None)


def _writable(column: Sequence[Any], mixed: bool) -> Any:
    array = column if isinstance(column, np.ndarray) else None
    if array is not None and array.dtype != object:
        return array
    values, _, types = plain_cells(column)
    if mixed or len(types) <= 1 or types == {int, float}:
        return values.tolist()
    return [None if value is None else str(value) for value in values]


def _read_array(X: NDArray[Any]) -> Table:
    if isinstance(X, np.ma.MaskedArray):
        raise InputTypeError("X is a masked array; give a plain array with NaN or None where values are missing.")
    if X.ndim != 2:
        raise InputError(
            f"X is an array of {count_of(X.ndim, 'dimension')}, shape {X.shape}; expected two: rows and columns. "
            "Reshape your data: X.reshape(-1, 1) is a single column, X.reshape(1, -1) a single row."
        )
    return Table(tuple(f"x{i}" for i in range(X.shape[1])), "numpy", X)


def _read_frame(X: Any) -> Table:
    _check_unique(_names_of(X))
    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError as error:
        if hasattr(X, "__array__") and not nw.dependencies.is_into_series(X):
            return _read_array(np.asarray(X))
        hint = " Call .collect() on it first." if callable(getattr(X, "collect", None)) else ""
        raise InputTypeError(
            f"X is of type {type(X).__module__}.{type(X).__qualname__}; expected {ACCEPTED}.{hint}"
        ) from error
    names = tuple(str(name) for name in frame.columns)
    return Table(names, frame.implementation.name.lower(), frame.to_native())


def _names_of(X: Any) -> tuple[str, ...]:
    """Column names as text, for the libraries in which two columns may share one."""
    if nw.dependencies.is_pandas_like_dataframe(X):
        _check_different(X.columns)
        return tuple(map(str, X.columns))
    return tuple(X.column_names) if nw.dependencies.is_pyarrow_table(X) else ()


def _check_unique(names: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"The table has more than one column called {_listed(repeated)} (names are compared as text); "
            "rename or drop the repeated columns."
        )


def _no_levels_message(names: Sequence[str], frame: nw.DataFrame[Any]) -> str:
    """Error message that names every column that cannot be read."""
    held = {name: what_it_holds(frame[:, k]) for k, name in enumerate(names)}
    wrong = [f"{name!r} ({dtype})" for name, dtype in held.items() if dtype is not None]
    return (
        f"The cells of {count_of(len(wrong), 'column')} cannot be levels: {', '.join(wrong)}; expected strings, "
        "numbers, booleans, dates or times. Convert these columns, for example to strings, or drop them."
    )


def _check_different(names: Iterable[Any]) -> None:
    """Names may differ as text and yet be equal in Python, as ``True`` and 1 are; pandas cannot distinguish them."""
    groups: dict[Any, set[str]] = {}
    for name in names:
        groups.setdefault(name, set()).add(repr(name))
    equal = [sorted(group) for group in groups.values() if len(group) > 1]
    if equal:
        raise InputError(
            f"The columns {' and '.join(equal[0])} have names that are equal in Python; rename one of them, "
            "for example to text."
        )


def _listed(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
