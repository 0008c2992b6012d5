"""Why faults of services and of the machine cannot be met."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from holdfast.model.scenario import Injection
from holdfast.model.world import WorldSpec
from holdfast.protocols.fault import read_traits
from holdfast.service_kinds import spoken
from holdfast.spec.sections.agent import AgentSection


class Obstacle(Struct, frozen=True):
    """Why a fault cannot be met, and the ways out."""

    message: str
    hint: str


_OUTSIDE = Obstacle(
    "nothing can meet this fault: the agent runs without a sandbox, on this machine as it is",
    "add agent.sandbox: true, or a section of the world such as services",
)
_ELSEWHERE = Obstacle(
    "nothing can meet this fault: Holdfast did not start this HTTP agent, so it is in no sandbox",
    "start it with agent.command",
)
_IN_OURS = Obstacle(
    "nothing can meet this fault: an inline agent runs in Holdfast's own process, in no sandbox",
    "use agent.isolation: fresh",
)
_NO_DISK = Obstacle(
    "nothing can meet this fault: the workspace has no disk of its own that could be full",
    "give it one: resources: {disk: 100Mi}",
)
_NO_WRITES = Obstacle(
    "this fault waits for a db_write, and there is no database that could have one",
    "add a postgres or mysql service, or wait for another event",
)


def world_obstacle(injection: Injection, made: Any, agent: AgentSection, world: WorldSpec | None) -> Obstacle | None:
    """Why nothing can meet a fault of a service or of the machine; None if it can, or if only the run can tell."""
    if agent.kind == "http" and not agent.started_by_us:
        return _ELSEWHERE
    if agent.isolation == "inline":
        return _IN_OURS
    if world is None:  # a service that is not there is an error of its own
        return None if injection.plane == "service" else _OUTSIDE
    if injection.plane == "service":
        return _service_obstacle(injection, made, world)
    if read_traits(made).disturbs == "disk" and world.resources.disk is None:
        return _NO_DISK
    databases = any(spoken(service).wire for service in world.services)
    return _NO_WRITES if injection.settings.get("on_event") == "db_write" and not databases else None


def _service_obstacle(injection: Injection, made: Any, world: WorldSpec) -> Obstacle | None:
    service = next((one for one in world.services if one.name == injection.target), None)
    if service is None or not read_traits(made).sql_only or spoken(service).wire:
        return None
    message = f"nothing can meet this fault: {service.name} is no database whose messages can be read"
    return Obstacle(message, "use a fault of the network, as reset_peer, or a postgres or mysql service")
