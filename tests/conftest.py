"""Makes the kits in this folder importable for every test below it."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

settings.register_profile("shared machine", deadline=None)  # a slow moment of the machine is no finding
settings.load_profile("shared machine")
pytest.register_assert_rewrite("framework_kit", "framework_runs")


def pytest_collection_finish() -> None:
    """Thousands of tests are objects that live to the end: a test that collects garbage need not look at them."""
    gc.collect()
    gc.freeze()
