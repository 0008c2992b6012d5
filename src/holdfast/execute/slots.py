"""Decides how many trials run in parallel."""

from __future__ import annotations

import os

from holdfast.model.spec import Spec

RUNNING_SERVER = 10
"""Parallel trials of an agent that is already running, unless the user says otherwise."""


def count_slots(spec: Spec, requested: int | None) -> int:
    """Return the number of parallel trials: as requested, else `advanced.concurrency`, else by the kind of agent."""
    agent = spec.agent
    if agent.runs_alone:
        return 1
    requested = requested if requested is not None else spec.concurrency
    if requested is not None:
        assert requested >= 1, f"{requested} trials in parallel: every caller rejects that"
        return requested
    return RUNNING_SERVER if agent.type == "http" and not agent.launched else os.cpu_count() or 1
