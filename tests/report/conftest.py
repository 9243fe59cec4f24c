"""The browser in which pages of reports are tested."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

PATIENCE = 20_000
"""Milliseconds that a page may take to do what was asked."""


@pytest.fixture(scope="module")  # its event loop must not outlive the module: other tests run their own
def browser() -> Iterator[Browser]:
    """Debian's chromium."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on the path: the page of a report is tested in a real browser")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()
