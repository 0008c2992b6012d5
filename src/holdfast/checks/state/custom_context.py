"""The input of a `custom` script on stdin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from holdfast.protocols.service import Service
from holdfast.protocols.world import World
from holdfast.service_kinds import get_port


class ScriptService(Struct, frozen=True):
    """The address of a service for a script."""

    host: str
    port: int


class Context(Struct, frozen=True, omit_defaults=True):
    """The document's keys; every path and address is valid where the script runs."""

    sandbox_id: str
    workspace_path: str
    services: dict[str, ScriptService]
    audit_log_path: str
    trace_path: str
    task: dict[str, str]
    scenario_params: dict[str, Any]
    reference: bool = False
    """True before the agent starts: the script solves the task itself, then checks the result."""


def build_context(world: World, host: Mapping[str, tuple[str, int]] | None = None) -> Context:
    """Return the context for a script in the sandbox.

    Or on this machine, with `host` as the addresses of its services.
    """
    inside = host is None
    return Context(
        sandbox_id=f"sb-{world.trial.id}",
        workspace_path=world.sandbox.workspace if inside else str(world.view()),
        services={name: _get_service_address(world, one, host) for name, one in world.services.items()},
        audit_log_path=_lend_log(world, world.audit_log) if inside else str(world.audit_log),
        trace_path=_lend_log(world, world.trace_log) if inside else str(world.trace_log),
        task={"prompt": world.trial.task.prompt},
        scenario_params=world.trial.params,
    )


def _lend_log(world: World, log: Path) -> str:
    """Return a log where the script can read it; empty before the agent has started."""
    return world.lend(log.name, log.read_bytes() if log.exists() else b"")


def _get_service_address(world: World, service: Service, host: Mapping[str, tuple[str, int]] | None) -> ScriptService:
    spec = service.spec
    if host is not None:
        return ScriptService(*host[spec.name])
    name = world.environ.get(f"{spec.variable}_HOST", spec.name)
    return ScriptService(name, int(world.environ.get(f"{spec.variable}_PORT", get_port(spec))))
