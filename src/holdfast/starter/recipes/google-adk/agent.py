"""A Google ADK agent with two tools."""

import json

from google.adk.agents import Agent
from google.adk.runners import InMemoryRunner


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


agent = Agent(name="shop", model="gemini-2.5-flash", tools=[price, order])


async def answer(prompt: str) -> str:
    runner = InMemoryRunner(agent)
    events = await runner.run_debug(prompt, quiet=True)
    content = events[-1].content if events else None  # none where the model was stopped
    return "".join(part.text or "" for part in (content.parts if content else None) or [])
