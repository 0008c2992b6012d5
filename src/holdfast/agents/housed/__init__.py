"""Agents that run inside a sandbox: their world gives them a place, an environment and their sockets."""

from __future__ import annotations

from pathlib import Path

from holdfast.agents.housed.placing import MountedAgent, placed
from holdfast.model.spec import Scenario
from holdfast.protocols import Agent

__all__ = ["MountedAgent", "open_housed", "placed"]


def open_housed(seen: MountedAgent, root: Path, scenarios: tuple[Scenario, ...]) -> Agent:
    """The agent of a section whose references are resolved and whose files are placed."""
    agent = seen.agent
    if agent.in_python:
        from holdfast.agents.housed.python import HousedPython

        return HousedPython(seen, scenarios)
    if agent.type == "http":
        from holdfast.agents.housed.http import HousedHttp

        return HousedHttp(seen, root)
    from holdfast.agents.housed.command import HousedCommand

    return HousedCommand(seen)
