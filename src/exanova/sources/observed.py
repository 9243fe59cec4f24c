"""Rows that were counted, as the estimator takes them: distinct rows with weights and values, and how they were drawn.

The same for rows in memory and on disk. Those on disk are read a piece at a time, and what is made of them, codes,
weights and values, is on disk as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.data.draws import refuse_crossing
from exanova.data.encoding import Encoding
from exanova.data.feature import FeatureLevels
from exanova.data.fingerprint import fingerprint
from exanova.data.joining import Most, join_levels
from exanova.data.mapped import release
from exanova.data.observe import Observation, new_codes
from exanova.data.packing import pack_rows
from exanova.data.sample import Sample, held_clusters, held_out
from exanova.data.scaling import Scaling, scaling_between
from exanova.data.support import Support
from exanova.data.values import ModelValues
from exanova.errors import MemoryLimitError
from exanova.messages import Parameter
from exanova.sources import parts
from exanova.sources.counting_passes import CountedRows, RowCounter
from exanova.sources.disk import disk_array
from exanova.sources.drawn import all_draws, arrays_of, labels_of
from exanova.sources.linking import places_among
from exanova.sources.pieces import Piece, Pieces, means_of
from exanova.sources.raw_noise import merging_raw, most_raw
from exanova.sources.tally import MOST_APART, onto, part_of
from exanova.typing import Codes, FloatArray, IntArray

APART_VALUE, COUNTED_VALUE, BLOCK_CELL = 42, 90, 20
"""Bytes for each number of a row while rows are merged, for each number that is counted, for each cell of a block."""

HELD_PART, HELD_VALUE = 3, 16
"""Part of the memory of merged rows that is held once they are, and bytes held for each number that was counted."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Facts about a source that stay the same however its levels are joined.

    Attributes:
        n_rows: rows that were read.
        whole: whether all weights are whole numbers.
        given: names of the outputs, and how a model gave them.
        kind: library of the tables of results.
        scale: factor of the squared deviation of every replicate, or ``None``.
        distinct: about how many rows are distinct, as the first pass estimated it.
        passes: passes over the source.
        counted: distinct numbers and times that were counted to cut columns.
        room: bytes that rows may take while they are merged; beyond it they go to disk.
        surveyed: rows of whole weights that do not look like counts; 0 where they do, or none were given.
    """

    n_rows: int
    whole: bool
    given: ModelValues
    kind: str
    scale: FloatArray | None = None
    distinct: int = 0
    passes: int = 2
    counted: int = 0
    room: float = float("inf")
    surveyed: int = 0


@dataclass(frozen=True, eq=False)
class SourceReading:
    """A source that was read: what :class:`exanova.data.observe.Reading` and its observation are for a table.

    Attributes:
        encoding: the levels of every feature.
        support: the r distinct encoded rows with their weights.
        observation: the same rows with their values; without values if no model was given.
        rows, counter, counts: what all of that was made of.
        is_distribution: never, of rows that are read.
    """

    encoding: Encoding
    support: Support
    observation: Observation
    rows: CountedRows = field(repr=False)
    counter: RowCounter = field(repr=False)
    counts: Counts = field(repr=False)
    is_distribution: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows that were read."""
        return self.counts.n_rows

    @property
    def model_calls(self) -> int:
        """Rows a model was called on."""
        return self.counts.given.calls

    @property
    def sample(self) -> Sample:
        """The distinct rows."""
        return self.observation.sample

    @property
    def plan_facts(self) -> dict[str, Any]:
        """What a plan reports about the source."""
        counts = self.counts
        return {
            "source_passes": counts.passes,
            "distinct_estimate": counts.distinct,
            "on_disk": self.rows.on_disk,
        }

    def joined(self, chosen: Mapping[int, Most]) -> SourceReading:
        """The same rows with the levels of the columns ``chosen`` joined by the outputs."""
        if self.rows.on_disk:
            names = ", ".join(repr(self.encoding.names[j]) for j in chosen)
            raise MemoryLimitError(
                f"{len(self.rows.tally):,} distinct rows are on disk, and the levels of {names} are joined by outputs "
                "of rows in memory",
                remedy=["Give ", Parameter("max_levels", None), ", or a larger ", Parameter("memory_limit")],
            )
        return self.recoded(join_levels(self.encoding.features, chosen, *self._entries()))

    def recoded(self, features: Sequence[FeatureLevels], scaling: Scaling | None = None) -> SourceReading:
        """The same rows with other levels, of which each holds some of the present ones."""
        codes = Pieces(self.rows, self.counter).whole.codes.astype(np.int64)
        for row, old, new in zip(codes, self.encoding.features, features, strict=False):
            row[:] = row if new is old else new_codes(old, new)[row]
        other = replace(self.counter, encoding=Encoding(tuple(features)))
        moved = onto(self.rows.tally, pack_rows(codes, other.sizes))
        return observed(replace(self.rows, tally=moved), other, self.counts, scaling)

    def split(self, chosen: Mapping[int, Most], share: float, seed: int | None) -> tuple[SourceReading, Sample]:
        """A share of the distinct rows, or of the clusters, held out before levels are joined by the others.

        These others, and the rows held out.
        """
        held = self._held(share, seed)
        fitted = self._only(~held).joined(chosen)
        other = self._only(held).recoded(fitted.encoding.features, fitted.observation.scaling)
        return fitted, other.sample

    @property
    def clusters(self) -> IntArray | None:
        """(k,) the cluster of every row that was counted; ``None`` without clusters, or if each is a single row."""
        draws = self.sample.draws
        if draws is None or not draws.in_clusters:
            return None
        return labels_of(Pieces(self.rows, self.counter).whole, self.counter)[0]

    @property
    def copies(self) -> IntArray:
        """(k,) how many raw rows each row that was counted stands for."""
        tally = self.rows.tally
        return np.rint(tally.weight if tally.copies is None else tally.copies).astype(np.int64)

    def thinned(self, copies: IntArray) -> SourceReading:
        """The same rows with only ``copies`` (k,) of the counted copies of each; rows without any are left out."""
        tally, share = self.rows.tally, copies / self.copies
        sums = {name: getattr(tally, name) for name in ("weight", "copies", "squares")}
        own: dict[str, Any] = {name: None if array is None else array * share for name, array in sums.items()}
        if tally.copies is None:
            own["weight"] = copies.astype(np.float64)
        return replace(self, rows=replace(self.rows, tally=replace(tally, **own)))._only(copies > 0)

    def _held(self, share: float, seed: int | None) -> NDArray[np.bool_]:
        """(k,) which of the rows that were counted are held out."""
        whole, support = Pieces(self.rows, self.counter).whole, self.support
        cluster, _ = labels_of(whole, self.counter)
        if cluster is None:
            return np.asarray(held_out(support.codes, support.sizes, share, seed)[whole.group])
        codes = support.codes[:, whole.group]
        return np.asarray(held_clusters(codes, support.sizes, cluster, share, seed)[cluster])

    def _only(self, kept: NDArray[np.bool_]) -> SourceReading:
        """Those ``kept`` (k,) of the rows that were counted, with their clusters and strata numbered anew."""
        whole, raw = Pieces(self.rows, self.counter).whole, self.rows.raw
        codes, units = whole.codes[:, kept].astype(np.int64), []
        for row, labels in zip(codes[len(self.encoding.features) :], self.counter.units, strict=True):
            present = np.unique(row)
            row[:] = np.searchsorted(present, row)
            listed = list(labels)
            units.append({listed[old]: new for new, old in enumerate(present.tolist())})
        counter = replace(self.counter, units=tuple(units))
        own = replace(part_of(self.rows.tally, kept), words=pack_rows(codes, counter.sizes))
        own = replace(own, highest=own.highest if own.first is not None else own.lowest.max(axis=0))
        if raw is not None:
            place = places_among(whole.main.words[:, np.unique(whole.group[kept])], raw.tally.words[1:])
            raw = replace(raw, tally=part_of(raw.tally, place >= 0))
        counts = replace(self.counts, n_rows=own.rows)
        return observed(replace(self.rows, tally=own, raw=raw), counter, counts)

    def _entries(self) -> tuple[Codes, FloatArray, NDArray[Any]]:
        """Codes (d, k), outputs (k, m) and weights (k,) of the rows behind the distinct ones."""
        tally, codes = self.rows.tally, Pieces(self.rows, self.counter).whole.codes
        own = codes[: len(self.encoding.features)].astype(np.int64)
        if tally.is_apart:
            counts = self.counts.whole and self.counter.counts
            return own, tally.lowest, tally.weight.astype(np.int64) if counts else tally.weight
        means, within = means_of(tally)
        spread = np.sqrt(within)
        halves = [tally.weight / 2.0] * 2
        return np.tile(own, 2), np.concatenate([means - spread, means + spread]), np.concatenate(halves)


