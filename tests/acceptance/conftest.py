"""Fixtures of the acceptance tests: a project folder, and an HTTP agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cli import AGENT, MakeProject, Project, Serve, serving

from warm_hosts import warm_hosts


@pytest.fixture(autouse=True)
def _warm_hosts() -> Iterator[None]:
    with warm_hosts():
        yield


@pytest.fixture(autouse=True)
def _no_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the surroundings set must not change what is printed."""
    for name in (
        "GITHUB_ACTIONS",
        "GITHUB_OUTPUT",
        "GITHUB_STEP_SUMMARY",
        "GITHUB_WORKSPACE",
        "NO_COLOR",
        "FORCE_COLOR",
        "CI",
        "COLUMNS",
        "HOLDFAST_DEBUG",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> MakeProject:
    """Makes a project folder from a spec and the source of an agent."""

    def make(spec: Mapping[str, Any] | str, agent: str = AGENT, *, name: str = "project") -> Project:
        return Project(tmp_path / name, spec, agent)

    return make


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts an HTTP agent that answers as the function says; ended with the test."""
    with ExitStack() as servers:
        yield lambda answer: servers.enter_context(serving(answer))
