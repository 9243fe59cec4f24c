"""Effect tables: each f_A with the levels, probabilities and values of its cells, accessed by feature names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.argument_checks import check_choice, check_level, check_switch
from exanova.data.feature import FeatureLevels
from exanova.data.link import LINKS
from exanova.data.table import frame_of_kind
from exanova.design.family import Family
from exanova.effects.knowledge import Knowledge
from exanova.effects.zero_effect import Zero
from exanova.errors import InputError, UnknownFeatureError
from exanova.messages import Parameter, Words, count_of
from exanova.typing import FloatArray, Subset
from exanova.warned import warn

GAME = "functional ANOVA under the joint distribution of the data (not the marginal game of KernelSHAP)"
"""The game that defines every number of a decomposition; named wherever values are shown."""

UNNAMED = "output 0"
"""Name of the only output of a model that names none."""

UNNAMED_IN_WORDS = "the model"
"""What sentences call it."""


@dataclass(frozen=True)
class Schema:
    """Names of features, levels and outputs, for tables.

    Attributes:
        features: names of the features.
        labels: for each feature, its levels as text.
        outputs: names of the outputs.
        kind: the dataframe library tables are made with.
        single: whether the model returned one number per row instead of a vector.
    """

    features: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]
    kind: str
    single: bool

    def names(self, subset: Subset) -> tuple[str, ...]:
        """Feature names of a subset of column positions."""
        return tuple(self.features[i] for i in subset)

    def shown(self, values: FloatArray) -> FloatArray:
        """Drop the last axis (outputs) of an array if the model returned one number per row."""
        return values[..., 0] if self.single else values

    @property
    def output_words(self) -> tuple[str, ...]:
        """Names of the outputs in sentences: the only one of a model that names none is "the model".

        >>> Schema(("x",), (("a",),), ("log(output 0)",), "numpy", True).output_words
        ('log(the model)',)
        """
        if not self.single or self.outputs[0] not in (UNNAMED, *(link.named(UNNAMED) for link in LINKS.values())):
            return self.outputs
        return (self.outputs[0].replace(UNNAMED, UNNAMED_IN_WORDS),)

    @property
    def value_columns(self) -> tuple[str, ...]:
        """Names of the value columns of tables: ``value``, or one for each output."""
        return ("value",) if self.single else self.outputs

    @property
    def stderr_columns(self) -> tuple[str, ...]:
        """Names of the columns of standard errors: ``stderr``, or one for each output."""
        return ("stderr",) if self.single else tuple(f"stderr of {name}" for name in self.outputs)


FEW_ROWS = 30
"""Rows of a cell below which its standard error, which is asymptotic, is unreliable."""


@dataclass(frozen=True, eq=False)
class Effect:
    """One term f_A of the decomposition: a table over the observed cells of A.

    Attributes:
        features: names of the features of A; empty for the intercept.
        levels: for each cell, the levels of those features as text.
        probability: (c,) probability of each cell.
        values: (c, m) value of f_A in each cell, one column per output.
        output_names: names of the outputs.
        number: number of the subset in the family.
        knowledge: its uncertainty.
        feature: the levels of the feature and their order, for a main effect.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
    >>> anova = exanova.FunctionalANOVA(max_order=2).fit(X, np.array([0.0, 1.0, 1.0, 4.0]))
    >>> effect = anova.effects_["x0"]
    >>> effect.levels, effect.values[:, 0].round(12).tolist()
    ((('a',), ('b',)), [-1.0, 1.0])
    >>> effect.norm2.round(12).tolist()
    [1.0]
    """

    features: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    probability: FloatArray
    values: FloatArray
    output_names: tuple[str, ...]
    schema: Schema
    number: int = 0
    knowledge: Knowledge | None = None
    feature: FeatureLevels | None = None

    @property
    def order(self) -> int:
        """Number of features."""
        return len(self.features)

    @property
    def norm1(self) -> FloatArray:
        """(m,) E|f_A|."""
        return np.asarray(self.probability @ np.abs(self.values))

    @property
    def norm2(self) -> FloatArray:
        """(m,) E[f_A^2], the squared L2 norm."""
        return np.asarray(self.probability @ self.values**2)

    @property
    def stderr(self) -> FloatArray:
        """(c, m) standard error of every value, computed for all effects on first use.

        NaN for an effect that is not identified: other subsets can express part of it, so that its own values are a
        convention.
        """
        return self._known.stderr_of(self.number)

    def interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of confidence intervals, (c, m) each.

        Args:
            level: confidence level; Student's t, for the rows of a cell less the functions they determine, or for the
                clusters with rows in it.
            simultaneous: whether the level holds for all cells of this effect together.
        """
        check_level(level)
        check_switch("simultaneous", simultaneous)
        find = self._known.critical_of if simultaneous else self._known.reach_of
        half = find(self.number, float(level)) * self.stderr
        return self.values - half, self.values + half

    @property
    def rows(self) -> FloatArray:
        """(c,) number of rows in each cell; the effective number if weights are probabilities."""
        return self._known.rows_of(self.number)

    @property
    def few_rows(self) -> NDArray[np.bool_]:
        """(c,) cells with fewer than 30 rows, whose standard errors are unreliable."""
        return np.asarray(self.rows < FEW_ROWS)

    @property
    def identified(self) -> bool | None:
        """Whether the rows determine this effect; ``None`` if there are too many functions to determine it."""
        return self._known.identified(self.number)

    @property
    def has_stderr(self) -> bool:
        """Whether this effect has standard errors: it is identified, or shrunk, so that a prior says how it is shared.

        >>> import exanova
        >>> X = np.array([["a", "a"], ["b", "b"], ["a", "a"], ["b", "b"]])
        >>> anova = exanova.FunctionalANOVA(max_order=1, shrinkage=None, sampled=True)
        >>> anova.fit(X, np.array([0.0, 1.0, 0.0, 1.0])).effects_["x0"].has_stderr
        False
        """
        return self._known.has_stderr(self.number)

    @property
    def certain(self) -> FloatArray:
        """(m,) norm of the part of this effect that no other subset can express; of all of it if it is identified."""
        return self._known.certain_of(self.number)

    @property
    def model_mean(self) -> FloatArray:
        """(c, m) mean of the model at each level of a main effect, beside which its values can be read; else NaN.

        Less the overall mean, it is the effect itself if features are independent. Where it is far from the effect,
        other features account for the difference.

        >>> import exanova
        >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
        >>> exanova.FunctionalANOVA().fit(X, np.array([0.0, 1.0, 1.0, 4.0])).effects_["x0"].model_mean.tolist()
        [[0.5], [2.5]]
        """
        return self._known.means_of(self.number)

    @property
    def _known(self) -> Knowledge:
        if self.knowledge is None:
            raise InputError("this effect has no standard errors; take it from effects_ of a fitted decomposition.")
        return self.knowledge

    def joined(self, level: float = 0.95) -> Effect:
        """This effect, for display, with neighbouring levels joined where they do not differ beyond their error.

        Only the main effect of a feature with ordered levels (intervals, dates, ordered categories) changes. The value
        of joined levels is their mean.

        Args:
            level: neighbours stay separate if 0 is outside the confidence interval of their difference, at this level
                for all neighbours together.
        """
        from exanova.effects.joined import joined_effect

        return joined_effect(self, level)

    def to_frame(self, *, stderr: bool | None = None) -> Any:
        """A table: features, ``probability``, ``value`` (or one column per output), ``rows`` and ``stderr``.

        ``probability`` is the share of rows in the cell, by weight; charts and the report call it *share of rows*.

        Args:
            stderr: whether to add standard errors; by default if they are known or cheap to compute.
        """
        check_choice("stderr", stderr, (True, False, None))
        columns: dict[str, Any] = {name: [cell[k] for cell in self.levels] for k, name in enumerate(self.features)}
        columns[free_name("probability", columns)] = self.probability
        for k, name in enumerate(self.schema.value_columns):
            columns[free_name(name, columns)] = self.values[:, k]
        if self.knowledge is not None and np.isfinite(self.rows).all():
            whole = bool((self.rows == np.floor(self.rows)).all())
            columns[free_name("rows", columns)] = self.rows.astype(np.int64) if whole else self.rows
        if stderr or (stderr is None and self.knowledge is not None and self.knowledge.cheap):
            for k, name in enumerate(self.schema.stderr_columns):
                columns[free_name(name, columns)] = self.stderr[:, k]
        elif stderr is None and self.knowledge is not None and self.knowledge.lonely:
            warn(f"no standard errors: {self.knowledge.lonely}. Leave them out with stderr=False.")
        return frame_of_kind(self.schema.kind, columns)

    def _repr_html_(self) -> str:
        from exanova.report.notebook import effect_html

        return effect_html(self)

    def __repr__(self) -> str:
        name = " x ".join(self.features) or "intercept"
        norms = ", ".join(f"{v:.4g}" for v in self.norm2)
        return f"<Effect {name}: {count_of(len(self.levels), 'cell')}, squared norm {norms}; {GAME}>"


