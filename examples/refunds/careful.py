"""A refund agent that says only what it knows: a few retries, one refund, otherwise "data unavailable"."""

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
    """The shop or the model did not give what the task needs."""


class Shop:
    """The tools of the MCP server. Their replies are checked, and the model sees only the parts it needs."""

    def __init__(self) -> None:
        self.stack = AsyncExitStack()
        self.order: dict[str, Any] = {}
        self.refunded: dict[str, Any] = {}

    async def connect(self) -> None:
        await self.stack.aclose()
        self.client = await self.stack.enter_async_context(Client(shop(), read_timeout_seconds=LIMIT_S))

    async def use(self, tool: str, order_id: str, amount: float | None = None) -> dict[str, Any]:
        """Returns the part of a tool's reply that the model gets."""
        if tool == "find_order":
            self.order = await self._reply(tool, {"order_id": order_id})
            return {name: self.order[name] for name in ("order_id", "total")}
        if (tool, order_id, amount) != ("refund", self.order.get("order_id"), self.order.get("total")):
            raise Unavailable("the model wants something else than a refund of the order's total")
        once = {"idempotency_key": f"refund-{order_id}"}  # the same for every retry
        self.refunded = await self._reply(tool, {"order_id": order_id, "amount": amount, **once})
        return {name: self.refunded[name] for name in ("order_id", "refunded", "receipt")}

    async def _reply(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        for _ in range(TRIES):
            try:
                result = await self.client.call_tool(tool, arguments, read_timeout_seconds=TOOL_LIMIT_S)
            except MCPError:  # late, lost, or the server lost the session
                await self.connect()
                continue
            if is_complete(record := result.structured_content or {}) and record["order_id"] == arguments["order_id"]:
                return record
        raise Unavailable(f"no reply to {tool} that can be relied on")

    def in_words(self) -> str:
        """Returns what is known for certain."""
        if not self.refunded:
            return "Data unavailable. No refund was confirmed; please ask again later."
        return "Order {order_id} was refunded. The amount is ${refunded}, receipt {receipt}.".format(**self.refunded)


def is_complete(record: dict[str, Any]) -> bool:
    """Returns whether the shop's seal is right. The seal does not cover the note."""
    sealed = {name: value for name, value in record.items() if name not in ("note", "seal")}
    return record.get("seal") == hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()[:8]


async def ask(model: AsyncOpenAI, messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    """Returns the model's next complete message: readable tool calls, or a text with its end marker."""
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
    raise Unavailable("the model sent no complete message")


async def converse(desk: Shop, task: str) -> str:
    """Returns the model's last message."""
    await desk.connect()
    tools = await declared(desk.client)
    model = AsyncOpenAI(timeout=LIMIT_S)  # it retries a refused request twice by itself
    messages: list[Any] = [{"role": "system", "content": PROMPT}, {"role": "user", "content": task}]
    for _ in range(TURNS):
        reply = await ask(model, messages, tools)
        if "tool_calls" not in reply:
            return str(reply["content"]).removesuffix(END).strip()
        messages.append(reply)
        for call in reply["tool_calls"]:
            result = await desk.use(call["function"]["name"], **json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
    raise Unavailable("the model does not end")


async def answer(task: str) -> str:
    """Returns the model's text if it agrees with what is known."""
    desk = Shop()
    try:
        text = await converse(desk, task)
    except (Unavailable, OpenAIError, MCPError, TypeError) as failed:
        print(f"gave up: {failed}", file=sys.stderr)
        text = ""
    await desk.stack.aclose()
    return text if desk.refunded.get("receipt", END) in text else desk.in_words()


if __name__ == "__main__":
    print(asyncio.run(answer(sys.stdin.read())))
