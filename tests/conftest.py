"""Settings every test shares: the same examples on every run, and where the real data lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The folder of the real tables, named by EXANOVA_DATA; tests that need it are skipped without it."""
    given = os.environ.get("EXANOVA_DATA")
    if not given:
        pytest.skip("EXANOVA_DATA does not name the folder with the real tables")
    if not Path(given).is_dir():
        pytest.fail(f"EXANOVA_DATA={given} is not a folder")
    return Path(given)
