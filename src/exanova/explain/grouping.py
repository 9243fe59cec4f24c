"""Groups of features as single players: the quotient game of the effects.

A group represents all of its features. The dividend of a set of groups is the sum of the effects f_A whose features
touch exactly these groups, so that an effect inside one group belongs entirely to it and an effect across groups is
divided among the groups it touches, not among features. Every index of the quotient game is then a sum of effects with
fixed weights, as it is for features: no model is called, and standard errors follow in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.between import Between
from exanova.effects.effect import Schema
from exanova.errors import InputError, InputTypeError
from exanova.explain.dividends import weight_matrix
from exanova.messages import Parameter, short
from exanova.typing import Codes, FloatArray, IntArray, Subset

UNKNOWN = "(unknown)"


@dataclass(frozen=True)
class Grouping:
    """A division of the features into groups; features in no group are groups of their own.

    Attributes:
        names: names of the groups, in the order of their first features.
        members: for each group, the positions of its features.

    >>> schema = Schema(("home", "age", "children"), ((), (), ()), ("y",), "numpy", True)
    >>> grouping = grouping_of({"household": ["home", "children"]}, schema)
    >>> grouping.names, grouping.members
    (('household', 'age'), ((0, 2), (1,)))
    >>> grouping.touched((0, 2)), grouping.touched((1, 2))
    ((0,), (0, 1))
    """

    names: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]

    @cached_property
    def group_of(self) -> dict[int, int]:
        """For each feature, the number of its group."""
        return {i: g for g, features in enumerate(self.members) for i in features}

    def touched(self, subset: Subset) -> Subset:
        """The groups that a subset of features touches, in order."""
        return tuple(sorted({self.group_of[i] for i in subset}))

    def quotient(self, subsets: Sequence[Subset]) -> tuple[tuple[Subset, ...], Any]:
        """The sets of groups that some subset touches, by size, and the sparse 0/1 matrix that adds up their effects.

        The matrix has one line per set of groups and one column per subset.
        """
        from scipy.sparse import csr_array

        touched = [self.touched(subset) for subset in subsets]
        sets = tuple(sorted(set(touched), key=lambda groups: (len(groups), groups)))
        place = {groups: k for k, groups in enumerate(sets)}
        lines = [place[groups] for groups in touched]
        shape = (len(sets), len(subsets))
        return sets, csr_array((np.ones(len(subsets)), (lines, range(len(subsets)))), shape=shape)

    def weights(self, subsets: Sequence[Subset], index: str, order: int) -> tuple[list[Subset], Any]:
        """Sets of groups of an index, and the sparse matrix from the effects of ``subsets`` to the index."""
        sets, matrix = self.quotient(subsets)
        chosen, weights = weight_matrix(sets, index, order)
        return [sets[k] for k in chosen], weights @ matrix

    def shares(self, subsets: Sequence[Subset]) -> Any:
        """(S, G) share of every group in every subset, sparse: one over the number of groups it touches."""
        return equal_shares([self.touched(subset) for subset in subsets], len(self.names))

    def schema(self, schema: Schema) -> Schema:
        """The schema with groups in place of features; a group of several features has no levels of its own."""
        labels = tuple(schema.labels[m[0]] if len(m) == 1 else () for m in self.members)
        return replace(schema, features=self.names, labels=labels)

    def levels(
        self, schema: Schema, codes: Codes, places: Sequence[Between | None] = ()
    ) -> tuple[FloatArray, NDArray[np.object_]]:
        """(n, G) levels of rows with (d, n) codes: as numbers, NaN for several features, and as text.

        Codes after those of the levels are those of ``places`` between them.
        """
        n = codes.shape[1]
        data, display = np.full((n, len(self.names)), np.nan), np.empty((n, len(self.names)), dtype=object)
        between = [*places, *[None] * (len(schema.labels) - len(places))]
        texts = [level_texts(labels, own) for labels, own in zip(schema.labels, between, strict=True)]
        for g, features in enumerate(self.members):
            if len(features) == 1:
                i = features[0]
                own, count = codes[i], len(schema.labels[i])
                data[:, g], display[:, g] = positions(own, count, between[i]), texts[i][own]
                continue
            named = [[f"{schema.features[i]}={text}" for text in texts[i][codes[i]]] for i in features]
            display[:, g] = [", ".join(parts) for parts in zip(*named, strict=True)]
        return data, display


def level_texts(labels: Sequence[str], places: Between | None) -> NDArray[np.object_]:
    """The text of every code: of the levels, of the places between them, and of what is unknown, which is the last."""
    return np.array([*labels, *(() if places is None else places.labels), UNKNOWN], dtype=object)


def positions(codes: IntArray, levels: int, places: Between | None) -> FloatArray:
    """(n,) codes as numbers, those of places between the codes of the levels around them; -1 if unknown."""
    out = codes.astype(np.float64)
    beyond = codes >= levels
    if places is not None and beyond.any():
        own = codes[beyond] - levels
        out[beyond] = places.lower[own] + places.share[own] * (places.upper - places.lower)[own]
    return out


def equal_shares(owners: Sequence[Subset], count: int) -> Any:
    """The sparse (S, count) matrix of the shares in S amounts, each divided equally among its owners.

    >>> equal_shares([(), (1,), (0, 1)], 2).toarray().tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    """
    from scipy.sparse import csr_array

    sizes = np.array([len(own) for own in owners], dtype=np.int64)
    columns = np.array([k for own in owners for k in own], dtype=np.int64)
    entries = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    return csr_array((entries, columns, np.concatenate([[0], np.cumsum(sizes)])), shape=(len(owners), count))


def grouping_of(groups: Mapping[str, Sequence[str]], schema: Schema) -> Grouping:
    """The grouping given by a mapping from names to lists of features.

    Raises:
        InputError: naming everything that is wrong with the groups at once.
    """
    if not isinstance(groups, Mapping):
        raise InputTypeError(
            f"groups= is a {type(groups).__name__}",
            expected="a mapping from names to lists of features, such as {'household': ['home', 'children']}",
        )
    not_lists = [name for name, own in groups.items() if not isinstance(own, Iterable)]
    if not_lists:
        raise InputTypeError(
            Parameter("groups"),
            f" has {short(groups[not_lists[0]])} for {not_lists[0]!r}",
            expected="a list of features for each group",
        )
    lists = {str(name): [own] if isinstance(own, str) else list(map(str, own)) for name, own in groups.items()}
    _check(lists, schema.features)
    place = {name: i for i, name in enumerate(schema.features)}
    members = {name: tuple(sorted(place[f] for f in features)) for name, features in lists.items()}
    grouped = {i for features in members.values() for i in features}
    members |= {name: (i,) for i, name in enumerate(schema.features) if i not in grouped}
    order = sorted(members, key=lambda name: members[name])
    return Grouping(tuple(order), tuple(members[name] for name in order))


def _check(lists: Mapping[str, Sequence[str]], features: Sequence[str]) -> None:
    counted = Counter(f for names in lists.values() for f in names)
    grouped = set(counted)
    wrong = [f"{name!r} has no features" for name, names in lists.items() if not names]
    wrong += [f"{name!r} is not a feature" for name in counted if name not in features]
    wrong += [f"{name!r} is named {count} times" for name, count in counted.items() if count > 1]
    alone = [name for name in lists if name in features and name not in grouped]
    wrong += [f"{name!r} is the name of a feature outside that group" for name in alone]
    if wrong:
        raise InputError(
            f"groups= cannot be used: {'; '.join(wrong)}",
            expected="each feature in at most one group",
            remedy=f"The features are {', '.join(features[:20])}{', ...' if len(features) > 20 else ''}",
        )
