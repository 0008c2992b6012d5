"""A kind of service as somebody else would write it: one file outside of the package."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec, ServiceTraits
from holdfast.protocols.service import ServicePlace


@dataclass(frozen=True)
class Echo:
    """Sends back what it gets."""

    prefix: Annotated[str, Meta(description="What comes before it.")] = ""

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=7, schemes=("echo",), variable="ECHO_URL")

    async def open_keeper(self, spec: ServiceSpec, place: ServicePlace) -> EchoKeeper:
        return EchoKeeper(spec, self.prefix)


@dataclass(frozen=True)
class EchoImage(Echo):
    """The same, for an image."""

    traits: ClassVar[ServiceTraits] = ServiceTraits(port=8, images=("echo-server",))


class NoTraits:
    """Lacks what makes a kind."""


class EchoKeeper:
    def __init__(self, spec: ServiceSpec, prefix: str) -> None:
        self.spec = spec
        self.prefix = prefix

    async def provide(self, trial: Trial, *, alone: bool) -> EchoService:
        service = EchoService(self.spec, self.prefix.encode())
        await service.open()
        return service

    async def close(self) -> None:
        """Nothing is kept."""


class EchoService:
    def __init__(self, spec: ServiceSpec, prefix: bytes) -> None:
        self.spec = spec
        self.upstream: tuple[str, int] | str = ""
        self.variables: Mapping[str, str] = {"URL": "echo://{host}:{port}"}
        self.notes: tuple[str, ...] = ()
        self.prefix = prefix

    async def open(self) -> None:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.upstream = self.server.sockets[0].getsockname()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            writer.write(self.prefix + await reader.readline())

    async def close(self) -> None:
        self.server.close()
