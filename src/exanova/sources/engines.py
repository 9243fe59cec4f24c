"""Rows that an engine holds: pyarrow datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from exanova.sources.parts import Source


def engine_source(X: Any) -> Callable[[], Source] | None:
    """How to see ``X`` as a source; ``None`` if no engine is known that holds it."""
    return None
