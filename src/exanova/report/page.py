"""The data of a report's page, section by section: tables, the columns a reader sees of them, effects and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from exanova.report.explorer import ROW_FEATURES, sentence_on_rows
from exanova.report.payload import (
    Payload,
    at_rows_content,
    cohorts_content,
    effects_content,
    errors_content,
    features_content,
    rows_content,
)
from exanova.report.summary import Summary
from exanova.show.error_bars import UNIDENTIFIED
from exanova.show.records import Record, legible

PARTNERS, FILE_PARTNERS = 5, 50
"""Subsets named beside a redundant one, on the page and in the file that it saves; JSON has all of them."""


@dataclass(frozen=True)
class Listed:
    """A column of a table as a reader sees it.

    Attributes:
        field: where its values are in a record.
        title: heading.
        kind: "text", "number", "percent", "error" (two digits), or "value" for a number on the scale of the model,
            where rounding is 0.
        only: "page" or "file", if it is in one of the two only.
    """

    field: str
    title: str
    kind: str = "text"
    only: str = ""


VALUE, SHARE = Listed("value", "effect", "value"), Listed("share", "share of rows", "percent")
ROWS, STDERR = Listed("rows", "rows", "number"), Listed("stderr", "± (standard error)", "error")
MEAN = Listed("mean", "mean of the model at the level, minus its overall mean", "value")
AMOUNT = Listed("value", "mean size of the effect", "value")

IMPORTANCE = {"l1": "mean size of the effects", "variance": "net share of the variance"}
"""The quantity that importances measure, in a few words."""


class Page:
    """The data of the page of a summary."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self.payload = Payload(summary.outputs)
        live = summary.live
        self.payload.content.update(
            rounding=summary.rounding,
            few=live.few,
            link=live.link,
            outputs_shown=live.outputs,
            features=features_content(live.effects.features),
            effects=effects_content(live.effects),
            drawn=self._drawn(),
            pairs=self._pairs(),
            words=self._words(),
            notes={effect["feature"]: effect["notes"] for effect in summary.effects if effect["notes"]},
            networks=summary.networks,
            higher=[{"title": joined(effect["subset"]), "note": self._carried(effect)} for effect in summary.higher],
            listed={},
            rows=None if live.rows is None else rows_content(live.rows),
            errors=None if live.errors is None else errors_content(live.errors),
            at_rows=None if live.at_rows is None else at_rows_content(live.at_rows),
            cohorts=cohorts_content(live.cohorts),
            shown=[],
        )
        self._listed("effect", Listed("level", "level"), SHARE, ROWS, VALUE, STDERR, MEAN)
        self._listed("pair", Listed("observed", "observed"), SHARE, ROWS, VALUE, STDERR)
        self._table("importance", summary.importance, Listed("feature", "feature"), self._importance(), STDERR)
        self._fit()
        self._strongest()
        self._significance()
        self._higher()
        self._groups()
        self._change()
        self._domains()
        self._tariff()
        self._redundancy()
        self._certificate()
        if summary.sample is not None:
            self._rows(summary.sample)
        self._what_if()

    @property
    def has_effects(self) -> bool:
        """Whether the effect of some feature is drawn."""
        return any(not effect["small"] for effect in self._summary.effects)

    @property
    def left_out(self) -> list[str]:
        """What this page leaves out: it may hold more rows than the other formats."""
        sample, live = self._summary.sample, self._summary.live.rows
        if sample is None or live is None:
            return self._summary.left_out
        ours, others = (
            list(sentence_on_rows(count, sample["total"], sample["given"]))
            for count in (len(live.numbers), len(sample["rows"]))
        )
        return [sentence for sentence in self._summary.left_out if sentence not in others] + ours

    @property
    def has_groups(self) -> bool:
        """Whether the page can compare groups of rows."""
        live = self._summary.live
        return live.rows is not None and any(len(feature.levels) > 1 for feature in live.effects.features)

    @property
    def has_faded(self) -> bool:
        """Whether some cell has few rows."""
        few, rows = self._summary.live.few, self._summary.live.effects.rows
        return few is not None and bool((rows < few).any())

    @property
    def has_effective(self) -> bool:
        """Whether rows of cells are effective numbers, because weights are uneven."""
        rows = self._summary.live.effects.rows
        return bool((rows[np.isfinite(rows)] % 1 != 0).any())

    @property
    def has_means(self) -> bool:
        """Whether the mean of the model is known at levels."""
        return self._summary.live.effects.means is not None

    def _drawn(self) -> list[int]:
        """Features whose effects are drawn, the most important first."""
        place = {feature.name: i for i, feature in enumerate(self._summary.live.effects.features)}
        return [place[effect["feature"]] for effect in self._summary.effects if not effect["small"]]

    def _pairs(self) -> list[list[int]]:
        place = {feature.name: i for i, feature in enumerate(self._summary.live.effects.features)}
        return [[place[pair["first"]], place[pair["second"]]] for pair in self._summary.pairs]

    def _words(self) -> Record:
        return {
            "importance": IMPORTANCE[self._summary.importance_kind],
            "importance_notes": self._summary.importance_notes,
            "unidentified": UNIDENTIFIED,
        }

    def _importance(self) -> Listed:
        return Listed("value", IMPORTANCE[self._summary.importance_kind], "value")

    def _certificate(self) -> None:
        measured = Listed("measured", "measured", "number"), Listed("tolerance", "tolerance", "number")
        words = Listed("name", "name"), Listed("meaning", "meaning")
        self._table("certificate", self._summary.certificate, *words, *measured, Listed("met", "met"))

    def _fit(self) -> None:
        records = [{"of": r["output"], **{k: v for k, v in r.items() if k != "output"}} for r in self._summary.fit]
        measures = [
            Listed("mean", "mean", "value"),
            Listed("r2", "R²", "number"),
            Listed("mse", "MSE", "number"),
            Listed("relative_mse", "MSE / E[f²]", "percent"),
            Listed("within_variance", "variance between equal rows", "number"),
            Listed("r2_held_out", "R² on held-out rows", "number"),
            Listed("mse_held_out", "MSE on held-out rows", "number"),
        ]
        known = [column for column in measures if any(record[column.field] is not None for record in records)]
        self._table("fit", records, Listed("of", "output"), *known)

    def _strongest(self) -> None:
        records = [{**record, "subset": joined(record["subset"])} for record in self._summary.strongest]
        self._table("strongest", records, Listed("subset", "features"), Listed("order", "order", "number"), AMOUNT)

    def _significance(self) -> None:
        numbers = [Listed(field, title, "error") for field, title in (("p", "p"), ("q", "q (false discoveries)"))]
        clear = Listed("significant", "differs from zero")
        statistics = Listed("statistic", "statistic", "number"), Listed("df", "directions", "number")
        self._table(
            "significance", self._summary.significance, Listed("subset", "features"), *statistics, *numbers, clear
        )

    def _higher(self) -> None:
        for k, effect in enumerate(self._summary.higher):
            records = [
                {
                    "output": r["output"],
                    "levels": ", ".join(map(legible, r["levels"])),
                    "share": r["probability"],
                    **{field: r[field] for field in ("rows", "value", "stderr")},
                }
                for r in effect["records"]
            ]
            self._table(f"higher-{k}", records, Listed("levels", joined(effect["subset"])), SHARE, ROWS, VALUE, STDERR)

    def _carried(self, effect: Record) -> str:
        """How much of an effect the combinations carry that are shown."""
        shown = len(effect["records"]) // len(self._summary.outputs)
        if shown == effect["cells"]:
            return f"All {shown} combinations."
        return f"The {shown} of {effect['cells']:,} combinations that carry most of it ({100 * effect['share']:.0f} %)."

    def _groups(self) -> None:
        for k, contrast in enumerate(self._summary.groups["contrasts"] if self._summary.groups else []):
            part = Listed("part", "part of the difference")
            self._table(f"groups-{k}", contrast["records"], part, Listed("value", "value", "value"), STDERR)
        parts = Listed("part", "part of the difference"), Listed("value", "value", "value")
        self._listed("cohort", *parts, STDERR)
        self._listed("cohort-parts", *parts)

    def _change(self) -> None:
        if self._summary.change is not None:
            mix = Listed("mix", "the mix changed", "value"), Listed("mix_stderr", "±", "error")
            model = Listed("model", "the model changed", "value"), Listed("model_stderr", "±", "error")
            self._table("change", self._summary.change["records"], Listed("part", "part of the change"), *mix, *model)

    def _domains(self) -> None:
        if self._summary.domains is not None:
            self._table(
                "domains", self._summary.domains["records"], Listed("group", "group"), self._importance(), STDERR
            )

    def _tariff(self) -> None:
        tariff = self._summary.tariff
        ends = Listed("low", "95 % from", "number"), Listed("high", "to", "number")
        of = Listed("exposure", "exposure", "number"), Listed("relativity", "relativity", "number")
        for k, factor in enumerate(tariff["factors"] if tariff else []):
            records = [{**r, "levels": ", ".join(map(legible, r["levels"]))} for r in factor["records"]]
            levels = Listed("levels", joined(factor["subset"]))
            self._table(f"tariff-{k}", records, levels, *of, *ends, Listed("base", "base"))
        titles = {"order": "up to order", "deviance": "deviance", "balance": "balance", "gini": "Gini index"}
        shares = {"explained": "deviance explained", "gini_share": "of the largest Gini index"}
        measures = [Listed(field, title, "number") for field, title in titles.items()]
        measures += [Listed(field, title, "percent") for field, title in shares.items()]
        if tariff:
            self._table("tariff-losses", tariff["losses"], *measures)

    def _redundancy(self) -> None:
        records = [
            {
                "subset": joined(entry["subset"]),
                "some": "; ".join(map(joined, entry["shared_with"][:PARTNERS])),
                "count": len(entry["shared_with"]),
                "all": "; ".join(map(joined, entry["shared_with"][:FILE_PARTNERS])),
            }
            for entry in self._summary.redundancy
        ]
        self._table(
            "redundancy",
            records,
            Listed("subset", "features"),
            Listed("some", f"carries the same information, in part, as (the first {PARTNERS})", only="page"),
            Listed("all", f"carries the same information, in part, as (the first {FILE_PARTNERS})", only="file"),
            Listed("count", "of how many", "number"),
        )

    def _rows(self, sample: Record) -> None:
        if self._summary.live.rows is None:
            self.payload.content["shown"] = [self._row(sample["features"], row) for row in sample["rows"]]
        self._listed(
            "row",
            Listed("row", "row", only="file"),
            Listed("id", "id", only="file"),
            Listed("output", "output", only="file"),
            Listed("kind", "kind", only="file"),
            Listed("feature", "feature"),
            Listed("level", "level"),
            Listed("value", "Shapley value", "value"),
            STDERR,
        )

    def _what_if(self) -> None:
        steps = Listed("feature", "feature"), Listed("level", "level"), Listed("value", "Shapley value", "value")
        self._listed("what-if", *steps, STDERR)
        words = Listed("subset", "features"), Listed("levels", "levels"), Listed("observed", "observed")
        self._listed("what-if-parts", *words, SHARE, ROWS, VALUE, STDERR)

    def _row(self, features: list[str], row: Record) -> Record:
        """A row with one table per output: its mean, the Shapley value of each feature, what they add up to."""
        residuals = row["residual"] or [None] * len(row["values"])
        parts = zip(row["values"], row["base"], residuals, strict=True)
        tables = [list(_steps(features, row["cells"], *part)) for part in parts]
        named = {field: row[field] for field in ("row", "id", "outside")}
        return {**named, "table": [self.payload.part(lines) for lines in tables]}

    def _table(self, key: str, records: Sequence[Record], *columns: Listed) -> None:
        """Records under a name, and the columns a reader sees; a file names the output beside them.

        Columns in which nothing is known are left out.
        """
        optional = (ROWS, STDERR)
        columns = tuple(c for c in columns if c not in optional or any(r[c.field] is not None for r in records))
        by_output = bool(records) and "output" in records[0]
        fields = [*(["output"] if by_output else []), *(column.field for column in columns)]
        self.payload.table(key, [{field: record[field] for field in fields} for record in records])
        self._listed(key, *([Listed("output", "output", only="file")] if by_output else []), *columns)

    def _listed(self, key: str, *columns: Listed) -> None:
        self.payload.content["listed"][key] = [asdict(column) for column in columns]


def joined(subset: Sequence[str]) -> str:
    """Features of a subset as a title.

    >>> joined(["a", "b"])
    'a × b'
    """
    return " × ".join(map(legible, subset)) or "(mean)"


def _steps(
    features: list[str], levels: list[str], values: list[float], base: float, residual: float | None
) -> Iterator[Record]:
    """The mean, the features of a row with the largest values, in their own order, the sum of the others, the total."""
    yield _line("base", "mean", None, base)
    order = sorted(range(len(values)), key=lambda i: -abs(values[i]))
    for i in sorted(order[:ROW_FEATURES]):
        yield _line("feature", features[i], levels[i], values[i])
    rest = order[ROW_FEATURES:]
    if rest:
        yield _line("rest", f"{len(rest):,} other features", None, sum(values[i] for i in rest))
    if residual is not None:
        yield _line("residual", "residual", None, residual)
    label = "fitted part" if residual is None else "model"
    yield _line("total", label, None, base + sum(values) + (residual or 0.0))


def _line(kind: str, feature: str, level: str | None, value: float) -> Record:
    return {"kind": kind, "feature": feature, "level": level, "value": value}
