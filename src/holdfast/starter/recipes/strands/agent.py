"""A Strands agent with two tools."""

import json

from strands import Agent, tool
from strands.models.openai import OpenAIModel


def price(item: str) -> str:
    """What an item costs.

    Args:
        item: its name
    """
    with open("prices.json") as prices:
        return json.load(prices)[item]


def order(item: str) -> str:
    """Orders one.

    Args:
        item: its name
    """
    with open("orders.txt", "a") as orders:
        orders.write(f"{item}\n")
    return "order A17"


agent = Agent(model=OpenAIModel(model_id="gpt-4o"), tools=[tool(price), tool(order)], callback_handler=None)


def answer(prompt: str) -> str:
    return str(agent(prompt))
