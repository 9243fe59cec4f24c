"""How rows that were counted were drawn: their clusters, strata, weights and outputs, in memory or on disk."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.draws import Draws, Kind
from exanova.data.scaling import Scaling
from exanova.sources.counting_passes import RowCounter
from exanova.sources.disk import disk_array
from exanova.sources.pieces import Piece, Pieces, means_of
from exanova.typing import FloatArray, IntArray


def all_draws(pieces: Pieces, scaling: Scaling, scale: FloatArray | None, noisy: bool) -> Draws | None:
    """How the rows were drawn; ``None`` where the weights of the distinct rows determine it."""
    if not pieces.rows.on_disk:
        return _draws(pieces.whole, 0, scaling, pieces.counter, scale, noisy)
    at, growing = 0, _Growing(len(pieces.rows.tally))
    for piece in pieces:
        own = _draws(piece, at, scaling, pieces.counter, scale, noisy)
        if own is None:
            return None
        growing.add(own, len(piece.own))
        at += len(piece.main)
    return growing.draws()


def arrays_of(draws: Draws) -> dict[str, NDArray[Any]]:
    """The arrays of draws by name, of those that they have."""
    named = {entry.name: getattr(draws, entry.name) for entry in fields(draws)}
    return {name: array for name, array in named.items() if isinstance(array, np.ndarray)}


@dataclass
class _Growing:
    """Draws that are put together on disk, piece by piece, of ``rows`` rows that were counted."""

    rows: int
    first: Draws | None = None
    arrays: dict[str, Any] = field(default_factory=dict)
    filled: int = 0

    def add(self, own: Draws, counted: int) -> None:
        """Take the draws of one more piece."""
        given = arrays_of(own)
        if self.first is None:
            self.first, count = own, self.rows * len(own.group) // counted
            self.arrays = {name: disk_array((count, *array.shape[1:]), array.dtype) for name, array in given.items()}
        for name, array in given.items():
            self.arrays[name][self.filled : self.filled + len(array)] = array
        self.filled += len(own.group)

    def draws(self) -> Draws | None:
        """All of them."""
        return None if self.first is None else replace(self.first, **self.arrays)


def _draws(
    piece: Piece, at: int, scaling: Scaling, counter: RowCounter, scale: FloatArray | None, noisy: bool
) -> Draws | None:
    """The draws of a piece whose distinct rows begin with number ``at``."""
    tally, group = piece.own, piece.group + at
    kind: Kind = "frequency" if counter.counts else "probability"
    cluster, stratum = labels_of(piece, counter)
    if cluster is None and stratum is None and scale is None and kind == "frequency" and not noisy:
        return None
    weight = tally.weight
    if tally.is_apart:
        values = scaling.normalised(tally.lowest) if noisy else None
        return Draws(group, weight, kind, values, cluster, stratum, tally.replicates, scale, copies=tally.copies)
    means, within = means_of(tally, scaling)
    several = {"copies": tally.copies, "squares": tally.squares}
    if not noisy:
        return Draws(group, weight, kind, None, cluster, stratum, **several)
    spread = np.sqrt(within)
    twice = np.concatenate([np.arange(len(weight))] * 2)
    return Draws(
        group[twice],
        weight[twice] / 2.0,
        kind,
        np.concatenate([means - spread, means + spread]),
        None if cluster is None else cluster[twice],
        None if stratum is None else stratum[twice],
        **{name: None if own is None else own[twice] / 2.0 for name, own in several.items()},
    )


def labels_of(piece: Piece, counter: RowCounter) -> tuple[IntArray | None, IntArray | None]:
    """(k,) numbers of the cluster and of the stratum of every row; ``None`` where there are none."""
    labels = iter(piece.codes[len(counter.encoding.features) :].astype(np.int64))
    names = (counter.roles.cluster, counter.roles.stratum)
    cluster, stratum = (None if name is None else next(labels) for name in names)
    return cluster, stratum
