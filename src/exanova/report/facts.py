"""What was explained, how it was computed, and how well it fits, as records."""

from __future__ import annotations

import math
from collections.abc import Mapping

from exanova.decomposition import Decomposition
from exanova.effects.effect import GAME
from exanova.report.sections import listed
from exanova.show.records import Record


def facts(decomposition: Decomposition, about: Mapping[str, str]) -> list[Record]:
    """What was explained, then how it was computed."""
    plan, certificate = decomposition.plan, decomposition.certificate
    schema, family = decomposition.schema, decomposition.family
    without_effect = [name for name, n in zip(schema.features, family.sizes, strict=True) if n < 2]
    constant = f"; constant, and so without effect: {listed(without_effect)}" if without_effect else ""
    subsets, cells = len(family.subsets) - 1, len(family.cell_key) - 1
    moments = f"{plan.rows:,}, whose moments were given"
    data = [
        *about.items(),
        (
            "Rows",
            f"{plan.rows:,} given, {plan.distinct_rows:,} distinct ones in the fit" if plan.distinct_rows else moments,
        ),
        ("Features", f"{len(schema.features):,}{constant}"),
        ("Outputs", "one" if schema.single else f"{len(schema.outputs):,} ({listed(schema.outputs)})"),
    ]
    chosen = [] if decomposition.selection is None else [("Selection", str(decomposition.selection).splitlines()[0])]
    computed = [
        (
            "Effects",
            f"{subsets:,} subsets of up to {decomposition.order} features, on {cells:,} observed combinations "
            "of their levels",
        ),
        *chosen,
        ("Computed", f"{certificate.route} route: {certificate.method}, {certificate.seconds:.2f} s"),
        ("Game", GAME),
    ]
    parts = [("data", data), ("computed", computed)]
    return [{"name": str(name), "value": str(value), "of": of} for of, facts in parts for name, value in facts]


def provenance(decomposition: Decomposition) -> list[Record]:
    """Version, date, settings, rows and hashes of the fit; empty where they were not recorded."""
    known = decomposition.provenance
    return [] if known is None else [{"name": name, "value": value} for name, value in known.facts()]


def fit(decomposition: Decomposition) -> list[Record]:
    """The mean and the fit of each output."""
    c = decomposition.certificate
    return [
        {
            "output": output,
            "mean": float(decomposition.intercept[k]),
            "r2": float(c.r2[k]),
            "mse": float(c.mse[k]),
            "relative_mse": float(c.relative_mse[k]),
            "within_variance": float(c.within_variance[k]),
            "r2_held_out": None if c.r2_eval is None or math.isnan(c.r2_eval[k]) else float(c.r2_eval[k]),
            "mse_held_out": None if c.mse_eval is None else float(c.mse_eval[k]),
        }
        for k, output in enumerate(decomposition.schema.outputs)
    ]
