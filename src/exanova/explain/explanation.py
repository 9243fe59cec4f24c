"""``Explanation``: Shapley values of rows with everything needed to read, slice, tabulate and plot them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.table import frame_of_kind
from exanova.effects.tables import GAME, Schema
from exanova.errors import InputError, UnknownFeatureError
from exanova.typing import Codes, FloatArray


@dataclass(frozen=True, eq=False)
class Explanation:
    """Shapley values of rows under the joint distribution of the data.

    ``values + base_values (+ residual)`` is the model at each row; without the model the residual is unknown and the
    values add up to the fitted part.

    Attributes:
        values: (n, d), or (n, d, m) for a model with several outputs.
        base_values: (n,) or (n, m), the weighted mean of the model.
        data: (n, d) levels as float codes, -1 for an unknown level (what shap's plots colour by).
        display_data: (n, d) levels as text.
        feature_names: names of the features.
        output_names: names of the outputs.
        outside: (n,) rows with a combination that never occurred; its effect counts as 0.
        residual: (n,) or (n, m) what the fitted part leaves of the model, or ``None`` if no model was given.
        game: the game these values belong to.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"]])
    >>> e = exanova.FunctionalANOVA().fit(X, np.array([0.0, 1.0, 5.0])).explain(X)
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

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> Explanation:
        """Rows, then features, then outputs; features and outputs also by name, as in shap."""
        rows, features, outputs = (key if isinstance(key, tuple) else (key,)) + (slice(None),) * (
            3 - len(key if isinstance(key, tuple) else (key,))
        )
        features = _number(features, self.feature_names, "feature")
        outputs = _number(outputs, self.output_names, "output")
        out = self._outputs(outputs)._features(features)
        return replace(
            out,
            values=out.values[rows],
            base_values=out.base_values[rows],
            data=out.data[rows],
            display_data=out.display_data[rows],
            outside=out.outside[rows],
            residual=None if out.residual is None else out.residual[rows],
        )

    def to_frame(self) -> Any:
        """Long table: ``row``, ``feature``, ``level``, ``value`` (or one column an output), ``game``."""
        one = self.values.ndim - (0 if self._is_single else 1) == 1
        values = self.values[None] if one else self.values
        display = np.atleast_2d(self.display_data)
        n, d = display.shape
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(n), d),
            "feature": list(self.feature_names) * n,
            "level": [str(label) for label in display.ravel()],
        }
        flat = values.reshape(n * d, -1)
        names = ("value",) if self._is_single else self.output_names
        columns.update({name: flat[:, k] for k, name in enumerate(names)})
        columns["game"] = ["joint distribution"] * (n * d)
        return frame_of_kind(self.schema.kind, columns)

    def to_shap(self) -> Any:
        """A ``shap.Explanation`` that shap's plots accept: codes to colour by, labels to show."""
        import shap

        names = None if self._is_single else list(self.output_names)
        return shap.Explanation(
            values=self.values.copy(),
            base_values=np.array(self.base_values),
            data=self.data.copy(),
            display_data=self.display_data.copy(),
            feature_names=list(self.feature_names),
            output_names=names,
        )

    def __repr__(self) -> str:
        outputs = "" if self._is_single else f", {len(self.output_names)} outputs"
        rows = f"{len(self.outside):,} rows" if np.ndim(self.outside) else "one row"
        return f"<Explanation of {rows}, {len(self.feature_names)} features{outputs}; {self.game}>"

    @property
    def _is_single(self) -> bool:
        return self.schema.single

    def _outputs(self, key: Any) -> Explanation:
        if isinstance(key, slice) and key == slice(None):
            return self
        if self._is_single:
            raise InputError("this explanation has one output and no axis for outputs; index rows and features only.")
        names = np.array(self.output_names, dtype=object)[key]
        single = isinstance(names, str)
        chosen = (names,) if single else tuple(names)
        return replace(
            self,
            values=self.values[..., key],
            base_values=self.base_values[..., key],
            residual=None if self.residual is None else self.residual[..., key],
            output_names=chosen,
            schema=replace(self.schema, outputs=chosen, single=single),
        )

    def _features(self, key: Any) -> Explanation:
        if isinstance(key, slice) and key == slice(None):
            return self
        names = np.array(self.feature_names, dtype=object)[key]
        chosen = (names,) if isinstance(names, str) else tuple(names)
        return replace(
            self,
            values=self.values[:, key],
            data=self.data[:, key],
            display_data=self.display_data[:, key],
            feature_names=chosen,
        )


def make_explanation(
    schema: Schema,
    values: FloatArray,
    base: FloatArray,
    codes: Codes,
    outside: NDArray[np.bool_],
    residual: FloatArray | None,
) -> Explanation:
    """Put names on (n, d, m) Shapley values, the (m,) mean, (d, n) codes and the (n, m) residual."""
    display = np.empty((codes.shape[1], codes.shape[0]), dtype=object)
    for i, labels in enumerate(schema.labels):
        display[:, i] = np.array([*labels, "(unknown)"], dtype=object)[codes[i]]
    base_values = np.broadcast_to(base, (codes.shape[1], len(base)))
    return Explanation(
        values=schema.shown(values),
        base_values=schema.shown(base_values),
        data=codes.T.astype(np.float64),
        display_data=display,
        feature_names=schema.features,
        output_names=schema.outputs,
        outside=outside,
        residual=None if residual is None else schema.shown(residual),
        schema=schema,
    )


def _number(key: Any, names: tuple[str, ...], what: str) -> Any:
    """Names turned into positions; everything else as it is."""
    if isinstance(key, str):
        if key not in names:
            raise UnknownFeatureError(f"there is no {what} {key!r}; they are {', '.join(names[:20])}.")
        return names.index(key)
    if isinstance(key, list) and any(isinstance(k, str) for k in key):
        return [_number(k, names, what) for k in key]
    return key
