"""``Explanation``: Shapley values of rows with everything needed to read, slice, tabulate and plot them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.between import Between
from exanova.effects.effect import GAME, Schema, frame_with_game, free_name
from exanova.errors import InputError, UnknownFeatureError
from exanova.explain.cells import Cells, as_texts, chosen, taken
from exanova.explain.grouping import Grouping, grouping_of
from exanova.explain.value_intervals import value_intervals
from exanova.messages import count_of
from exanova.typing import Codes, FloatArray


@dataclass(frozen=True, eq=False)
class Explanation:
    """Shapley values of rows under the joint distribution of the data.

    ``values + base_values (+ residual)`` is the model at each row; without the model the residual is unknown and the
    values add up to the fitted part.

    Attributes:
        values: (n, d), or (n, d, m) for a model with several outputs.
        base_values: (n,) or (n, m), the weighted mean of the model.
        data: (n, d) levels as float codes, between two of them for a number never observed, -1 for an unknown level
            (used for colours in shap's plots); NaN for a group of several features.
        display_data: (n, d) levels as text.
        cells: (n,) the values of the rows, for each feature that is cut or has merged levels; ``None`` for others, or
            for all where that is not known.
        feature_names: names of the features.
        output_names: names of the outputs.
        outside: (n,) rows with a combination that never occurred: its effect is extrapolated by the prior of a shrunken
            fit, and counts as 0 in an exact one.
        residual: (n,) or (n, m) model minus fitted part, or ``None`` if no model was given.
        game: the game these values belong to.
        stderr: standard errors of ``values``, of the same shape, if they were requested.
        freedom: their degrees of freedom, of the same shape.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    >>> e = exanova.FunctionalANOVA(sampled=False).fit(X, np.array([0.0, 1.0, 5.0])).explain(X)
    >>> bool(np.allclose(e.values.sum(axis=1) + e.base_values, [0.0, 1.0, 5.0]))
    True
    >>> e[:, "x0"].values.shape, e[2].display_data.tolist()
    ((3,), ['b', 'u'])
    """

    values: FloatArray
    base_values: FloatArray
    data: FloatArray
    display_data: NDArray[np.object_]
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    outside: NDArray[np.bool_]
    residual: FloatArray | None
    schema: Schema
    game: str = GAME
    stderr: FloatArray | None = None
    cells: Cells | None = None
    freedom: FloatArray | None = None

    @property
    def display_cells(self) -> NDArray[np.object_]:
        """(n, d) the value of each row as text, with the interval or the merged level it falls into."""
        levels = np.asarray(self.display_data, dtype=object)
        if self.cells is None:
            return levels
        if levels.ndim == self.outside.ndim:  # a single feature
            return np.asarray(as_texts(self.cells, levels[..., None])[..., 0], dtype=object)
        return as_texts(self.cells, levels)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> Explanation:
        """Index rows, then features, then outputs, as far as these axes remain; names work too, as in shap."""
        keys = self._keys(key)
        out = self._outputs(keys["output"]) if "output" in keys else self
        out = out._features(keys["feature"]) if "feature" in keys else out
        return out._rows(keys["row"]) if "row" in keys else out

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of confidence intervals of ``values``, which need ``stderr=True``.

        Args:
            level: confidence level of each interval alone; Student's t.
        """
        return value_intervals(self.values, self.stderr, self.freedom, level)

    def to_frame(self) -> Any:
        """Long table: ``row``, ``feature``, ``level``, ``value`` (or one column per output)."""
        n, d = self.outside.size, len(self.feature_names)
        display = np.array(self.display_data, dtype=object).ravel()
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(n), d),
            "feature": list(self.feature_names) * n,
            "level": [str(label) for label in display],
        }
        flat = np.reshape(self.values, (n * d, len(self.output_names)))
        for k, name in enumerate(self.schema.value_columns):
            columns[free_name(name, columns)] = flat[:, k]
        if self.stderr is not None:
            errors = np.reshape(self.stderr, (n * d, len(self.output_names)))
            columns.update({name: errors[:, k] for k, name in enumerate(self.schema.stderr_columns)})
        return frame_with_game(self.schema.kind, columns)

    def to_shap(self) -> Any:
        """A ``shap.Explanation`` for shap's plots, with codes for colours and labels as display data."""
        import shap

        names = None if self._is_single else list(self.output_names)
        return shap.Explanation(
            values=np.array(self.values),
            base_values=np.array(self.base_values)[()],  # a number for one row: shap rejects 0-d arrays
            data=np.array(self.data),
            display_data=np.array(self.display_cells, dtype=object),
            feature_names=list(self.feature_names),
            output_names=names,
        )

    def _repr_html_(self) -> str:
        from exanova.report.notebook import explanation_html

        return explanation_html(self)

    def __repr__(self) -> str:
        outputs = "" if self._is_single else f", {count_of(len(self.output_names), 'output')}"
        rows = count_of(len(self.outside) if np.ndim(self.outside) else 1, "row")
        return f"<Explanation of {rows}, {count_of(len(self.feature_names), 'feature')}{outputs}; {self.game}>"

    @property
    def _is_single(self) -> bool:
        return self.schema.single

    def _keys(self, key: Any) -> dict[str, Any]:
        """One index per remaining axis, with names converted to positions."""
        left = {"row": self.outside.ndim, "feature": self.data.ndim - self.outside.ndim, "output": not self._is_single}
        axes = [axis for axis, is_left in left.items() if is_left]
        given = key if isinstance(key, tuple) else (key,)
        dots = [k for k, part in enumerate(given) if part is Ellipsis]
        if dots:
            whole = (slice(None),) * (len(axes) - len(given) + 1)
            given = given[: dots[0]] + whole + given[dots[0] + 1 :]
        if len(given) > len(axes):
            raise InputError(f"{len(given)} indices were given; this explanation has {', '.join(axes) or 'no'} axes.")
        names = {"row": (), "feature": self.feature_names, "output": self.output_names}
        return {axis: _number(part, names[axis], axis) for axis, part in zip(axes, given, strict=False)}

    def _outputs(self, key: Any) -> Explanation:
        names = np.array(self.output_names, dtype=object)[key]
        single = isinstance(names, str)
        chosen = (names,) if single else tuple(names)
        return replace(
            self,
            values=self.values[..., key],
            stderr=None if self.stderr is None else self.stderr[..., key],
            freedom=None if self.freedom is None else self.freedom[..., key],
            base_values=self.base_values[..., key],
            residual=None if self.residual is None else self.residual[..., key],
            output_names=chosen,
            schema=replace(self.schema, outputs=chosen, single=single),
        )

    def _features(self, key: Any) -> Explanation:
        names = np.array(self.feature_names, dtype=object)[key]
        place = (slice(None),) * self.outside.ndim + (key,)
        return replace(
            self,
            values=self.values[place],
            stderr=None if self.stderr is None else self.stderr[place],
            freedom=None if self.freedom is None else self.freedom[place],
            data=self.data[place],
            display_data=self.display_data[place],
            cells=None if self.cells is None else chosen(self.cells, key),
            feature_names=(names,) if isinstance(names, str) else tuple(names),
        )

    def _rows(self, key: Any) -> Explanation:
        return replace(
            self,
            values=self.values[key],
            stderr=None if self.stderr is None else self.stderr[key],
            freedom=None if self.freedom is None else self.freedom[key],
            base_values=self.base_values[key],
            data=self.data[key],
            display_data=self.display_data[key],
            cells=None if self.cells is None else taken(self.cells, key),
            outside=self.outside[key],
            residual=None if self.residual is None else self.residual[key],
        )


