"""The commands for rows in several places: levels to agree on, moments of each place, their sum, its fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from exanova import parallel
from exanova.apart.agreed_levels import joined_levels
from exanova.apart.moments import collect_blocks, merge_moments
from exanova.apart.moments_file import load_levels, load_moments, save_levels, save_moments
from exanova.cli import text
from exanova.cli.columns import Choice, Data, Kind, divide, kinds_of_features, typed
from exanova.cli.many_files import in_blocks, open_files
from exanova.cli.models import load_model
from exanova.cli.output import Target, Targets
from exanova.cli.screen import Screen, busy
from exanova.cli.table_files import ReadOptions, display_name, read_table
from exanova.data.encoding import Encoding
from exanova.data.learning import learn_encoding
from exanova.data.table import Table
from exanova.errors import InputError
from exanova.estimator import FunctionalANOVA
from exanova.messages import count_of
from exanova.sources.reading import SourceOptions, read_levels

if TYPE_CHECKING:
    from exanova.cli.fit_commands import Job


@dataclass(frozen=True)
class PlaceTable:
    """The table of one place: its path, how to read it, the roles of its columns, and the file to write."""

    data: str
    reading: ReadOptions
    choice: Choice
    output: str
    force: bool
    quiet: bool


@dataclass(frozen=True)
class LevelRule:
    """How levels are learned, as typed."""

    n_bins: tuple[str, ...]
    strategy: str
    min_frequency: str | None


@dataclass(frozen=True)
class Collected:
    """Options of ``moments``, as typed."""

    levels: str
    max_order: str
    min_count: int
    model: str | None
    trust_pickle: bool
    memory_limit: str | None
    n_jobs: int | None


def levels(part: PlaceTable, add: str | None, rule: LevelRule) -> None:
    """Learn the levels of a table and write them."""
    targets = Targets([Target("--output", part.output)], [part.data, add], part.force)
    known = None if add is None else load_levels(add)
    with busy(f"reading {display_name(part.data)}", part.quiet):
        kinds = {} if known is None else kinds_of_features(known.features)
        encoding = (
            _levels_of_files(part, kinds, rule) if in_blocks(part.data, part.reading) else _own(part, kinds, rule)
        )
    encoding = encoding if known is None else joined_levels(known, encoding)
    targets.write("--output", lambda path: save_levels(encoding, path))
    _say(part.quiet, f"levels of {count_of(len(encoding.names), 'column')}", part.output)


def _own(part: PlaceTable, kinds: Mapping[str, Kind], rule: LevelRule) -> Encoding:
    """The levels of a table in memory."""
    data = divide(read_table(part.data, part.reading, kinds), part.choice, display_name(part.data))
    bins = text.bins(rule.n_bins, data.features.column_names)
    frequency = text.frequency(rule.min_frequency)
    table = Table.read(data.features)
    return learn_encoding(table, weights=data.weight, min_frequency=frequency, n_bins=bins, strategy=rule.strategy)


def _levels_of_files(part: PlaceTable, kinds: Mapping[str, Kind], rule: LevelRule) -> Encoding:
    """The levels of files that are read in blocks, of which columns that are text at other places stay text."""
    names = [name for name, kind in kinds.items() if kind == "text"]
    kept = part.reading.text if "all" in part.reading.text else (*part.reading.text, *names)
    source = open_files(part.data, replace(part.reading, text=kept), part.choice)
    features = [name for name in source.names if name not in part.choice.apart]
    options = SourceOptions(text.frequency(rule.min_frequency), text.bins(rule.n_bins, features), rule.strategy)
    return read_levels(source, part.choice.prediction, part.choice.weight, options)


def moments(part: PlaceTable, asked: Collected) -> None:
    """Collect the moments of a table and write them."""
    if (asked.model is None) == (not part.choice.prediction):
        raise InputError(
            "give either --prediction COLUMN, if the table has the model's predictions, or --model MODEL, to compute "
            "them."
        )
    targets = Targets([Target("--output", part.output)], [part.data, asked.levels, asked.model], part.force)
    known = load_levels(asked.levels)
    threads = parallel.thread_count(asked.n_jobs)
    model: Any = None if asked.model is None else load_model(asked.model, asked.trust_pickle, threads)
    blocks = ((data.features, data.predictions if model is None else model, data.weight) for data in _read(part, known))
    with busy(f"counting {display_name(part.data)}", part.quiet):
        collected = collect_blocks(
            blocks,
            known,
            max_order=_order(asked.max_order),
            min_count=asked.min_count,
            output_names=list(part.choice.prediction) or None,
            memory_limit=text.memory(asked.memory_limit),
            threads=threads,
        )
    targets.write("--output", lambda path: save_moments(collected, path))
    _say(part.quiet, f"moments of {count_of(collected.rows, 'row')}", part.output)


def _read(part: PlaceTable, known: Encoding) -> Iterator[Data]:
    """The rows of a place: of one table, or of the files of a folder, a pattern or a large file, block by block."""
    kinds = kinds_of_features(known.features)
    if not in_blocks(part.data, part.reading):
        table = read_table(part.data, part.reading, kinds)
        yield divide(table, part.choice, display_name(part.data), known.names)
        return
    source = open_files(part.data, part.reading, part.choice, lambda names: known.names)
    for file in source.parts:
        for block in file.blocks(source.names):
            if block.num_rows:
                table = typed(block, kinds, "as is", part.reading.decimal)
                yield divide(table, part.choice, file.name, known.names)


def merge(files: Sequence[str], output: str, force: bool, quiet: bool) -> None:
    """Merge files of moments."""
    targets = Targets([Target("--output", output)], list(files), force)
    merged = merge_moments([load_moments(path) for path in files])
    targets.write("--output", lambda path: save_moments(merged, path))
    _say(quiet, f"moments of {count_of(merged.rows, 'row')} in {count_of(len(merged.shards), 'shard')}", output)


def fit(job: Job) -> FunctionalANOVA:
    """The decomposition of a file of moments, for ``explain``."""
    given = {"--prediction": job.choice.prediction, "--model": job.model, "--weight": job.choice.weight}
    given |= {"--features": job.choice.features, "--ignore": job.choice.ignore, "--eval": job.eval}
    given |= {"--n-bins": job.fit.n_bins, "--min-frequency": job.fit.min_frequency, "--subsets": job.fit.subsets}
    refused = [option for option, value in given.items() if value]
    if refused:
        raise InputError(
            f"{', '.join(refused)} cannot be used with moments: {display_name(job.data)} holds no rows. Choose columns "
            "and levels when moments are collected."
        )
    collected = load_moments(job.data)
    anova = job.fit.estimator(collected.encoding.names)
    anova.set_params(max_order=min(_order(job.fit.max_order), collected.max_order))
    return anova.merge(collected)


def _order(typed: str) -> int:
    order = text.order(typed)
    if order not in (1, 2):
        raise InputError(f"--max-order {typed} was given; moments hold the counts for 1 or 2.")
    return int(order)


def _say(quiet: bool, what: str, path: str) -> None:
    if not quiet:
        Screen().files([(what, path)])