def observed(rows: CountedRows, counter: RowCounter, counts: Counts, scaling: Scaling | None = None) -> SourceReading:
    """The distinct rows of a source with their weights and values.

    Args:
        rows: what the second pass found.
        counter: how it counted.
        counts: facts about the source.
        scaling: centre and unit of every output; by default those of these rows.
    """
    pieces, encoding = Pieces(rows, counter), counter.encoding
    scaling = scaling_of(pieces) if scaling is None else scaling
    filled = _filled(pieces, scaling, counts.whole)
    support = Support.from_distinct(encoding, filled["codes"], filled["weight"])
    within = filled["within"] if filled["within"].any() else None
    draws = all_draws(pieces, scaling, counts.scale, noisy=within is not None)
    if draws is not None and draws.cluster is not None and draws.stratum is not None:
        refuse_crossing(draws.cluster, draws.stratum)
    sample = Sample(
        support.codes,
        support.weight,
        support.sizes,
        filled["values"],
        counts.n_rows,
        within=within,
        noise=None if within is None else _noise(rows, support.weight, within, scaling, counter),
        scaling=scaling,
        draws=draws,
        in_blocks=True,
        counted=counts.counted,
        read_bytes=_reading(rows, counts, counter),
        on_disk=rows.on_disk,
    )
    digest = fingerprint(encoding, support.codes, filled["group"], rows.tally.weight, rows.tally.lowest)
    power = counter.roles.divided
    observation = Observation(encoding, support, sample, counts.given, counts.kind, digest, power)
    if rows.on_disk:
        release(*rows.tally.arrays, *filled.values(), *(() if draws is None else arrays_of(draws).values()))
    return SourceReading(encoding, support, observation, rows, counter, counts)


