"""Ids of trials: 12 hex digits over the canonical JSON of what decides a trial.

The JSON is joined from parts encoded once, because a plan of 100,000 trials repeats the same few parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from holdfast.model.codec import encode_canonical, to_builtins
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.spec.secrecy import mask_keys


def encode_agent(agent: AgentSpec) -> bytes:
    """Return the agent section for an id: without its position, and without literal keys."""
    return encode_canonical(mask_keys(to_builtins(replace(agent, position=None)), "agent"))


def encode_head(kind: str, scenario: Scenario) -> bytes:
    """Return the opening of the array, up to the task."""
    return b"[%b,%b," % (encode_canonical(kind), encode_canonical(scenario.content))


def encode_middle(task: Task, params: Mapping[str, Any]) -> bytes:
    """Encode the task and the params, up to the replica."""
    return b"%b,%b," % (encode_canonical(task), encode_canonical(params))


def encode_tail(invariant: str, agent_json: bytes, seed: int) -> bytes:
    """Return the part after the replica."""
    return b",%b,%b,%d]" % (encode_canonical(invariant), agent_json, seed)


def encode_identity(
    kind: str,
    scenario: Scenario,
    task: Task,
    params: Mapping[str, Any],
    replica: int,
    invariant: str,
    agent_json: bytes,
    seed: int,
) -> bytes:
    """Return the canonical JSON array of what decides a trial: its id is the digest.

    `invariant` is `*` if the trial serves every rule of its scenario.
    """
    return b"%b%b%d%b" % (
        encode_head(kind, scenario),
        encode_middle(task, params),
        replica,
        encode_tail(invariant, agent_json, seed),
    )
