"""What every experiment shares: settings, models trained once, and the record of what came out of it."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from exanova import datasets
from exanova.typing import IntArray

ROOT = Path(__file__).resolve().parent
PAGES = ROOT.parent / "docs" / "paper"
KEPT = ROOT / "results"
"""Outputs of trained models and the pages of quick runs; nothing in it is worth a commit."""

LIBRARIES = ("exanova", "numpy", "scikit-learn", "xgboost", "shap", "treehfd", "torch")


SEED = 0


@dataclass(frozen=True)
class Settings:
    """Where the data are, where pages go, and whether everything is small: enough to see that it runs."""

    data: Path | None = None
    quick: bool = False
    out: Path = PAGES

    def load(self, name: str) -> datasets.Dataset:
        """A dataset by name."""
        return datasets.load(name, self.data)

    def trained(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The arrays that ``make`` returns, or returned the first time."""
        path = self._kept(name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, **make())
        with np.load(path) as file:
            return {key: file[key] for key in file.files}

    def with_torch(self, name: str) -> bool:
        """Whether a model of PyTorch has been trained under this name, or can be."""
        return self._kept(name).exists() or find_spec("torch") is not None

    def _kept(self, name: str) -> Path:
        return KEPT / f"{name}{'-quick' if self.quick else ''}.npz"

    def figure(self, name: str, chart: Any, caption: str) -> Figure:
        """Save a chart beside the pages; ``name`` says by its ending in which format."""
        path = self.out / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Room for the fonts of other machines, which may be wider than those the labels were measured with.
        chart = chart.properties(padding={"left": 25, "top": 5, "right": 60, "bottom": 5})
        chart.save(path, scale_factor=2.0 if path.suffix == ".png" else 1.0)
        return Figure(f"images/{name}", caption)


@dataclass(frozen=True)
class Row:
    """A figure of the paper beside ours.

    Attributes:
        what: the quantity.
        paper, ours: as a reader wants to see them.
        why: where they differ, the reason; otherwise what else is worth saying.
        chief: whether the overview of all experiments shows it.
    """

    what: str
    paper: str
    ours: str
    why: str = ""
    chief: bool = False


@dataclass(frozen=True)
class Table:
    """A table of text."""

    caption: str
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Figure:
    """A picture, by its path from the page."""

    file: str
    caption: str


@dataclass(frozen=True)
class Check:
    """A condition that defines the result, what was measured, and whether it holds."""

    what: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Report:
    """Everything that a page says about one experiment.

    Attributes:
        title: its heading.
        about: what is decomposed, and why.
        model: the model in one sentence.
        rows: the paper's figures beside ours.
        checks: what must hold.
        tables, figures: what else there is to see.
        remarks: paragraphs below them.
    """

    title: str
    about: str
    model: str
    rows: list[Row]
    checks: list[Check]
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def split(count: int) -> tuple[IntArray, IntArray]:
    """Four fifths of the rows to train on, and the others."""
    order = np.random.default_rng(SEED).permutation(count)
    cut = (4 * count) // 5
    return order[:cut], order[cut:]


def below(what: str, measured: float, limit: float) -> Check:
    """A number that must be small."""
    return Check(what, f"{measured:.1e} (at most {limit:.0e})", bool(measured <= limit))


def equal(what: str, measured: Any, expected: Any) -> Check:
    """Something that must come out exactly."""
    return Check(what, f"{measured} (expected {expected})", measured == expected)


def keep(report: Report, name: str, seconds: float, settings: Settings) -> Path:
    """Write what came out of an experiment as JSON, with the versions that made it."""
    path = settings.out / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"seconds": round(seconds, 1), "quick": settings.quick, "versions": versions()} | asdict(report)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def versions(libraries: Sequence[str] = LIBRARIES) -> dict[str, str]:
    """Versions of Python and of those libraries that are installed."""
    found = {"python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