def _reading(rows: CountedRows, counts: Counts, counter: RowCounter) -> int:
    """Bytes while the source was read: a block, the numbers that were counted, and rows while they were merged.

    Before outputs are known, equal rows may have different ones.
    """
    known, outputs = bool(rows.tally.lowest.shape[1]), max(1, rows.tally.lowest.shape[1])
    apart = len(rows.tally) if known else min(counts.n_rows, MOST_APART)
    merged = int(min(counts.room, APART_VALUE * (len(rows.tally.words) + 1 + 3 * outputs) * apart))
    raw = _raw_rows(rows, counts, counter) if not known else 0 if rows.raw is None else len(rows.raw)
    kept = merging_raw(raw, len(rows.tally.words), outputs)
    # One of the two is merged while the other is held, and the numbers that were counted are.
    both = max(merged, kept) + min(merged, kept) // HELD_PART + HELD_VALUE * counts.counted
    block = BLOCK_CELL * len(counter.roles.columns) * min(counts.n_rows, parts.BLOCK_ROWS)
    return block + max(both, COUNTED_VALUE * counts.counted)


def _raw_rows(rows: CountedRows, counts: Counts, counter: RowCounter) -> int:
    """How many raw rows would be kept to tell noise from bins, before outputs are known."""
    if counter.encoding.is_lossless:
        return 0
    return min(counts.n_rows, most_raw(counts.room, len(rows.tally.words), 1))


def scaling_of(pieces: Pieces) -> Scaling:
    """The centre and the unit of every output."""
    mains = [(piece.main.lowest.min(axis=0), float(piece.main.weight.sum())) for piece in pieces]
    total = sum(weight for _, weight in mains)

    def mean_around(base: FloatArray) -> FloatArray:
        return np.asarray(base + sum(_sum_around(piece, base) for piece in pieces) / total)

    return scaling_between(np.min([low for low, _ in mains], axis=0), pieces.rows.tally.highest, mean_around)


def _sum_around(piece: Piece, base: FloatArray) -> FloatArray:
    assert piece.main.first is not None
    return np.asarray(piece.main.weight @ (piece.main.lowest - base) + piece.main.first.sum(axis=0))


def _filled(pieces: Pieces, scaling: Scaling, whole: bool) -> dict[str, NDArray[Any]]:
    """Codes (d, r), weights (r,), values and variances (r, m) of the distinct rows, and the group (k,) of each row."""
    if not pieces.rows.on_disk:
        return _of_piece(pieces.whole, pieces.counter, scaling, whole, 0)
    out: dict[str, NDArray[Any]] = {}
    at, started = 0, 0
    for piece in pieces:
        own = _of_piece(piece, pieces.counter, scaling, whole, at)
        out = out or {name: _room_for(name, array, pieces) for name, array in own.items()}
        for name, array in own.items():
            if name == "codes":
                out[name][:, at : at + array.shape[1]] = array
            else:
                start = started if name == "group" else at
                out[name][start : start + len(array)] = array
        release(*out.values())
        at, started = at + len(piece.main), started + len(piece.own)
    return out


def _room_for(name: str, array: NDArray[Any], pieces: Pieces) -> NDArray[Any]:
    count = len(pieces.rows.tally) if name == "group" else pieces.n_distinct
    shape = (array.shape[0], count) if name == "codes" else (count, *array.shape[1:])
    return disk_array(shape, array.dtype)


def _of_piece(piece: Piece, counter: RowCounter, scaling: Scaling, whole: bool, at: int) -> dict[str, NDArray[Any]]:
    first = np.flatnonzero(np.diff(piece.group, prepend=-1))
    codes = piece.codes[: len(counter.encoding.features)]
    values, within = means_of(piece.main, scaling)
    return {
        "codes": codes if len(first) == codes.shape[1] else codes[:, first],
        "weight": piece.main.weight.astype(np.int64) if whole else piece.main.weight,
        "values": values,
        "within": within,
        "group": piece.group + at,
    }


def _noise(
    rows: CountedRows, weight: NDArray[Any], within: FloatArray, scaling: Scaling, counter: RowCounter
) -> FloatArray | None:
    """(m,) mean variance between rows that are equal as they were given."""
    if counter.model is not None:
        return None
    inside = np.asarray(weight @ within / weight.sum())
    if rows.raw is None:
        return inside
    unit = np.where(scaling.unit > 0, scaling.unit, np.inf)
    return np.asarray(rows.raw.noise(inside * scaling.unit**2) / unit**2)
