"""A session of the MCP plane without any transport, and a relay's line without a relay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from holdfast.model.scenario import Injection
from holdfast.planes.mcp import rpc
from holdfast.planes.mcp.session import ClientOutcome, McpSession
from holdfast.planes.mcp.trial_state import McpTrialState
from planes_kit import FakeContext


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def call(name: str = "search", id: Any = 1, **arguments: Any) -> bytes:
    return line(id=id, method="tools/call", params={"name": name, "arguments": arguments})


class Talk:
    """Requests to a server that answers as it is told; look at `trip`, `visit` and `asked` afterwards."""

    def __init__(self, injections: Sequence[Injection] = (), **answer: Any) -> None:
        self.context = FakeContext(injections)
        self.visit = McpTrialState()
        self.session = McpSession("server", self.context, self.visit)
        self.asked: list[dict[str, Any]] = []
        self.answer = answer

    def say(self, raw: bytes) -> ClientOutcome:
        message = rpc.read_message(raw)
        assert message is not None
        request = rpc.read_request(message, raw)
        assert request is not None
        assert self.session.can_answer(request)
        return asyncio.run(self.session.answer(request, self._ask))

    async def _ask(self, request: rpc.RpcRequest) -> rpc.RpcAnswer:
        self.asked.append(json.loads(request.raw))
        raw = line(id=request.id, **self.answer)
        message = rpc.read_message(raw)
        assert message is not None
        return rpc.RpcAnswer(message, raw)


class FakeLine:
    """Both ends of a relay's connection: what it sends is given, what it is sent is kept."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()
        self.got: list[bytes] = []
        self.closed = False

    async def read(self) -> bytes:
        return await self.sent.get()

    async def write(self, data: bytes) -> None:
        if self.closed:
            raise ConnectionResetError
        self.got.append(data)

    def close(self) -> None:
        self.closed = True

    def says(self, *lines: bytes) -> None:
        for one in lines:
            self.sent.put_nowait(one + b"\n")
