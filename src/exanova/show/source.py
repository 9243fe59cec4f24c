"""What pictures and reports ask of a fitted decomposition, so that they need not know who answers."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from exanova.effects.certificate import Certificate
from exanova.effects.rows import Components
from exanova.effects.tables import Effects
from exanova.explain.explanation import Explanation
from exanova.fitted import Fitted
from exanova.select.report import Selection
from exanova.solve.plan import Plan
from exanova.typing import FloatArray


class Source(Protocol):
    """A fitted decomposition as its readers see it; ``FunctionalANOVA`` is one."""

    effects_: Effects
    certificate_: Certificate
    plan_: Plan
    selection_: Selection | None
    output_names_: tuple[str, ...]
    feature_names_in_: NDArray[np.object_]
    intercept_: FloatArray

    @property
    def ties(self) -> str:
        """How redundancy among subsets of one order was settled."""

    @property
    def _state(self) -> Fitted:
        """The same as plain arrays; raises if nothing was fitted."""

    def _bytes_at_rows(self, rows: int, row: int, chunk: int = 0) -> int:
        """Bytes of a query of ``row`` bytes a row."""

    def _fits_in_memory(self, what: str, size: int) -> None:
        """Raises if so many bytes are beyond the memory limit."""

    def predict(self, X: Any) -> FloatArray:
        """The fitted part at rows."""

    def explain(self, X: Any, model: Any = None, *, residual: Literal["report", "spread"] = "report") -> Explanation:
        """Shapley values of rows."""

    def components(self, X: Any) -> Components:
        """Contribution of every subset to rows."""

    def importance(self, kind: str = "l1", *, by: Literal["feature", "subset"] = "feature") -> Any:
        """Importances as a table."""