def make_explanation(
    schema: Schema,
    values: FloatArray,
    base: FloatArray,
    codes: Codes,
    outside: NDArray[np.bool_],
    residual: FloatArray | None,
    errors: tuple[FloatArray, FloatArray] | None = None,
    grouping: Grouping | None = None,
    cells: Cells | None = None,
    places: Sequence[Between | None] = (),
) -> Explanation:
    """Add names to (n, d, m) Shapley values, the (m,) mean, (d, n) codes and the (n, m) residual.

    ``errors`` are standard errors and their degrees of freedom, of the shape of the values.

    With a ``grouping`` the values are those of groups. ``cells`` are the values of the rows, as ``cells_of`` returns
    them. ``places`` are those of numbers never observed, whose codes follow those of the levels.
    """
    cells = None if grouping is not None else cells
    grouping = grouping_of({}, schema) if grouping is None else grouping
    data, display = grouping.levels(schema, codes, places)
    schema = grouping.schema(schema)
    base_values = np.broadcast_to(base, (codes.shape[1], len(base)))
    return Explanation(
        values=schema.shown(values),
        base_values=schema.shown(base_values),
        data=data,
        display_data=display,
        feature_names=schema.features,
        output_names=schema.outputs,
        outside=outside,
        residual=None if residual is None else schema.shown(residual),
        schema=schema,
        stderr=None if errors is None else schema.shown(errors[0]),
        freedom=None if errors is None else schema.shown(errors[1]),
        cells=cells,
    )


def _number(key: Any, names: tuple[str, ...], what: str) -> Any:
    """Convert names to positions; return anything else unchanged."""
    if isinstance(key, str):
        if what == "row":
            raise InputError(f"rows have no names, but {key!r} was given; write e[:, {key!r}] for a feature.")
        if key not in names:
            raise UnknownFeatureError(f"there is no {what} {key!r}; they are {', '.join(names[:20])}.")
        return names.index(key)
    if isinstance(key, list | np.ndarray) and any(isinstance(k, str) for k in key):
        return [_number(k, names, what) for k in key]
    return key
