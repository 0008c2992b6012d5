"""Agents with a planted defect are many, and their hosts are not the point."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warm_hosts import warm_hosts


@pytest.fixture(autouse=True)
def _warm_hosts() -> Iterator[None]:
    with warm_hosts():
        yield
