"""A refund agent that says only what it knows: a few tries, one refund, and else "data unavailable"."""

import asyncio
import hashlib
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

from mcp import Client, MCPError
from openai import AsyncOpenAI, OpenAIError
from wiring import declared, message, put_together, shop

TRIES, TURNS = 3, 5
TOOL_LIMIT_S, LIMIT_S = 4, 60
END = "DONE"
PROMPT = f"""You are a shop assistant. Look the order up, refund its total, and tell the amount and the receipt.
Name no amount that a tool did not give you: say "data unavailable" instead. End your last message with {END}."""


class Unavailable(Exception):
    """Something that is needed could not be had."""


class Shop:
    """The tools of the MCP server. Their replies are checked; the model sees only what it needs of them."""

    def __init__(self) -> None:
        self.stack = AsyncExitStack()
        self.order: dict[str, Any] = {}
        self.refunded: dict[str, Any] = {}

    async def connect(self) -> None:
        await self.stack.aclose()
        self.client = await self.stack.enter_async_context(Client(shop(), read_timeout_seconds=LIMIT_S))

    async def use(self, tool: str, order_id: str, amount: float | None = None) -> dict[str, Any]:
        """What the model is told of a tool's reply."""
        if tool == "find_order":
            self.order = await self._reply(tool, {"order_id": order_id})
            return {name: self.order[name] for name in ("order_id", "total")}
        if (tool, order_id, amount) != ("refund", self.order.get("order_id"), self.order.get("total")):
            raise Unavailable("the model wants something else than a refund of the order's total")
        once = {"idempotency_key": f"refund-{order_id}"}  # the same whenever it is tried again
        self.refunded = await self._reply(tool, {"order_id": order_id, "amount": amount, **once})
        return {name: self.refunded[name] for name in ("order_id", "refunded", "receipt")}

    async def _reply(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        for _ in range(TRIES):
            try:
                result = await self.client.call_tool(tool, arguments, read_timeout_seconds=TOOL_LIMIT_S)
            except MCPError:  # late, lost, or no longer known to the server
                await self.connect()
                continue
            if is_whole(record := result.structured_content or {}) and record["order_id"] == arguments["order_id"]:
                return record
        raise Unavailable(f"no reply to {tool} that can be relied on")

    def in_words(self) -> str:
        """What is known for certain."""
        if not self.refunded:
            return "Data unavailable. No refund was confirmed; please ask again later."
        return "Order {order_id} was refunded. The amount is ${refunded}, receipt {receipt}.".format(**self.refunded)


def is_whole(record: dict[str, Any]) -> bool:
    """Whether the shop's seal fits. A note is not under the seal."""
    told = {name: value for name, value in record.items() if name not in ("note", "seal")}
    return record.get("seal") == hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]


async def ask(model: AsyncOpenAI, messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    """The model's next message, whole: calls that can be read, or a text with its end."""
    for _ in range(TRIES):
        text, calls = "", []
        stream = await model.chat.completions.create(model="gpt-4o", messages=messages, tools=tools, stream=True)
        try:
            async for chunk in stream:
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    put_together(calls, choice.delta.tool_calls)
            [json.loads(call["function"]["arguments"]) for call in calls]
        except (OpenAIError, ValueError):
            continue
        if calls or text.endswith(END):
            return message(text, calls)
    raise Unavailable("no whole message of the model")


async def converse(desk: Shop, task: str) -> str:
    """The model's last message."""
    await desk.connect()
    tools = await declared(desk.client)
    model = AsyncOpenAI(timeout=LIMIT_S)  # it tries again twice itself where a request is refused
    messages: list[Any] = [{"role": "system", "content": PROMPT}, {"role": "user", "content": task}]
    for _ in range(TURNS):
        said = await ask(model, messages, tools)
        if "tool_calls" not in said:
            return str(said["content"]).removesuffix(END).strip()
        messages.append(said)
        for call in said["tool_calls"]:
            told = await desk.use(call["function"]["name"], **json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(told)})
    raise Unavailable("the model comes to no end")


async def answer(task: str) -> str:
    """What the model says, if it agrees with what is known."""
    desk = Shop()
    try:
        said = await converse(desk, task)
    except (Unavailable, OpenAIError, MCPError, TypeError) as failed:
        print(f"gave up: {failed}", file=sys.stderr)
        said = ""
    await desk.stack.aclose()
    return said if desk.refunded.get("receipt", END) in said else desk.in_words()


if __name__ == "__main__":
    print(asyncio.run(answer(sys.stdin.read())))
