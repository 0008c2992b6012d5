"""`match` and `raises` of a fault, held against where the fault acts: what no call there has is an error."""

from __future__ import annotations

from msgspec import Struct

from holdfast.protocols.fault import read_traits
from holdfast.reading.reader import Reader
from holdfast.reading.words import near_hint
from holdfast.spec.fault_entry import FaultEntry
from holdfast.spec.sections.agent import AgentSection

_MODEL = ("model", "prompt", "stream", "tools")
"""What a model's call has; `planes/llm/gateway.py` gives it."""
_STATEMENT = ("verb", "table", "statement")
"""What a statement of a transaction has; `planes/tcp/service_connection.py` gives it."""
_CONNECTION = ("method", "url", "host", "port")
"""What a connection has before any request; `planes/http/connect.py` gives it."""


class CallArguments(Struct, frozen=True):
    """The arguments of the calls that a fault waits for; None: any name may be among them."""

    what: str
    names: tuple[str, ...] | None = None


def wire_keys(reader: Reader, agent: AgentSection, fault: FaultEntry, *, functions: bool) -> None:
    """Reports keys that no call of this fault can have; `functions`: it acts on the agent's Python functions."""
    _match(reader, agent, fault, functions)
    if fault.injection.raises is not None and not functions:
        node, path = fault.at.key("raises"), f"{fault.path}.raises"
        message = "names a Python exception, but this fault meets no Python function of the agent's"
        hint = "remove it: what the agent's own libraries make of the failure is what is raised"
        reader.error(node, path, message, hint=hint, code="conflict")


def _match(reader: Reader, agent: AgentSection, fault: FaultEntry, functions: bool) -> None:
    match = fault.injection.schedule.match
    if match is None:
        return
    node, path, calls = fault.at.get("match"), f"{fault.path}.match", _calls(agent, fault, functions)
    if calls.names == ():
        hint = "remove match: the fault then meets every such call"
        reader.error(fault.at.key("match"), path, f"{calls.what}, so this can never match", hint=hint, code="conflict")
        return
    for key in match:
        if calls.names is not None and key not in calls.names:
            hint = near_hint(key, calls.names, label="there are")
            message = f"{calls.what} no {key[:60]!r}, so this can never match"
            reader.error(node.key(key), f"{path}.{key}", message, hint=hint, code="unknown-key")
    if calls.names is None and "headers" in match and _on_web(fault):
        message = "looks at a field of the query or body; the request's headers cannot be matched"
        reader.warn(node.key("headers"), f"{path}.headers", message, code="lint-match-headers")


def _calls(agent: AgentSection, fault: FaultEntry, functions: bool) -> CallArguments:
    injection = fault.injection
    if agent.simulate == "answer":
        return CallArguments("an answer has no arguments", ())
    if functions:
        return CallArguments("the function has")
    if injection.plane == "llm":
        return CallArguments("a model's call has", _MODEL)
    if not read_traits(fault.made).on_calls:
        return CallArguments("a list of tools has no arguments", ())
    if injection.plane == "service":
        return _service_calls(fault)
    if injection.plane == "http" and _before_the_request(read_traits(fault.made).step, injection.target):
        return CallArguments("a connection has", _CONNECTION)
    return CallArguments("the call has")


def _service_calls(fault: FaultEntry) -> CallArguments:
    step = read_traits(fault.made).step
    if step in ("tls", "name"):
        return CallArguments("nothing has been said by then", ())
    return (
        CallArguments("a connection has", ("port",))
        if step == "connect"
        else CallArguments("a statement has", _STATEMENT)
    )


def _before_the_request(step: str, url: str) -> bool:
    """Whether it is met while a connection is made. Names are looked up for plain HTTP at the request itself."""
    return step == "tls" or (step == "name" and url.startswith("https://"))


def _on_web(fault: FaultEntry) -> bool:
    return fault.injection.plane == "http" or fault.injection.match_url is not None
