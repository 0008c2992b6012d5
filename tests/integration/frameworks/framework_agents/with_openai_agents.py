"""An agent of the OpenAI Agents SDK. Its client is made when it is imported."""

import json
import os
import sys

from agents import Agent, Runner, function_tool, set_default_openai_client
from agents.tracing import get_trace_provider
from openai import AsyncOpenAI

set_default_openai_client(AsyncOpenAI())


def look_up(query: str) -> str:
    """Looks up a company's figures."""
    return json.dumps({"company": "ACME", "revenue": 4200})


agent = Agent(
    name="Analyst",
    instructions="Answer from search alone.",
    model=os.environ["AGENT_MODEL"],
    tools=[function_tool(look_up, name_override="search")],
)


def answer(prompt: str) -> str:
    return Runner.run_sync(agent, prompt, max_turns=5).final_output


async def answer_streamed(prompt: str) -> str:
    result = Runner.run_streamed(agent, prompt, max_turns=5)
    try:
        async for _ in result.stream_events():
            pass
    finally:
        get_trace_provider().force_flush()  # as a worker does after each task, so that no trace is lost
    return result.final_output


if __name__ == "__main__":
    print(answer(sys.stdin.read()))
