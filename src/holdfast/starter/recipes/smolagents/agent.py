"""A smolagents tool-calling agent with two tools."""

import json

from smolagents import OpenAIModel, ToolCallingAgent, tool


@tool
def price(item: str) -> str:
    """What an item costs.

    Args:
        item: its name
    """
    with open("prices.json") as prices:
        return json.load(prices)[item]


@tool
def order(item: str) -> str:
    """Orders one.

    Args:
        item: its name
    """
    with open("orders.txt", "a") as orders:
        orders.write(f"{item}\n")
    return "order A17"


agent = ToolCallingAgent(tools=[price, order], model=OpenAIModel(model_id="gpt-4o"), max_steps=8, verbosity_level=0)


def answer(prompt: str) -> str:
    return str(agent.run(prompt))
