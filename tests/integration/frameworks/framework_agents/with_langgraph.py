"""An agent as a LangGraph graph: a model that may call a tool. Both are made when it is imported."""

import json
import os
import sys

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def search(query: str) -> str:
    """Looks up a company's figures."""
    return json.dumps({"company": "ACME", "revenue": 4200})


model = ChatOpenAI(model=os.environ["AGENT_MODEL"]).bind_tools([search])


def chatbot(state: MessagesState):
    return {"messages": [model.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("chatbot", chatbot)
builder.add_node("tools", ToolNode([search]))
builder.add_edge(START, "chatbot")
builder.add_conditional_edges("chatbot", tools_condition)
builder.add_edge("tools", "chatbot")
graph = builder.compile()


def ask(prompt):
    return {"messages": [{"role": "user", "content": prompt}]}


def answer(prompt: str) -> str:
    return graph.invoke(ask(prompt), {"recursion_limit": 8})["messages"][-1].text


def answer_streamed(prompt: str) -> str:
    said = ""
    for chunk, about in graph.stream(ask(prompt), {"recursion_limit": 8}, stream_mode="messages"):
        if about["langgraph_node"] == "chatbot":
            said += chunk.text
    return said


if __name__ == "__main__":
    print(answer(sys.stdin.read()))
