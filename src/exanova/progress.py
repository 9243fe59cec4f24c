"""A progress line in the terminal for anything that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from typing import TextIO

PATIENCE = 2.0
"""Seconds before the first line is written."""


class Progress:
    """Counts steps of a named phase and rewrites one line of standard error.

    ``enabled=None`` means "when standard error is a terminal".

    >>> progress = Progress(enabled=False)
    >>> progress.phase("counting", 10)
    >>> progress.step(3)
    >>> progress.close()
    """

    def __init__(self, enabled: bool | None = None, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._enabled = self._stream.isatty() if enabled is None else enabled
        self._started = time.monotonic()
        self._shown = 0.0
        self._name, self._total, self._done = "", 0, 0

    def phase(self, name: str, total: int = 0) -> None:
        """Begin a phase of ``total`` steps (0: unknown)."""
        self._name, self._total, self._done = name, total, 0
        self._show()

    def step(self, steps: int = 1, note: str = "") -> None:
        """Record ``steps`` more steps; ``note`` is shown next to their number."""
        self._done += steps
        self._show(note)

    def close(self) -> None:
        """Clear the line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = 0.0

    def _show(self, note: str = "") -> None:
        now = time.monotonic()
        if not self._enabled or now - self._started < PATIENCE or now - self._shown < 0.1:
            return
        self._shown = now
        count = f" {self._done:,}/{self._total:,}" if self._total else (f" {self._done:,}" if self._done else "")
        line = f"exanova: {self._name}{count} {note} [{now - self._started:.0f} s]"
        self._stream.write("\r\x1b[K" + line)
        self._stream.flush()
