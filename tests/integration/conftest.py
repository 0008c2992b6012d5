"""Hosts of agents are forked: what is tried here is what they meet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from warm_hosts import warm_hosts


@pytest.fixture(autouse=True)
def _warm_hosts() -> Iterator[None]:
    with warm_hosts():
        yield


@pytest.fixture(scope="module")
def place() -> Iterator[Any]:
    """A gateway whose model is scripted, for the client libraries of the providers."""
    from gateway_kit import SCRIPTED, site_planes  # only its tests need the server that it imports

    with site_planes(SCRIPTED) as opened:
        yield opened


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries wait less between their attempts where nobody tells them how long."""
    for library in ("anthropic", "openai"):
        monkeypatch.setattr(f"{library}._base_client.INITIAL_RETRY_DELAY", 0.005)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from view_kit import ARGUMENTS, CHROMIUM  # only the tests of pages need it

    if not CHROMIUM.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{CHROMIUM} is missing: run tests/setup.sh as root")
        pytest.skip(f"{CHROMIUM} is missing: run tests/setup.sh as root")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield opened
        opened.close()
