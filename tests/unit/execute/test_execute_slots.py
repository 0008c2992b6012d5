"""How many trials run at once."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast.execute.open_site import count_slots
from holdfast.model.spec import AgentSpec, Spec

CORES = os.cpu_count() or 1
STARTED: dict[str, Any] = {"type": "http", "endpoint": "http://h:{port}/", "command": "x"}
COMMAND: dict[str, Any] = {"type": "command", "command": "x"}


def test_trials_overlap_unless_they_share_an_agent_or_what_is_reset() -> None:
    for agent, asked, at_once in [
        (COMMAND, None, CORES),
        (COMMAND, 16, 16),
        ({"type": "http", "endpoint": "http://h/"}, None, 10),
        ({"type": "http", "endpoint": "http://h/", "reset_endpoint": "/r"}, 16, 1),
        ({"type": "http", "endpoint": "http://h/", "gateway": True}, 16, 1),
        (STARTED, 16, 16),
        ({**STARTED, "reset_endpoint": "/reset"}, 16, 16),
        ({**STARTED, "reset_endpoint": "http://h:{port}/reset"}, 16, 16),
        ({**STARTED, "reset_endpoint": "http://h:9/reset"}, 16, 1),
        ({**STARTED, "reset_function": "m:f"}, 16, 1),
        ({**COMMAND, "reset_function": "m:f"}, 16, 1),
        ({**COMMAND, "reset_endpoint": "http://h/reset"}, 16, 1),
        ({"type": "python", "endpoint": "m:f", "reset_function": "m:g"}, 16, 16),
        ({"type": "python", "endpoint": "m:f", "isolation": "inline"}, 16, 1),
    ]:
        assert count_slots(Spec(path="holdfast.yaml", agent=AgentSpec(**agent)), asked) == at_once, (
            agent,
            asked,
            at_once,
        )
        if asked is not None:  # the key of the file says the same as the option, which overrides it
            spec = Spec(path="holdfast.yaml", agent=AgentSpec(**agent), concurrency=asked)
            assert (count_slots(spec, None), count_slots(spec, 3)) == (at_once, min(3, at_once)), agent


@pytest.mark.parametrize("asked", [0, -1])
def test_fewer_than_one_is_our_own_mistake_and_never_passed_on(asked: int) -> None:
    with pytest.raises(AssertionError):
        count_slots(Spec(path="holdfast.yaml", agent=AgentSpec(**COMMAND)), asked)
