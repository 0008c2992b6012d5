"""Hosts of agents are forked: what is tried here is what they meet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warm_hosts import warm_hosts


@pytest.fixture(autouse=True)
def _warm_hosts() -> Iterator[None]:
    with warm_hosts():
        yield
