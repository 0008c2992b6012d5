"""How hosts of agents start is what is tested here, so none is forked from a warm one."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _warm_hosts() -> None:
    """Replaces the fixture of the folder above."""
