"""A LangGraph graph with two tools."""

import json

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


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


model = ChatOpenAI(model="gpt-4o").bind_tools([price, order])


def ask(state: MessagesState) -> dict:
    return {"messages": [model.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("model", ask)
builder.add_node("tools", ToolNode([price, order], handle_tool_errors=True))
builder.add_edge(START, "model")
builder.add_conditional_edges("model", tools_condition)
builder.add_edge("tools", "model")
graph = builder.compile()


def answer(prompt: str) -> str:
    return graph.invoke({"messages": [("user", prompt)]})["messages"][-1].text
