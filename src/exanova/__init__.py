"""Exact functional ANOVA of any model with categorical inputs, under any dependence and on any support."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"
"""The only place with the version: pyproject.toml reads it here, so that it is right without installation too."""

_HOME = {
    "FunctionalANOVA": "exanova.estimator",
    "Decomposition": "exanova.decomposition",
    "Support": "exanova.data.support",
    "Effect": "exanova.effects.effect",
    "Effects": "exanova.effects.effect",
    "Components": "exanova.effects.at_rows",
    "Certificate": "exanova.effects.certificate",
    "Moments": "exanova.apart.moments",
    "Plan": "exanova.solve.plan",
    "Provenance": "exanova.provenance",
    "Explanation": "exanova.explain.explanation",
    "Interactions": "exanova.explain.interactions",
    "Reasons": "exanova.explain.reasons",
    "Relativities": "exanova.explain.relativities",
    "Comparison": "exanova.explain.comparison",
    "Difference": "exanova.explain.difference",
    "MeanChange": "exanova.explain.mean_change",
    "Selection": "exanova.select.record",
    "load": "exanova.estimator",
    "neighbours": "exanova.design.families",
    "errors": "exanova.errors",
    "datasets": "exanova.datasets",
}
"""Public names and their modules, imported on first access, so that ``import exanova`` is fast."""

__all__ = [*_HOME, "__version__"]

if TYPE_CHECKING:
    from exanova import datasets as datasets
    from exanova import errors as errors
    from exanova.apart.moments import Moments as Moments
    from exanova.data.support import Support as Support
    from exanova.decomposition import Decomposition as Decomposition
    from exanova.design.families import neighbours as neighbours
    from exanova.effects.at_rows import Components as Components
    from exanova.effects.certificate import Certificate as Certificate
    from exanova.effects.effect import Effect as Effect
    from exanova.effects.effect import Effects as Effects
    from exanova.estimator import FunctionalANOVA as FunctionalANOVA
    from exanova.estimator import load as load
    from exanova.explain.comparison import Comparison as Comparison
    from exanova.explain.difference import Difference as Difference
    from exanova.explain.explanation import Explanation as Explanation
    from exanova.explain.interactions import Interactions as Interactions
    from exanova.explain.mean_change import MeanChange as MeanChange
    from exanova.explain.reasons import Reasons as Reasons
    from exanova.explain.relativities import Relativities as Relativities
    from exanova.provenance import Provenance as Provenance
    from exanova.select.record import Selection as Selection
    from exanova.solve.plan import Plan as Plan


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'exanova' has no attribute {name!r}")
    module = import_module(_HOME[name])
    return module if _HOME[name].rpartition(".")[2] == name else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
