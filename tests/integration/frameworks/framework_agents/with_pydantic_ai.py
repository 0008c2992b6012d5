"""An agent of Pydantic AI. It and its client are made when it is imported."""

import os
import sys

from pydantic_ai import Agent

agent = Agent(f"openai-chat:{os.environ['AGENT_MODEL']}", instructions="Answer from search alone.")


@agent.tool_plain
def search(query: str) -> dict:
    """Looks up a company's figures."""
    return {"company": "ACME", "revenue": 4200}


def answer(prompt: str) -> str:
    return agent.run_sync(prompt).output


async def answer_streamed(prompt: str) -> str:
    async with agent.run_stream(prompt) as response:
        return await response.get_output()


if __name__ == "__main__":
    print(answer(sys.stdin.read()))
