"""Explains why a fault can never be met: its sandbox is missing, or no call can satisfy its `match`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from holdfast.model.scenario import Injection
from holdfast.model.world import SERVICE_DOMAIN, WorldSpec
from holdfast.protocols.fault import read_traits
from holdfast.reading.reader import Reader
from holdfast.reading.words import suggest_name
from holdfast.service_kinds import get_protocol_traits
from holdfast.spec.rules.fault_entry import FaultEntry
from holdfast.spec.sections.agent import AgentSection


class Obstacle(Struct, frozen=True):
    """The reason why a fault cannot be met, and the remedy."""

    message: str
    hint: str


_OUTSIDE = Obstacle(
    "this fault can never be met: the agent runs without a sandbox, directly on this machine",
    "add agent.sandbox: true, or a section of the world such as services",
)
_ELSEWHERE = Obstacle(
    "this fault can never be met: Holdfast did not start this HTTP agent, so it is not in a sandbox",
    "start it with agent.command",
)
_IN_OURS = Obstacle(
    "this fault can never be met: an inline agent runs in Holdfast's own process, without a sandbox",
    "use agent.isolation: fresh",
)
_NO_DISK = Obstacle(
    "this fault can never be met: the workspace has no disk of its own to fill",
    "give it one: resources: {disk: 100Mi}",
)
_NO_WRITES = Obstacle(
    "this fault waits for a db_write, but the spec has no database",
    "add a postgres or mysql service, or wait for another event",
)


def find_world_obstacle(
    injection: Injection, plugin: Any, agent: AgentSection, world: WorldSpec | None
) -> Obstacle | None:
    """Return why nothing can meet a fault of a service or of the machine.

    None if something can, or only the run can tell.
    """
    if agent.kind == "http" and not agent.is_started_by_us:
        return _ELSEWHERE
    if agent.isolation == "inline":
        return _IN_OURS
    if world is None:  # a missing service is a separate error
        return None if injection.plane == "service" else _OUTSIDE
    if injection.plane == "service":
        return _find_service_obstacle(injection, plugin, world)
    if read_traits(plugin).disturbs == "disk" and world.resources.disk is None:
        return _NO_DISK
    databases = any(get_protocol_traits(service).wire for service in world.services)
    return _NO_WRITES if injection.settings.get("on_event") == "db_write" and not databases else None


def _find_service_obstacle(injection: Injection, plugin: Any, world: WorldSpec) -> Obstacle | None:
    service = next((service for service in world.services if service.name == injection.target), None)
    if service is None or not read_traits(plugin).sql_only or get_protocol_traits(service).wire:
        return None
    message = f"this fault can never be met: {service.name} is not a database whose protocol Holdfast reads"
    return Obstacle(message, "use a fault of the network, such as reset_peer, or a postgres or mysql service")


def find_connection_obstacle(injection: Injection, plugin: Any, world: WorldSpec | None) -> Obstacle | None:
    """Return why nothing can meet a fault of TLS connections to a service: the agent reaches it without the proxy."""
    if world is None or not _is_before_request(injection, plugin):
        return None
    host = urlsplit(injection.target).hostname or ""
    name = world.network.dns_overrides.get(host, host).removesuffix(SERVICE_DOMAIN)
    if name not in [service.name for service in world.services]:
        return None
    message = f"this fault can never be met: the agent reaches the service {name} directly, without the HTTP proxy"
    return Obstacle(message, f"write service_faults: [{{service: {name}, mode: {injection.mode}}}]")


def _is_before_request(injection: Injection, plugin: Any) -> bool:
    # While a connection is made there is no request. For plain HTTP, names are looked up at the request itself.
    step = read_traits(plugin).step
    is_early = step == "tls" or (step == "name" and injection.target.startswith("https://"))
    return injection.plane == "http" and is_early


_MODEL = ("model", "prompt", "stream", "tools")
"""Arguments of a model call; `planes/llm/gateway.py` sets them."""
_STATEMENT = ("verb", "table", "statement")
"""Arguments of a statement in a transaction; `planes/tcp/plane.py` sets them."""
_CONNECTION = ("method", "url", "host", "port")
"""Arguments of a connection before any request; `planes/http/connect.py` sets them."""


class CallArguments(Struct, frozen=True):
    """The arguments of the calls that a fault waits for; None: any name is possible."""

    what: str
    names: tuple[str, ...] | None = None


def report_wire_keys(reader: Reader, agent: AgentSection, fault: FaultEntry, *, functions: bool) -> None:
    """Report keys that no call of this fault can have; `functions`: it acts on the agent's Python functions."""
    _check_match(reader, agent, fault, functions)
    if fault.injection.raises is not None and not functions:
        message = "names a Python exception, but this fault does not act on a Python function of the agent"
        hint = "remove it: the agent's own libraries choose the exception"
        reader.report_conflict(fault.at.get_key("raises"), message, hint=hint)


def _check_match(reader: Reader, agent: AgentSection, fault: FaultEntry, functions: bool) -> None:
    match = fault.injection.schedule.match
    if match is None:
        return
    node, calls = fault.at.get("match"), _get_arguments(agent, fault, functions)
    if calls.names == ():
        hint = "remove match: the fault then meets every such call"
        reader.report_conflict(fault.at.get_key("match"), f"{calls.what}, so this can never match", hint=hint)
        return
    for key in match:
        if calls.names is not None and key not in calls.names:
            hint = suggest_name(key, calls.names, label="there are")
            message = f"{calls.what} no {key[:60]!r}, so this can never match"
            reader.report(node.get_key(key), message, hint=hint, code="unknown-key")
    on_web = fault.injection.plane == "http" or fault.injection.match_url is not None
    if calls.names is None and "headers" in match and on_web:
        message = "looks at a field of the query or body; the request's headers cannot be matched"
        reader.warn(node.get_key("headers"), message, code="lint-match-headers")


def _get_arguments(agent: AgentSection, fault: FaultEntry, functions: bool) -> CallArguments:
    injection = fault.injection
    if agent.simulate == "answer":
        return CallArguments("an answer has no arguments", ())
    if functions:
        return CallArguments("the function has")
    if injection.plane == "llm":
        return CallArguments("a model's call has", _MODEL)
    if not read_traits(fault.plugin).on_calls:
        return CallArguments("a list of tools has no arguments", ())
    step = read_traits(fault.plugin).step
    if injection.plane == "service":
        if step in ("tls", "name"):
            return CallArguments("the agent has not answered by then", ())
        arguments = CallArguments("a statement has", _STATEMENT)
        return CallArguments("a connection has", ("port",)) if step == "connect" else arguments
    if _is_before_request(injection, fault.plugin):
        return CallArguments("a connection has", _CONNECTION)
    return CallArguments("the call has")
