"""A tool calling agent of smolagents. Its model's client is made when it is imported."""

import json
import os
import sys

from smolagents import OpenAIModel, ToolCallingAgent, tool


@tool
def search(query: str) -> str:
    """Looks up a company's figures.

    Args:
        query: The company.
    """
    return json.dumps({"company": "ACME", "revenue": 4200})


model = OpenAIModel(model_id=os.environ["AGENT_MODEL"])


def run(prompt: str, stream: bool) -> str:
    agent = ToolCallingAgent(tools=[search], model=model, max_steps=4, verbosity_level=0, stream_outputs=stream)
    return str(agent.run(prompt))


def answer(prompt: str) -> str:
    return run(prompt, stream=False)


def answer_streamed(prompt: str) -> str:
    return run(prompt, stream=True)


if __name__ == "__main__":
    print(answer(sys.stdin.read()))
