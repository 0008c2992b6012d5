"""What a `custom` script is told on stdin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from holdfast.protocols import Service, World
from holdfast.service_kinds import port_of


class Reached(Struct, frozen=True):
    """Where a script reaches a service."""

    host: str
    port: int


class Context(Struct, frozen=True):
    """Document keys; every path and address is valid where the script runs."""

    sandbox_id: str
    workspace_path: str
    services: dict[str, Reached]
    audit_log_path: str
    trace_path: str
    task: dict[str, str]
    scenario_params: dict[str, Any]


def context(world: World, host: Mapping[str, tuple[str, int]] | None = None) -> Context:
    """The context for a script in the sandbox; or on this machine, where `host` is where its services are."""
    inside = host is None
    return Context(
        sandbox_id=f"sb-{world.trial.id}",
        workspace_path=world.sandbox.workspace if inside else str(world.sandbox.view()),
        services={name: _reached(world, one, host) for name, one in world.services.items()},
        audit_log_path=world.lend("audit.jsonl", world.audit_log.read_bytes()) if inside else str(world.audit_log),
        trace_path=world.lend("trace.jsonl", world.trace_log.read_bytes()) if inside else str(world.trace_log),
        task={"prompt": world.trial.task.prompt},
        scenario_params=world.trial.params,
    )


def _reached(world: World, service: Service, host: Mapping[str, tuple[str, int]] | None) -> Reached:
    spec = service.spec
    if host is not None:
        return Reached(*host[spec.name])
    name = world.environ.get(f"{spec.variable}_HOST", spec.name)
    return Reached(name, int(world.environ.get(f"{spec.variable}_PORT", port_of(spec))))