class Effects(Mapping[tuple[str, ...], Effect]):
    """Every effect, in canonical order, by the names of its features in any order; ``()`` is the intercept.

    A feature with one level is in no listed subset; its effect, accessed by name, is zero.

    >>> import exanova
    >>> X = np.array([["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]])
    >>> effects = exanova.FunctionalANOVA(max_order=2).fit(X, np.array([0.0, 1.0, 1.0, 4.0])).effects_
    >>> list(effects)
    [(), ('x0',), ('x1',), ('x0', 'x1')]
    >>> effects["x1", "x0"].order
    2
    """

    def __init__(
        self,
        family: Family,
        values: FloatArray,
        schema: Schema,
        knowledge: Knowledge | None = None,
        left_out: Words | None = None,
        features: Sequence[FeatureLevels] = (),
    ) -> None:
        self._features = tuple(features)
        self._family, self._values, self._schema, self._knowledge = family, values, schema, knowledge
        self._left_out = left_out
        self._position = {name: i for i, name in enumerate(schema.features)}

    def _repr_html_(self) -> str:
        from exanova.report.notebook import effects_html

        return effects_html(self)

    def __getitem__(self, key: str | tuple[str, ...]) -> Effect:
        subset = self._subset(key)
        varying = tuple(i for i in subset if self._family.sizes[i] > 1)
        if varying not in self._family.position:
            raise UnknownFeatureError(self._why_absent(varying))
        if varying != subset:
            return self._zero(subset, self._family.position[varying])
        s = self._family.position[subset]
        codes = self._family.codes_of(s)
        labels = [self._schema.labels[i] for i in subset]
        levels = tuple(tuple(labels[k][c] for k, c in enumerate(cell)) for cell in codes.T.tolist())
        return Effect(
            self._schema.names(subset),
            levels,
            self._family.probability_of(s),
            self._values[self._family.cells_of(s)].copy(),
            self._schema.outputs,
            self._schema,
            s,
            self._knowledge,
            self._features[subset[0]] if len(subset) == 1 and self._features else None,
        )

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (self._schema.names(subset) for subset in self._family.subsets)

    def __len__(self) -> int:
        return len(self._family.subsets)

    def __contains__(self, key: object) -> bool:
        try:
            return self._subset(key) in self._family.position  # type: ignore[arg-type]
        except UnknownFeatureError:
            return False

    def _ipython_key_completions_(self) -> list[str | tuple[str, ...]]:
        """What a notebook offers between the brackets."""
        return [names[0] if len(names) == 1 else names for names in self]

    def __repr__(self) -> str:
        subsets, features = count_of(len(self), "subset"), count_of(len(self._schema.features), "feature")
        return f"<Effects of {subsets} of {features}; {GAME}>"

    def _subset(self, key: str | tuple[str, ...]) -> Subset:
        given = tuple(key) if isinstance(key, tuple | list) else (key,)
        names = tuple(map(str, given))  # as names of columns are compared: those of a table may be numbers
        unknown = [n for n, name in zip(given, names, strict=True) if name not in self._position]
        if unknown:
            raise UnknownFeatureError(
                f"there is no feature {unknown[0]!r}; the features are {', '.join(self._schema.features[:20])}"
                + (", ..." if len(self._schema.features) > 20 else ".")
            )
        subset = tuple(sorted(self._position[n] for n in names))
        if len(set(subset)) < len(subset):
            raise UnknownFeatureError(f"{tuple(names)!r} names a feature twice; name each feature of a subset once.")
        return subset

    def _zero(self, subset: Subset, s: int) -> Effect:
        """The effect of a subset with features of one level: zero on the cells of the others, subset ``s``."""
        place = {i: k for k, i in enumerate(self._family.subsets[s])}
        cells = self._family.codes_of(s).T.tolist()
        labels = self._schema.labels
        levels = tuple(tuple(labels[i][cell[place[i]] if i in place else 0] for i in subset) for cell in cells)
        values = np.zeros((len(cells), len(self._schema.outputs)))
        probability = self._family.probability_of(s)
        names, outputs = self._schema.names(subset), self._schema.outputs
        return Effect(names, levels, probability, values, outputs, self._schema, s, Zero(*values.shape))

    def _why_absent(self, subset: Subset) -> Words:
        name = " x ".join(self._schema.names(subset))
        if self._left_out is not None:
            return Words(f"the effect of {name} was left out by ", self._left_out, "; it is not known to be zero.")
        highest = len(self._family.subsets[-1])
        remedy = (
            Words("name it in ", Parameter("subsets"))
            if len(subset) <= highest
            else Words("fit with a larger ", Parameter("max_order"))
        )
        return Words(
            f"the effect of {name} is not part of this decomposition, whose subsets go up to order {highest}; ",
            remedy,
            ". Orders that cannot add anything on this support are not listed; their effects are zero.",
        )


def frame_with_game(kind: str, columns: Mapping[str, Any]) -> Any:
    """A dataframe whose metadata names the game of its numbers: ``frame.attrs["game"]`` in pandas.

    >>> "game" in frame_with_game("pandas", {"a": [1]}).attrs
    True
    """
    frame = frame_of_kind(kind, columns)
    if hasattr(frame, "attrs"):
        frame.attrs["game"] = GAME
    elif hasattr(frame, "replace_schema_metadata"):  # pyarrow
        frame = frame.replace_schema_metadata({"game": GAME})
    return frame


def free_name(name: str, taken: Collection[str]) -> str:
    """``name``, with underscores appended until no other column has it."""
    while name in taken:
        name += "_"
    return name
