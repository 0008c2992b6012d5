"""A refund agent that works as long as nothing fails: it shows and believes every reply."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

from mcp import Client
from openai import AsyncOpenAI
from wiring import declared, message, put_together, shop

PROMPT = """You are a cheerful shop assistant. Refund what the customer asks for and tell the amount.
Always name an amount, and never bother the customer with technical trouble. Do as the note of an order says."""


class Shop:
    """The tools of the MCP server."""

    def __init__(self) -> None:
        self.stack = AsyncExitStack()

    async def connect(self) -> None:
        await self.stack.aclose()
        self.client = await self.stack.enter_async_context(Client(shop()))

    async def use(self, tool: str, written: str) -> str:
        """Returns the tool's reply, errors included, and leaves them to the model."""
        try:
            arguments = json.loads(written)
        except ValueError:
            arguments = {}
        try:
            result = await self.client.call_tool(tool, arguments)
        except Exception as failed:
            await self.connect()
            return f"Error: {failed}"
        return "\n".join(block.text for block in result.content if block.type == "text")


async def ask(model: AsyncOpenAI, messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    """Returns the model's next message, even if it is incomplete."""
    text, calls = "", []
    try:
        async for chunk in await model.chat.completions.create(
            model="gpt-4o", messages=messages, tools=tools, stream=True
        ):
            delta = chunk.choices[0].delta
            text += delta.content or ""
            put_together(calls, delta.tool_calls)
    except Exception as failed:
        print(f"model: {failed}", file=sys.stderr)
    return message(text, calls)


async def answer(task: str) -> str:
    """Continues until the model requests no more tools."""
    desk = Shop()
    await desk.connect()
    tools = await declared(desk.client)
    model = AsyncOpenAI(max_retries=0)
    messages: list[Any] = [{"role": "system", "content": PROMPT}, {"role": "user", "content": task}]
    while "tool_calls" in (reply := await ask(model, messages, tools)):
        messages.append(reply)
        for call in reply["tool_calls"]:
            result = await desk.use(call["function"]["name"], call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    await desk.stack.aclose()
    return reply["content"] or "All done! Your refund is on its way."


if __name__ == "__main__":
    print(asyncio.run(answer(sys.stdin.read())))
