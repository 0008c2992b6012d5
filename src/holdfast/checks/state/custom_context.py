"""What a `custom` script is told on stdin."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from holdfast.protocols import Service, World
from holdfast.service_kinds import port_of


class Reached(Struct, frozen=True):
    """Where a script reaches a service. A Unix socket is a path, with the port that it stands for."""

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


def context(world: World, *, inside: bool) -> Context:
    """The context for a script in the sandbox, or on this machine."""
    return Context(
        sandbox_id=f"sb-{world.trial.id}",
        workspace_path=world.sandbox.workspace if inside else str(world.sandbox.view()),
        services={name: _reached(world, one, inside) for name, one in world.services.items()},
        audit_log_path=world.lend("audit.jsonl", world.audit_log.read_bytes()) if inside else str(world.audit_log),
        trace_path=world.lend("trace.jsonl", world.trace_log.read_bytes()) if inside else str(world.trace_log),
        task={"prompt": world.trial.task.prompt},
        scenario_params=world.trial.params,
    )


def _reached(world: World, service: Service, inside: bool) -> Reached:
    spec, upstream = service.spec, service.upstream
    if inside:
        host = world.environ.get(f"{spec.variable}_HOST", spec.name)
        return Reached(host, int(world.environ.get(f"{spec.variable}_PORT", port_of(spec))))
    return Reached(upstream, port_of(spec)) if isinstance(upstream, str) else Reached(*upstream)
