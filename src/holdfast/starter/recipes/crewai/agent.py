"""A CrewAI crew of one agent with two tools."""

import json

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool


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


buyer = Agent(
    role="Buyer",
    goal="Buy what is asked for",
    backstory="You buy for a shop.",
    llm=LLM(model="openai/gpt-4o"),
    tools=[tool("price")(price), tool("order")(order)],
)


def answer(prompt: str) -> str:
    task = Task(description=prompt, expected_output="The price and the order's number", agent=buyer)
    return Crew(agents=[buyer], tasks=[task]).kickoff().raw
