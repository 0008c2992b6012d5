"""A small name server over TCP for one trial, for service names that a fault may keep from resolving.

A sandbox's own hosts file answers without any request that Holdfast could count or refuse. Names that a fault acts on
are therefore left out of it (`unresolved`) and looked up here instead.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Address
from typing import NamedTuple

from holdfast.model.scenario import Scenario
from holdfast.planes.injection.active_injection import name_step_plane
from holdfast.planes.tcp.sinks import sleep_ms
from holdfast.plugins import get_fault_traits
from holdfast.protocols.fault import Call, Failed, Reply
from holdfast.protocols.trial import TrialContext
from holdfast.streams.connection_end import ConnectionEnd
from holdfast.streams.connection_listener import ConnectionListener

RESOLV_CONF = "nameserver {host}\noptions use-vc timeout:2 attempts:1\n"
"""/etc/resolv.conf inside, for a plane that listens on port 53 of that loopback address."""
NSSWITCH_CONF = "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"
"""/etc/nsswitch.conf inside."""

_A = 1
_FAILED, _UNKNOWN = 2, 3
_LAST_ANSWER_S = 1.0
"""How long a client has to receive its last answer."""


class _Question(NamedTuple):
    name: str
    kind: int
    raw: bytes
    """As it was written."""


class NamePlane(ConnectionListener):
    """Answers for the names of one trial: `names` maps each to its service and address."""

    limit = 100

    def __init__(self, names: Mapping[str, tuple[str, str]], context: TrialContext) -> None:
        super().__init__()
        self._names = {name.lower(): target for name, target in names.items()}
        self._context = context

    async def serve(self, client: ConnectionEnd) -> None:
        waiting = bytearray()
        with suppress(OSError):  # the client disconnected
            while data := await client.read():
                waiting += data
                # Each message begins with its size. A client may send several without waiting, or one in pieces.
                while len(waiting) > 1 and len(waiting) >= (end := 2 + int.from_bytes(waiting[:2])):
                    answer = await self._answer(bytes(waiting[2:end]))
                    await client.write(struct.pack("!H", len(answer)) + answer)
                    del waiting[:end]
        client.close_within(_LAST_ANSWER_S)

    async def _answer(self, query: bytes) -> bytes:
        question = _parse_question(query)
        if question is None:
            return _build_head(query, 0, 0, _FAILED)
        service, address = self._names.get(question.name, ("", ""))
        if not service:
            return _build_head(query, 1, 0, _UNKNOWN) + question.raw
        if question.kind != _A:  # there is no such address, whatever the other lookup returns
            return _build_head(query, 1, 0) + question.raw
        try:
            call = Call(name_step_plane("name"), service, {}, self._context.injector.count("name", service))
            await self._context.injector.inject(call, _confirm_name, sleep_ms)
        except Failed:
            return _build_head(query, 1, 0, _UNKNOWN) + question.raw
        record = b"\xc0\x0c" + struct.pack("!HHIH", _A, 1, 0, 4) + IPv4Address(address).packed
        return _build_head(query, 1, 1) + question.raw + record


def list_unresolved(scenario: Scenario) -> frozenset[str]:
    """Return the services whose names a fault may keep from resolving: the sandbox's hosts file omits them."""
    on_services = (injection for injection in scenario.injections if injection.plane == "service")
    return frozenset(
        injection.target
        for injection in on_services
        if get_fault_traits(injection.plane, injection.mode).step == "name"
    )


def _parse_question(query: bytes) -> _Question | None:
    """Return the first question, if it can be parsed."""
    at, labels = 12, []
    while at < len(query) and query[at]:
        size = query[at]
        if size > 63:
            return None
        labels.append(query[at + 1 : at + 1 + size].decode("latin-1").lower())
        at += 1 + size
    if len(query) < at + 5 or not labels:
        return None
    kind = int.from_bytes(query[at + 1 : at + 3])
    return _Question(".".join(labels), kind, query[12 : at + 5])


def _build_head(query: bytes, questions: int, answers: int, code: int = 0) -> bytes:
    """Return an authoritative answer that claims recursion, because some resolvers require it."""
    flags = 0x8580 | code
    return query[:2].ljust(2, b"\0") + struct.pack("!HHHHH", flags, questions, answers, 0, 0)


async def _confirm_name(call: Call) -> Reply:
    return Reply("its address")
