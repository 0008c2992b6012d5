"""A crew of one agent with two tools, by CrewAI."""

import json
import sys

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

if __name__ == "__main__":
    task = Task(description=sys.stdin.read(), expected_output="The price and the order's number", agent=buyer)
    print(Crew(agents=[buyer], tasks=[task]).kickoff().raw)
