"""A code agent of smolagents: its tools are called by the code that its model writes."""

import json
import os
import sys

from smolagents import CodeAgent, OpenAIModel, tool


@tool
def search(query: str) -> str:
    """Looks up a company's figures.

    Args:
        query: The company.
    """
    return json.dumps({"company": "ACME", "revenue": 4200})


if __name__ == "__main__":
    model = OpenAIModel(model_id=os.environ["AGENT_MODEL"])
    print(CodeAgent(tools=[search], model=model, max_steps=3, verbosity_level=0).run(sys.stdin.read()))
