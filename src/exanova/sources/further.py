"""Rows that were not fitted, read in blocks, with the model's values at them, to evaluate a fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from exanova.data.encoding import Encoding
from exanova.data.link import LINKS, link_each, link_means
from exanova.data.packing import pack_rows, unpack_rows
from exanova.data.table import Table
from exanova.data.values import is_model
from exanova.errors import InputError
from exanova.progress import Progress
from exanova.sources.counting_passes import Block, Caller, fold, outputs_of, read_blocks
from exanova.sources.opening import open_source
from exanova.sources.parts import Roles, Source
from exanova.sources.pieces import group_of
from exanova.sources.reading import model_kind, output_columns
from exanova.sources.tally import Tally, merge_tallies, tally_rows
from exanova.typing import Codes, FloatArray


@dataclass(frozen=True, eq=False)
class FurtherRows:
    """Some of the rows: (d, n) codes, -1 for a level never observed, (n, m) outputs and (n,) how often each occurs."""

    codes: Codes
    values: FloatArray
    copies: FloatArray


@dataclass(frozen=True)
class Reader:
    """How further rows are read: levels of the fit, what is done with others, how a model is called, and the link.

    Numbers never observed are read ``between`` those that were, if that is asked for.
    """

    encoding: Encoding
    handle_unknown: str
    response_method: str
    batch_size: int | None
    link: str = "identity"
    between: bool = False

    def read(self, X: Any, model: Any, progress: Progress) -> Iterator[FurtherRows]:
        """Blocks of rows with the model's values at them, on the scale of the link."""
        source, outputs = open_source(X), output_columns(model)
        absent = [name for name in (*self.encoding.names, *outputs) if name not in source.names]
        if absent:
            raise InputError(f"{source.label} has no column {', '.join(map(repr, absent))}, which the fit used.")
        progress.phase("reading other rows", len(source.parts))
        blocks = self._blocks(source, model, outputs, progress)
        if self.link == "identity" or is_model(model):
            return blocks
        return self._linked(blocks)

    def _blocks(
        self, source: Source, model: Any, outputs: tuple[str, ...], progress: Progress
    ) -> Iterator[FurtherRows]:
        called = Caller(model, model_kind(source), self.response_method, self.batch_size, None)
        for part in source.parts:
            for block in read_blocks(part, Roles(self.encoding.names, outputs)):
                table = block.table.select(self.encoding.names)
                values = outputs_of(block.table, outputs, block.copies) if outputs else self._called(called, table)
                yield self._encoded(block, table, values)
            progress.step(1)

    def _called(self, called: Caller, table: Table) -> FloatArray:
        values = called(self.encoding, table).values
        return link_each(LINKS[self.link], values, np.arange(len(values))) if self.link != "identity" else values

    def _encoded(self, block: Block, table: Table, values: FloatArray) -> FurtherRows:
        codes = self.encoding.encode(table, self.handle_unknown, between=self.between).astype(np.int32)
        return FurtherRows(codes, values, block.copies)

    def _linked(self, blocks: Iterator[FurtherRows]) -> Iterator[FurtherRows]:
        """Rows with outputs on the scale of the link, around the mean of those that are equal once encoded."""
        places = [0 if own is None else len(own) for own in self.encoding.between]
        # The first code is for levels never observed, the last ones for numbers between those that were.
        sizes = [size + 1 + more for size, more in zip(self.encoding.sizes, places, strict=True)]

        def counted() -> Iterator[Tally]:
            for rows in blocks:
                words = pack_rows(rows.codes + 1, sizes)
                yield tally_rows(words, rows.values, np.ones(len(rows.copies)), rows.copies, counts=True)

        tally = fold(counted(), merge_tallies)
        if tally is None:
            return
        # Rows that are put together have lost their spread; the error of a fit needs it.
        values, weight, words = _spread(tally)
        linked = link_means(LINKS[self.link], values, group_of(words), weight, np.arange(len(weight)))
        yield FurtherRows(unpack_rows(words, sizes).astype(np.int32) - 1, linked, weight)


def _spread(tally: Tally) -> tuple[FloatArray, FloatArray, Any]:
    """Outputs, weights and ascending words of rows; those that were put together as two around their mean."""
    if tally.first is None or tally.second is None:
        return tally.lowest, tally.weight, tally.words
    mean = tally.lowest + tally.first / tally.weight[:, None]
    spread = np.sqrt(np.maximum(tally.second / tally.weight[:, None] - (mean - tally.lowest) ** 2, 0.0))
    values = np.stack([mean - spread, mean + spread], axis=1).reshape(-1, mean.shape[1])
    return values, np.repeat(tally.weight / 2.0, 2), np.repeat(tally.words, 2, axis=1)
