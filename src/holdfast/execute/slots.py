"""Decides how many trials run in parallel."""

from __future__ import annotations

import os

from holdfast.model.spec import AgentSpec, Spec


def slots(spec: Spec, asked: int | None) -> int:
    """The number of parallel trials: as requested, else `advanced.concurrency` for HTTP, else the number of cores."""
    agent = spec.agent
    if agent.gateway or (agent.isolation == "inline" and agent.in_python):
        return 1
    if _reset_for_all(agent):
        return 1
    if asked is not None:
        assert asked >= 1, f"{asked} trials at once: every door refuses that"
        return asked
    return spec.concurrency if agent.type == "http" and not agent.launched else os.cpu_count() or 1


def _reset_for_all(agent: AgentSpec) -> bool:
    """Whether a reset affects state that all trials share, so they may not overlap.

    A Python agent is reset in its own process, a started server on its own port; a separate function, or a fixed
    address, belongs to none of them in particular.
    """
    if agent.in_python or not agent.has_reset:
        return False
    if agent.type != "http" or not agent.launched or agent.reset_function is not None:
        return True
    url = agent.reset_endpoint or ""
    return "://" in url and "{port}" not in url
