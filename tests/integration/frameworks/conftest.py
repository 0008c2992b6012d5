"""A framework's agent in the three ways that it can be run, each once a file."""

from __future__ import annotations

import pytest
from framework_kit import Folder, Outcome
from framework_runs import SERVED_WEATHER, Framework
from framework_weather import PLAIN_WEATHER, STARTED_WEATHER


@pytest.fixture(scope="module")
def framework(request: pytest.FixtureRequest) -> Framework:
    """The one of the file: its `FRAMEWORK`."""
    return request.module.FRAMEWORK


@pytest.fixture(scope="module")
def folder(framework: Framework, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("framework") / "project", framework.agent, framework.model)


@pytest.fixture(scope="module")
def asked(framework: Framework, folder: Folder) -> Outcome:
    """Imported once, forked for every trial."""
    return folder.run(folder.python(**framework.options), PLAIN_WEATHER, "--concurrency", "4")


@pytest.fixture(scope="module")
def served(folder: Folder) -> Outcome:
    """One server for all trials; it streams."""
    return folder.run(folder.http(), SERVED_WEATHER, "--concurrency", "1")


@pytest.fixture(scope="module")
def started(folder: Folder) -> Outcome:
    """A program for every trial."""
    return folder.run(folder.command(), STARTED_WEATHER, "--no-preflight")
